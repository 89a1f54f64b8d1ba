/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>

#include "numa-migrd/base.h"

/* Computed independently by a script written from the published description. */
static const struct {
	uint64_t seed;
	uint64_t drawn[5];
} vectors[] = {
	{0,
	 {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c,
	  0xbba5ad4a1f842e59}},
	{1,
	 {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7,
	  0xb27a48e29a233673}},
	{42,
	 {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1, 0xecb8ad4703b360a1,
	  0xfde6dc7fe2ec5e64}},
	{UINT64_MAX,
	 {0x8f5520d52a7ead08, 0xc476a018caa1802d, 0x81de31c0d260469e, 0xbf658d7e065f3c2f,
	  0x913593fda1bca32a}},
};

TEST(test_seeded_vectors)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(vectors); i++) {
		struct nm_rng rng;

		nm_rng_seed(&rng, vectors[i].seed);
		for (size_t j = 0; j < NM_ARRAY_SIZE(vectors[i].drawn); j++)
			assert_int_equal(nm_rng_next(&rng), vectors[i].drawn[j]);
	}
}

/* From the state {1, 2, 3, 4} the first values can be verified by hand. */
TEST(test_state_vector)
{
	static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
	struct nm_rng rng = {.state = {1, 2, 3, 4}};

	for (size_t i = 0; i < NM_ARRAY_SIZE(expected); i++)
		assert_int_equal(nm_rng_next(&rng), expected[i]);
}

TEST(test_far_vector)
{
	struct nm_rng rng;
	uint64_t drawn = 0;

	nm_rng_seed(&rng, 42);
	for (int i = 0; i < 1000; i++)
		drawn = nm_rng_next(&rng);
	assert_int_equal(drawn, 0x8de5848c61ab8968);
}

TEST(test_same_seed_same_numbers)
{
	struct nm_rng one, other;

	nm_rng_seed(&one, 7);
	nm_rng_seed(&other, 7);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(nm_rng_next(&one), nm_rng_next(&other));
		assert_true(nm_rng_unit(&one) == nm_rng_unit(&other));
		assert_int_equal(nm_rng_below(&one, 13), nm_rng_below(&other, 13));
	}
}

TEST(test_unit_is_top_bits)
{
	struct nm_rng bits, unit;

	nm_rng_seed(&bits, 3);
	nm_rng_seed(&unit, 3);
	for (int i = 0; i < 1000; i++) {
		double drawn = nm_rng_unit(&unit);

		assert_true(drawn >= 0 && drawn < 1);
		assert_true(drawn * 0x1p53 == (double)(nm_rng_next(&bits) >> 11));
	}
}

/* Chi-square of `buckets` counts against equal shares. */
static double chi_square(const unsigned *counts, size_t buckets, unsigned draws)
{
	double expected = (double)draws / (double)buckets, sum = 0;

	for (size_t i = 0; i < buckets; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return sum;
}

/* The seed is fixed, so the outcome is too; with 99 degrees of freedom one in 1,000 runs exceeds
 * 148.2. */
TEST(test_unit_is_uniform)
{
	enum { BUCKETS = 100, DRAWS = 1000000 };
	unsigned counts[BUCKETS] = {0};
	struct nm_rng rng;

	nm_rng_seed(&rng, 2021);
	for (int i = 0; i < DRAWS; i++)
		counts[(unsigned)(nm_rng_unit(&rng) * (double)BUCKETS)]++;
	assert_true(chi_square(counts, BUCKETS, DRAWS) < 148.2);
}

TEST(test_below_is_uniform)
{
	enum { BUCKETS = 100, DRAWS = 1000000 };
	unsigned counts[BUCKETS] = {0};
	struct nm_rng rng;

	nm_rng_seed(&rng, 9);
	for (int i = 0; i < DRAWS; i++)
		counts[nm_rng_below(&rng, BUCKETS)]++;
	assert_true(chi_square(counts, BUCKETS, DRAWS) < 148.2);
}

/*
 * A bound of 3 · 2^62 reveals a modulo bias: a plain remainder would return the lowest third of the
 * values in half of all draws.
 */
TEST(test_below_has_no_modulo_bias)
{
	enum { DRAWS = 300000 };
	const uint64_t third = UINT64_C(1) << 62;
	unsigned counts[3] = {0};
	struct nm_rng rng;

	nm_rng_seed(&rng, 5);
	for (int i = 0; i < DRAWS; i++)
		counts[nm_rng_below(&rng, 3 * third) / third]++;
	assert_true(chi_square(counts, 3, DRAWS) < 13.8);
}

TEST(test_below_edges)
{
	static const uint64_t bounds[] = {
		1, 2, 3, UINT64_MAX - 1, UINT64_MAX, (UINT64_C(1) << 63) + 1};
	struct nm_rng rng;

	nm_rng_seed(&rng, 11);
	for (size_t i = 0; i < NM_ARRAY_SIZE(bounds); i++)
		for (int j = 0; j < 1000; j++)
			assert_true(nm_rng_below(&rng, bounds[i]) < bounds[i]);
}

RUN_TESTS()
