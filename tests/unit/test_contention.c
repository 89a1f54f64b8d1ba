/* SPDX-License-Identifier: MIT */
/* When a node serves too many accesses, and which ranges are spread then. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "observe/regions.h"

static struct nm_config *config;

static int set_up(void **state)
{
	(void)state;
	return nm_config_default(&config);
}

static int tear_down(void **state)
{
	(void)state;
	nm_config_free(config);
	return 0;
}

static struct nm_contention contention_of(double a, double b, double c, double d)
{
	const double traffic[] = {a, b, c, d};
	return nm_contention_of(traffic, 4);
}

TEST(one_node_serves_most)
{
	assert_int_equal(contention_of(10, 800, 100, 90).busiest, 1);
	assert_true(fabs(contention_of(0, 400, 0, 0).imbalance - sqrt(3)) < 1e-9);
	assert_int_equal(contention_of(0, 0, 0, 100).busiest, 3);
}

TEST(a_share_below_the_threshold_is_no_contention)
{
	assert_int_equal(contention_of(690, 110, 100, 100).busiest, -1);
	assert_int_equal(contention_of(700, 100, 100, 100).busiest, 0);
}

static struct nm_region region(double exclusivity, int node, int second)
{
	return (struct nm_region){.start = 0,
				  .end = 2 << 20,
				  .page_bytes = 2 << 20,
				  .samples = 100,
				  .exclusivity = exclusivity,
				  .node = node,
				  .second = second,
				  .placed = NM_REGION_NOWHERE,
				  .whole = true,
				  .by_halves = exclusivity};
}

TEST(mixed_ranges_go_to_the_second_best)
{
	struct nm_contention busy = contention_of(900, 50, 25, 25);
	struct nm_contention calm = contention_of(250, 250, 250, 250);
	struct nm_region mixed = region(0.6, 0, 2);
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), 2);
	assert_int_equal(nm_contention_target(&mixed, 4, &calm, config), NM_REGION_NOWHERE);
	/* The busy node is not the main user of the range. */
	mixed = region(0.6, 1, 0);
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
	mixed = region(0.6, 0, -1);
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
}

TEST(a_splittable_range_does_not_move_whole)
{
	struct nm_contention busy = contention_of(900, 50, 25, 25);
	struct nm_region mixed = region(0.6, 0, 2);
	mixed.whole = false;
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
	mixed.whole = true;
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), 2);
	mixed.by_halves = 0.8; /* its halves belong to two nodes */
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
}

TEST(a_range_used_by_one_node_stays_there)
{
	struct nm_contention busy = contention_of(900, 50, 25, 25);
	struct nm_region own = region(0.9, 0, 2);
	assert_int_equal(nm_contention_target(&own, 4, &busy, config), 0);
}

TEST(a_range_used_by_all_nodes_is_interleaved)
{
	struct nm_contention busy = contention_of(900, 50, 25, 25);
	struct nm_region shared = region(0.3, 0, 1);
	assert_int_equal(nm_contention_target(&shared, 4, &busy, config), NM_REGION_EVERYWHERE);
}

TEST(small_or_unknown_ranges_stay)
{
	struct nm_contention busy = contention_of(900, 50, 25, 25);
	struct nm_region mixed = region(0.6, 0, 2);
	mixed.samples = 15;
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
	mixed = region(0.6, 0, 2);
	mixed.end = mixed.start + (2 << 20) - 4096;
	assert_int_equal(nm_contention_target(&mixed, 4, &busy, config), NM_REGION_NOWHERE);
}

/* As reported by regions. */
TEST(the_second_is_reported)
{
	nm_auto(nm_regions_freep) struct nm_regions *regions = NULL;
	const struct nm_range range = {0x100000, 0x900000, 4096};
	nm_regions_new(4, 8, &regions);
	assert_int_equal(nm_regions_set_ranges(regions, &range, 1), 0);
	assert_int_equal(nm_regions_at(regions, 0).second, -1);
	for (unsigned i = 0; i < 9; i++)
		nm_regions_touch(regions, 0x200000, i < 2 ? 0 : i < 5 ? 3 : 1);
	assert_int_equal(nm_regions_at(regions, 0).node, 1);
	assert_int_equal(nm_regions_at(regions, 0).second, 3);
	size_t index = 7;
	assert_true(nm_regions_find(regions, 0x8fffff, &index) && index == 0);
	assert_false(nm_regions_find(regions, 0x900000, &index));
}

RUN_TESTS()
