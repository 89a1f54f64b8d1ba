/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/policy.h"

/* An unknown number of accesses is no argument for a move. */
static double known_accesses(const struct nm_snap_thread *thread)
{
	return thread->access_total > 0 ? thread->access_total : 0;
}

double nm_gate_surplus(const struct nm_snap_thread *thread, int node_from, int node_to,
		       double margin)
{
	return thread->accesses[node_to] - thread->accesses[node_from] -
	       margin * known_accesses(thread);
}

double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count)
{
	double gained = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[moves[i].thread];
		gained += nm_gate_surplus(thread, moves[i].node_from, moves[i].node_to, 0);
		total += known_accesses(thread);
	}
	return total > 0 ? gained / total : (double)NAN;
}

bool nm_gate_stands(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count,
		    double margin)
{
	double surplus = 0;
	for (size_t i = 0; i < count; i++)
		surplus += nm_gate_surplus(&snapshot->threads[moves[i].thread], moves[i].node_from,
					   moves[i].node_to, margin);
	return surplus > 0;
}
