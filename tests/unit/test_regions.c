/* SPDX-License-Identifier: MIT */
/* Ranges of memory: splitting, merging, and their preferred nodes. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "../support/script.h"
#include "numa-migrd/base.h"
#include "observe/regions.h"

#define MIB (1ULL << 20)
#define BASE (0x7f0000000000ULL)

static struct nm_config *config;
static struct nm_regions *regions;
static uint64_t page_bytes; /* of mappings */

static int set_up(void **state)
{
	(void)state;
	if (nm_config_default(&config) < 0)
		return -1;
	nm_regions_new(4, 64, &regions);
	page_bytes = 4096;
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

/* ---- words ---- */

/* map 0 4M 6M 8M: ranges that are mapped */
WORD(map)
{
	struct nm_range ranges[4];
	unsigned count = 0;
	for (unsigned i = 0; i + 1 < step->nr_numbers; i += 2)
		ranges[count++] = (struct nm_range){.start = BASE + (uint64_t)(int64_t)N(i),
						    .end = BASE + (uint64_t)(int64_t)N(i + 1),
						    .page_bytes = page_bytes};
	assert_int_equal(nm_regions_set_ranges(regions, ranges, count), 0);
}

/* touch 1M node1 8 times */
ACTION(touch, touch((uint64_t)(int64_t)N(0), U(1), U(2)))
ACTION(adapt, adapt())
ACTION(fade, nm_regions_fade(regions, N(0)))
ACTION(place, nm_regions_set_placed(regions, U(0), (int)N(1), 7))
KNOB(page_bytes, page_bytes)
KNOB(page_min_accesses, config->rules.page_min_accesses)
QUANTITY(count, nm_regions_count(regions))
QUANTITY(whole, at(U(0)).whole)

/* "0-4 node1 8 0.75, 4-8": MiB; the node of most accesses, all accesses and the share of the node;
 * "on 3", if it was placed there. */
static const char *print_regions(void)
{
	static char text[400];
	size_t length = 0;
	text[0] = '\0';
	for (size_t i = 0; i < nm_regions_count(regions); i++) {
		const struct nm_region region = at(i);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%g-%g",
					   i ? ", " : "",
					   (double)(int64_t)(region.start - BASE) / MIB,
					   (double)(int64_t)(region.end - BASE) / MIB);
		assert_int_equal(region.node < 0, isnan(region.exclusivity));
		if (region.node >= 0)
			length += (size_t)snprintf(text + length, sizeof(text) - length,
						   " node%d %g %g", region.node, region.samples,
						   region.exclusivity);
		if (region.placed != NM_REGION_NOWHERE)
			length += (size_t)snprintf(text + length, sizeof(text) - length, " on %d",
						   region.placed);
	}
	return *text ? text : NULL;
}

TEXT(regions, print_regions())

static int target(unsigned index)
{
	const struct nm_region region = at(index);
	return nm_region_target(&region, 4, 0, config);
}

QUANTITY(target, target(U(0)))
NAMES(target, {"nowhere", NM_REGION_NOWHERE})

/* ---- counting ---- */

/* Accesses outside, or from an unknown node, do not count. */
SCRIPT(test_accesses,
       "map 0 8M; regions = 0-8; touch 0 node1 6; touch 8388607 node3 2; touch 8M node2 50",
       "touch -1 node2 1; touch 0 node4 50; regions = 0-8 node1 8 0.75; fade 0.5",
       "regions = 0-8 node1 4 0.75")

/* ---- splitting ---- */

SCRIPT(test_halves_of_different_nodes_split,
       "map 0 8M; touch 1M node1 8; touch 5M node2 7; adapt; count = 1; touch 5M node2 1; adapt",
       "regions = 0-4 node1 8 1, 4-8 node2 8 1")

/* In total, 80 % are of node 1. */
SCRIPT(test_halves_of_one_node_stay,
       "map 0 8M; touch 1M node1 80; touch 5M node1 40; touch 5M node2 30; adapt; count = 1",
       "whole 0 = 0")

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

/* The middle of the second one is at 2 MiB, and the left part is shorter. */
SCRIPT(test_no_split_below_two_megabytes,
       "map 0 4190208; touch 0 node1 50; touch 3M node2 50; adapt; count = 1",
       "map 4096 4198400; touch 4096 node1 50; touch 3M node2 50; adapt; count = 1",
       "map 0 4M; touch 0 node1 50; touch 3M node2 50; adapt; count = 2")

/* A mapping of 1 GiB pages is never split within a page. */
SCRIPT(test_pages_are_not_split,
       "set page_bytes = 1G; map 0 3G; touch 0 node1 50; touch 1G node2 50; touch 2G node2 50",
       "adapt; regions = 0-1024 node1 50 1, 1024-3072 node2 100 1; touch 1G node3 900",
       "touch 2G node2 50; adapt; count = 3; touch 0 node0 900; touch 1073741823 node3 900; adapt",
       "count = 3")

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

#define TWO_REGIONS                                                                                \
	"map 0 8M; touch 0 node1 10; touch 4M node2 10; adapt; regions = 0-4 node1 10 1, 4-8 "     \
	"node2 10 1; fade 0"

/* Shares of 1 and 0.91; afterwards its halves are not distinguished yet. */
SCRIPT(test_similar_regions_merge, TWO_REGIONS,
       "touch 0 node1 10; touch 4M node1 91; touch 4M node2 9; adapt",
       "regions = 0-8 node1 110 0.918182; adapt; count = 1")

/* Also if one of them is unknown, but not if both are. */
SCRIPT(test_different_regions_stay_apart, TWO_REGIONS,
       "touch 0 node1 10; touch 4M node1 88; touch 4M node2 12; adapt; count = 2; fade 0",
       "touch 0 node1 10; touch 4M node2 10; adapt; count = 2; fade 0",
       "touch 0 node1 10; adapt; count = 2; fade 0; adapt; count = 1")

SCRIPT(test_separate_ranges_do_not_merge, "map 0 4M 6M 8M; adapt; regions = 0-4, 6-8")

SCRIPT(test_placed_differently_does_not_merge, TWO_REGIONS,
       "place 1 node3; adapt; regions = 0-4, 4-8 on 3; place 0 node3; adapt", "regions = 0-8 on 3")

/* ---- changes of mappings ---- */

SCRIPT(test_mapped_ranges_are_kept, TWO_REGIONS,
       "touch 0 node1 10; touch 4M node2 7; place 1 node2; map -16M -8M 2M 20M",
       "regions = -16--8, 2-4 node1 5 1, 4-8 node2 7 1 on 2, 8-20; map; regions = none",
       "touch 0 node1 1")

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

SCRIPT(test_halves_survive_reading_the_mappings,
       "map 0 8M; touch 1M node1 8; touch 5M node2 8; map 0 8M; adapt; count = 2")

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

/* Of a range with accesses mostly from node 3. */
TEST(test_targets)
{
	static const struct {
		const char *name;
		double samples, exclusivity;
		uint64_t bytes;
		double imbalance;
		int expected;
		double by_halves; /* 0: both are alike */
		bool divisible;
	} rows[] = {
		{"exclusive", 16, 0.8, 2 * MIB, 0, 3},
		{"few samples", 15.9, 1, 2 * MIB, 0, NM_REGION_NOWHERE},
		{"less exclusive", 16, 0.79, 2 * MIB, 9, NM_REGION_NOWHERE},
		{"short", 16, 1, 2 * MIB - 1, 0, NM_REGION_NOWHERE},
		{"of all nodes", 16, 0.35, 2 * MIB, 0.36, NM_REGION_EVERYWHERE},
		{"of one more than others", 16, 0.36, 2 * MIB, 0.36, NM_REGION_NOWHERE},
		{"balanced", 16, 0.25, 2 * MIB, 0.35, NM_REGION_NOWHERE},
		{"unknown balance", 16, 0.25, 2 * MIB, NAN, NM_REGION_NOWHERE},
		{"of all nodes, few samples", 15, 0.25, 2 * MIB, 0.36, NM_REGION_NOWHERE},
		{"perhaps divided", 99, 0.25, 2 * MIB, 9, NM_REGION_NOWHERE, 0.45, true},
		{"halves differ", 99, 0.25, 2 * MIB, 9, NM_REGION_EVERYWHERE, 0.45},
		{"halves differ more", 99, 0.25, 2 * MIB, 9, NM_REGION_NOWHERE, 0.46},
		{"unknown halves", 99, 0.25, 2 * MIB, 9, NM_REGION_NOWHERE, NAN},
	};
	EACH_ROW(row, rows)
	{
		const struct nm_region region = {
			.start = BASE,
			.end = BASE + row->bytes,
			.samples = row->samples,
			.exclusivity = row->exclusivity,
			.node = 3,
			.placed = NM_REGION_NOWHERE,
			.whole = !row->divisible,
			.by_halves = row->by_halves != 0 ? row->by_halves : row->exclusivity};
		CHECK(row, nm_region_target(&region, 4, row->imbalance, config) == row->expected);
	}
}

/* 8 MiB: its second half may be another node's, and is split off if it is. */
SCRIPT(test_both_halves_must_belong_to_the_node,
       "map 0 8M; touch 1M node3 40; regions = 0-8 node3 40 1; target 0 = nowhere",
       "touch 5M node3 8; target 0 = 3")

/* As published. */
SCRIPT(test_a_half_may_decide_without_a_minimum,
       "map 0 8M; touch 1M node3 40; target 0 = nowhere; set page_min_accesses = 0; target 0 = 3")

TEST(test_imbalance)
{
	const double even[] = {5, 5, 5, 5}, one[] = {8, 0, 0, 0}, some[] = {3, 1}, none[] = {0, 0};

	assert_true(nm_imbalance(even, 4) == 0);
	assert_true(fabs(nm_imbalance(one, 4) - sqrt(3)) < 1e-12);
	assert_true(nm_imbalance(some, 2) == 0.5);
	assert_true(isnan(nm_imbalance(none, 2)));
}

RUN_TESTS()
