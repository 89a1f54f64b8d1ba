/* SPDX-License-Identifier: MIT */
/* Ranges of memory: splitting, merging, and their preferred nodes. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "numa-migrd/base.h"
#include "observe/regions.h"

#define MIB (1ULL << 20)
#define BASE (0x7f0000000000ULL)

static struct nm_config *config;
static struct nm_regions *regions;

static int set_up(void **state)
{
	(void)state;
	if (nm_config_default(&config) < 0)
		return -1;
	nm_regions_new(4, 64, &regions);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_regions_free(regions);
	nm_config_free(config);
	return 0;
}

static void set_range(uint64_t start, uint64_t end)
{
	struct nm_range range = {.start = BASE + start, .end = BASE + end, .page_bytes = 4096};

	assert_int_equal(nm_regions_set_ranges(regions, &range, 1), 0);
}

static void touch(uint64_t offset, unsigned node, unsigned times)
{
	while (times--)
		nm_regions_touch(regions, BASE + offset, node);
}

static void adapt(void)
{
	nm_regions_adapt(regions);
}

static struct nm_region at(size_t index)
{
	assert_true(index < nm_regions_count(regions));
	return nm_regions_at(regions, index);
}

static void assert_bounds(size_t index, uint64_t start, uint64_t end)
{
	assert_true(at(index).start == BASE + start);
	assert_true(at(index).end == BASE + end);
}

/* ---- counting ---- */

TEST(test_accesses)
{
	set_range(0, 8 * MIB);
	assert_true(isnan(at(0).exclusivity) && at(0).node == -1);
	touch(0, 1, 6);
	touch(8 * MIB - 1, 3, 2);
	touch(8 * MIB, 2, 50); /* outside */
	nm_regions_touch(regions, BASE - 1, 2);
	touch(0, 4, 50); /* no such node */
	assert_true(at(0).samples == 8 && at(0).exclusivity == 0.75);
	assert_int_equal(at(0).node, 1);
	nm_regions_fade(regions, 0.5);
	assert_true(at(0).samples == 4 && at(0).exclusivity == 0.75);
}

/* ---- splitting ---- */

TEST(test_halves_of_different_nodes_split)
{
	set_range(0, 8 * MIB);
	touch(1 * MIB, 1, 8);
	touch(5 * MIB, 2, 7);
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	touch(5 * MIB, 2, 1);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	assert_bounds(0, 0, 4 * MIB);
	assert_bounds(1, 4 * MIB, 8 * MIB);
	assert_true(at(0).samples == 8 && at(0).node == 1 && at(0).exclusivity == 1);
	assert_true(at(1).samples == 8 && at(1).node == 2);
}

TEST(test_halves_of_one_node_stay)
{
	set_range(0, 8 * MIB);
	touch(1 * MIB, 1, 80);
	touch(5 * MIB, 1, 40);
	touch(5 * MIB, 2, 30); /* in total, 80 % are of node 1 */
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	assert_false(at(0).whole);
}

/* Threads of all nodes use blocks in turn: both halves look the same. */
TEST(test_mixed_ranges_split)
{
	set_range(0, 64 * MIB);
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned block = 0; block < 16; block++) {
			touch(4 * MIB * block, block % 4, 8);
			touch(4 * MIB * block + 2 * MIB, block % 4, 8);
		}
		adapt();
	}
	assert_int_equal(nm_regions_count(regions), 16);
	for (unsigned block = 0; block < 16; block++) {
		assert_bounds(block, 4 * MIB * block, 4 * MIB * (block + 1));
		assert_int_equal(at(block).node, block % 4);
		assert_true(at(block).exclusivity == 1);
	}
}

TEST(test_commonly_used_ranges_stay_split)
{
	set_range(0, 8 * MIB);
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned part = 0; part < 8; part++)
			for (unsigned node = 0; node < 4; node++)
				touch(MIB * part, node, 3);
		adapt();
	}
	assert_int_equal(nm_regions_count(regions), 4);
	for (size_t i = 0; i < 4; i++) {
		struct nm_region everyones = at(i);
		assert_true(everyones.whole && everyones.by_halves == 0.25);
		assert_int_equal(nm_region_target(&everyones, 4, 9, config), NM_REGION_EVERYWHERE);
	}
}

TEST(test_no_split_below_two_megabytes)
{
	set_range(0, 4 * MIB - 4096);
	touch(0, 1, 50);
	touch(3 * MIB, 2, 50);
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	set_range(4096, 4 * MIB + 4096); /* the middle is at 2 MiB, and the left part is shorter */
	touch(4096, 1, 50);
	touch(3 * MIB, 2, 50);
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	set_range(0, 4 * MIB);
	touch(0, 1, 50);
	touch(3 * MIB, 2, 50);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
}

/* A mapping of 1 GiB pages is never split within a page. */
TEST(test_pages_are_not_split)
{
	struct nm_range range = {
		.start = BASE, .end = BASE + (3ULL << 30), .page_bytes = 1ULL << 30};

	assert_int_equal(nm_regions_set_ranges(regions, &range, 1), 0);
	touch(0, 1, 50);
	touch(1ULL << 30, 2, 50);
	touch(2ULL << 30, 2, 50);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	assert_bounds(0, 0, 1ULL << 30);
	touch(1ULL << 30, 3, 900);
	touch(2ULL << 30, 2, 50);
	adapt();
	assert_int_equal(nm_regions_count(regions), 3);
	touch(0, 0, 900);
	touch((1ULL << 30) - 1, 3, 900);
	adapt();
	assert_int_equal(nm_regions_count(regions), 3);
}

TEST(test_number_is_bounded)
{
	struct nm_regions *few = NULL;
	struct nm_range range = {.start = BASE, .end = BASE + 64 * MIB};
	struct nm_rng rng;

	nm_rng_seed(&rng, 1);
	nm_regions_new(2, 5, &few);
	assert_int_equal(nm_regions_set_ranges(few, &range, 1), 0);
	for (unsigned i = 0; i < 50; i++) {
		for (unsigned j = 0; j < 2000; j++) {
			uint64_t offset = nm_rng_below(&rng, 64 * MIB);
			nm_regions_touch(few, BASE + offset, offset / (4 * MIB) % 2);
		}
		nm_regions_adapt(few);
		assert_in_range(nm_regions_count(few), 1, 5);
	}
	nm_regions_free(few);
}

/* Finds exactly four owners of 25 % each. */
TEST(test_finds_the_owners)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 1);
	set_range(0, 64 * MIB);
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned j = 0; j < 400; j++) {
			uint64_t offset = nm_rng_below(&rng, 64 * MIB);
			touch(offset, (unsigned)(offset / (16 * MIB)), 1);
		}
		adapt();
		nm_regions_fade(regions, 0.5);
	}
	assert_int_equal(nm_regions_count(regions), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_bounds(i, i * 16 * MIB, (i + 1) * 16 * MIB);
		assert_int_equal(at(i).node, i);
		assert_true(at(i).exclusivity > 0.99);
	}
}

/* ---- merging ---- */

static void two_regions(void)
{
	set_range(0, 8 * MIB);
	touch(0, 1, 10);
	touch(4 * MIB, 2, 10);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	nm_regions_fade(regions, 0);
}

TEST(test_similar_regions_merge)
{
	two_regions();
	touch(0, 1, 10);
	touch(4 * MIB, 1, 91);
	touch(4 * MIB, 2, 9); /* 1 and 0.91 */
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	assert_bounds(0, 0, 8 * MIB);
	assert_true(at(0).samples == 110);
	adapt(); /* its halves are not distinguished yet */
	assert_int_equal(nm_regions_count(regions), 1);
}

TEST(test_different_regions_stay_apart)
{
	two_regions();
	touch(0, 1, 10);
	touch(4 * MIB, 1, 88);
	touch(4 * MIB, 2, 12);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	nm_regions_fade(regions, 0);
	touch(0, 1, 10);
	touch(4 * MIB, 2, 10);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	nm_regions_fade(regions, 0);
	touch(0, 1, 10); /* the other one is unknown */
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	nm_regions_fade(regions, 0); /* and now both are unknown */
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
}

TEST(test_separate_ranges_do_not_merge)
{
	struct nm_range ranges[] = {{BASE, BASE + 4 * MIB, 0}, {BASE + 6 * MIB, BASE + 8 * MIB, 0}};

	assert_int_equal(nm_regions_set_ranges(regions, ranges, 2), 0);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
}

TEST(test_placed_differently_does_not_merge)
{
	two_regions();
	nm_regions_set_placed(regions, 1, 3, 7);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
	assert_int_equal(at(0).placed, NM_REGION_NOWHERE);
	assert_int_equal(at(1).placed, 3);
	nm_regions_set_placed(regions, 0, 3, 7);
	adapt();
	assert_int_equal(nm_regions_count(regions), 1);
	assert_int_equal(at(0).placed, 3);
}

/* ---- changes of mappings ---- */

TEST(test_mapped_ranges_are_kept)
{
	struct nm_range ranges[] = {{BASE - 16 * MIB, BASE - 8 * MIB, 0},
				    {BASE + 2 * MIB, BASE + 20 * MIB, 0}};

	two_regions();
	touch(0, 1, 10);
	touch(4 * MIB, 2, 7);
	nm_regions_set_placed(regions, 1, 2, 7);
	assert_int_equal(nm_regions_set_ranges(regions, ranges, 2), 0);
	assert_int_equal(nm_regions_count(regions), 4);
	assert_bounds(1, 2 * MIB, 4 * MIB);
	assert_bounds(2, 4 * MIB, 8 * MIB);
	assert_bounds(3, 8 * MIB, 20 * MIB);
	assert_true(at(0).samples == 0 && at(1).samples == 5 && at(2).samples == 7);
	assert_true(at(2).placed == 2 && at(3).placed == NM_REGION_NOWHERE);
	assert_int_equal(nm_regions_set_ranges(regions, NULL, 0), 0);
	assert_int_equal(nm_regions_count(regions), 0);
	touch(0, 1, 1);
}

/* A slowly growing heap does not become many regions. */
TEST(test_growth)
{
	set_range(0, 4 * MIB);
	for (uint64_t end = 4 * MIB; end < 6 * MIB; end += 65536)
		set_range(0, end);
	assert_int_equal(nm_regions_count(regions), 1);
	set_range(0, 32 * MIB);
	assert_int_equal(nm_regions_count(regions), 2);
}

TEST(test_halves_survive_reading_the_mappings)
{
	set_range(0, 8 * MIB);
	touch(1 * MIB, 1, 8);
	touch(5 * MIB, 2, 8);
	set_range(0, 8 * MIB);
	adapt();
	assert_int_equal(nm_regions_count(regions), 2);
}

TEST(test_more_mappings_than_regions)
{
	struct nm_range ranges[100];

	for (unsigned i = 0; i < 100; i++)
		ranges[i] = (struct nm_range){BASE + 8 * i * MIB, BASE + (8 * i + 2) * MIB, 0};
	for (unsigned i = 40; i < 99; i++)
		ranges[i].end += MIB;
	ranges[99].end += 4 * MIB;
	assert_int_equal(nm_regions_set_ranges(regions, ranges, 100), 0);
	assert_int_equal(nm_regions_count(regions), 64);
	assert_bounds(3, 24 * MIB, 26 * MIB); /* four of the smallest ones fit */
	assert_bounds(4, 320 * MIB, 323 * MIB);
	assert_bounds(63, 792 * MIB, 798 * MIB);
}

TEST(test_small_mappings_take_no_place)
{
	struct nm_range ranges[100];

	for (unsigned i = 0; i < 100; i++)
		ranges[i] = (struct nm_range){BASE + 2 * i * MIB, BASE + (2 * i + 1) * MIB, 0};
	ranges[99].end += MIB;
	assert_int_equal(nm_regions_set_ranges(regions, ranges, 100), 0);
	assert_int_equal(nm_regions_count(regions), 1);
	assert_bounds(0, 198 * MIB, 200 * MIB);
}

/* ---- deciding ---- */

static int target_of(double samples, double exclusivity, uint64_t bytes, double imbalance)
{
	struct nm_region region = {.start = BASE,
				   .end = BASE + bytes,
				   .samples = samples,
				   .exclusivity = exclusivity,
				   .node = 3,
				   .placed = NM_REGION_NOWHERE,
				   .whole = true,
				   .by_halves = exclusivity};

	return nm_region_target(&region, 4, imbalance, config);
}

TEST(test_exclusive_ranges_move)
{
	assert_int_equal(target_of(16, 0.8, 2 * MIB, 0), 3);
	assert_int_equal(target_of(15.9, 1, 2 * MIB, 0), NM_REGION_NOWHERE);
	assert_int_equal(target_of(16, 0.79, 2 * MIB, 9), NM_REGION_NOWHERE);
	assert_int_equal(target_of(16, 1, 2 * MIB - 1, 0), NM_REGION_NOWHERE);
}

TEST(test_ranges_used_by_all_nodes_are_interleaved)
{
	assert_int_equal(target_of(16, 0.35, 2 * MIB, 0.36), NM_REGION_EVERYWHERE);
	assert_int_equal(target_of(16, 0.36, 2 * MIB, 0.36), NM_REGION_NOWHERE);
	assert_int_equal(target_of(16, 0.25, 2 * MIB, 0.35), NM_REGION_NOWHERE);
	assert_int_equal(target_of(16, 0.25, 2 * MIB, (double)NAN), NM_REGION_NOWHERE);
	assert_int_equal(target_of(15, 0.25, 2 * MIB, 0.36), NM_REGION_NOWHERE);
}

TEST(test_possibly_divided_ranges_are_not_interleaved)
{
	struct nm_region region = {.start = BASE,
				   .end = BASE + 2 * MIB,
				   .samples = 99,
				   .exclusivity = 0.25,
				   .node = 3,
				   .by_halves = 0.45};

	assert_int_equal(nm_region_target(&region, 4, 9, config), NM_REGION_NOWHERE);
	region.whole = true;
	assert_int_equal(nm_region_target(&region, 4, 9, config), NM_REGION_EVERYWHERE);
	region.by_halves = 0.46;
	assert_int_equal(nm_region_target(&region, 4, 9, config), NM_REGION_NOWHERE);
	region.by_halves = (double)NAN;
	assert_int_equal(nm_region_target(&region, 4, 9, config), NM_REGION_NOWHERE);
}

/* 8 MiB: its second half may be another node's, and is split off if it is. */
TEST(test_both_halves_must_belong_to_the_node)
{
	set_range(0, 8 * MIB);
	touch(MIB, 3, 40);
	struct nm_region region = at(0);
	assert_true(region.exclusivity == 1 && !region.uniform);
	assert_int_equal(nm_region_target(&region, 4, 0, config), NM_REGION_NOWHERE);
	touch(5 * MIB, 3, 8);
	region = at(0);
	assert_int_equal(nm_region_target(&region, 4, 0, config), 3);
	config->rules.page_min_accesses = 0; /* as published */
	region.uniform = false;
	assert_int_equal(nm_region_target(&region, 4, 0, config), 3);
}

TEST(test_imbalance)
{
	const double even[] = {5, 5, 5, 5}, one[] = {8, 0, 0, 0}, some[] = {3, 1}, none[] = {0, 0};

	assert_true(nm_imbalance(even, 4) == 0);
	assert_true(fabs(nm_imbalance(one, 4) - sqrt(3)) < 1e-12);
	assert_true(nm_imbalance(some, 2) == 0.5);
	assert_true(isnan(nm_imbalance(none, 2)));
}

RUN_TESTS()
