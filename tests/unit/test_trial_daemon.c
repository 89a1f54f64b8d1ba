/* SPDX-License-Identifier: MIT */
/* The control group through every stage of the daemon, with policy "auto" in simulated time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dump_fixture.h"
#include "page_daemon_fixture.h"

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

static void control_gets_no_home_and_counts_as_free(void **state)
{
	(void)state;
	begin_with(1);
	live_s(6);
	for (unsigned i = 0; i < 4; i++) {
		const struct nm_home_state *one = placed_of(1000 + 100 * i);
		assert_int_equal(one->home, -1);
		assert_int_equal(one->reason, NM_PLACE_LEFT_ALONE);
		/* It may run on every node, and demands CPUs there. */
		for (unsigned k = 0; k < NODES; k++) {
			assert_true(one->allowed[k]);
			assert_true(one->fixed_on[k] == 0);
		}
		assert_true(one->movable_cpus > 1.5);
	}
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_null(fake_trace(world.fake));
	assert_non_null(strstr(explanation_of_1000(), "first ten minutes"));
}

static void control_ends_after_ten_minutes(void **state)
{
	(void)state;
	begin_with(1);
	live_s(590);
	assert_int_equal(placed_of(1000)->home, -1);
	live_s(30);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(placed_of(1000 + 100 * i)->home, 0, NODES - 1);
}

/* Work that was decided about before the daemon was started is not comparable. */
static void older_programs_take_no_part(void **state)
{
	(void)state;
	begin_with(1);
	world.daemon.trial.since_ns = world.fake->now_ns;
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
}

static void the_setting_ends_control(void **state)
{
	(void)state;
	begin_with(1);
	live_s(6);
	nm_trial_configure(group(), 0, 0.05);
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
}

static void a_slower_program_loses_its_homes(void **state)
{
	(void)state;
	begin_with(1e-12);
	live_s(6);
	assert_in_range(placed_of(1000)->home, 0, NODES - 1);
	const struct nm_process *process = nm_roster_process(world.daemon.pipeline.roster, 1000);
	struct nm_trial_candidate one = {.domain = process->domain,
					 .comm = process->comm,
					 .start_ticks = 1,
					 .takes_part = true};
	nm_trial_configure(group(), 0.5, 0.05);
	for (uint32_t i = 1; i <= 200; i++) {
		one.pid = 5000 + i;
		one.parent = 6000 + i;
		uint64_t now_ns = world.fake->now_ns;
		bool control = nm_trial_draw(group(), &one, now_ns) == NM_TRIAL_LEAVE;
		uint64_t end_ns = now_ns + (control ? 1 : 2) * NM_NSEC_PER_SEC;
		nm_trial_thread_ended(group(), one.pid, end_ns - now_ns, end_ns);
		nm_trial_process_ended(group(), one.pid, end_ns);
	}
	live_s(3);
	assert_int_equal(placed_of(1000)->home, -1);
	/* Others keep their homes. */
	assert_in_range(placed_of(1100)->home, 0, NODES - 1);
	assert_int_equal(nm_actuator_leases(world.daemon.pipeline.actuator), 6);
	unsigned reports = 0;
	for (size_t i = 0; i < world.nr_entries; i++)
		reports += strstr(world.entries[i].text,
				  " left alone for 1 d: 100 % more elapsed time") != NULL;
	assert_int_equal(reports, 1);
	assert_non_null(strstr(explanation_of_1000(), "slower when managed"));
}

static void status_shows_the_comparison(void **state)
{
	(void)state;
	begin_with(0.5);
	world.daemon.config->verify.control_percent = 50;
	live_s(6);
	show_document(nm_command_dump(&world.daemon), "status");
	assert_non_null(strstr(shown_text(0, "compared_today"), "no comparison: 0 managed units"));
}

static void a_trial_shows_what_else_differs(void **state)
{
	(void)state;
	begin_some(2, 0);
	nm_trial_raise(group(), 0.5, world.fake->now_ns, 3600 * NM_NSEC_PER_SEC);
	live_s(60);
	show_document(nm_command_dump(&world.daemon), "trial");
	assert_true(shown_number(0, "managed_local") > 0.9);
	assert_true(shown_number(0, "control_local") < 0.6);
	assert_true(shown_number(0, "managed_distance") < shown_number(0, "control_distance"));
	assert_true(nm_trial_conditions(group(), NM_TRIAL_RAISED, NM_TRIAL_TREATED)->ran_s > 0);
}

static void a_raised_share_ends(void **state)
{
	(void)state;
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

static int close_trial(void **state)
{
	shown_clear();
	return world_close(state);
}

int main(void)
{
#define TEST_OF(name) cmocka_unit_test_setup_teardown(name, open_pages, close_trial)
	const struct CMUnitTest tests[] = {
		TEST_OF(control_gets_no_home_and_counts_as_free),
		TEST_OF(control_ends_after_ten_minutes),
		TEST_OF(older_programs_take_no_part),
		TEST_OF(the_setting_ends_control),
		TEST_OF(a_slower_program_loses_its_homes),
		TEST_OF(status_shows_the_comparison),
		TEST_OF(a_trial_shows_what_else_differs),
		TEST_OF(a_raised_share_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
