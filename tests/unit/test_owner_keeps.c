/* SPDX-License-Identifier: MIT */
/* An affinity set by its owner stays, even if it equals that of a move of an ancestor; and
 * restoration sets exactly the original affinity. */
#define SET_UP set_up_small
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "move_fixture.h"

static int set_up_small(void **state);

/* ---- affinities of owners that look like those of moves ---- */

TEST(a_restored_child_may_be_pinned_to_that_node)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	world_drain();
	assert_int_equal(world_mask(300), ALL);
	fake_pin(fake, 300, world_node(1));
	for (int i = 0; i < 4; i++) {
		world_tick();
		assert_int_equal(world_mask(300), world_node(1));
	}
}

/* If a CPU has no ring, records are lost in every interval. */
/* SECURITY: others-pins */
TEST(an_owner_keeps_its_affinity_while_records_are_lost)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 101, 301);
	world_drain();
	fake_fork(fake, 101, 302);
	world_lose_records();
	world_tick();
	assert_int_equal(world_mask(302), ALL);
	fake_pin(fake, 300, world_node(1));
	fake_pin(fake, 302, world_node(1));
	for (int i = 0; i < 5; i++) {
		world_lose_records();
		world_tick();
		assert_int_equal(world_mask(300), world_node(1));
		assert_int_equal(world_mask(302), world_node(1));
	}
	assert_int_equal(nm_moves_end(world->moves), 0);
	assert_int_equal(world_mask(300), world_node(1));
	assert_int_equal(world_mask(302), world_node(1));
	assert_no_trace();
}

TEST(later_children_keep_their_affinity)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	world_drain();
	fake_pin(fake, 300, world_node(1));
	fake_sleep(fake, 100);
	fake_fork(fake, 300, 301);
	world_tick();
	assert_int_equal(world_mask(301), world_node(1));
}

/* After restoration it executes a program that pins itself before its record is read. */
TEST(a_started_program_pins_itself)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	world_drain();
	fake_sleep(fake, 500);
	fake_fork(fake, 300, 301);
	fake_pin(fake, 301, world_node(1));
	world_tick();
	assert_int_equal(world_mask(301), world_node(1));
}

static void report_births(uint32_t parent, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct nm_task_event event = {.kind = NM_TASK_FORK,
						    .pid = first + i,
						    .tid = first + i,
						    .parent_pid = parent,
						    .parent_tid = parent,
						    .time_ns = fake->now_ns};
		nm_moves_task_event(world->moves, &event);
	}
}

/* Its siblings, which have exited, exceed the limit. */
/* SECURITY: forks */
TEST(an_owner_keeps_its_affinity_beyond_the_remembered_limit)
{
	world_narrow(101, 1);
	report_births(101, 10000, 10000);
	fake_fork(fake, 101, 300);
	world_drain();
	assert_int_equal(world_mask(300), ALL);
	world_tick(); /* a walk */
	fake_pin(fake, 300, world_node(1));
	for (int i = 0; i < 12; i++) {
		world_tick();
		assert_int_equal(world_mask(300), world_node(1));
	}
}

/* Children of one user leave room for those of another: a parent that exited is known from records,
 * without a walk. */
/* SECURITY: forks */
TEST(one_users_forks_leave_room_for_others)
{
	fake_get(fake, 200)->uid = 1001;
	world_narrow(101, 1);
	world_narrow(200, 2);
	report_births(101, 10000, 10000);
	fake_fork(fake, 200, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 300);
	world_drain();
	assert_int_equal(world_mask(301), ALL);
}

/* In the session and cgroup of the moved process, left by its parent, but of another user. */
/* SECURITY: others-pins */
TEST(an_orphan_of_another_user_keeps_its_affinity)
{
	fake_move(fake, 100, "/job");
	world_narrow(101, 1);
	struct fake_thread *orphan = fake_process(fake, 400, 1);
	orphan->session = 50;
	orphan->uid = 1001;
	fake_move(fake, 400, "/job");
	fake_pin(fake, 400, world_node(1));
	for (int i = 0; i < 3; i++) {
		world_lose_records();
		world_tick();
		assert_int_equal(world_mask(400), world_node(1));
	}
	world_lose_records();
	assert_int_equal(nm_moves_end(world->moves), 0);
	assert_int_equal(world_mask(400), world_node(1));
}

/* The number of an inheritor is reused by an unrelated process, which has children too. */
/* SECURITY: others-pins */
TEST(children_of_a_reused_number_are_not_inheritors)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	fake_kill(fake, 300);
	fake_sleep(fake, 100);
	fake_fork(fake, 50, 300);
	fake_pin(fake, 300, world_node(1));
	fake_fork(fake, 300, 310);
	world_tick();
	assert_int_equal(world_mask(310), world_node(1));
	assert_int_equal(world_mask(300), world_node(1));
}

/* The same if the records of its exit and fork are lost. */
TEST(a_reused_number_after_lost_records_is_not_an_inheritor)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	world_drain();
	fake_kill(fake, 300);
	fake_sleep(fake, 100);
	fake_fork(fake, 50, 300);
	world_lose_records();
	fake_pin(fake, 300, world_node(1));
	fake_fork(fake, 300, 310);
	world_tick();
	assert_int_equal(world_mask(310), world_node(1));
}

/* ---- an exec without a record ---- */

/* The moved thread exited; its leader, known to another thread, is pinned by its owner. */
static void end_of_a_thread_beside_a_pinned_leader(void)
{
	world_narrow(101, 1);
	fake_pin(fake, 100, world_node(1));
	fake_exit(fake, 101);
	world_lose_records();
	world_tick();
	world_tick();
	assert_int_equal(world_mask(100), world_node(1));
}

TEST(a_pinned_leader_is_not_taken_for_an_exec)
{
	end_of_a_thread_beside_a_pinned_leader();
}

/* No other thread is left that could show this, but the leader has used less CPU time. */
TEST(an_idle_leader_is_not_taken_for_an_exec)
{
	fake_exit(fake, 102);
	fake_get(fake, 101)->ran_ticks = 500;
	end_of_a_thread_beside_a_pinned_leader();
}

TEST(an_exec_is_detected_without_its_record)
{
	world_narrow(101, 1);
	fake_exec(fake, 101);
	world_lose_records();
	world_tick();
	assert_int_equal(world_mask(100), ALL);
}

/* ---- what is restored ---- */

static void take_number(struct fake *f)
{
	fake_exit(f, 101);
	fake_clone(f, 200, 101);
}

/* In a cpuset that its threads do not narrow further: they widen with it. */
/* SECURITY: reuse */
TEST(a_misfire_resets_the_affinity_kept_by_the_kernel)
{
	fake_cpuset(fake, "/part", fake_cpus(0, 5));
	fake_move(fake, 200, "/part");
	fake_at(fake, FAKE_SET, 1, take_number);
	assert_false(world_move(101, 1).applied);
	assert_int_equal(world_mask(101), fake_cpus(0, 5));
	fake_cpuset(fake, "/part", ALL);
	assert_no_trace();
}

static void set_online(uint64_t cpus)
{
	fake->online = cpus;
	fake_to_bitmap(cpus, world->topology->online);
}

/* sched_getaffinity(2) omits offline CPUs. */
TEST(offline_cpus_are_restored)
{
	fake_pin(fake, 101, fake_cpus(2, 7));
	set_online(fake_cpus(0, 6));
	world_narrow(101, 2);
	world_poll(20);
	set_online(ALL);
	assert_int_equal(fake_get(fake, 101)->user, fake_cpus(2, 7));
	fake_apply_cpuset(fake, fake_get(fake, 101));
	assert_no_trace();
}

/* Its children are created at once. */
static int set_up_small(void **state)
{
	(void)set_up(state);
	fake_get(fake, 50)->rss_kb = 4096;
	for (uint32_t tid = 100; tid <= 102; tid++)
		fake_get(fake, tid)->rss_kb = 4096;
	return 0;
}

RUN_TESTS()
