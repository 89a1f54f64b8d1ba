/* SPDX-License-Identifier: MIT */
#ifndef NM_TEST_GATE_H
#define NM_TEST_GATE_H

#include "../../src/policy/lbma.h"
#include "policy/policy.h"

/* Returns true if the gate accepts the moves. */
static inline bool moves_pass_gate(const struct nm_snapshot *snapshot, const struct nm_move *moves,
				   size_t count, double margin, double sigmas)
{
	double surplus = 0;
	for (size_t i = 0; i < count; i++)
		surplus += nm_surplus_of(snapshot->topology, &snapshot->threads[moves[i].thread], moves[i].node_from,
					 moves[i].node_to, margin, sigmas);
	return surplus > 0;
}

#endif
