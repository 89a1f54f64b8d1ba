/* SPDX-License-Identifier: MIT */
/*
 * The one source of randomness: a seedable xoshiro256** generator (Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", 2021), so that a recorded seed gives the same decisions
 * again, in any build.
 */
#ifndef NUMA_MIGRD_RNG_H
#define NUMA_MIGRD_RNG_H

#include <stdint.h>

struct nm_rng {
	uint64_t state[4];
};

/* Fills the state from one 64-bit seed (by splitmix64, so that 0 is a seed like any other). */
void nm_rng_seed(struct nm_rng *rng, uint64_t seed);

/* 64 uniform bits. Called by the policies; advances the generator. */
uint64_t nm_rng_next(struct nm_rng *rng);

/* Uniform in [0, 1), 53 bits of resolution. */
double nm_rng_unit(struct nm_rng *rng);

/* Uniform in [0, bound), without modulo bias; bound must not be 0. */
uint64_t nm_rng_below(struct nm_rng *rng, uint64_t bound);

#endif
