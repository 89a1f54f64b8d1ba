/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/policy.h"

/* An unknown number of accesses is no argument for a move. */
static double known_accesses(const struct nm_snap_thread *thread)
{
	return thread->access_total > 0 ? thread->access_total : 0;
}

/*
 * Standard deviation of the difference of two counts of samples, each of which stands for as many
 * accesses as the thread's samples do on average (counts of independent samples are Poisson
 * distributed).
 */
static double noise(const struct nm_snap_thread *thread, int node_from, int node_to)
{
	double counted = thread->accesses[node_to] + thread->accesses[node_from];
	if (!(thread->access_samples > 0))
		return 0;
	return sqrt(counted * known_accesses(thread) / thread->access_samples);
}

double nm_gate_surplus(const struct nm_snap_thread *thread, int node_from, int node_to,
		       double margin, double sigmas)
{
	double surplus = thread->accesses[node_to] - thread->accesses[node_from] -
			 margin * known_accesses(thread);
	return sigmas > 0 ? surplus - sigmas * noise(thread, node_from, node_to) : surplus;
}

double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count)
{
	double gained = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[moves[i].thread];
		gained += nm_gate_surplus(thread, moves[i].node_from, moves[i].node_to, 0, 0);
		total += known_accesses(thread);
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
