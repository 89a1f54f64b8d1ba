/* SPDX-License-Identifier: MIT */
/* Nodes assigned to threads that share memory. Each mapping is computed for the machine, the
 * threads and what they share so far. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/observe/pairs.h"
#include "../../src/policy/mapping/mapping.h"
#include "../support/machine.h"
#include "../support/script.h"
#include "numa-migrd/base.h"
#include "policy/policy.h"

#define THREADS_MOST 128U

static struct nm_config *config;
static struct nm_affinity *affinity;
static struct nm_topology *topology;
static struct nm_mapping *mapping;
static hwloc_bitmap_t everywhere, confined[THREADS_MOST];
static struct nm_mapping_thread threads[THREADS_MOST];
static size_t nr_threads;
static uint32_t tids[THREADS_MOST];
static bool shares[THREADS_MOST][THREADS_MOST];
static int remembered[THREADS_MOST];
static uint32_t next_seed;

static int set_up(void **state)
{
	(void)state;
	everywhere = hwloc_bitmap_alloc_full();
	if (nm_config_default(&config) < 0)
		return -1;
	for (uint32_t i = 0; i < THREADS_MOST; i++)
		tids[i] = 100 + i;
	nm_affinity_new(config, &affinity);
	memset(shares, 0, sizeof(shares));
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
	for (size_t i = 0; i < THREADS_MOST; i++)
		nm_bitmap_freep(&confined[i]);
	memset(confined, 0, sizeof(confined));
	return 0;
}

/* ---- words ---- */

static void machine(unsigned nodes, unsigned cpus, size_t count)
{
	nm_topology_free(topology);
	topology = machine_topology(nodes, cpus);
	assert_non_null(topology);
	nr_threads = count;
	for (size_t i = 0; i < count; i++)
		threads[i] = (struct nm_mapping_thread){
			.cpu = (int)(i % cpus), .load = 1, .allowed = everywhere};
}

static void share(size_t a, size_t b, unsigned times)
{
	uint16_t id_a, id_b;
	assert_int_equal(nm_affinity_join(affinity, tids[a], 0, &id_a), 0);
	assert_int_equal(nm_affinity_join(affinity, tids[b], 0, &id_b), 0);
	shares[a][b] = true;
	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

/* machine 2 4 8: nodes, CPUs, and unrestricted threads: thread i runs on CPU i modulo their number
 */
ACTION(machine, machine(U(0), U(1), U(2)))

/* on 7 6 0: the CPU of each thread */
WORD(on)
{
	for (unsigned i = 0; i < step->nr_numbers; i++)
		threads[i].cpu = (int)N(i);
}

/* share 10 0-2 1-3: ten times, of each pair */
WORD(share)
{
	for (unsigned i = 1; i + 1 < step->nr_numbers; i += 2)
		share(U(i), U(i + 1), U(0));
}

/* share_all 10 0-63, or every 16: of each two threads, or those whose numbers differ by 16, 32… */
WORD(share_all)
{
	for (size_t i = U(1); i <= U(2); i++)
		for (size_t k = U(1); k < i; k++)
			if (step->nr_numbers < 4 || (i - k) % U(3) == 0)
				share(i, k, U(0));
}

WORD(share_chain)
{
	for (size_t i = U(1) + 1; i <= U(2); i++)
		share(i - 1, i, U(0));
}

/* bind 1 2-3 7-7: a thread to CPUs */
WORD(bind)
{
	hwloc_bitmap_t *cpus = &confined[U(0)];
	if (!*cpus)
		*cpus = hwloc_bitmap_alloc();
	for (unsigned i = 1; i + 1 < step->nr_numbers; i += 2)
		hwloc_bitmap_set_range(*cpus, U(i), (int)U(i + 1));
	threads[U(0)].allowed = *cpus;
}

/* unusable 0-0 6-7 */
WORD(unusable)
{
	for (unsigned i = 0; i + 1 < step->nr_numbers; i += 2)
		hwloc_bitmap_clr_range(topology->usable, U(i), (int)U(i + 1));
}

/* alternate caches, or cores: CPUs belong to two of them in turn */
WORD(alternate)
{
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		*(step_has(step, "caches") ? &topology->cpus[cpu].cache
					   : &topology->cpus[cpu].core) = (int)cpu % 2;
}

WORD(shuffle)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, 3);
	for (size_t i = nr_threads; i > 1; i--) {
		size_t j = nm_rng_below(&rng, i);
		int cpu = threads[i - 1].cpu;
		threads[i - 1].cpu = threads[j].cpu;
		threads[j].cpu = cpu;
	}
}

WORD(loads)
{
	for (size_t i = U(0); i <= U(1); i++)
		threads[i].load = N(2);
}

WORD(saturate)
{
	for (size_t i = 0; i < affinity->slots; i++)
		affinity->pairs[i].weight = UINT32_MAX - 1;
}

/* Threads are placed on CPUs that they may use, if there is one. */
static int map(double gain, uint32_t seed)
{
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	nm_mapping_free(mapping);
	mapping = NULL;
	nm_affinity_graph(affinity, tids, nr_threads, 16, &graph);
	int r = nm_mapping_compute(topology, graph, threads, gain, seed, &mapping);
	assert_true((r == 0) == (mapping != NULL));
	for (size_t i = 0; i < nr_threads && r == 0; i++) {
		nm_autobitmap places = hwloc_bitmap_dup(threads[i].allowed);
		hwloc_bitmap_and(places, places, topology->usable);
		assert_true(mapping->cpu[i] < 0
				    ? hwloc_bitmap_iszero(places)
				    : hwloc_bitmap_isset(places, (unsigned)mapping->cpu[i]));
	}
	return r;
}

WORD(remember)
{
	memcpy(remembered, mapping->cpu, nr_threads * sizeof(remembered[0]));
}

/* ---- what is mapped ---- */

static int place(size_t thread, const char *of)
{
	const struct nm_cpu *cpu = &topology->cpus[mapping->cpu[thread]];
	return strcmp(of, "caches") == 0  ? cpu->cache
	       : strcmp(of, "cores") == 0 ? cpu->core
					  : cpu->node;
}

/* A letter for each thread: equal ones share a node, a cache or a core. */
static const char *show(const char *of)
{
	static char text[THREADS_MOST + 1];
	char next = 'a';
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < nr_threads; i++) {
		for (size_t k = 0; k < i && !text[i]; k++)
			if (place(k, of) == place(i, of))
				text[i] = text[k];
		if (!text[i])
			text[i] = next++;
	}
	return text;
}

/* Returns the number of threads that stay on their current node. */
static size_t count_staying(void)
{
	size_t count = 0;
	for (size_t i = 0; i < nr_threads; i++)
		count += place(i, "nodes") == topology->cpus[threads[i].cpu].node;
	return count;
}

static size_t most_on_one_cpu(void)
{
	size_t count[1024] = {0}, most = 0;
	for (size_t i = 0; i < nr_threads; i++)
		if (++count[mapping->cpu[i]] > most)
			most = count[mapping->cpu[i]];
	return most;
}

/* Returns the number of pairs that share memory and are on different nodes. */
static size_t count_apart(void)
{
	size_t count = 0;
	for (size_t i = 0; i < nr_threads; i++)
		for (size_t k = 0; k < nr_threads; k++)
			count += shares[i][k] && place(i, "nodes") != place(k, "nodes");
	return count;
}

static size_t count_on(int node)
{
	size_t count = 0;
	for (size_t i = 0; i < nr_threads; i++)
		count += place(i, "nodes") == node;
	return count;
}

/* map = 0, or map 0.1 7 = 0: with this gain and seed; map_again takes the next seed */
QUANTITY(map, map(step->nr_numbers ? N(0) : 0.1, step->nr_numbers > 1 ? U(1) : 7))
QUANTITY(map_again, map(0.1, next_seed++))
KNOB(now, threads[U(0)].cpu)
KNOB(load, threads[U(0)].load)
KNOB(memory, threads[U(0)].memory)
KNOB(core, topology->cpus[U(0)].core)
KNOB(cache, topology->cpus[U(0)].cache)
KNOB(between, topology->distance[U(0) * topology->nr_nodes + U(1)])
QUANTITY(distance, nm_mapping_distance(topology, (int)U(0), (int)U(1)))
QUANTITY(cpu, mapping->cpu[U(0)])
QUANTITY(node, place(U(0), "nodes"))
TEXT(nodes, show(step->name))
TEXT(caches, show(step->name))
TEXT(cores, show(step->name))
QUANTITY(threads, mapping->nr_threads)
QUANTITY(staying, count_staying())
QUANTITY(on_one_cpu, most_on_one_cpu())
QUANTITY(on_node, count_on((int)U(0)))
QUANTITY(apart, count_apart())
QUANTITY(repaired, mapping->repaired)
QUANTITY(worthwhile, mapping->worthwhile)
QUANTITY(cost_now, mapping->cost_now / NM_SHARING_STEP)
QUANTITY(cost_new, mapping->cost_new / NM_SHARING_STEP)
QUANTITY(same, memcmp(remembered, mapping->cpu, nr_threads * sizeof(remembered[0])) == 0)

SCRIPT(distances_within_a_machine,
       "machine 2 8 0; set core 1 = 0; set cache 3 = 77; distance 0 0 = 1; distance 0 1 = 2",
       "distance 0 2 = 5; distance 0 3 = 10; distance 0 4 = 20")

/* Two pairs, each over both nodes: 2 × 10 sharings × 20, and 2 × 10 × 5 on one node each. */
SCRIPT(pairs_started_apart,
       "machine 2 4 4; share 10 0-2 1-3; map = 0; nodes = abab; on_one_cpu = 1; cost_now = 400",
       "cost_new = 100; worthwhile = 1; staying = 2; repaired = 0; map 0.74 7 = 0; worthwhile = 1",
       "map 0.75 7 = 0; worthwhile = 0")

/* A pair among many idle CPUs is collocated; with the rules of the paper each node gets one
 * thread. */
SCRIPT(few_threads_are_gathered,
       "machine 4 32 2; on 0 20; share 10 0-1; map = 0; nodes = aa; on_one_cpu = 1; worthwhile = 1",
       "map 0 7 = 0; nodes = ab")

/* Pairs that fit get a node each. */
SCRIPT(pairs_spread, "machine 4 32 8; share 10 0-4 1-5 2-6 3-7; map = 0; nodes = abcdabcd")

#define PAIRS "machine 4 8 8; share 10 0-1 2-3 4-5 6-7; "

/* The paper applies every mapping. */
SCRIPT(collocated_pairs_stay, PAIRS "map = 0; worthwhile = 0; staying = 8; remember",
       "cpu 0 = 0; cpu 1 = 1; cpu 2 = 2; cpu 3 = 3; cpu 4 = 4; cpu 5 = 5; cpu 6 = 6; cpu 7 = 7",
       "map 0 7 = 0; worthwhile = 1")

/* Three of four pairs are collocated: they keep their nodes regardless of the numbers that Scotch
 * assigns. */
SCRIPT(most_stay,
       PAIRS "on 7 6 0 4 2 3 5 1; map = 0; staying = 6; node 0 = 3; node 4 = 1; worthwhile = 1")

SCRIPT(caches_are_used,
       "machine 1 8 8; alternate caches; share_all 5 0-3; share_all 5 4-7; map = 0",
       "caches = aaaabbbb; on_one_cpu = 1")

SCRIPT(siblings_are_used,
       "machine 1 4 4; alternate cores; share 5 0-1 2-3; map = 0; cores = aabb; cost_new = 20")

#define REPEATED "map = 0; remember; map 0.1 12345 = 0; map = 0; same = 1; worthwhile = 1; "

/* Figure 4: neighbours; 60 of 63 pairs can be on one node. */
SCRIPT(neighbours_are_gathered,
       "machine 4 64 64; shuffle; share_chain 10 0-63; " REPEATED "on_one_cpu = 1; apart in 3..6")

/* Figure 4: stages of a pipeline, in groups of four that are spread over the machine. */
SCRIPT(a_pipeline_is_gathered, "machine 4 64 64; share_all 10 0-63 every 16; " REPEATED "apart = 0")

SCRIPT(all_to_all_is_left,
       "machine 4 64 64; share_all 10 0-63; map = 0; on_one_cpu = 1; threads = 64")

/* A ring of four nodes: opposite ones are farther apart. A chain of threads, in any order of
 * creation, must not cross it. */
static void check_chain(unsigned a, unsigned b, unsigned c, unsigned d)
{
	char line[200];
	tear_down(NULL);
	assert_int_equal(set_up(NULL), 0);
	snprintf(line, sizeof(line),
		 "machine 4 4 4; set between 0 3 = 30; set between 3 0 = 30; set between 1 2 = 30; "
		 "set between 2 1 = 30; share 9 %u-%u %u-%u %u-%u; map = 0; cost_new = 540; "
		 "on_one_cpu = 1",
		 a, b, b, c, c, d);
	script_run_line(0, line);
}

TEST(distances_between_nodes_count)
{
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < 4; b++)
			for (unsigned c = 0; c < 4; c++)
				if (a != b && b != c && a != c)
					check_chain(a, b, c, 6 - a - b - c);
}

/* ---- affinities ---- */

SCRIPT(affinities_are_respected,
       "machine 2 8 8; share 10 0-1 2-3 4-5 6-7; bind 0 4-7; bind 2 4-7; bind 4 4-7; bind 6 4-7",
       "map = 0; repaired > 0; node 0 = 1; node 2 = 1; node 4 = 1; node 6 = 1; on_one_cpu in 1..2")

/* Four threads that share everything would be on one node, but two may not run there: they stay
 * spread. */
SCRIPT(repaired_threads_spread,
       "machine 2 8 4; share_all 10 0-3; bind 0 0-3; bind 1 0-3; bind 2 4-7; bind 3 4-7; map = 0",
       "repaired = 2; on_one_cpu = 1")

/* Among CPUs of the same cost. */
SCRIPT(repaired_threads_stay_on_their_cpus,
       "machine 2 8 4; on 1 3 5 7; share_all 10 0-3; bind 0 0-3; bind 1 0-3; bind 2 4-7; bind 3 "
       "4-7",
       "map = 0; repaired = 2; cpu 0 = 1; cpu 1 = 3; cpu 2 = 5; cpu 3 = 7")

SCRIPT(repaired_threads_go_near,
       "machine 2 8 2; on 4 5; bind 1 2-3 7-7; share 10 0-1; map = 0; repaired = 1; cpu 1 = 7")

/* Threads follow the node to which one of them is bound, regardless of the number that Scotch
 * assigns to it. */
SCRIPT(groups_follow_the_bound, "machine 2 8 3; share 10 0-1 1-2; bind 2 4-7",
       "each 10: map_again = 0; repaired = 0; on_node 1 = 3")

/* Of two otherwise equal nodes the one with their memory is chosen. */
SCRIPT(groups_move_to_their_memory,
       "machine 2 8 2; share 10 0-1; on 0 4; set memory 0 = 1; set memory 1 = 1; map = 0",
       "on_node 0 = 2; set memory 0 = 2; set memory 1 = 2; map = 0; on_node 1 = 2")

/* All threads are confined: only those CPUs count, and no repair is needed. */
SCRIPT(common_affinities_need_no_repair,
       "machine 2 16 4; bind 0 7-10; bind 1 7-10; bind 2 7-10; bind 3 7-10; share 10 0-2 1-3",
       "map = 0; repaired = 0; on_one_cpu = 1")

SCRIPT(a_thread_without_a_cpu_has_no_place,
       "machine 2 8 3; bind 1 500-500; share 10 0-1 1-2; map = 0; cpu 1 = -1; cpu 0 in 0..7",
       "bind 0 500-500; bind 2 500-500; map = ENODATA")

/* ---- odd machines and loads ---- */

SCRIPT(isolated_cpus_are_no_place,
       "machine 2 8 5; unusable 0-0 6-7; share 10 0-3 1-4; map = 0; on_one_cpu = 1; apart = 0")

SCRIPT(small_machines_are_mapped,
       "machine 1 1 3; share 10 0-1; map = 0; on_one_cpu = 3; worthwhile = 0; machine 1 2 0",
       "map = ENODATA; machine 2 2 1; map = 0; cpu 0 = 0")

/* A thread with a heavy load has a node almost to itself. */
SCRIPT(loads_count,
       "machine 2 2 9; loads 1-8 0.125; share 2 0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8; map = 0",
       "keep node = node 0; on_node node in 1..2")

/* The cost is that of 1 and 3 only. */
SCRIPT(unknown_places_and_loads_are_valid,
       "machine 2 4 4; share 10 0-2 1-3; set now 2 = -1; set load 0 = nan; set load 2 = nan",
       "map = 0; apart = 0; cost_now = 200; cost_new = 50")

SCRIPT(large_weights_do_not_overflow,
       "machine 2 8 8; share_all 1 0-7 every 2; saturate; map = 0; worthwhile = 1; apart = 0")

/* ---- any machine ---- */

static void check_any(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed);
	unsigned nodes = 1 + (unsigned)nm_rng_below(&dice, 5);
	unsigned cpus = nodes * (1 + (unsigned)nm_rng_below(&dice, 9));
	nm_autobitmap mask = hwloc_bitmap_alloc();

	machine(nodes, cpus, 1 + nm_rng_below(&dice, 40));
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		topology->cpus[cpu].cache = (int)nm_rng_below(&dice, 6);
		topology->cpus[cpu].core = (int)(cpu / 2);
		if (nm_rng_below(&dice, 5) == 0)
			hwloc_bitmap_clr(topology->usable, cpu);
		if (nm_rng_below(&dice, 2))
			hwloc_bitmap_set(mask, cpu);
	}
	for (size_t i = 0; i < nr_threads; i++) {
		threads[i].allowed = nm_rng_below(&dice, 3) ? everywhere : mask;
		threads[i].load = nm_rng_unit(&dice) * 2;
		threads[i].cpu = (int)nm_rng_below(&dice, cpus + 1) - 1;
		share(i, nm_rng_below(&dice, nr_threads), (unsigned)nm_rng_below(&dice, 50));
	}
	int r = map(0.1, (uint32_t)seed);
	assert_true(r == 0 || r == -ENODATA);
}

TEST(any_machine_is_mapped)
{
	for (uint64_t seed = 0; seed < 300; seed++)
		check_any(seed);
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

RUN_TESTS()
