/* SPDX-License-Identifier: MIT */
/* pages.numa_balancing beside the kernel, which moves the same pages. In simulated time. */
#define SET_UP open_beside_kernel
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "page_daemon_fixture.h"

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
	int r = open_pages(state);
	refusal = 0;
	switches = 0;
	world.balancing = 1;
	world.ops.numa_balancing_set = set_balancing;
	make_space(8, 2);
	add_user(1000, 0, 0, 8);
	return r;
}

/* Pages that are moved stay where they are, so that they are requested again. */
static void begin_with(enum nm_page_balancing setting)
{
	world.daemon.config->pages.numa_balancing = setting;
	begin();
	fake_mover.perform = NULL;
	live(12);
}

static bool acts(void)
{
	unsigned before = fake_mover.submitted;
	live(25);
	return fake_mover.submitted > before;
}

static void assert_reported(unsigned times, int priority, const char *words)
{
	assert_int_equal(count_entries(0, NM_MESSAGE_COEXIST), times);
	const struct nm_entry *last = NULL;
	for (size_t i = 0; i < world.nr_entries; i++)
		if (world.entries[i].message == NM_MESSAGE_COEXIST)
			last = &world.entries[i];
	if (times == 0)
		return;
	assert_int_equal(last->priority, priority);
	if (!strstr(last->text, words))
		fail_msg("\"%s\" is not in: %s", words, last->text);
}

static const char *balancing_mode(void)
{
	return nm_balancing_text_of(world.daemon.machine.balancing_mode)->name;
}

TEST(pages_are_left_to_numa_balancing)
{
	begin_with(NM_BALANCING_YIELD);
	assert_int_equal(fake_mover.submitted, 0);
	assert_reported(1, LOG_NOTICE, "left to the kernel");
	assert_string_equal(balancing_mode(), "yields");
	world.balancing = 0;
	assert_true(acts());
	assert_reported(2, LOG_INFO, "is off");
	world.balancing = 1;
	live(3);
	assert_false(acts());
	assert_reported(3, LOG_NOTICE, "left to the kernel");
	assert_int_equal(switches, 0);
}

TEST(faults_without_kernel_balancing_are_ignored)
{
	world.balancing = 0;
	begin_with(NM_BALANCING_YIELD);
	assert_true(fake_mover.submitted > 0);
	assert_reported(0, 0, NULL);
}

/* The value 2 balances tiers of memory only. */
TEST(tier_balancing_does_not_move_managed_pages)
{
	world.balancing = 2;
	begin_with(NM_BALANCING_MANAGE);
	assert_true(fake_mover.submitted > 0);
	assert_reported(0, 0, NULL);
	assert_int_equal(switches, 0);
	world.balancing = 3;
	live(3);
	assert_true(switches > 0);
	assert_string_equal(balancing_mode(), "manages");
}

TEST(a_refused_switch_only_logs_a_warning)
{
	begin_with(NM_BALANCING_WARN);
	assert_true(fake_mover.submitted > 0);
	assert_reported(1, LOG_WARNING, "migrates the same pages");
	assert_int_equal(switches, 0);
}

TEST(balancing_is_turned_off_and_restored)
{
	begin_with(NM_BALANCING_MANAGE);
	assert_true(fake_mover.submitted > 0);
	assert_int_equal(world.balancing, 0);
	assert_reported(1, LOG_NOTICE, "is off until");
	assert_true(switches >= 12); /* a restarted helper must be informed */
	/* The value is restored with the end of the policy. */
	world.daemon.config->pages.policy = NM_PAGES_WATCH;
	nm_pipeline_configure_pages(&world.daemon, false);
	assert_int_equal(world.balancing, 1);
	assert_null(world.daemon.pipeline.pages);
}

TEST(a_changed_setting_restores_it)
{
	begin_with(NM_BALANCING_MANAGE);
	assert_int_equal(world.balancing, 0);
	world.daemon.config->pages.numa_balancing = NM_BALANCING_YIELD;
	nm_pipeline_configure_pages(&world.daemon, false);
	live(3);
	assert_int_equal(world.balancing, 1);
	assert_false(acts());
	assert_string_equal(balancing_mode(), "yields");
}

TEST(a_refused_lease_yields)
{
	refusal = -EPERM;
	begin_with(NM_BALANCING_MANAGE);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(world.balancing, 1);
	assert_reported(1, LOG_WARNING, "stays on, pages left to it");
	refusal = 0;
	assert_true(acts());
	assert_reported(2, LOG_NOTICE, "is off until");
}

/* Faults are the only source of samples, so balancing stays on. */
TEST(needed_balancing_is_not_turned_off)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	begin_with(NM_BALANCING_MANAGE);
	assert_int_equal(world.balancing, 1);
	assert_int_equal(switches, 0);
	assert_reported(1, LOG_NOTICE, "stays on");
	world.daemon.pipeline.source->status.memory = NM_MEMORY_IBS;
	live(2);
	assert_int_equal(world.balancing, 0);
	/* When the better source fails, it is restored. */
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	live(2);
	assert_int_equal(world.balancing, 1);
	assert_string_equal(balancing_mode(), "needs-faults");
}

TEST(injected_faults_win)
{
	world.daemon.config->sampling.inject = NM_INJECT_NUMA_BALANCING;
	nm_inject_configure(&world.daemon);
	begin_with(NM_BALANCING_WARN);
	assert_int_equal(fake_mover.submitted, 0);
	assert_int_equal(world.balancing, 1);
	assert_reported(1, LOG_NOTICE, "left to the kernel");
}

RUN_TESTS()
