/* SPDX-License-Identifier: MIT */
/* How near a decision's threads are to their memory, before it and since. */
#ifndef NM_VERIFY_LOCALITY_H
#define NM_VERIFY_LOCALITY_H

#include "numa-migrd/verify.h"

/*
 * Has the thread made enough accesses since, threads.min_samples of them sampled, for its part in
 * what follows?
 */
bool nm_verdict_is_sampled(const struct nm_verdict_thread *thread, const struct nm_config *config);

/*
 * Sets the verdict's locality: the local distance by the mean distance of the accesses, over the
 * living threads that are sampled, weighted by their accesses since. Its noise is
 * threads.gate_sigmas standard errors of the difference; of a mean between bounds the variance is
 * at most (mean - lowest) x (highest - mean) (Bhatia and Davis, 2000), and for two distances just
 * that. NaN where no thread can tell. Verifier, in each interval.
 */
void nm_verdict_measure_locality(struct nm_verdict *verdict, const struct nm_topology *topology,
				 const struct nm_config *config);

/* A fall or rise by more than threads.gate_margin; a rise must exceed the noise, too. */
bool nm_verdict_locality_fell(const struct nm_verdict *verdict, const struct nm_config *config);
bool nm_verdict_locality_rose(const struct nm_verdict *verdict, const struct nm_config *config);

#endif
