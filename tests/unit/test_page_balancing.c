/* SPDX-License-Identifier: MIT */
/* pages.numa_balancing beside the kernel, which moves the same pages. In simulated time. */
#define SET_UP open_beside_kernel
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

static int refusal; /* of numa_balancing_set() */
static unsigned switches;

static int set_balancing(struct nm_platform *platform, int value)
{
	(void)platform;
	if (refusal)
		return refusal;
	switches++;
	world.balancing = value < 0 ? 1 : value;
	return 0;
}

/* One thread whose pages are all on another node. */
static int open_beside_kernel(void **state)
{
	int r = open_words(state);
	refusal = 0;
	switches = 0;
	world.balancing = 1;
	world.ops.numa_balancing_set = set_balancing;
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	return r;
}

KNOB(refusal, refusal)
QUANTITY(switches, switches)
KNOB(setting, world.daemon.config->pages.numa_balancing)
NAMES(setting, {"yield", NM_BALANCING_YIELD}, {"manage", NM_BALANCING_MANAGE},
      {"warn", NM_BALANCING_WARN})
KNOB(inject, world.daemon.config->sampling.inject)
NAMES(inject, {"numa_balancing", NM_INJECT_NUMA_BALANCING})
QUANTITY(has_page_stage, world.daemon.pipeline.pages != NULL)

/* Pages that are moved stay where they are, so that they are requested again. */
#define BEGIN "begin pages; steps_move_nothing; run 12; keep n = submitted; "
#define ACTS "keep n = submitted; run 25; submitted > n; "
#define DOES_NOT_ACT "keep n = submitted; run 25; submitted = n; "

WORD(steps_move_nothing)
{
	fake_mover.perform = NULL;
	nm_inject_configure(&world.daemon);
}

TEXT(mode, nm_balancing_text_of(world.daemon.machine.balancing_mode)->name)

/* So many entries, of which the last one is so. */
#define REPORTED(times, priority, words)                                                           \
	"entries coexist = " times "; last coexist; priority = " priority "; text " words "; "

SCRIPT(pages_are_left_to_numa_balancing, "set setting = yield; " BEGIN "submitted = 0",
       REPORTED("1", "notice", "left to the kernel") "mode = yields; set numa_balancing = 0; " ACTS,
       REPORTED("2", "info", "is off") "set numa_balancing = 1; run 3; " DOES_NOT_ACT,
       REPORTED("3", "notice", "left to the kernel") "switches = 0")

SCRIPT(faults_without_kernel_balancing_are_ignored,
       "set numa_balancing = 0; set setting = yield; " BEGIN "submitted > 0; entries coexist = 0")

/* The value 2 balances tiers of memory only. */
SCRIPT(tier_balancing_does_not_move_managed_pages,
       "set numa_balancing = 2; set setting = manage; " BEGIN "submitted > 0; entries coexist = 0",
       "switches = 0; set numa_balancing = 3; run 3; switches > 0; mode = manages")

SCRIPT(a_refused_switch_only_logs_a_warning, "set setting = warn; " BEGIN "submitted > 0",
       REPORTED("1", "warning", "migrates the same pages") "switches = 0")

/* A restarted helper must be informed, in each interval. The value is restored with the end of the
 * policy. */
SCRIPT(balancing_is_turned_off_and_restored,
       "set setting = manage; " BEGIN "submitted > 0; numa_balancing = 0; switches >= 12",
       REPORTED("1", "notice", "is off until") "set page_policy = watch; configure",
       "numa_balancing = 1; has_page_stage = 0")

SCRIPT(a_changed_setting_restores_it,
       "set setting = manage; " BEGIN "numa_balancing = 0; set setting = yield; configure; run 3",
       "numa_balancing = 1; " DOES_NOT_ACT "mode = yields")

SCRIPT(a_refused_switch_yields,
       "set refusal = -1; set setting = manage; " BEGIN "submitted = 0; numa_balancing = 1",
       REPORTED("1", "warning", "stays on, pages left to it") "set refusal = 0; " ACTS,
       REPORTED("2", "notice", "is off until"))

/* Faults are the only source of samples, so balancing stays on. When a better source fails, it is
 * restored. */
SCRIPT(needed_balancing_is_not_turned_off,
       "set samples_from = faults; set setting = manage; " BEGIN "numa_balancing = 1; switches = 0",
       REPORTED("1", "notice", "stays on") "set samples_from = ibs; run 2; numa_balancing = 0",
       "set samples_from = faults; run 2; numa_balancing = 1; mode = needs-faults")

SCRIPT(injected_faults_win,
       "set inject = numa_balancing; set setting = warn; " BEGIN "submitted = 0",
       REPORTED("1", "notice", "left to the kernel") "numa_balancing = 1")

RUN_TESTS()
