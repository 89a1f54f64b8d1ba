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

/*
 * Returns the standard deviation of the difference of two sample counts, each sample representing
 * as many accesses as the thread's samples do on average (counts of independent samples are Poisson
 * distributed).
 */
static inline double nm_gate_noise(const struct nm_snap_thread *thread, int node_from, int node_to)
{
	double counted = thread->accesses[node_to] + thread->accesses[node_from];
	if (!(thread->access_samples > 0))
		return 0;
	return sqrt(counted * nm_known_accesses(thread) / thread->access_samples);
}

/*
 * Returns the accesses that a thread gains by moving between nodes, minus the margin's share of its
 * accesses and the part that may be chance with this number of samples (`sigmas` standard
 * deviations; 0: none). Moves pass the gate if the sum over their threads is positive.
 */
static inline double nm_surplus_of(const struct nm_snap_thread *thread, int node_from, int node_to,
				   double margin, double sigmas)
{
	double surplus = thread->accesses[node_to] - thread->accesses[node_from] -
			 margin * nm_known_accesses(thread);
	return sigmas > 0 ? surplus - sigmas * nm_gate_noise(thread, node_from, node_to) : surplus;
}

#endif
