/* SPDX-License-Identifier: MIT */
#include "gate.h"
#include "numa-migrd/policy.h"

double nm_gate_surplus(const struct nm_snap_thread *thread, int node_from, int node_to,
		       double margin, double sigmas)
{
	return nm_surplus_of(thread, node_from, node_to, margin, sigmas);
}

double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count)
{
	double gained = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[moves[i].thread];
		gained += nm_gate_surplus(thread, moves[i].node_from, moves[i].node_to, 0, 0);
		total += nm_known_accesses(thread);
	}
	return total > 0 ? gained / total : (double)NAN;
}

bool nm_gate_stands(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count,
		    double margin, double sigmas)
{
	double surplus = 0;
	for (size_t i = 0; i < count; i++)
		surplus += nm_gate_surplus(&snapshot->threads[moves[i].thread], moves[i].node_from,
					   moves[i].node_to, margin, sigmas);
	return surplus > 0;
}
