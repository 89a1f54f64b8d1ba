/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for proposals of a lottery, beside those of snapshot_words.h. The test
 * defines propose_with().
 *
 *	fill 0-7			unmanaged load of CPUs
 *	count = 1; still		the number of proposals of the next interval; none
 */
#ifndef NM_TEST_MACHINE_WORDS_H
#define NM_TEST_MACHINE_WORDS_H

#include "snapshot_words.h"

static struct nm_proposals proposals;
static struct nm_rng rng;

static void propose_with(const struct nm_snapshot *snapshot);

/* Four nodes of two CPUs. */
static inline int open_machine(void **state)
{
	nm_rng_seed(&rng, 42);
	return open_snapshot(state);
}

static inline int close_machine(void **state)
{
	nm_proposals_clear(&proposals);
	return close_snapshot(state);
}

static inline const struct nm_proposal *propose(void)
{
	nm_proposals_clear(&proposals);
	propose_with(take());
	return proposals.items;
}

static inline size_t count_proposals(void)
{
	(void)propose();
	return proposals.count;
}

WORD(fill)
{
	for (unsigned cpu = U(0); cpu <= U(1); cpu++)
		machine->busy[cpu] = 0.9;
}

WORD(still)
{
	if (count_proposals() > 0)
		script_fail(step, "found a proposal for thread %u",
			    proposals.items[0].moves[0].thread);
}

static inline const struct nm_proposal *first(void)
{
	assert_true(proposals.count > 0);
	return &proposals.items[0];
}

static inline bool is_exchange(void)
{
	const struct nm_move *moves = first()->moves;
	return first()->kind == NM_PROPOSAL_SWAP && moves[0].cpu_to == moves[1].cpu_from &&
	       moves[1].cpu_to == moves[0].cpu_from && moves[0].thread != moves[1].thread;
}

ACTION(perform, machine_perform(machine, U(0), 1e9, 1e9, N(1), 200))
ACTION(other_user, machine_process(machine, U(0))->uid = 1001)
ACTION(memory_only, machine_take_cpus(machine, U(0), U(1)))
QUANTITY(count, count_proposals())
QUANTITY(candidates, first()->nr_candidates)
QUANTITY(migrates, first()->kind == NM_PROPOSAL_MIGRATE)
QUANTITY(exchanges, is_exchange())
QUANTITY(moved, first()->moves[U(0)].thread)
QUANTITY(cpu_from, first()->moves[U(0)].cpu_from)
QUANTITY(cpu_to, first()->moves[U(0)].cpu_to)
QUANTITY(node_from, first()->moves[U(0)].node_from)
QUANTITY(node_to, first()->moves[U(0)].node_to)
QUANTITY(tickets, first()->tickets.total)
QUANTITY(for_cpu, first()->tickets.free_cpu)
QUANTITY(for_node, first()->tickets.preferred)
QUANTITY(for_partner, first()->tickets.partner)
QUANTITY(gain, first()->gain)
QUANTITY(draw, first()->draw)
KNOB(backoff_until, machine->managed[U(0)].backoff_until)
KNOB(page_policy, machine->config.pages.policy)
NAMES(page_policy, {"none", NM_PAGES_NONE}, {"exclusivity", NM_PAGES_EXCLUSIVITY})
KNOB(lottery, machine->config.rules.lottery)
NAMES(lottery, {"proportional", NM_LOTTERY_PROPORTIONAL}, {"paper", NM_LOTTERY_PAPER})
KNOB(gate, machine->config.rules.gate)
NAMES(gate, {"paper", NM_GATE_PAPER}, {"benefit", NM_GATE_BENEFIT})
KNOB(gate_sigmas, machine->config.rules.gate_sigmas)
KNOB(paper_rules, machine->config.rules.paper)
KNOB(n, machine->config.rules.n)
KNOB(cross_owner_swap, machine->config.rules.cross_owner_swap)

#endif
