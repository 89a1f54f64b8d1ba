/* SPDX-License-Identifier: MIT */
/* The benefit gate. */
#ifndef NM_POLICY_GATE_H
#define NM_POLICY_GATE_H

#include <math.h>

#include "numa-migrd/snapshot.h"

/* An unknown number of accesses counts as 0, and does not justify a move. */
static inline double nm_known_accesses(const struct nm_snap_thread *thread)
{
	return thread->access_total > 0 ? thread->access_total : 0;
}

/* Returns by how much nearer an access to memory on `node` becomes, in local distances. */
static inline double nm_nearer_by(const struct nm_topology *topology, int from, int to, int node)
{
	double before = nm_topology_distance(topology, from, node);
	return (before - nm_topology_distance(topology, to, node)) /
	       nm_topology_distance(topology, from, from);
}

/*
 * Returns the distance that a thread's accesses save if it moves between nodes, in accesses at the
 * local distance, minus the margin's share of its accesses and the part that may be chance with
 * this number of samples (`sigmas` standard deviations; 0: none). Each sample stands for as many
 * accesses as the thread's samples do on average, and counts of samples are Poisson distributed.
 * Moves pass the gate if the sum over their threads is positive. The verdict weighs accesses by
 * distance, too (judge/locality.c).
 */
static inline double nm_surplus_of(const struct nm_topology *topology,
				   const struct nm_snap_thread *thread, int node_from, int node_to,
				   double margin, double sigmas)
{
	double saved = 0, squares = 0, known = nm_known_accesses(thread);
	for (int node = 0; node < (int)topology->nr_nodes; node++) {
		double nearer = nm_nearer_by(topology, node_from, node_to, node);
		saved += thread->accesses[node] * nearer;
		squares += thread->accesses[node] * nearer * nearer;
	}
	saved -= margin * known;
	if (!(sigmas > 0) || !(thread->access_samples > 0))
		return saved;
	return saved - sigmas * sqrt(squares * known / thread->access_samples);
}

#endif
