/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/gate.h"
#include "../support/interval.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;

/* Thread 0 on node 0 with (20, 60, 20, 0) accesses, thread 1 on node 1 with all 100 on it. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	machine_thread(machine, 10, 0, -1);
	machine_touch(machine, 0, 0, 20);
	machine_touch(machine, 0, 1, 60);
	machine_touch(machine, 0, 2, 20);
	machine_thread(machine, 10, 2, 1);
	snapshot = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

static void take(void)
{
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
}

static const struct nm_move away = {.thread = 0, .node_from = 0, .node_to = 1};
static const struct nm_move both[] = {{.thread = 0, .node_from = 0, .node_to = 1},
				      {.thread = 1, .node_from = 1, .node_to = 0}};

TEST(gain_is_the_rise_as_a_share_of_all_accesses)
{
	take();
	assert_true(nm_gate_gain(snapshot, &away, 1) == 0.4);
	assert_true(nm_gate_gain(snapshot, both, 2) == -0.3);
}

TEST(equal_nodes_gain_nothing)
{
	take();
	const struct nm_move move = {.thread = 0, .node_from = 0, .node_to = 2};
	assert_true(nm_gate_gain(snapshot, &move, 1) == 0);
	assert_false(moves_pass_gate(snapshot, &move, 1, 0, 0));
	assert_true(moves_pass_gate(snapshot, &away, 1, 0, 0));
}

TEST(a_gain_equal_to_the_margin_is_rejected)
{
	take();
	assert_true(moves_pass_gate(snapshot, &away, 1, 0.375, 0));
	assert_false(moves_pass_gate(snapshot, &away, 1, 0.4, 0));
	assert_false(moves_pass_gate(snapshot, both, 2, 0, 0));
}

TEST(a_swap_counts_tickets_of_both_threads)
{
	machine_touch(machine, 1, 1, 30);
	take();
	assert_true(moves_pass_gate(snapshot, both, 2, 0.05, 0));
	machine_touch(machine, 1, 1, 35);
	take();
	assert_false(moves_pass_gate(snapshot, both, 2, 0.05, 0));
}

TEST(unknown_accesses_justify_no_move)
{
	for (unsigned k = 0; k < 4; k++)
		machine->accesses[k] = NAN;
	machine->sampled[0].stats.access_total = NAN;
	take();
	assert_true(isnan(nm_gate_gain(snapshot, &away, 1)));
	assert_false(moves_pass_gate(snapshot, &away, 1, 0, 0));
	assert_true(nm_gate_gain(snapshot, both, 2) == -1);
}

TEST(surplus_is_the_gain_beyond_the_margin)
{
	take();
	assert_true(nm_surplus_of(machine->topology, &snapshot->threads[0], 0, 1, 0, 0) == 40);
	assert_true(nm_surplus_of(machine->topology, &snapshot->threads[0], 0, 1, 0.25, 0) == 15);
	assert_true(nm_surplus_of(machine->topology, &snapshot->threads[1], 1, 0, 0.25, 0) == -125);
}

/* 40 of 100 samples more there than here; the standard deviation is √(70 + 30) = 10. */
TEST(a_gain_must_exceed_chance)
{
	struct nm_snap_thread thread = {.stats.accesses = (double[]){30, 70, 0, 0},
					.stats.access_total = 100,
					.stats.access_samples = 100};
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 3) == 10);
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 5) < 0);
	/* The same from 25 % of the samples, each of which represents four accesses: √(100 × 4). */
	thread.stats.access_samples = 25;
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 1) == 20);
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 3) < 0);
	thread.stats.access_samples = 0;
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 3) == 40);
}

/* Two hops from its memory, on a ring: one hop is half of the way. */
TEST(a_hop_towards_a_full_node_counts)
{
	static const unsigned ring[4][4] = {
		{10, 20, 30, 20}, {20, 10, 20, 30}, {30, 20, 10, 20}, {20, 30, 20, 10}};
	struct nm_snap_thread thread = {.stats.accesses = (double[]){0, 0, 100, 0},
					.stats.access_total = 100,
					.stats.access_samples = 100};
	for (unsigned k = 0; k < 16; k++)
		machine->topology->distance[k] = ring[k / 4][k % 4];
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 0) == 100);
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 2, 0, 0) == 200);
	assert_true(nm_surplus_of(machine->topology, &thread, 0, 1, 0, 3) == 70);
	assert_true(nm_surplus_of(machine->topology, &thread, 1, 0, 0, 0) == -100);
}

RUN_TESTS()
