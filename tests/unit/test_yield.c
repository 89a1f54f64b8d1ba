/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/interval.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;
static uint32_t yielding[64];
static size_t count;

/* Node 0 of four with two CPUs each is full; CPUs from 4 on are idle. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	for (int cpu = 0; cpu < 8; cpu++)
		machine->busy[cpu] = cpu < 4 ? 1 : 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	machine_free(machine);
	return 0;
}

static void lease(size_t threads)
{
	for (size_t i = 0; i < threads; i++) {
		size_t thread = machine_thread(machine, 10, (int)(i % 2), 0);
		machine_touch(machine, thread, 0, 100 + (double)i);
		machine->figures[thread].run_share = 2.0 / (double)threads;
		machine->members[thread].leased = true;
	}
	machine->busy[0] = machine->busy[1] = 1;
}

static size_t take(void)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	nm_overcommit_yield(snapshot, yielding, &count);
	return count;
}

/* Four threads on two cores, while two cores of the other node are idle or not. */
static void leases_leave_siblings_while_cores_are_idle(void **state)
{
	(void)state;
	machine_free(machine);
	machine = machine_of_size(2, 4, 2, 64);
	for (int i = 0; i < 4; i++) {
		size_t thread = machine_thread(machine, 10, i, 0);
		machine->figures[thread].run_share = 1;
		machine->members[thread].leased = true;
		machine->busy[i] = 1;
	}
	assert_int_equal(take(), 1);
	for (int cpu = 4; cpu < 8; cpu++)
		machine->busy[cpu] = 1;
	assert_int_equal(take(), 0);
}

static void half_of_the_excess_threads_with_the_least_locality_yield(void **state)
{
	(void)state;
	lease(8);
	assert_int_equal(take(), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(yielding[i], i);
}

static void only_as_many_yield_as_cpus_are_idle(void **state)
{
	(void)state;
	lease(16);
	for (int cpu = 4; cpu < 8; cpu++)
		machine->busy[cpu] = 0.6;
	assert_int_equal(take(), 1);
	machine->busy[7] = 1;
	machine->busy[6] = 0.9;
	assert_int_equal(take(), 0);
}

static void threads_stay_on_a_node_with_capacity(void **state)
{
	(void)state;
	lease(8);
	machine->busy[0] = 0.8;
	assert_int_equal(take(), 0);
}

/* Idle CPUs outside their affinity are not usable. */
static void only_cpus_of_the_bound_count(void **state)
{
	(void)state;
	lease(8);
	for (size_t i = 0; i < 8; i++)
		machine_allow(machine, i, "0-3");
	assert_int_equal(take(), 0);
	for (size_t i = 0; i < 8; i++)
		machine_allow(machine, i, "0-4");
	assert_int_equal(take(), 1);
}

/* Threads bound to the node by their owner cannot leave it: leased ones can. */
static void threads_bound_to_the_node_use_its_capacity(void **state)
{
	(void)state;
	lease(2);
	for (size_t i = 2; i < 5; i++) {
		size_t thread = machine_thread(machine, 20, (int)(i % 2), 0);
		machine->figures[thread].run_share = 0.4;
		machine_allow(machine, thread, "0-1");
	}
	machine->busy[0] = machine->busy[1] = 1;
	assert_int_equal(take(), 2);
	machine_allow(machine, 4, "0-2"); /* may leave if the scheduler decides so */
	assert_int_equal(take(), 1);
	assert_int_equal(yielding[0], 0);
	machine->figures[3].run_share = 0.01;
	machine_allow(machine, 2, "0-7");
	assert_int_equal(take(), 0);
}

/* Two groups of two threads on a node of two: the first yields for both. */
static void groups_with_other_affinities_share_capacity(void **state)
{
	(void)state;
	lease(4);
	machine_allow(machine, 2, "0-5");
	machine_allow(machine, 3, "0-5");
	assert_int_equal(take(), 2);
	assert_int_equal(yielding[0], 0);
	assert_int_equal(yielding[1], 2);
	machine->figures[3].run_share = 0.01;
	assert_int_equal(take(), 1);
	assert_int_equal(yielding[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(leases_leave_siblings_while_cores_are_idle),
		TEST(half_of_the_excess_threads_with_the_least_locality_yield),
		TEST(only_as_many_yield_as_cpus_are_idle),
		TEST(threads_stay_on_a_node_with_capacity),
		TEST(only_cpus_of_the_bound_count),
		TEST(threads_bound_to_the_node_use_its_capacity),
		TEST(groups_with_other_affinities_share_capacity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
