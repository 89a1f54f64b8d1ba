/* SPDX-License-Identifier: MIT */
#include "gate.h"
#include "numa-migrd/policy.h"

double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count)
{
	double gained = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[moves[i].thread];
		gained += nm_surplus_of(thread, moves[i].node_from, moves[i].node_to, 0, 0);
		total += nm_known_accesses(thread);
	}
	return total > 0 ? gained / total : (double)NAN;
}
