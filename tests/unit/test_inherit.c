/* SPDX-License-Identifier: MIT */
/* Leased affinities that are inherited by fork and exec. Affinities that only look leased are
 * tested in test_neighbours.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "family_fixture.h"

static void tick_until_reported(void)
{
	for (int i = 0; i < 3; i++)
		world_tick(world);
}

/* ---- with records ---- */

static void test_new_thread(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	assert_int_equal(world_mask(world, 110), world_node(1));
	world_drain(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_INHERITED, 110), 1);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
}

static void test_child(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 5));
	lease(101, 1);
	fake_fork(fake, 101, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), fake_cpus(0, 5));
}

/* No descriptor was available when its record was read, nor at the first search. */
static void test_unreadable_inheritor(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_fail(fake, FAKE_OPEN, 1, 1, EMFILE);
	world_drain(world);
	assert_int_equal(world_mask(world, 110), world_node(1));
	tick_until_reported();
	assert_int_equal(world_mask(world, 110), ALL);
}

/* An inheritor that may not be read is searched once more and then dropped. */
static void test_unreadable_inheritor_is_dropped(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fail(fake, FAKE_OPEN, 1, 1000, EACCES);
	world_drain(world);
	tick_until_reported();
	unsigned lists = fake->calls[FAKE_LIST];
	world_tick(world);
	assert_int_equal(fake->calls[FAKE_LIST], lists);
	fake_calm(fake);
}

/* A grandchild whose parent has exited before the records are read. */
static void test_grandchild(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 300);
	fake_clone(fake, 301, 302);
	world_drain(world);
	assert_int_equal(world_mask(world, 301), ALL);
	assert_int_equal(world_mask(world, 302), ALL);
}

/* Children of an inheritor may be forked before its affinity is restored, and be reported a round
 * later. */
static void test_inheritors_across_rounds(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	struct nm_task_event late = fake->events[--fake->nr_events];
	world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
	fake->events[fake->nr_events++] = late;
	world_tick(world);
	assert_int_equal(world_mask(world, 301), ALL);
}

/* Forked before the lease ended, reported afterwards. */
static void test_after_the_end(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	(void)world_return(world, 101);
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_mask(world, 101), ALL);
}

/* Forked under the earlier of two leases. */
static void test_earlier_target(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	lease(101, 3);
	fake_clone(fake, 101, 111);
	lease(101, 0);
	fake_clone(fake, 110, 112);
	world_drain(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_mask(world, 111), ALL);
	assert_int_equal(world_mask(world, 112), ALL);
	assert_int_equal(world_mask(world, 101), world_node(0));
}

/* The fork record of a thread is read after its own lease. */
static void test_late_record(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_pin(fake, 110, ALL);
	lease(110, 2);
	world_drain(world);
	assert_int_equal(world_mask(world, 110), world_node(2));
	assert_int_equal(nm_actuator_leases(world->actuator), 2);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 110), ALL);
}

static void test_affinity_chosen_by_the_owner(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_pin(fake, 110, fake_cpus(0, 4));
	world_drain(world);
	assert_int_equal(world_mask(world, 110), fake_cpus(0, 4));
	assert_int_equal(world_reported(world, NM_LEASE_INHERITED, 110), 0);
}

static void test_refused_inheritor(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_fail(fake, FAKE_SET, 1, 2, EPERM);
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_FAILED, 110), 2);
	assert_int_equal(world_mask(world, 110), world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
}

static void test_exec_by_leader(void **state)
{
	(void)state;
	lease(100, 1);
	lease(101, 2);
	fake_exec(fake, 100);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

static void test_exec_by_thread(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 6));
	lease(101, 2);
	fake_exec(fake, 101);
	assert_int_equal(world_mask(world, 100), world_node(2));
	world_drain(world);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 6));
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

static void test_exec_record_lost(void **state)
{
	(void)state;
	lease(101, 2);
	fake_exec(fake, 101);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 100), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* Leader and thread both leased, on different nodes. */
static void test_exec_over_leased_leader(void **state)
{
	(void)state;
	lease(100, 3);
	lease(101, 2);
	fake_exec(fake, 101);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* Both on the same node with different original affinities: the one that calls exec keeps its
 * own. */
static void test_exec_with_another_original(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 6));
	lease(100, 2);
	lease(101, 2);
	fake_exec(fake, 101);
	fake_fork(fake, 100, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), fake_cpus(0, 6));
	assert_int_equal(world_mask(world, 300), fake_cpus(0, 6));
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 100), 0);
}

/* A lease is granted after an exec and before its records are read. The EXIT record is that of the
 * former leader, not of the thread that now has its number and whose child inherits. */
static void test_lease_before_the_records_of_an_exec(void **state)
{
	(void)state;
	fake_exec(fake, 101);
	lease(100, 1);
	fake_fork(fake, 100, 300);
	assert_int_equal(world_mask(world, 300), world_node(1));
	tick_until_reported();
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 100), ALL);
}

/* Both leases are of the same thread, and the records end the one that is in force. */
static void test_second_lease_before_the_records_of_an_exec(void **state)
{
	(void)state;
	lease(101, 1);
	fake_exec(fake, 101);
	assert_int_equal(nm_actuator_return_process(world->actuator, 100), 0);
	assert_int_equal(world_mask(world, 100), ALL);
	lease(100, 2);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), ALL);
	assert_false(world_holds(world, 100));
}

/* The new program becomes a daemon before the records are read. */
static void test_exec_by_thread_that_forks_and_exits(void **state)
{
	(void)state;
	lease(101, 1);
	fake_exec(fake, 101);
	fake_fork(fake, 100, 300);
	fake_exit(fake, 100);
	assert_int_equal(world_mask(world, 300), world_node(1));
	tick_until_reported();
	assert_int_equal(world_mask(world, 300), ALL);
}

/* An unleased thread calls exec: the affinity of the leader was not changed by its owner. */
static void test_exec_by_free_thread(void **state)
{
	(void)state;
	lease(100, 2);
	fake_pin(fake, 102, fake_cpus(1, 5));
	fake_exec(fake, 102);
	world_drain(world);
	assert_int_equal(world_mask(world, 100), fake_cpus(1, 5));
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 100), 0);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* An inheritor that executes another program: the lease of its parent continues. */
static void test_exec_of_child(void **state)
{
	(void)state;
	lease(100, 1);
	fake_fork(fake, 100, 300);
	fake_exec(fake, 300);
	world_drain(world);
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 100), world_node(1));
}

/* ---- lost records: affinity and descent decide ---- */

static void test_lost_records(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_clone(fake, 301, 302);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 301), ALL);
	assert_int_equal(world_mask(world, 302), ALL);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(world_reported(world, NM_LEASE_INHERITED, 302), 1);
}

/* Orphans of the same session, or of another session but the same cgroup. */
static void check_orphans(uint32_t reaper)
{
	fake_move(fake, 100, "/user.slice/job.scope");
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_fork(fake, 301, 302);
	fake_get(fake, 302)->session = 302;
	fake_fork(fake, 302, 303);
	fake_kill(fake, 302);
	fake_kill(fake, 300);
	assert_int_equal(fake_get(fake, 301)->ppid, reaper);
	assert_int_equal(fake_get(fake, 303)->ppid, reaper == 1 ? 1 : reaper);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 301), ALL);
	assert_int_equal(world_mask(world, 303), ALL);
}

static void test_orphans(void **state)
{
	(void)state;
	check_orphans(1);
}

/* The service manager of a user. */
static void test_orphans_of_a_user_manager(void **state)
{
	(void)state;
	struct fake_thread *manager = fake_process(fake, 20, 1);
	manager->subreaper = true;
	strcpy(manager->comm, "systemd");
	fake_get(fake, 50)->ppid = 20;
	fake_sleep(fake, 100);
	check_orphans(20);
}

/* A daemon that left its session and parent, adopted by the init of its container. */
/* SECURITY: container */
static void test_setsid_in_container(void **state)
{
	(void)state;
	struct fake_thread *init = fake_process(fake, 20, 1);
	init->subreaper = true;
	init->ns_pid = 1;
	fake_get(fake, 50)->ppid = 20;
	fake_move(fake, 100, "/machine/one");
	fake_sleep(fake, 100);
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_get(fake, 301)->session = 301;
	fake_kill(fake, 300);
	fake_kill(fake, 100);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 301), ALL);
}

/* The leased process has exited, the child continues under init. */
static void test_orphans_of_exited_processes(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_kill(fake, 100);
	world_lose_records(world);
	world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 301), ALL);
}

/* As on a machine where the ring of a CPU was refused. */
/* SECURITY: forks */
static void test_records_always_lost(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 20; i++) {
		fake_clone(fake, 101, 110 + i);
		world_lose_records(world);
		world_tick(world);
		assert_int_equal(world_mask(world, 110 + i), ALL);
	}
	assert_int_equal(world_mask(world, 101), world_node(1));
}

static void test_unreadable_proc(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	world_lose_records(world);
	fake_fail(fake, FAKE_LIST, 1, 1, EIO);
	world_tick(world);
	assert_int_equal(world_mask(world, 110), world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
}

/* ---- stop ---- */

/* Forked after the rings were read for the last time. */
static void test_stop_finds_late_inheritors(void **state)
{
	(void)state;
	lease(101, 1);
	tick_until_reported();
	fake_clone(fake, 101, 110);
	fake_fork(fake, 101, 300);
	fake->nr_events = 0;
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_mask(world, 300), ALL);
}

static void clone_late(struct fake *f)
{
	fake_clone(f, 101, 110);
}

/* Forked after the lease was read and before its affinity is restored. */
static void test_stop_races_with_fork(void **state)
{
	(void)state;
	lease(101, 1);
	fake_at(fake, FAKE_SET, 1, clone_late);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 110), ALL);
}

static void test_stop_with_refused_inheritor(void **state)
{
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake->nr_events = 0;
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	assert_int_equal(nm_actuator_return_all(world->actuator), 1);
	assert_int_equal(world_mask(world, 110), world_node(1));
	/* The line of its ancestor is kept for the next run. */
	nm_actuator_free(world->actuator);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), 0);
	struct nm_restoration found;
	assert_int_equal(nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT,
				    NULL, NULL, &found),
			 1);
	assert_int_equal(world_mask(world, 110), ALL);
	world_start(world);
}

/* Rounds later the ended lease of its ancestor is dropped, and the ledger rewritten. */
static void refuse_for_long(void)
{
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_fail(fake, FAKE_SET, 1, 1000000, EPERM);
	world_drain(world);
	fake_calm(fake);
	assert_int_equal(world_return(world, 101), 0);
	fake_fail(fake, FAKE_SET, 1, 1000000, EPERM);
	for (int i = 0; i < 5; i++)
		world_tick(world);
	fake_calm(fake);
	world_adopt_thread(world, 102);
	for (int i = 0; i < 200; i++) {
		world_lease(world, 102, (unsigned)i % 4);
		(void)world_return(world, 102);
	}
	fake_fail(fake, FAKE_SET, 1, 1000000, EPERM);
	for (int i = 0; i < 5; i++)
		world_tick(world);
	fake_calm(fake);
	assert_int_equal(world_mask(world, 110), world_node(1));
}

static int restore_after_death(unsigned *ret_failed)
{
	struct nm_restoration found = {0};
	int r = nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT, NULL,
			   NULL, &found);
	*ret_failed = found.failed;
	return r;
}

static void test_refused_inheritor_outlives_the_line_of_its_ancestor(void **state)
{
	unsigned failed;
	(void)state;
	refuse_for_long();
	fake_fail(fake, FAKE_SET, 1, 1000000, EPERM);
	assert_int_equal(nm_actuator_return_all(world->actuator), 1);
	fake_calm(fake);
	nm_actuator_free(world->actuator);
	assert_int_equal(restore_after_death(&failed), 1);
	assert_int_equal(failed, 0);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
	world_start(world);
}

/* Once restored, it has no line: its affinity now is its owner's. */
static void test_refused_inheritor_is_restored_later(void **state)
{
	unsigned failed;
	(void)state;
	refuse_for_long();
	lease(102, 3); /* so that the ledger stays */
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
	fake_pin(fake, 110, world_node(1));
	nm_actuator_free(world->actuator);
	assert_int_equal(restore_after_death(&failed), 1);
	assert_int_equal(world_mask(world, 110), world_node(1));
	assert_int_equal(world_mask(world, 102), ALL);
	world_start(world);
}

static void test_release_finds_inheritors(void **state)
{
	(void)state;
	lease(101, 1);
	fake_fork(fake, 101, 300);
	fake->nr_events = 0;
	assert_int_equal(nm_actuator_return_process(world->actuator, 100), 0);
	world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
}

/* ---- queries of the roster ---- */

static bool ask(uint32_t tid, uint64_t *ret_original, bool *ret_unrestricted)
{
	const struct fake_thread *thread = fake_get(fake, tid);
	hwloc_bitmap_t current = hwloc_bitmap_alloc();
	hwloc_const_bitmap_t original = NULL;
	fake_to_bitmap(thread->mask, current);
	bool leased = nm_actuator_original(world->actuator, tid, thread->start_ticks, current,
					   &original, ret_unrestricted);
	if (leased)
		*ret_original = fake_from_bitmap(original);
	hwloc_bitmap_free(current);
	return leased;
}

static void test_query_about_own_lease(void **state)
{
	uint64_t original = 0;
	bool unrestricted = true;
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 5));
	lease(101, 1);
	assert_true(ask(101, &original, &unrestricted));
	assert_int_equal(original, fake_cpus(0, 5));
	assert_false(unrestricted);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_false(ask(102, &original, &unrestricted));
}

/* Refused at first, it is restored and reported by the next tick. */
static void test_query_about_inheritor(void **state)
{
	uint64_t original = 0;
	bool unrestricted = false;
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	world_drain(world);
	assert_false(ask(110, &original, &unrestricted));
	assert_int_equal(world_mask(world, 110), world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_INHERITED, 110), 1);
}

/* The walk finds it, and the query returns that its affinity has changed. */
static void test_query_while_records_are_lost(void **state)
{
	uint64_t original = 0;
	bool unrestricted = false;
	(void)state;
	lease(101, 1);
	fake_clone(fake, 101, 110);
	fake_clone(fake, 101, 111);
	fake_pin(fake, 111, ALL);
	fake->nr_events = 0;
	world_lose_records(world);
	unsigned calls = fake->calls[FAKE_OPS];
	assert_false(ask(110, &original, &unrestricted));
	assert_int_equal(fake->calls[FAKE_OPS], calls);
	assert_int_equal(world_mask(world, 110), world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 110), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_INHERITED, 110), 1);
	assert_false(ask(110, &original, &unrestricted));
	assert_false(ask(111, &original, &unrestricted));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new_thread),
		TEST(test_child),
		TEST(test_unreadable_inheritor),
		TEST(test_unreadable_inheritor_is_dropped),
		TEST(test_grandchild),
		TEST(test_inheritors_across_rounds),
		TEST(test_after_the_end),
		TEST(test_earlier_target),
		TEST(test_late_record),
		TEST(test_affinity_chosen_by_the_owner),
		TEST(test_refused_inheritor),
		TEST(test_exec_by_leader),
		TEST(test_exec_by_thread),
		TEST(test_exec_record_lost),
		TEST(test_exec_over_leased_leader),
		TEST(test_exec_with_another_original),
		TEST(test_lease_before_the_records_of_an_exec),
		TEST(test_second_lease_before_the_records_of_an_exec),
		TEST(test_exec_by_thread_that_forks_and_exits),
		TEST(test_exec_by_free_thread),
		TEST(test_exec_of_child),
		TEST(test_lost_records),
		TEST(test_orphans),
		TEST(test_orphans_of_a_user_manager),
		TEST(test_setsid_in_container),
		TEST(test_orphans_of_exited_processes),
		TEST(test_records_always_lost),
		TEST(test_unreadable_proc),
		TEST(test_stop_finds_late_inheritors),
		TEST(test_stop_races_with_fork),
		TEST(test_stop_with_refused_inheritor),
		TEST(test_refused_inheritor_outlives_the_line_of_its_ancestor),
		TEST(test_refused_inheritor_is_restored_later),
		TEST(test_release_finds_inheritors),
		TEST(test_query_about_own_lease),
		TEST(test_query_about_inheritor),
		TEST(test_query_while_records_are_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
