/* SPDX-License-Identifier: MIT */
/* Which threads belong to a node, and when they are moved again. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>

#include "../support/interval.h"
#include "policy/assign.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_assignments *assignments;

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	snapshot = NULL;
	assignments = nm_assignments_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	nm_assignments_free(assignments);
	machine_free(machine);
	return 0;
}

/* Thread i runs on the CPU in the next interval, with 25 samples. */
static void interval(const int *cpus)
{
	for (size_t i = 0; i < machine->count; i++) {
		machine_run_on(machine, i, cpus[i]);
		machine->sampled[i].stats.run_samples = 25;
	}
	machine->interval++;
	machine->now_ns += MACHINE_SECOND;
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_assignments_follow(assignments, snapshot, &machine->config);
}

static void stays_for(unsigned seconds, int cpu)
{
	while (seconds-- > 0)
		interval((int[]){cpu});
}

static void note(size_t i, int node)
{
	const struct nm_assigning assigning = {.node = node, .decision = 7, .computes = true};
	nm_assignments_note(assignments, snapshot, &machine->config, &snapshot->threads[i],
			    &assigning);
}

static const struct nm_assignment *known(size_t i)
{
	return nm_assignments_of(assignments, snapshot->threads[i].tid,
				 snapshot->threads[i].start_ticks);
}

static bool is_assigned(size_t i)
{
	return nm_assignments_has(assignments, snapshot->threads[i].tid,
				  snapshot->threads[i].start_ticks);
}

static bool is_due(size_t i)
{
	return known(i) && nm_assignment_is_due(known(i), snapshot->time_ns);
}

static void return_thread(size_t i)
{
	nm_assignments_return(assignments, snapshot->threads[i].tid, snapshot->time_ns);
}

TEST(a_computing_thread_is_moved_again)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	interval((int[]){2});
	assert_true(is_assigned(0));
	assert_false(is_due(0));
	interval((int[]){0});
	assert_true(is_due(0));
	return_thread(0);
	assert_false(is_due(0));
}

TEST(a_light_thread_is_only_moved)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	((struct nm_snap_thread *)(uintptr_t)&snapshot->threads[0])->stats.run_share = 0.7;
	note(0, 1);
	assert_false(is_assigned(0));
	assert_int_equal(known(0)->decision, 7);
}

TEST(few_samples_do_not_count)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	interval((int[]){2});
	machine_run_on(machine, 0, 0);
	machine->sampled[0].stats.run_samples = 1;
	machine->now_ns += MACHINE_SECOND;
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	nm_assignments_follow(assignments, snapshot, &machine->config);
	assert_false(is_due(0));
}

/* It ran on its node, too, but for less than 80 % of the interval. */
TEST(a_thread_on_several_nodes_is_elsewhere)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	interval((int[]){2});
	machine->sampled[0].stats.main_node_share = 0.5;
	machine->now_ns += MACHINE_SECOND;
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	nm_assignments_follow(assignments, snapshot, &machine->config);
	assert_true(is_due(0));
}

/* In the interval in which it is moved it was elsewhere most of the time. */
TEST(a_move_is_not_judged_by_the_interval_before_it)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	machine->now_ns += MACHINE_SECOND * 3 / 4;
	snapshot->time_ns = machine->now_ns;
	note(0, 1);
	machine->now_ns -= MACHINE_SECOND * 3 / 4;
	interval((int[]){0});
	assert_false(is_due(0));
	interval((int[]){0});
	assert_true(is_due(0));
}

TEST(a_thread_that_is_taken_away_each_time_is_left_alone)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	unsigned minutes[] = {1, 2, 4, 8, 16, 30, 30};
	for (size_t k = 0; k < NM_ARRAY_SIZE(minutes); k++) {
		for (int i = 0; i < 59; i++) {
			interval((int[]){0});
			assert_true(is_due(0));
			return_thread(0);
		}
		interval((int[]){0});
		for (unsigned s = 1; s < 60 * minutes[k]; s++) {
			assert_false(is_due(0));
			interval((int[]){0});
		}
		interval((int[]){2});
	}
}

TEST(a_thread_that_stays_is_not_left_alone)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	for (int i = 0; i < 10; i++) {
		stays_for(4, 2);
		interval((int[]){0});
		assert_true(is_due(0));
		return_thread(0);
	}
}

/* SECURITY: quota */
TEST(a_node_gets_no_more_threads_than_it_has_cpus)
{
	for (unsigned i = 0; i < 3; i++)
		machine_thread(machine, 10, (int)i, 3);
	interval((int[]){0, 1, 2});
	for (size_t i = 0; i < 3; i++)
		note(i, 3);
	assert_true(is_assigned(0) && is_assigned(1));
	assert_false(is_assigned(2));
}

/* Two threads for each CPU: each node may keep its share of them, and none is held more than that.
 */
TEST(a_crowded_machine_divides_its_threads)
{
	int cpus[16];
	for (unsigned i = 0; i < 16; i++) {
		cpus[i] = (int)i / 2;
		machine_thread(machine, 10, cpus[i], 0);
	}
	interval(cpus);
	for (size_t i = 0; i < 16; i++)
		snapshot->threads[i].stats.run_share = 0.5;
	nm_assignments_follow(assignments, snapshot, &machine->config);
	for (size_t i = 0; i < 6; i++)
		note(i, 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(is_assigned(i), i < 4);
}

/* Three threads on a node with two CPUs, while others are idle. */
TEST(the_surplus_on_a_node_ends)
{
	for (unsigned i = 0; i < 3; i++)
		machine_thread(machine, 10, (int)i, 0);
	interval((int[]){0, 1, 4});
	note(0, 0);
	note(1, 0);
	interval((int[]){0, 1, 4});
	assert_true(is_assigned(0) && is_assigned(1));
	interval((int[]){0, 1, 1});
	assert_int_equal(is_assigned(0) + is_assigned(1), 1);
}

/* Threads that compute and sleep in turns, and that the scheduler moves, are assigned at random. */
TEST(no_node_ever_has_more_computing_threads_than_its_share)
{
	enum { THREADS = 14, CPUS = 8, PER_NODE = 2, ROUNDS = 400 };
	struct nm_rng rng;
	int cpus[THREADS];
	nm_rng_seed(&rng, 1);
	for (unsigned i = 0; i < THREADS; i++)
		machine_thread(machine, 10, 0, 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned wanting = 0, most = round / 20 % 2 ? THREADS : CPUS;
		for (unsigned i = 0; i < THREADS; i++)
			cpus[i] = (int)nm_rng_below(&rng, CPUS);
		interval(cpus);
		for (unsigned i = 0; i < THREADS; i++) {
			bool runs = wanting < most && nm_rng_below(&rng, 4) != 0;
			snapshot->threads[i].stats.run_share = runs ? 1 : 0.01;
			wanting += runs;
		}
		nm_assignments_follow(assignments, snapshot, &machine->config);
		for (unsigned i = 0; i < 4; i++)
			note(nm_rng_below(&rng, THREADS), (int)nm_rng_below(&rng, 4));
		unsigned room = wanting <= CPUS ? PER_NODE : PER_NODE * wanting / CPUS + 1;
		for (int node = 0; node < 4; node++) {
			unsigned there = 0;
			for (size_t i = 0; i < THREADS; i++)
				there += snapshot->threads[i].stats.run_share == 1 && known(i) &&
					 known(i)->node == node;
			assert_true(there <= room);
		}
	}
}

/* Otherwise the kernel would bring the thread back each second. */
TEST(beside_balancing_only_accesses_assign)
{
	machine_thread(machine, 10, 0, 3);
	interval((int[]){0});
	snapshot->kernel_balances = true;
	note(0, 1);
	assert_false(is_assigned(0));
	note(0, 3);
	assert_true(is_assigned(0));
}

TEST(a_missed_move_is_forgotten)
{
	machine_thread(machine, 10, 0, 1);
	interval((int[]){0});
	note(0, 1);
	nm_assignments_missed(assignments, snapshot->threads[0].tid,
			      snapshot->threads[0].start_ticks);
	assert_int_equal(known(0)->decision, 0);
}

TEST(the_end_of_a_process_or_home_ends_them)
{
	machine_thread(machine, 10, 0, 1);
	machine_thread(machine, 11, 2, 1);
	interval((int[]){0, 2});
	note(0, 1);
	note(1, 1);
	nm_assignments_end_process(assignments, 10);
	assert_false(is_assigned(0));
	assert_true(is_assigned(1));
	machine->count = 1;
	interval((int[]){0});
	assert_int_equal(assignments->on[1], 0);
	assert_int_equal(assignments->count, 1);
	machine->count = 2; /* for its end */
}

TEST(threads_of_lotteries_are_planned_within_the_limit)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	machine_thread(machine, 10, 0, 1);
	machine_thread(machine, 10, 4, 1);
	interval((int[]){0, 4});
	note(0, 1);
	note(1, 1);
	interval((int[]){0, 4});
	nm_assignments_plan(assignments, snapshot, &machine->config, 1, &plan);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.decisions[0].steps[0].node_to, 1);
	assert_false(is_due(0));
	assert_true(is_due(1));
}

RUN_TESTS()
