/* SPDX-License-Identifier: MIT */
/* The control group through every stage of the daemon, with policy "auto" in simulated time. */
#define SET_UP open_words
#define TEAR_DOWN close_trial
#include "../support/test.h"

#include "daemon_words.h"

static int close_trial(void **state)
{
	shown_clear();
	return world_close(state);
}

static struct nm_trial *group(void)
{
	return world.daemon.trial.group;
}

static struct nm_trial_conditions treated(void)
{
	return *nm_trial_conditions(group(), NM_TRIAL_RAISED, NM_TRIAL_TREATED);
}

static const struct nm_process *process_1000(void)
{
	return nm_tasks_process(world.daemon.pipeline.tasks, 1000);
}

/* control 0.5: the share of processes that are left alone */
ACTION(control, nm_trial_configure(group(), N(0), 0.05))
ACTION(raise_now, nm_trial_raise(group(), N(0), world.fake->now_ns, 3600 * NM_NSEC_PER_SEC))
ACTION(follow, nm_trial_stage_follow(&world.daemon, world.fake->now_ns))
QUANTITY(raise_control, nm_command_raise_control(&world.daemon, U(0), U(1)))
KNOB(since_ns, world.daemon.trial.since_ns)
KNOB(control_percent, world.daemon.config->verify.control_percent)
KNOB(dry_run_request, world.daemon.dry_run_request)
NAMES(dry_run_request, {"begin", NM_DRY_RUN_BEGIN}, {"none", NM_DRY_RUN_NOT_REQUESTED})
QUANTITY(left_alone, process_1000()->left_alone)
QUANTITY(ran_s, treated().ran_s)
QUANTITY(movable, state_of(step)->movable_cpus)
QUANTITY(allowed, state_of(step)->input.allowed[U(1)])
QUANTITY(fixed_on, state_of(step)->input.fixed_on[U(1)])

static const char *shown_in(const char *section, const char *row, const char *name)
{
	show_document(nm_command_dump(&world.daemon), section);
	return shown_text(row ? shown_row("pid", row) : 0, name);
}

TEXT(trial, shown_in("trial", NULL, step->word[0]))
TEXT(explanation, shown_in("processes", "1000", "explanation"))
TEXT(compared, shown_in("status", NULL, "compared_today"))

static double trial_number(const char *name)
{
	show_document(nm_command_dump(&world.daemon), "trial");
	return shown_number(0, name);
}

QUANTITY(shown, trial_number(step->word[0]))
QUANTITY(shown_units, trial_number("managed_units") + trial_number("control_units"))

static unsigned count_texts(const char *words)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += strstr(world.entries[i].text, words) != NULL;
	return count;
}

/* once WORDS, or never WORDS: the number of entries that contain them */
static void assert_count(const struct step *step, unsigned expected)
{
	unsigned found = count_texts(step_rest(step));
	if (found != expected)
		script_fail(step, "found %u", found);
}

ACTION(once, assert_count(step, 1))
ACTION(never, assert_count(step, 0))

/* Processes of two threads, each over two nodes with its memory on one. */
#define TWO                                                                                        \
	"thread 1000 cpu0 node0; thread 1000 cpu3 node0; thread 1100 cpu2 node1; "                 \
	"thread 1100 cpu5 node1; begin auto; set since_ns = 0; "
#define FOUR "four_mixed_up; begin auto; set since_ns = 0; "

/* ---- processes that are left alone ---- */

/* One may run on every node, and demands CPUs there. */
#define COUNTS_AS_FREE(pid)                                                                        \
	"home " pid " = none; reason " pid " = left-alone; allowed " pid " 0 = 1; allowed " pid    \
	" 1 = 1; allowed " pid " 2 = 1; allowed " pid " 3 = 1; fixed_on " pid                      \
	" 0 = 0; fixed_on " pid " 1 = 0; fixed_on " pid " 2 = 0; fixed_on " pid                    \
	" 3 = 0; movable " pid " > 1.5"

SCRIPT(control_gets_no_home_and_counts_as_free, FOUR "control 1; run 6s", COUNTS_AS_FREE("1000"),
       COUNTS_AS_FREE("1100"), COUNTS_AS_FREE("1200"), COUNTS_AS_FREE("1300"),
       "entries decision = 0; narrow = 0", "explanation ~ first ten minutes")

SCRIPT(control_ends_after_ten_minutes,
       FOUR "control 1; run 590s; home 1000 = none; run 30s; home 1000 in 0..3; home 1100 in 0..3",
       "home 1200 in 0..3; home 1300 in 0..3")

/* Work that was decided about before the daemon was started is not comparable. */
SCRIPT(older_programs_take_no_part,
       FOUR "control 1; keep now = now_ns; set since_ns = now; run 6s; home 1000 in 0..3")

SCRIPT(the_setting_ends_control, FOUR "control 1; run 6s; control 0; run 6s; home 1000 in 0..3")

/* ---- programs ---- */

/* Leaves 1000 alone until its program is tried again, in a day. */
WORD(bar_program)
{
	struct nm_trial_candidate one = {.domain = process_1000()->domain,
					 .uid = process_1000()->uid,
					 .comm = process_1000()->comm,
					 .start_ticks = 1,
					 .takes_part = true};
	uint64_t now_ns = world.fake->now_ns;
	nm_trial_configure(group(), 0.5, 0.05);
	for (uint32_t i = 1; i <= 200; i++) {
		one.pid = 5000 + i;
		one.parent = 6000 + i;
		uint64_t s = nm_trial_draw(group(), &one, now_ns) == NM_TRIAL_LEAVE ? 1 : 2;
		uint64_t end_ns = now_ns + s * NM_NSEC_PER_SEC;
		nm_trial_thread_ended(group(), one.pid, end_ns - now_ns, end_ns);
		nm_trial_process_ended(group(), one.pid, end_ns);
	}
}

/* Others keep their homes. */
SCRIPT(a_slower_program_loses_its_homes,
       FOUR "control 1e-12; run 6s; home 1000 in 0..3; bar_program; run 3s; home 1000 = none",
       "home 1100 in 0..3; assignments = 6", "once  left alone for 1 d: 100 % more elapsed time",
       "explanation ~ slower when managed")

static uint64_t backoff_until(void)
{
	return nm_trial_program(group(), process_1000()->domain, process_1000()->uid,
				process_1000()->comm)
		->barred_until_ns;
}

ACTION(tick_before, nm_trial_stage_tick(&world.daemon, NULL, 0, backoff_until() - 1))
ACTION(tick_at_end, nm_trial_stage_tick(&world.daemon, NULL, 0, backoff_until()))

SCRIPT(a_program_that_is_tried_again_is_managed_again,
       FOUR "control 1e-12; run 6s; bar_program; run 3s; left_alone = 1; tick_before",
       "left_alone = 1; tick_at_end; left_alone = 0")

/* ---- the cost of readings ---- */

/* Draws processes that have ended: each is dropped when it is read. */
static size_t left_after_a_tick(unsigned count, double budget_s)
{
	const struct nm_trial_process *processes;
	struct nm_placement *placement = nm_placement_of(&world.daemon.pipeline);
	for (uint32_t i = 1; i <= count; i++) {
		const struct nm_trial_candidate one = {.pid = 5000 + i,
						       .parent = 9000 + i,
						       .start_ticks = 1,
						       .comm = "job",
						       .takes_part = true};
		(void)nm_trial_draw(group(), &one, world.fake->now_ns);
	}
	size_t before = nm_trial_processes(group(), &processes);
	world.daemon.config->sampling.overhead_percent = 0;
	if (placement) {
		placement->budget_s = budget_s;
		placement->spent_ns = nm_own_loop_ns(&world.daemon);
	}
	nm_trial_stage_tick(&world.daemon, NULL, 0, world.fake->now_ns);
	return count - (before - nm_trial_processes(group(), &processes));
}

QUANTITY(left_of, left_after_a_tick(U(0), N(1)))
QUANTITY(budget_max_s, NM_BUDGET_MAX_S)
QUANTITY(has_placement, nm_placement_of(&world.daemon.pipeline) != NULL)
ACTION(tick_now, nm_trial_stage_tick(&world.daemon, NULL, 0, world.fake->now_ns))

/* SECURITY: control-group */
SCRIPT(readings_come_from_the_budget_of_examinations,
       FOUR "control 0.5; run 6s; left_of 500 -1 in 400..499", "each 10: tick_now",
       "keep most = budget_max_s; left_of 500 most = 0")

/* With other policies, too. */
SCRIPT(readings_are_limited_without_examinations,
       FOUR "control 0.5; set policy = lbma; has_placement = 0; left_of 500 0 in 400..499")

/* ---- results ---- */

SCRIPT(status_shows_the_comparison, FOUR
       "control 0.5; set control_percent = 50; run 6s; compared ~ no comparison: 0 managed units")

SCRIPT(a_trial_shows_what_else_differs,
       TWO "control 0; raise_now 0.5; run 60s; shown managed_local > 0.9",
       "shown control_local < 0.6; keep near = shown managed_distance",
       "shown control_distance > near; ran_s > 0")

/* nineteen units, of a few of which the change may be anything */
WORD(few_units)
{
	struct nm_trial_difference found;
	for (uint32_t pid = 9000; pid < 9019; pid++) {
		const struct nm_trial_candidate one = {.pid = pid,
						       .parent = 100000 + pid,
						       .domain = 7,
						       .comm = "cc1",
						       .takes_part = true};
		(void)nm_trial_draw(group(), &one, world.fake->now_ns);
		nm_trial_process_ended(group(), pid, world.fake->now_ns + pid);
	}
	assert_true(nm_trial_result(group(), NM_TRIAL_RAISED, NM_TRIAL_CPU, &found));
}

SCRIPT(without_an_interval_no_change_is_shown, FOUR "control 0; run 2s; raise_now 0.5; few_units",
       "shown_units = 19; trial cpu_change = none; trial elapsed_change = none")

/* ---- trials ---- */

static bool has_programs(void)
{
	show_document(nm_command_dump(&world.daemon), "trial");
	return json_is_array(shown_value(0, "programs"));
}

QUANTITY(has_programs, has_programs())

SCRIPT(a_raised_share_ends,
       FOUR "control 0; run 2s; raise_control 10 50 = EINVAL; raise_control 60 51 = EINVAL",
       "raise_control 60 50 = 0; trial remaining_s = 3600; trial drawing = true; has_programs = 1",
       "raise_control 0 0 = 0; trial remaining_s = 0")

#define TRIAL                                                                                      \
	FOUR "control 0; raise_control 11 50 = 0; once Trial: 50 % of the processes left alone "   \
	     "for 11 min, drawn in the first 1; "

/* Also if nobody asks for its result. */
SCRIPT(a_trial_ends_after_its_time,
       TRIAL "run 630s; never Trial ended; run 60s; once Trial ended: no comparison: ",
       "run 60s; once Trial ended")

SCRIPT(a_second_trial_keeps_the_results,
       TRIAL "run 10s; keep before = ran_s; ran_s > 0; raise_control 60 20 = EBUSY",
       "raise_control 60 50 = 0; ran_s >= before; trial remaining_s = 3600; never Trial ended")

SCRIPT(a_dry_run_ends_a_trial_and_begins_none,
       TRIAL "set dry_run_request = begin; run 2s; once Trial ended early (dry run)",
       "raise_control 60 50 = EROFS; set dry_run_request = none; raise_control 60 50 = 0")

/* With one node, or a policy that moves nothing. */
SCRIPT(a_trial_needs_something_to_compare,
       FOUR "control 0; run 2s; set policy = none; raise_control 60 50 = EOPNOTSUPP",
       "set policy = auto; raise_control 60 50 = 0; set policy = none; follow",
       "once Trial ended early (threads.policy = none)")

RUN_TESTS()
