/* SPDX-License-Identifier: MIT */
/* A thread is moved, and keeps its affinity. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "move_fixture.h"

/* ---- the window ---- */

TEST(a_running_thread_is_moved_at_once)
{
	struct nm_receipt receipt = world_move(101, 2);
	assert_true(receipt.applied);
	assert_int_equal(world_node_of(101), 2);
	assert_int_equal(world_mask(101), ALL);
	assert_int_equal(nm_moves_open(world->moves), 0);
	assert_int_equal(nm_moves_counts(world->moves).arrived, 1);
}

TEST(a_sleeping_thread_is_restored_when_it_runs)
{
	world_narrow(101, 2);
	assert_int_equal(nm_moves_open(world->moves), 1);
	fake_get(fake, 101)->stuck = false;
	fake_settle(fake_get(fake, 101));
	world_poll(5);
	assert_int_equal(world_node_of(101), 2);
	assert_int_equal(world_mask(101), ALL);
}

/* SECURITY: stuck */
TEST(a_thread_that_does_not_run_is_restored_after_the_window)
{
	world_narrow(101, 2);
	world_poll(19);
	assert_int_not_equal(world_mask(101), ALL);
	world_poll(1);
	assert_int_equal(world_mask(101), ALL);
	assert_int_equal(world_node_of(101), 0);
	assert_int_equal(nm_moves_open(world->moves), 0);
	assert_int_equal(nm_moves_counts(world->moves).missed, 1);
	assert_int_equal(world_reported(NM_MOVE_MISSED, 101), 1);
}

TEST(a_thread_that_is_there_is_not_narrowed)
{
	unsigned sets = fake->calls[FAKE_SET];
	assert_true(world_move(101, 0).applied);
	assert_int_equal(fake->calls[FAKE_SET], sets);
}

TEST(a_pinned_thread_gets_its_own_affinity_back)
{
	fake_pin(fake, 101, fake_cpus(0, 5));
	assert_true(world_move(101, 2).applied);
	assert_int_equal(world_mask(101), fake_cpus(0, 5));
	assert_int_equal(fake_get(fake, 101)->user, fake_cpus(0, 5));
}

/* ---- where to ---- */

TEST(a_thread_goes_to_the_idle_cpu)
{
	world->busy_share[4] = 1;
	assert_true(world_move(101, 2).applied);
	assert_int_equal(fake_get(fake, 101)->processor, 5);
}

TEST(two_threads_get_different_cpus)
{
	assert_true(world_move(101, 2).applied);
	assert_true(world_move(102, 2).applied);
	assert_int_not_equal(fake_get(fake, 101)->processor, fake_get(fake, 102)->processor);
}

/* ---- refusals ---- */

static void assert_refused(uint32_t tid, int error)
{
	struct nm_receipt receipt = world_move(tid, 2);
	assert_false(receipt.applied);
	assert_int_equal(receipt.steps[0].error, error);
	assert_int_equal(world_node_of(tid), 0);
	assert_no_trace();
}

/* SECURITY: cap-nice */
TEST(a_thread_of_another_policy_is_not_moved)
{
	const unsigned policies[] = {SCHED_FIFO, SCHED_RR, SCHED_DEADLINE, 7 /* SCHED_EXT */};
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		fake_get(fake, 101)->policy = policies[i];
		assert_refused(101, -EPERM);
	}
}

TEST(a_thread_that_creates_tasks_is_not_moved)
{
	fake_fork(fake, 101, 300);
	world_drain();
	assert_refused(101, -EAGAIN);
	assert_true(world_move(102, 2).applied);
	world_tick();
	assert_true(world_move(101, 2).applied);
}

TEST(nothing_is_moved_beside_another_scheduler)
{
	fake->sched_ext = true;
	world_tick();
	assert_refused(101, -EAGAIN);
	assert_non_null(nm_moves_bar(world->moves));
	fake->sched_ext = false;
	world_tick();
	assert_true(world_move(101, 2).applied);
}

static void take_long(struct fake *f)
{
	fake_sleep(f, 25);
}

TEST(a_thread_whose_call_takes_long_rests)
{
	fake_at(fake, FAKE_SET, 1, take_long);
	assert_true(world_move(101, 2).applied);
	assert_true(nm_moves_counts(world->moves).longest_ns >= 25 * NM_NSEC_PER_MSEC);
	assert_int_equal(world_move(101, 0).steps[0].error, -EAGAIN);
	assert_true(world_move(102, 2).applied);
	fake_sleep(fake, 2000);
	assert_int_equal(world_move(101, 0).steps[0].error, -EAGAIN);
	fake_sleep(fake, 1000); /* a hundred times as long as the call */
	assert_true(world_move(101, 0).applied);
}

TEST(nothing_is_moved_if_records_were_lost)
{
	world_lose_records();
	assert_refused(101, -EAGAIN);
	world_tick();
	assert_true(world_move(101, 2).applied);
}

static void pin_101(struct fake *f)
{
	fake_pin(f, 101, world_node(1));
}

/* SECURITY: pin-meanwhile */
TEST(an_affinity_set_meanwhile_is_not_replaced)
{
	fake_at(fake, FAKE_GET, 2, pin_101);
	struct nm_receipt receipt = world_move(101, 2);
	assert_false(receipt.applied);
	assert_int_equal(receipt.steps[0].error, -ESTALE);
	assert_no_trace();
}

TEST(a_refused_half_ends_a_swap)
{
	fake_get(fake, 102)->processor = 4;
	struct nm_decision decision = {.kind = NM_DECISION_SWAP,
				       .nr_steps = 2,
				       .steps = {world_step(101, 2), world_step(102, 0)}};
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	assert_false(world_run(&decision).applied);
	world_poll(20);
	assert_no_trace();
}

/* SECURITY: stuck */
TEST(a_restoration_that_fails_is_tried_again)
{
	fake_fail(fake, FAKE_SET, 2, 2, EPERM);
	assert_true(world_move(101, 2).applied);
	assert_int_equal(world_reported(NM_MOVE_FAILED, 101), 1);
	assert_int_equal(nm_moves_open(world->moves), 0);
	world_tick();
	assert_int_not_equal(world_mask(101), ALL);
	world_tick();
	assert_int_equal(world_mask(101), ALL);
	assert_int_equal(world_reported(NM_MOVE_FAILED, 101), 1);
}

/* ---- the owner ---- */

/* SECURITY: pin-meanwhile */
TEST(an_affinity_set_within_the_window_stays)
{
	world_narrow(101, 2);
	fake_pin(fake, 101, world_node(3));
	world_poll(20);
	assert_int_equal(world_mask(101), world_node(3));
	assert_int_equal(world_reported(NM_MOVE_FOREIGN, 101), 1);
}

/* SECURITY: groups-vanish */
TEST(a_cpuset_that_shrinks_and_grows_leaves_nothing)
{
	fake->remembers = true;
	fake_cpuset(fake, "/job", ALL);
	fake_move(fake, 100, "/job");
	world_narrow(101, 2);
	fake_cpuset(fake, "/job", fake_cpus(0, 1));
	world_poll(20);
	fake_cpuset(fake, "/job", ALL);
	assert_no_trace();
}

/* ---- slots ---- */

static bool has_file(void)
{
	return faccessat(world->directory, NM_MOVES_NAME, F_OK, 0) == 0;
}

TEST(the_file_is_removed_at_the_end)
{
	world_narrow(101, 2);
	assert_int_equal(nm_moves_end(world->moves), 0);
	assert_no_trace();
	for (int i = 0; i < 12; i++)
		world_tick();
	nm_moves_free(NM_TAKE(world->moves));
	assert_false(has_file());
}

/* One domain uses half of the slots. */
TEST(a_domain_leaves_slots_for_others)
{
	for (unsigned i = 0; i < NM_MOVE_SLOTS; i++)
		(void)world_move(101, 2 + i % 2);
	assert_int_equal(nm_moves_counts(world->moves).asked, NM_MOVE_SLOTS / 2);
	fake_get(fake, 200)->uid = 1001;
	assert_true(world_move(200, 2).applied);
	for (int i = 0; i < 11; i++)
		world_tick();
	assert_true(world_move(101, 1).applied);
}

/* SECURITY: runtime-directory */
TEST(a_file_of_another_kind_is_refused)
{
	struct nm_moves *second = NULL;
	nm_moves_free(NM_TAKE(world->moves));
	fixture_file(world->root, NM_MOVES_NAME, "something else\n");
	assert_int_equal(nm_moves_new(&fake->platform, world->topology, world->directory,
				      WORLD_BOOT, world_on_event, world, &second),
			 -EBADMSG);
	assert_null(second);
}

RUN_TESTS()
