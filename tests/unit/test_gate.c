/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN close_snapshot
#include "../support/test.h"

#include "../support/gate.h"
#include "snapshot_words.h"

/* Thread 0 on node 0 with (20, 60, 20, 0) accesses, thread 1 on node 1 with all 100 on it. */
static int set_up(void **state)
{
	(void)open_snapshot(state);
	run_script((const char *const[]){"thread 10 cpu0; touch 0 node0 20; touch 0 node1 60",
					 "touch 0 node2 20; thread 10 cpu2 node1", NULL});
	return 0;
}

/* away: thread 0 to node 1; level: to node 2; both: a swap of the threads */
static const struct moves {
	const char *name;
	struct nm_move moves[2];
	size_t count;
} all_moves[] = {
	{"away", {{.thread = 0, .node_from = 0, .node_to = 1}}, 1},
	{"level", {{.thread = 0, .node_from = 0, .node_to = 2}}, 1},
	{"both",
	 {{.thread = 0, .node_from = 0, .node_to = 1}, {.thread = 1, .node_from = 1, .node_to = 0}},
	 2},
};

static const struct moves *moves_of(const struct step *step)
{
	EACH_ROW(row, all_moves)
	if (step_has(step, row->name))
		return row;
	script_fail(step, "no such moves");
}

QUANTITY(gain, nm_gate_gain(take(), moves_of(step)->moves, moves_of(step)->count))

/* accepts away 0.05 0 = 1: with this margin and number of standard deviations */
QUANTITY(accepts, moves_pass_gate(take(), moves_of(step)->moves, moves_of(step)->count, N(0), N(1)))

/* surplus 0 node0 node1 0.25 3 = 10: of the thread, from and to, with margin and deviations */
QUANTITY(surplus,
	 nm_surplus_of(machine->topology, &take()->threads[U(0)], (int)N(1), (int)N(2), N(3), N(4)))
KNOB(accesses, machine->accesses[U(0)]) /* of thread 0 */
KNOB(samples, machine->sampled[U(0)].stats.access_samples)

SCRIPT(gain_is_the_rise_as_a_share_of_all_accesses, "gain away = 0.4; gain both = -0.3")

SCRIPT(equal_nodes_gain_nothing, "gain level = 0; accepts level 0 0 = 0; accepts away 0 0 = 1")

SCRIPT(a_gain_equal_to_the_margin_is_rejected,
       "accepts away 0.375 0 = 1; accepts away 0.4 0 = 0; accepts both 0 0 = 0")

SCRIPT(a_swap_counts_tickets_of_both_threads,
       "touch 1 node1 30; accepts both 0.05 0 = 1; touch 1 node1 35; accepts both 0.05 0 = 0")

SCRIPT(unknown_accesses_justify_no_move,
       "set accesses node0 = nan; set accesses node1 = nan; set accesses node2 = nan",
       "set accesses node3 = nan; set access_total 0 = nan; gain away = nan; accepts away 0 0 = 0; "
       "gain both = -1")

SCRIPT(surplus_is_the_gain_beyond_the_margin,
       "surplus 0 node0 node1 0 0 = 40; surplus 0 node0 node1 0.25 0 = 15",
       "surplus 1 node1 node0 0.25 0 = -125")

/* 40 of 100 samples more there than here; the standard deviation is √(70 + 30) = 10. The same from
 * 25 % of the samples, each of which represents four accesses: √(100 × 4). */
SCRIPT(a_gain_must_exceed_chance, "touch 0 node0 30; touch 0 node1 70; touch 0 node2 0",
       "surplus 0 node0 node1 0 3 = 10; surplus 0 node0 node1 0 5 < 0",
       "set samples 0 = 25; surplus 0 node0 node1 0 1 = 20; surplus 0 node0 node1 0 3 < 0",
       "set samples 0 = 0; surplus 0 node0 node1 0 3 = 40")

/* Two hops from its memory, on a ring: one hop is half of the way. */
SCRIPT(a_hop_towards_a_full_node_counts,
       "distance 0 2 30; distance 1 3 30; touch 0 node0 0; touch 0 node1 0; touch 0 node2 100",
       "surplus 0 node0 node1 0 0 = 100; surplus 0 node0 node2 0 0 = 200",
       "surplus 0 node0 node1 0 3 = 70; surplus 0 node1 node0 0 0 = -100")

RUN_TESTS()
