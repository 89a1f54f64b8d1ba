/* SPDX-License-Identifier: MIT */
/* The distance of a decision's threads to their memory, before the decision and since. */
#ifndef NM_VERIFY_LOCALITY_H
#define NM_VERIFY_LOCALITY_H

#include "policy/judge.h"

/* Returns whether the thread has made enough accesses since the decision, with min_samples
 * samples, to contribute to the following values. */
bool nm_verdict_is_sampled(const struct nm_verdict_thread *thread, const struct nm_config *config);

/*
 * Sets the verdict's locality: the local distance divided by the mean distance of the accesses,
 * over the living threads that are sampled, weighted by their accesses since. Its noise is
 * gate_sigmas standard errors of the difference. The variance of a mean between bounds is at most
 * (mean - lowest) x (highest - mean) (Bhatia and Davis, 2000), with equality for two distances. NaN
 * if no thread has values.
 */
void nm_verdict_measure_locality(struct nm_verdict *verdict, const struct nm_topology *topology,
				 const struct nm_config *config);

/* Returns a change of locality; NaN: not known. A fall counts from NM_GATE_MARGIN on, a rise only
 * beyond its noise, too. */
struct nm_change nm_locality_change(double change, double noise);

#endif
