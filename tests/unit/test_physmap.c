/* SPDX-License-Identifier: MIT */
#define SET_UP make_root
#define TEAR_DOWN remove_root
#include "../support/test.h"

#include <stdint.h>

#include "fixture.h"
#include "numa-migrd/topology.h"

#define MIB (1ULL << 20)
#define BLOCK (128 * MIB)

/* Nodes 0, 2 and 5, the only part of a topology that the map uses. */
static struct nm_node three_nodes[] = {{.os_id = 0}, {.os_id = 2}, {.os_id = 5}};
static const struct nm_topology three = {.nr_nodes = 3, .nodes = three_nodes};
static const struct nm_topology one = {.nr_nodes = 1, .nodes = three_nodes};

static int make_root(void **state)
{
	char *root = malloc(FIXTURE_PATH);

	fixture_make(root, FIXTURE_PATH);
	*state = root;
	return 0;
}

static int remove_root(void **state)
{
	fixture_remove(*state);
	free(*state);
	return 0;
}

static void put_block(const char *root, unsigned node, unsigned block)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/devices/system/node/node%u/memory%u/state", node, block);
	fixture_file(root, path, "online\n");
}

/* Blocks 0-1 on node 0, 2 on node 2, a hole, 4 on node 0, 9-10 on node 5; decoys beside them. */
static void put_blocks(const char *root)
{
	fixture_file(root, "sys/devices/system/memory/block_size_bytes", "8000000\n");
	put_block(root, 0, 0);
	put_block(root, 0, 1);
	put_block(root, 2, 2);
	put_block(root, 0, 4);
	put_block(root, 5, 10);
	put_block(root, 5, 9);
	fixture_file(root, "sys/devices/system/node/node0/memory_failure/total", "0\n");
	fixture_file(root, "sys/devices/system/node/node0/memory3x", "\n");
	put_block(root, 7, 3);
}

/* Node 0: pages 1-4095 and up to 1.5 blocks; node 2 from there to 3 blocks; an empty zone on
 * node 5. */
static const char zoneinfo[] = "Node 0, zone      DMA\n"
			       "  pages free     2816\n"
			       "        min      33\n"
			       "        spanned  4095\n"
			       "        present  3998\n"
			       "  start_pfn:           1\n"
			       "Node 0, zone    DMA32\n"
			       "        spanned  45056\n"
			       "        present  45056\n"
			       "  start_pfn:           4096\n"
			       "Node 2, zone    DMA32\n"
			       "        spanned  49152\n"
			       "  start_pfn:           49152\n"
			       "Node 5, zone   Normal\n"
			       "        spanned  0\n"
			       "  start_pfn:           0\n"
			       "Node 7, zone   Normal\n"
			       "        spanned  1000\n"
			       "  start_pfn:           98304\n";

static struct nm_physmap *load_map(const char *root)
{
	struct nm_physmap *map = NULL;

	assert_int_equal(nm_physmap_load(&three, root, &map), 0);
	return map;
}

static uint64_t page(uint64_t pfn)
{
	return pfn * (uint64_t)sysconf(_SC_PAGESIZE);
}

TEST(memory_blocks_give_the_node)
{
	put_blocks(*state);
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, 1), 0);
	assert_int_equal(nm_physmap_node(map, 2 * BLOCK - 1), 0);
	assert_int_equal(nm_physmap_node(map, 2 * BLOCK), 1);
	assert_int_equal(nm_physmap_node(map, 3 * BLOCK - 1), 1);
	assert_int_equal(nm_physmap_node(map, 4 * BLOCK + 5), 0);
	assert_int_equal(nm_physmap_node(map, 9 * BLOCK), 2);
	assert_int_equal(nm_physmap_node(map, 11 * BLOCK - 1), 2);
}

TEST(elsewhere_is_unknown)
{
	put_blocks(*state);
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, 0), -1);
	assert_int_equal(nm_physmap_node(map, 3 * BLOCK),
			 -1); /* a hole, except for node 7, which does not exist here */
	assert_int_equal(nm_physmap_node(map, 8 * BLOCK), -1);
	assert_int_equal(nm_physmap_node(map, 11 * BLOCK), -1);
	assert_int_equal(nm_physmap_node(map, UINT64_MAX), -1);
}

TEST(holes_are_preserved_beside_zones)
{
	put_blocks(*state);
	fixture_file(*state, "proc/zoneinfo",
		     "Node 0, zone Normal\n        spanned  1000000\n  start_pfn:  0\n");
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, 3 * BLOCK), -1);
	assert_int_equal(nm_physmap_node(map, 2 * BLOCK), 1);
}

TEST(zones_replace_missing_blocks)
{
	fixture_file(*state, "proc/zoneinfo", zoneinfo);
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, page(1)), 0);
	assert_int_equal(nm_physmap_node(map, page(1) - 1), -1);
	assert_int_equal(nm_physmap_node(map, page(49152) - 1), 0);
	assert_int_equal(nm_physmap_node(map, page(49152)), 1);
	assert_int_equal(nm_physmap_node(map, page(98304) - 1), 1);
	assert_int_equal(nm_physmap_node(map, page(98304)), -1);
}

TEST(overlapping_zones_are_ignored)
{
	fixture_file(*state, "proc/zoneinfo",
		     "Node 0, zone Normal\n        spanned  100\n  start_pfn:  100\n"
		     "Node 2, zone Normal\n        spanned  20\n  start_pfn:  150\n"
		     "Node 2, zone Movable\n        spanned  10\n  start_pfn:  300\n");
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, page(149)), 0);
	assert_int_equal(nm_physmap_node(map, page(150)), -1);
	assert_int_equal(nm_physmap_node(map, page(169)), -1);
	assert_int_equal(nm_physmap_node(map, page(170)), 0);
	assert_int_equal(nm_physmap_node(map, page(300)), 1);
}

/* numa=fake divides nodes within a block, which then appears in both: the zones decide. */
TEST(shared_blocks_are_split_by_zones)
{
	put_blocks(*state);
	put_block(*state, 2, 1);
	fixture_file(*state, "proc/zoneinfo", zoneinfo);
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	if (sysconf(_SC_PAGESIZE) != 4096) {
		print_message("written for pages of 4 KiB: skipped\n");
		skip();
	}
	assert_int_equal(nm_physmap_node(map, BLOCK - 1), 0);
	assert_int_equal(nm_physmap_node(map, BLOCK + BLOCK / 2 - 1), 0);
	assert_int_equal(nm_physmap_node(map, BLOCK + BLOCK / 2), 1);
	assert_int_equal(nm_physmap_node(map, 2 * BLOCK), 1);
}

TEST(shared_blocks_alone_are_unknown)
{
	put_blocks(*state);
	put_block(*state, 2, 1);
	nm_auto(nm_physmap_freep) struct nm_physmap *map = load_map(*state);

	assert_int_equal(nm_physmap_node(map, BLOCK - 1), 0);
	assert_int_equal(nm_physmap_node(map, BLOCK), -1);
	assert_int_equal(nm_physmap_node(map, 2 * BLOCK), 1);
}

TEST(no_source_is_reported)
{
	struct nm_physmap *map = NULL;

	assert_int_equal(nm_physmap_load(&three, *state, &map), -ENODATA);
	assert_int_equal(nm_physmap_load(&three, "/nonexistent", &map), -ENODATA);
	fixture_file(*state, "sys/devices/system/memory/block_size_bytes", "0\n");
	put_block(*state, 0, 0);
	assert_int_equal(nm_physmap_load(&three, *state, &map), -ENODATA);
	fixture_file(*state, "sys/devices/system/memory/block_size_bytes", "none\n");
	assert_int_equal(nm_physmap_load(&three, *state, &map), -ENODATA);
	assert_null(map);
}

TEST(single_node_has_everything)
{
	nm_auto(nm_physmap_freep) struct nm_physmap *map = NULL;

	assert_int_equal(nm_physmap_load(&one, *state, &map), 0);
	assert_int_equal(nm_physmap_node(map, 4096), 0);
	assert_int_equal(nm_physmap_node(map, UINT64_MAX), 0);
	assert_int_equal(nm_physmap_node(map, 0), -1);
}

TEST_BETWEEN(NULL, NULL, this_machine_maps)
{
	const struct nm_topology_source source = {0};
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	nm_auto(nm_physmap_freep) struct nm_physmap *map = NULL;
	char error[256];

	assert_int_equal(nm_topology_load(&source, error, sizeof(error), &topology), 0);
	int r = nm_physmap_load(topology, NULL, &map);
	assert_true(r == 0 || r == -ENODATA);
	if (r == 0)
		assert_int_equal(nm_physmap_node(map, 0), -1);
	nm_physmap_free(NULL);
}

RUN_TESTS()
