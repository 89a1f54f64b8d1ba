/* SPDX-License-Identifier: MIT */
/*
 * The only source of randomness: a seedable xoshiro256** generator (Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", 2021). A recorded seed reproduces the same decisions in
 * any build.
 */
#ifndef NUMA_MIGRD_RNG_H
#define NUMA_MIGRD_RNG_H

#include <stdint.h>

struct nm_rng {
	uint64_t state[4];
};

/* Fills the state from one 64-bit seed (with splitmix64, so that 0 is a valid seed). */
void nm_rng_seed(struct nm_rng *rng, uint64_t seed);

/* Returns 64 uniform bits and advances the generator. Called by the policies. */
uint64_t nm_rng_next(struct nm_rng *rng);

/* Returns a uniform value in [0, 1) with a resolution of 53 bits. */
double nm_rng_unit(struct nm_rng *rng);

/* Returns a uniform value in [0, bound), without modulo bias; bound must not be 0. */
uint64_t nm_rng_below(struct nm_rng *rng, uint64_t bound);

#endif
