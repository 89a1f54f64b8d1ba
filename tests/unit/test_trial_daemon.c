/* SPDX-License-Identifier: MIT */
/* The control group through every stage of the daemon, with policy "auto" in simulated time. */
#define SET_UP open_pages
#define TEAR_DOWN close_trial
#include "../support/test.h"

#include <math.h>

#include "dump_fixture.h"
#include "page_daemon_fixture.h"

static int close_trial(void **state);

static struct nm_trial *group(void)
{
	return world.daemon.trial.group;
}

/* Processes of two threads, each over two nodes with its memory on one. */
static void begin_some(unsigned count, double control_share)
{
	for (unsigned i = 0; i < count; i++) {
		add_worker(1000 + 100 * i, (int)(2 * i), i);
		add_worker(1000 + 100 * i, (int)((2 * i + 3) % CPUS), i);
	}
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	world.daemon.trial.since_ns = 0;
	nm_trial_configure(group(), control_share, 0.05);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static void begin_with(double control_share)
{
	begin_some(4, control_share);
}

static void live_s(double seconds)
{
	live((unsigned)(seconds / nm_loop_wakeup_s(&world.daemon)));
}

static struct nm_home_state *placed_of(uint32_t pid)
{
	struct nm_home_state *home_state = nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(home_state);
	return home_state;
}

static const char *explanation_of_1000(void)
{
	show_document(nm_command_dump(&world.daemon), "processes");
	return shown_text(shown_row("pid", "1000"), "explanation");
}

TEST(control_gets_no_home_and_counts_as_free)
{
	begin_with(1);
	live_s(6);
	for (unsigned i = 0; i < 4; i++) {
		const struct nm_home_state *one = placed_of(1000 + 100 * i);
		assert_int_equal(one->home, -1);
		assert_int_equal(one->reason, NM_PLACE_LEFT_ALONE);
		/* It may run on every node, and demands CPUs there. */
		for (unsigned k = 0; k < NODES; k++) {
			assert_true(one->input.allowed[k]);
			assert_true(one->input.fixed_on[k] == 0);
		}
		assert_true(one->movable_cpus > 1.5);
	}
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_null(fake_trace(world.fake));
	assert_non_null(strstr(explanation_of_1000(), "first ten minutes"));
}

TEST(control_ends_after_ten_minutes)
{
	begin_with(1);
	live_s(590);
	assert_int_equal(placed_of(1000)->home, -1);
	live_s(30);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(placed_of(1000 + 100 * i)->home, 0, NODES - 1);
}

/* Work that was decided about before the daemon was started is not comparable. */
TEST(older_programs_take_no_part)
{
	begin_with(1);
	world.daemon.trial.since_ns = world.fake->now_ns;
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
}

TEST(the_setting_ends_control)
{
	begin_with(1);
	live_s(6);
	nm_trial_configure(group(), 0, 0.05);
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
}

/* Leaves 1000 alone until its program is tried again, in a day. */
static void bar_program_of_1000(void)
{
	const struct nm_process *process = nm_roster_process(world.daemon.pipeline.roster, 1000);
	struct nm_trial_candidate one = {.domain = process->domain,
					 .uid = process->uid,
					 .comm = process->comm,
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

TEST(a_slower_program_loses_its_homes)
{
	begin_with(1e-12);
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
	bar_program_of_1000();
	live_s(3);
	assert_int_equal(placed_of(1000)->home, -1);
	/* Others keep their homes. */
	assert_in_range(placed_of(1100)->home, 0, NODES - 1);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 6);
	unsigned reports = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		reports += strstr(world.entries[i].text,
				  " left alone for 1 d: 100 % more elapsed time") != NULL;
	assert_int_equal(reports, 1);
	assert_non_null(strstr(explanation_of_1000(), "slower when managed"));
}

static void tick_trial_at(uint64_t now_ns)
{
	nm_trial_stage_tick(&world.daemon, NULL, 0, now_ns);
}

TEST(a_program_that_is_tried_again_is_managed_again)
{
	begin_with(1e-12);
	live_s(6);
	bar_program_of_1000();
	live_s(3);
	const struct nm_process *process = nm_roster_process(world.daemon.pipeline.roster, 1000);
	const struct nm_trial_program *program =
		nm_trial_program(group(), process->domain, process->uid, process->comm);
	assert_true(process->left_alone);
	tick_trial_at(program->barred_until_ns - 1);
	assert_true(process->left_alone);
	tick_trial_at(program->barred_until_ns);
	assert_false(process->left_alone);
}

/* Draws processes that have ended: each is dropped when it is read. */
static size_t left_after_a_tick(unsigned count, double budget_s)
{
	const struct nm_trial_process *processes;
	struct nm_placement *placement = nm_placement_of(&world.daemon);
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
	tick_trial_at(world.fake->now_ns);
	return count - (before - nm_trial_processes(group(), &processes));
}

/* SECURITY: control-group */
TEST(readings_come_from_the_budget_of_examinations)
{
	begin_with(0.5);
	live_s(6);
	size_t left = left_after_a_tick(500, -1);
	assert_in_range(left, 500 - 100, 499);
	for (unsigned i = 0; i < 10; i++)
		tick_trial_at(world.fake->now_ns);
	assert_int_equal(left_after_a_tick(500, NM_BUDGET_MAX_S), 0);
}

/* With other policies, too. */
TEST(readings_are_limited_without_examinations)
{
	begin_with(0.5);
	world.daemon.config->threads.policy = NM_POLICY_LBMA;
	assert_null(nm_placement_of(&world.daemon));
	assert_in_range(left_after_a_tick(500, 0), 500 - 100, 499);
}

TEST(status_shows_the_comparison)
{
	begin_with(0.5);
	world.daemon.config->verify.control_percent = 50;
	live_s(6);
	show_document(nm_command_dump(&world.daemon), "status");
	assert_non_null(strstr(shown_text(0, "compared_today"), "no comparison: 0 managed units"));
}

TEST(a_trial_shows_what_else_differs)
{
	begin_some(2, 0);
	nm_trial_raise(group(), 0.5, world.fake->now_ns, 3600 * NM_NSEC_PER_SEC);
	live_s(60);
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_true(shown_number(0, "managed_local") > 0.9);
	assert_true(shown_number(0, "control_local") < 0.6);
	assert_true(shown_number(0, "managed_distance") < shown_number(0, "control_distance"));
	assert_true(nm_trial_conditions(group(), NM_TRIAL_RAISED, NM_TRIAL_TREATED)->ran_s > 0);
}

/* Of a few units the change may be anything. */
TEST(without_an_interval_no_change_is_shown)
{
	struct nm_trial_difference found;
	begin_with(0);
	live_s(2);
	nm_trial_raise(group(), 0.5, world.fake->now_ns, 3600 * NM_NSEC_PER_SEC);
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
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_true(shown_number(0, "managed_units") + shown_number(0, "control_units") == 19);
	assert_null(shown_value(0, "cpu_change"));
	assert_null(shown_value(0, "elapsed_change"));
}

TEST(a_raised_share_ends)
{
	begin_with(0);
	live_s(2);
	assert_int_equal(nm_command_raise_control(&world.daemon, 10, 50), -EINVAL);
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 51), -EINVAL);
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), 0);
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_shown(0, "remaining_s", "3600");
	assert_shown(0, "drawing", "true");
	assert_true(json_is_array(shown_value(0, "programs")));
	assert_int_equal(nm_command_raise_control(&world.daemon, 0, 0), 0);
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_shown(0, "remaining_s", "0");
}

static unsigned entries_of_trial(const char *text)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		count += world.entries[i].message == NM_MESSAGE_TRIAL &&
			 strstr(world.entries[i].text, text) != NULL;
	return count;
}

static void begin_trial(void)
{
	begin_with(0);
	assert_int_equal(nm_command_raise_control(&world.daemon, 11, 50), 0);
	assert_int_equal(entries_of_trial("Trial: 50 % of the processes left alone for 11 min, "
					  "drawn in the first 1"),
			 1);
}

/* Also if nobody asks for its result. */
TEST(a_trial_ends_after_its_time)
{
	begin_trial();
	live_s(11 * 60 - 30);
	assert_int_equal(entries_of_trial("Trial ended"), 0);
	live_s(60);
	assert_int_equal(entries_of_trial("Trial ended: no comparison: "), 1);
	live_s(60);
	assert_int_equal(entries_of_trial("Trial ended"), 1);
}

TEST(a_second_trial_keeps_the_results)
{
	begin_trial();
	live_s(10);
	const struct nm_trial_conditions before =
		*nm_trial_conditions(group(), NM_TRIAL_RAISED, NM_TRIAL_TREATED);
	assert_true(before.ran_s > 0);
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 20), -EBUSY);
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), 0);
	assert_true(nm_trial_conditions(group(), NM_TRIAL_RAISED, NM_TRIAL_TREATED)->ran_s >=
		    before.ran_s);
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_shown(0, "remaining_s", "3600");
	assert_int_equal(entries_of_trial("Trial ended"), 0);
}

TEST(a_dry_run_ends_a_trial_and_begins_none)
{
	begin_trial();
	world.daemon.dry_run_request = NM_DRY_RUN_BEGIN;
	live_s(2);
	assert_int_equal(entries_of_trial("Trial ended early (dry run)"), 1);
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), -EROFS);
	world.daemon.dry_run_request = NM_DRY_RUN_NOT_REQUESTED;
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), 0);
}

/* With one node, or a policy that moves nothing. */
TEST(a_trial_needs_something_to_compare)
{
	begin_with(0);
	live_s(2);
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), -EOPNOTSUPP);
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	assert_int_equal(nm_command_raise_control(&world.daemon, 60, 50), 0);
	world.daemon.config->threads.policy = NM_POLICY_NONE;
	nm_trial_stage_follow(&world.daemon, world.fake->now_ns);
	assert_int_equal(entries_of_trial("Trial ended early (threads.policy = none)"), 1);
}

static int close_trial(void **state)
{
	shown_clear();
	return world_close(state);
}

RUN_TESTS()
