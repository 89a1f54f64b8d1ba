/* SPDX-License-Identifier: MIT */
/* An affinity set by its owner stays, even if it equals one leased to an ancestor; and restoration
 * sets exactly the original affinity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "family_fixture.h"

static void assert_restored_everywhere(void)
{
	const struct fake_thread *thread = fake_trace(fake);
	if (thread)
		fail_msg("thread %u has %#" PRIx64 ", not %#" PRIx64, thread->tid, thread->mask,
			 thread->own);
}

/* ---- owner affinities that look leased ---- */

static void a_restored_child_may_be_pinned_to_that_node(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake_pin(fake, 300, world_node(1));
	assert_false(world_asked_of(world, 300));
	for (int i = 0; i < 4; i++) {
		world_tick(world);
		assert_false(world_asked_of(world, 300));
		assert_int_equal(world_mask(world, 300), world_node(1));
	}
}

/* If a CPU has no ring, records are lost in every interval. */
/* SECURITY: others-pins */
static void an_owner_keeps_its_affinity_while_records_are_lost(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 101, 301);
	world_drain(world);
	fake_fork(fake, 101, 302);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 302), ALL);
	fake_pin(fake, 300, world_node(1));
	fake_pin(fake, 302, world_node(1));
	for (int i = 0; i < 5; i++) {
		world_lose_records(world);
		assert_false(world_asked_of(world, 300));
		world_tick(world);
		assert_int_equal(world_mask(world, 300), world_node(1));
		assert_int_equal(world_mask(world, 302), world_node(1));
	}
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 300), world_node(1));
	assert_int_equal(world_mask(world, 302), world_node(1));
	assert_restored_everywhere();
}

static void later_children_keep_their_affinity(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	world_drain(world);
	fake_pin(fake, 300, world_node(1));
	fake_sleep(fake, 100);
	fake_fork(fake, 300, 301);
	world_tick(world);
	assert_int_equal(world_mask(world, 301), world_node(1));
}

/* After restoration it executes a program that pins itself before its record is read. */
static void a_started_program_pins_itself(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	world_drain(world);
	fake_sleep(fake, 500);
	fake_fork(fake, 300, 301);
	fake_pin(fake, 301, world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 301), world_node(1));
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
		nm_actuator_task_event(world->actuator, &event);
	}
}

/* Its siblings, which have exited, exceed the limit. */
/* SECURITY: forks */
static void an_owner_keeps_its_affinity_beyond_the_remembered_limit(void **state)
{
	(void)state;
	lease(101, 1);
	report_births(101, 10000, 10000);
	fake_fork(fake, 101, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake_pin(fake, 300, world_node(1));
	for (int i = 0; i < 5; i++) {
		world_tick(world);
		assert_false(world_asked_of(world, 300));
		assert_int_equal(world_mask(world, 300), world_node(1));
	}
}

/* Children of one user leave room for those of another: a parent that exited is known from records,
 * without a walk. */
/* SECURITY: forks */
static void one_users_forks_leave_room_for_others(void **state)
{
	(void)state;
	fake_get(fake, 200)->uid = 1001;
	lease(101, 1);
	lease(200, 2);
	report_births(101, 10000, 10000);
	fake_fork(fake, 200, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 301), ALL);
}

/* The same after a lease has ended. */
static void an_owner_keeps_its_affinity_after_a_lease(void **state)
{
	(void)state;
	lease(101, 1);
	assert_int_equal(world_return(world, 101), 0);
	fake_pin(fake, 101, world_node(1));
	fake_sleep(fake, 100);
	fake_fork(fake, 101, 300);
	fake_exec(fake, 300);
	world_tick(world);
	assert_int_equal(world_mask(world, 300), world_node(1));
	assert_int_equal(world_mask(world, 101), world_node(1));
}

static void an_exec_keeps_the_affinity_of_a_thread(void **state)
{
	(void)state;
	lease(101, 1);
	assert_int_equal(world_return(world, 101), 0);
	fake_pin(fake, 101, world_node(1));
	fake_exec(fake, 101);
	world_tick(world);
	assert_int_equal(world_mask(world, 100), world_node(1));
}

/* In the session and cgroup of the leased process, left by its parent, but of another user. */
/* SECURITY: others-pins */
static void an_orphan_of_another_user_keeps_its_affinity(void **state)
{
	(void)state;
	fake_move(fake, 100, "/job");
	lease(101, 1);
	struct fake_thread *orphan = fake_process(fake, 400, 1);
	orphan->session = 50;
	orphan->uid = 1001;
	fake_move(fake, 400, "/job");
	fake_pin(fake, 400, world_node(1));
	for (int i = 0; i < 3; i++) {
		world_lose_records(world);
		assert_false(world_asked_of(world, 400));
		world_tick(world);
		assert_int_equal(world_mask(world, 400), world_node(1));
	}
	world_lose_records(world);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 400), world_node(1));
}

/* The number of an inheritor is reused by an unrelated process, which has children too. */
/* SECURITY: others-pins */
static void children_of_a_reused_number_are_not_inheritors(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_kill(fake, 300);
	fake_sleep(fake, 100);
	fake_fork(fake, 50, 300);
	fake_pin(fake, 300, world_node(1));
	fake_fork(fake, 300, 310);
	world_tick(world);
	assert_int_equal(world_mask(world, 310), world_node(1));
	assert_int_equal(world_mask(world, 300), world_node(1));
}

/* The same if the records of its exit and fork are lost. */
static void a_reused_number_after_lost_records_is_not_an_inheritor(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	world_drain(world);
	fake_kill(fake, 300);
	fake_sleep(fake, 100);
	fake_fork(fake, 50, 300);
	world_lose_records(world);
	fake_pin(fake, 300, world_node(1));
	fake_fork(fake, 300, 310);
	world_tick(world);
	assert_int_equal(world_mask(world, 310), world_node(1));
}

/* ---- an exec without a record ---- */

/* The leased thread exited; its leader, known to another thread, is pinned by its owner. */
static void end_of_a_thread_beside_a_pinned_leader(void)
{
	lease(101, 1);
	fake_pin(fake, 100, world_node(1));
	fake_exit(fake, 101);
	world_lose_records(world);
	world_tick(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 100), world_node(1));
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

static void a_pinned_leader_is_not_taken_for_an_exec(void **state)
{
	(void)state;
	end_of_a_thread_beside_a_pinned_leader();
}

/* No other thread is left that could show this, but the leader has used less CPU time. */
static void an_idle_leader_is_not_taken_for_an_exec(void **state)
{
	(void)state;
	fake_exit(fake, 102);
	fake_get(fake, 101)->ran_ticks = 500;
	end_of_a_thread_beside_a_pinned_leader();
}

static void an_exec_is_detected_without_its_record(void **state)
{
	(void)state;
	lease(101, 1);
	fake_exec(fake, 101);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 100), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* ---- identity ---- */

/* The record of its fork is read after its own lease, and it cannot be read at that time. */
static void an_unreadable_child_does_not_displace_a_lease(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_pin(fake, 110, ALL);
	lease(110, 2);
	fake_fail(fake, FAKE_READ, 1, 1, EMFILE);
	world_drain(world);
	assert_true(world_holds(world, 110));
	assert_int_equal(world_return(world, 110), 0);
	assert_int_equal(world_mask(world, 110), ALL);
}

/* ---- what is restored ---- */

static void take_number(struct fake *f)
{
	fake_exit(f, 101);
	fake_clone(f, 200, 101);
}

/* In a cpuset that its threads do not narrow further: they widen with it. */
static void a_misfire_resets_the_affinity_kept_by_the_kernel(void **state)
{
	(void)state;
	fake_cpuset(fake, "/part", fake_cpus(0, 5));
	fake_move(fake, 200, "/part");
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_SET, 1, take_number);
	assert_false(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 5));
	fake_cpuset(fake, "/part", ALL);
	assert_restored_everywhere();
}

/* One half of a swap is refused: the other is rolled back, and follows its cpuset again. */
static void a_rolled_back_half_follows_its_cpuset(void **state)
{
	(void)state;
	fake_cpuset(fake, "/part", fake_cpus(0, 5));
	fake_move(fake, 100, "/part");
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 102);
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	assert_false(world_swap(world, 101, 1, 102, 0).applied);
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 5));
	fake_cpuset(fake, "/part", ALL);
	assert_restored_everywhere();
}

static void set_online(uint64_t cpus)
{
	fake->online = cpus;
	fake_to_bitmap(cpus, world->topology->online);
}

/* sched_getaffinity(2) omits offline CPUs. */
static void offline_cpus_are_restored(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(2, 7));
	set_online(fake_cpus(0, 6));
	lease(101, 1);
	assert_int_equal(world_return(world, 101), 0);
	set_online(ALL);
	assert_int_equal(fake_get(fake, 101)->user, fake_cpus(2, 7));
	fake_apply_cpuset(fake, fake_get(fake, 101));
	assert_restored_everywhere();
}

/* Cpusets of version 1 cannot be read: a lease continues if a CPU of its target goes offline. */
static void a_lease_survives_hotplug_without_cpusets(void **state)
{
	(void)state;
	fake->no_cpusets = true;
	lease(101, 1);
	set_online(ALL & ~(UINT64_C(1) << 3));
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
	assert_true(world_holds(world, 101));
	set_online(ALL);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_restored_everywhere();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_restored_child_may_be_pinned_to_that_node),
		TEST(an_owner_keeps_its_affinity_while_records_are_lost),
		TEST(later_children_keep_their_affinity),
		TEST(a_started_program_pins_itself),
		TEST(an_owner_keeps_its_affinity_beyond_the_remembered_limit),
		TEST(one_users_forks_leave_room_for_others),
		TEST(an_owner_keeps_its_affinity_after_a_lease),
		TEST(an_exec_keeps_the_affinity_of_a_thread),
		TEST(an_orphan_of_another_user_keeps_its_affinity),
		TEST(children_of_a_reused_number_are_not_inheritors),
		TEST(a_reused_number_after_lost_records_is_not_an_inheritor),
		TEST(a_pinned_leader_is_not_taken_for_an_exec),
		TEST(an_idle_leader_is_not_taken_for_an_exec),
		TEST(an_exec_is_detected_without_its_record),
		TEST(an_unreadable_child_does_not_displace_a_lease),
		TEST(a_misfire_resets_the_affinity_kept_by_the_kernel),
		TEST(a_rolled_back_half_follows_its_cpuset),
		TEST(offline_cpus_are_restored),
		TEST(a_lease_survives_hotplug_without_cpusets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
