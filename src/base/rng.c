/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, unsigned bits)
{
	return (value << bits) | (value >> (64 - bits));
}

void nm_rng_seed(struct nm_rng *rng, uint64_t seed)
{
	for (unsigned i = 0; i < 4; i++)
		rng->state[i] = splitmix64(&seed);
}

uint64_t nm_rng_next(struct nm_rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

double nm_rng_unit(struct nm_rng *rng)
{
	return (double)(nm_rng_next(rng) >> 11) * 0x1p-53;
}

uint64_t nm_rng_below(struct nm_rng *rng, uint64_t bound)
{
	/* 2^64 mod bound values are in excess: without the lowest ones, the rest is a multiple of
	 * bound. */
	uint64_t surplus = (0 - bound) % bound;
	uint64_t drawn;

	do
		drawn = nm_rng_next(rng);
	while (drawn < surplus);
	return drawn % bound;
}
