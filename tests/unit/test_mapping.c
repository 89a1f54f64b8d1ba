/* SPDX-License-Identifier: MIT */
/* Nodes assigned to threads that share memory. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../../src/observe/pairs.h"
#include "../../src/policy/mapping/mapping.h"
#include "../support/machine.h"
#include "numa-migrd/base.h"
#include "policy/policy.h"

#define THREADS_MOST 128U

static struct nm_config *config;
static struct nm_affinity *affinity;
static struct nm_topology *topology;
static struct nm_mapping *mapping;
static hwloc_bitmap_t everywhere;
static struct nm_mapping_thread threads[THREADS_MOST];
static uint32_t tids[THREADS_MOST];

static int set_up(void **state)
{
	(void)state;
	everywhere = hwloc_bitmap_alloc_full();
	if (nm_config_default(&config) < 0)
		return -1;
	for (uint32_t i = 0; i < THREADS_MOST; i++)
		tids[i] = 100 + i;
	nm_affinity_new(config, &affinity);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_mapping_free(mapping);
	mapping = NULL;
	nm_topology_free(topology);
	topology = NULL;
	nm_affinity_free(affinity);
	nm_config_free(config);
	hwloc_bitmap_free(everywhere);
	return 0;
}

/* Unrestricted threads: thread i runs on CPU i modulo their number. */
static void machine(unsigned nodes, unsigned cpus, size_t nr_threads)
{
	nm_topology_free(topology);
	topology = machine_topology(nodes, cpus);
	assert_non_null(topology);
	for (size_t i = 0; i < nr_threads; i++)
		threads[i] = (struct nm_mapping_thread){
			.cpu = (int)(i % cpus), .load = 1, .allowed = everywhere};
}

static void share(size_t a, size_t b, unsigned times)
{
	uint16_t id_a, id_b;

	assert_int_equal(nm_affinity_join(affinity, tids[a], 0, &id_a), 0);
	assert_int_equal(nm_affinity_join(affinity, tids[b], 0, &id_b), 0);
	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

static int try_map(size_t nr_threads, double gain, uint32_t seed)
{
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;

	nm_mapping_free(mapping);
	mapping = NULL;
	nm_affinity_graph(affinity, tids, nr_threads, 16, &graph);
	return nm_mapping_compute(topology, graph, threads, gain, seed, &mapping);
}

static void map(size_t nr_threads)
{
	assert_int_equal(try_map(nr_threads, 0.1, 7), 0);
}

static int node_of(size_t thread)
{
	return topology->cpus[mapping->cpu[thread]].node;
}

/* Returns the number of threads that stay on their current node. */
static size_t count_staying(void)
{
	size_t count = 0;
	for (size_t i = 0; i < mapping->nr_threads; i++)
		count += node_of(i) == topology->cpus[threads[i].cpu].node;
	return count;
}

static size_t most_on_one_cpu(size_t nr_threads)
{
	size_t count[1024] = {0}, most = 0;

	for (size_t i = 0; i < nr_threads; i++)
		if (++count[mapping->cpu[i]] > most)
			most = count[mapping->cpu[i]];
	return most;
}

TEST(test_distance)
{
	machine(2, 8, 0);
	topology->cpus[1].core = topology->cpus[0].core;
	topology->cpus[3].cache = 77;
	assert_int_equal(nm_mapping_distance(topology, 0, 0), 1);
	assert_int_equal(nm_mapping_distance(topology, 0, 1), 2);
	assert_int_equal(nm_mapping_distance(topology, 0, 2), 5);
	assert_int_equal(nm_mapping_distance(topology, 0, 3), 10);
	assert_int_equal(nm_mapping_distance(topology, 0, 4), 20);
}

/* Two pairs, each over both nodes: 2 × 10 sharings × 20, and 2 × 10 × 5 on one node each. */
TEST(test_pairs_started_apart)
{
	machine(2, 4, 4);
	share(0, 2, 10);
	share(1, 3, 10);
	map(4);
	assert_int_equal(node_of(0), node_of(2));
	assert_int_equal(node_of(1), node_of(3));
	assert_int_not_equal(node_of(0), node_of(1));
	assert_int_equal(most_on_one_cpu(4), 1);
	assert_true(mapping->cost_now == 400 * NM_SHARING_STEP &&
		    mapping->cost_new == 100 * NM_SHARING_STEP);
	assert_true(mapping->worthwhile);
	assert_int_equal(count_staying(), 2);
	assert_int_equal(mapping->repaired, 0);
}

/* A pair among many idle CPUs is collocated; with the rules of the paper each node gets one
 * thread. */
TEST(test_few_threads_are_gathered)
{
	machine(4, 32, 2);
	threads[1].cpu = 20;
	share(0, 1, 10);
	map(2);
	assert_int_equal(node_of(0), node_of(1));
	assert_int_equal(most_on_one_cpu(2), 1);
	assert_true(mapping->worthwhile);
	assert_int_equal(try_map(2, 0, 7), 0);
	assert_int_not_equal(node_of(0), node_of(1));
}

/* Pairs that fit get a node each. */
TEST(test_pairs_spread)
{
	unsigned nodes = 0;

	machine(4, 32, 8);
	for (size_t i = 0; i < 4; i++)
		share(i, i + 4, 10);
	map(8);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(node_of(i), node_of(i + 4));
		nodes |= 1U << node_of(i);
	}
	assert_int_equal(nodes, 15);
}

TEST(test_collocated_pairs_stay)
{
	machine(4, 8, 8);
	for (size_t i = 0; i < 8; i += 2)
		share(i, i + 1, 10);
	map(8);
	assert_false(mapping->worthwhile);
	assert_int_equal(count_staying(), 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(mapping->cpu[i], threads[i].cpu);
	assert_int_equal(try_map(8, 0, 7), 0);
	assert_true(mapping->worthwhile); /* the paper applies every mapping */
}

/* Three of four pairs are collocated: they keep their nodes regardless of the numbers that Scotch
 * assigns. */
TEST(test_most_stay)
{
	static const int cpus[] = {7, 6, 0, 4, 2, 3, 5, 1};

	machine(4, 8, 8);
	for (size_t i = 0; i < 8; i++)
		threads[i].cpu = cpus[i];
	for (size_t i = 0; i < 8; i += 2)
		share(i, i + 1, 10);
	map(8);
	assert_int_equal(count_staying(), 6);
	assert_int_equal(node_of(0), 3);
	assert_int_equal(node_of(4), 1);
	assert_true(mapping->worthwhile);
}

TEST(test_gain)
{
	machine(2, 4, 4);
	share(0, 2, 10);
	share(1, 3, 10); /* 400 → 100 */
	assert_int_equal(try_map(4, 0.74, 7), 0);
	assert_true(mapping->worthwhile);
	assert_int_equal(try_map(4, 0.75, 7), 0);
	assert_false(mapping->worthwhile);
}

/* A ring of four nodes: opposite ones are farther apart. A chain of threads, in any order of
 * creation, must not cross it. */
static void check_chain(const unsigned order[4])
{
	tear_down(NULL);
	assert_int_equal(set_up(NULL), 0);
	machine(4, 4, 4);
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < 4; b++)
			if ((a ^ b) == 3)
				topology->distance[a * 4 + b] = 30;
	for (unsigned i = 1; i < 4; i++)
		share(order[i - 1], order[i], 9);
	map(4);
	assert_true(mapping->cost_new == 3 * 9 * 20 * NM_SHARING_STEP);
	assert_int_equal(most_on_one_cpu(4), 1);
}

TEST(test_distances_between_nodes)
{
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < 4; b++)
			for (unsigned c = 0; c < 4; c++)
				if (a != b && b != c && a != c)
					check_chain((unsigned[]){a, b, c, 6 - a - b - c});
}

TEST(test_caches)
{
	machine(1, 8, 8);
	for (int cpu = 0; cpu < 8; cpu++)
		topology->cpus[cpu].cache = cpu % 2;
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++) {
			share(i, j, 5);
			share(4 + i, 4 + j, 5);
		}
	map(8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(mapping->cpu[i] % 2, mapping->cpu[i / 4 * 4] % 2);
	assert_int_equal(most_on_one_cpu(8), 1);
}

TEST(test_siblings)
{
	machine(1, 4, 4);
	for (int cpu = 0; cpu < 4; cpu++)
		topology->cpus[cpu].core = cpu % 2;
	share(0, 1, 5);
	share(2, 3, 5);
	map(4);
	assert_int_equal(mapping->cpu[0] % 2, mapping->cpu[1] % 2);
	assert_int_equal(mapping->cpu[2] % 2, mapping->cpu[3] % 2);
	assert_true(mapping->cost_new == 20 * NM_SHARING_STEP);
}

static void check_repeatable(void)
{
	int first[64];

	map(64);
	memcpy(first, mapping->cpu, sizeof(first));
	assert_int_equal(try_map(64, 0.1, 12345), 0); /* another call in between */
	map(64);
	assert_memory_equal(mapping->cpu, first, sizeof(first));
}

static void shuffle_places(size_t nr_threads, unsigned cpus)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 3);
	for (size_t i = nr_threads; i > 1; i--) {
		size_t j = nm_rng_below(&rng, i);
		int cpu = threads[i - 1].cpu;
		threads[i - 1].cpu = threads[j].cpu;
		threads[j].cpu = cpu;
	}
	assert_true(nr_threads <= cpus);
}

/* Figure 4: neighbours; 60 of 63 pairs can be on one node. */
TEST(test_neighbours)
{
	machine(4, 64, 64);
	shuffle_places(64, 64);
	for (size_t i = 1; i < 64; i++)
		share(i - 1, i, 10);
	check_repeatable();
	assert_true(mapping->worthwhile);
	assert_int_equal(most_on_one_cpu(64), 1);
	size_t apart = 0;
	for (size_t i = 1; i < 64; i++)
		apart += node_of(i - 1) != node_of(i);
	assert_in_range(apart, 3, 6);
}

/* Figure 4: stages of a pipeline, in groups of four that are spread over the machine. */
TEST(test_pipeline)
{
	machine(4, 64, 64);
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < i; j++)
			if (i % 16 == j % 16)
				share(i, j, 10);
	check_repeatable();
	assert_true(mapping->worthwhile);
	for (size_t i = 16; i < 64; i++)
		assert_int_equal(node_of(i), node_of(i % 16));
}

TEST(test_all_to_all_is_left)
{
	machine(4, 64, 64);
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < i; j++)
			share(i, j, 10);
	map(64);
	assert_int_equal(most_on_one_cpu(64), 1);
	assert_int_equal(mapping->nr_threads, 64);
}

/* ---- affinities ---- */

TEST(test_masks)
{
	nm_autobitmap node_1 = hwloc_bitmap_alloc();

	machine(2, 8, 8);
	hwloc_bitmap_set_range(node_1, 4, 7);
	for (size_t i = 0; i < 8; i += 2) {
		share(i, i + 1, 10);
		threads[i].allowed = node_1;
	}
	map(8);
	assert_true(mapping->repaired > 0);
	for (size_t i = 0; i < 8; i += 2)
		assert_int_equal(node_of(i), 1);
	assert_in_range(most_on_one_cpu(8), 1, 2);
}

/* Four threads that share everything would be on one node, but two may not run there: they stay
 * spread. */
TEST(test_repaired_threads_spread)
{
	nm_autobitmap node_0 = hwloc_bitmap_alloc(), node_1 = hwloc_bitmap_alloc();

	machine(2, 8, 4);
	hwloc_bitmap_set_range(node_0, 0, 3);
	hwloc_bitmap_set_range(node_1, 4, 7);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			share(i, j, 10);
	for (size_t i = 0; i < 4; i++)
		threads[i].allowed = i < 2 ? node_0 : node_1;
	map(4);
	assert_int_equal(mapping->repaired, 2);
	assert_int_equal(most_on_one_cpu(4), 1);
}

/* Threads follow the node to which one of them is bound, regardless of the number that Scotch
 * assigns to it. */
TEST(test_groups_follow_the_bound)
{
	nm_autobitmap node_1 = hwloc_bitmap_alloc();

	hwloc_bitmap_set_range(node_1, 4, 7);
	machine(2, 8, 3);
	share(0, 1, 10);
	share(1, 2, 10);
	threads[2].allowed = node_1;
	for (uint32_t seed = 0; seed < 10; seed++) {
		assert_int_equal(try_map(3, 0.1, seed), 0);
		assert_int_equal(mapping->repaired, 0);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(node_of(i), 1);
	}
}

/* Of two otherwise equal nodes the one with their memory is chosen. */
TEST(test_groups_move_to_their_memory)
{
	machine(2, 8, 2);
	share(0, 1, 10);
	for (unsigned node = 0; node < 2; node++) {
		for (size_t i = 0; i < 2; i++) {
			threads[i].cpu = 4 * (int)i;
			threads[i].memory = node + 1;
		}
		map(2);
		assert_int_equal(node_of(0), node);
		assert_int_equal(node_of(1), node);
	}
}

TEST(test_repaired_threads_go_near)
{
	nm_autobitmap some = hwloc_bitmap_alloc();

	machine(2, 8, 2);
	threads[0].cpu = 4;
	threads[1].cpu = 5;
	hwloc_bitmap_set_range(some, 2, 3);
	hwloc_bitmap_set(some, 7);
	threads[1].allowed = some;
	share(0, 1, 10);
	map(2);
	assert_int_equal(mapping->repaired, 1);
	assert_int_equal(mapping->cpu[1], 7);
}

/* All threads are confined: only those CPUs count, and no repair is needed. */
TEST(test_common_affinity)
{
	nm_autobitmap some = hwloc_bitmap_alloc();

	machine(2, 16, 4);
	hwloc_bitmap_set_range(some, 7, 10);
	for (size_t i = 0; i < 4; i++)
		threads[i].allowed = some;
	share(0, 2, 10);
	share(1, 3, 10);
	map(4);
	assert_int_equal(mapping->repaired, 0);
	assert_int_equal(most_on_one_cpu(4), 1);
	for (size_t i = 0; i < 4; i++)
		assert_in_range(mapping->cpu[i], 7, 10);
}

TEST(test_no_destination)
{
	nm_autobitmap gone = hwloc_bitmap_alloc();

	machine(2, 8, 3);
	hwloc_bitmap_set(gone, 500);
	threads[1].allowed = gone;
	share(0, 1, 10);
	share(1, 2, 10);
	map(3);
	assert_int_equal(mapping->cpu[1], -1);
	assert_in_range(mapping->cpu[0], 0, 7);
	threads[0].allowed = threads[2].allowed = gone;
	assert_int_equal(try_map(3, 0.1, 7), -ENODATA);
	assert_null(mapping);
}

/* ---- odd machines and loads ---- */

TEST(test_isolated_cpus_are_no_place)
{
	machine(2, 8, 5);
	hwloc_bitmap_clr(topology->usable, 0);
	hwloc_bitmap_clr_range(topology->usable, 6, 7);
	share(0, 3, 10);
	share(1, 4, 10);
	map(5);
	for (size_t i = 0; i < 5; i++)
		assert_true(hwloc_bitmap_isset(topology->usable, (unsigned)mapping->cpu[i]));
	assert_int_equal(most_on_one_cpu(5), 1);
	assert_int_equal(node_of(0), node_of(3));
	assert_int_equal(node_of(1), node_of(4));
}

TEST(test_small_machines)
{
	machine(1, 1, 3);
	share(0, 1, 10);
	map(3);
	assert_int_equal(most_on_one_cpu(3), 3);
	assert_false(mapping->worthwhile);
	machine(1, 2, 0);
	assert_int_equal(try_map(0, 0.1, 7), -ENODATA);
	machine(2, 2, 1);
	map(1);
	assert_int_equal(mapping->cpu[0], 0);
}

/* A thread with a heavy load has a node almost to itself. */
TEST(test_loads)
{
	size_t beside = 0;

	machine(2, 2, 9);
	threads[0].load = 1;
	for (size_t i = 1; i < 9; i++) {
		threads[i].load = 0.125;
		share(0, i, 2);
	}
	map(9);
	for (size_t i = 1; i < 9; i++)
		beside += node_of(i) == node_of(0);
	assert_in_range(beside, 0, 1);
}

TEST(test_unknown_places_and_loads)
{
	machine(2, 4, 4);
	share(0, 2, 10);
	share(1, 3, 10);
	threads[2].cpu = -1;
	threads[0].load = threads[2].load = (double)NAN;
	map(4);
	assert_int_equal(node_of(0), node_of(2));
	assert_true(mapping->cost_now == 200 * NM_SHARING_STEP &&
		    mapping->cost_new == 50 * NM_SHARING_STEP); /* of 1 and 3 only */
}

TEST(test_large_weights)
{
	machine(2, 8, 8);
	for (size_t i = 0; i < 8; i++)
		for (size_t j = 0; j < i; j++)
			if (i % 2 == j % 2)
				share(i, j, 1);
	for (size_t i = 0; i < affinity->slots; i++)
		affinity->pairs[i].weight = UINT32_MAX - 1;
	map(8);
	assert_true(mapping->worthwhile);
	for (size_t i = 2; i < 8; i++)
		assert_int_equal(node_of(i), node_of(i % 2));
}

/* ---- any machine ---- */

static void check_any(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed);
	unsigned nodes = 1 + (unsigned)nm_rng_below(&dice, 5);
	unsigned cpus = nodes * (1 + (unsigned)nm_rng_below(&dice, 9));
	size_t count = 1 + nm_rng_below(&dice, 40);
	nm_autobitmap mask = hwloc_bitmap_alloc();

	machine(nodes, cpus, count);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		topology->cpus[cpu].cache = (int)nm_rng_below(&dice, 6);
		topology->cpus[cpu].core = (int)(cpu / 2);
		if (nm_rng_below(&dice, 5) == 0)
			hwloc_bitmap_clr(topology->usable, cpu);
		if (nm_rng_below(&dice, 2))
			hwloc_bitmap_set(mask, cpu);
	}
	for (size_t i = 0; i < count; i++) {
		threads[i].allowed = nm_rng_below(&dice, 3) ? everywhere : mask;
		threads[i].load = nm_rng_unit(&dice) * 2;
		threads[i].cpu = (int)nm_rng_below(&dice, cpus + 1) - 1;
		share(i, nm_rng_below(&dice, count), (unsigned)nm_rng_below(&dice, 50));
	}
	int r = try_map(count, 0.1, (uint32_t)seed);
	assert_true(r == 0 || r == -ENODATA);
	for (size_t i = 0; i < count && r == 0; i++) {
		nm_autobitmap places = hwloc_bitmap_dup(threads[i].allowed);
		hwloc_bitmap_and(places, places, topology->usable);
		if (mapping->cpu[i] < 0)
			assert_true(hwloc_bitmap_iszero(places));
		else
			assert_true(hwloc_bitmap_isset(places, (unsigned)mapping->cpu[i]));
	}
}

TEST(a_missing_library_is_named)
{
	char error[256] = "";
	assert_int_equal(nm_kmaf_check(NULL, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	assert_int_equal(nm_kmaf_check("libabsent-7.0.so", error, sizeof(error)), -ELIBACC);
	assert_non_null(strstr(error, "libabsent-7.0.so: cannot open"));
	assert_int_equal(nm_kmaf_check("libm.so.6", error, sizeof(error)), -ELIBACC);
	assert_string_equal(error, "libm.so.6 contains no SCOTCH_stratExit");
}

TEST(test_any_machine)
{
	for (uint64_t seed = 0; seed < 300; seed++)
		check_any(seed);
}

RUN_TESTS()
