/* SPDX-License-Identifier: MIT */
/* The placement of kMAF: from sharing to moves. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/policy/mapping/mapping.h"
#include "../support/interval.h"
#include "policy/policy.h"

static struct machine *machine;
static struct nm_affinity *affinity;
static struct nm_proposals proposals;
static uint32_t seed;
static int assigned; /* index of the thread that is assigned to its node; -1: none */

static void renew_of_size(unsigned nodes, unsigned cpus_per_node, unsigned smt, size_t threads)
{
	if (machine)
		machine_free(machine);
	machine = machine_of_size(nodes, cpus_per_node, smt, threads);
	machine->config.threads.policy = NM_POLICY_KMAF;
	nm_affinity_free(affinity);
	affinity = NULL;
	nm_affinity_new(&machine->config, &affinity);
}

static void renew(unsigned nodes, unsigned cpus_per_node)
{
	renew_of_size(nodes, cpus_per_node, 1, 64);
}

/* Two nodes of two CPUs. */
static int set_up(void **state)
{
	(void)state;
	assigned = -1;
	seed = 1;
	renew(2, 2);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_proposals_clear(&proposals);
	nm_affinity_free(affinity);
	affinity = NULL;
	machine_free(machine);
	machine = NULL;
	return 0;
}

static void share(size_t a, size_t b, unsigned times)
{
	uint16_t id_a, id_b;
	assert_int_equal(nm_affinity_join(affinity, 1000 + (uint32_t)a, 0, &id_a), 0);
	assert_int_equal(nm_affinity_join(affinity, 1000 + (uint32_t)b, 0, &id_b), 0);
	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

static struct nm_affinity_graph *make_graph(void)
{
	struct nm_affinity_graph *graph = NULL;
	uint32_t tids[64];
	for (size_t i = 0; i < machine->count; i++)
		tids[i] = 1000 + (uint32_t)i;
	nm_affinity_graph(affinity, tids, machine->count, 16, &graph);
	return graph;
}

/* Counts moves to other nodes; bindings of stationary threads follow them. */
static size_t count_moves(void)
{
	size_t count = 0;
	while (count < proposals.count &&
	       proposals.items[count].moves[0].node_from != proposals.items[count].moves[0].node_to)
		count++;
	return count;
}

static size_t propose(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	if (assigned >= 0)
		snapshot->threads[assigned].assigned = snapshot->threads[assigned].main_node;
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = make_graph();
	nm_proposals_clear(&proposals);
	assert_int_equal(nm_kmaf_propose(snapshot, &machine->config, graph, seed, &proposals), 0);
	return count_moves();
}

/* The moves of a mapping to these CPUs. */
static size_t moves_to(int *cpus)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = make_graph();
	struct nm_mapping mapping = {.nr_threads = machine->count, .cpu = cpus, .worthwhile = true};
	nm_proposals_clear(&proposals);
	nm_kmaf_moves(snapshot, &machine->config, graph, &mapping, &proposals);
	return count_moves();
}

static void assert_move(const struct nm_move *move, uint32_t thread, int from, int to)
{
	assert_int_equal(move->thread, thread);
	assert_int_equal(move->cpu_from, from);
	assert_int_equal(move->cpu_to, to);
	assert_int_equal(move->node_from, machine->topology->cpus[from].node);
	assert_int_equal(move->node_to, machine->topology->cpus[to].node);
	assert_true(isnan(move->record));
}

/* ---- from sharing to moves ---- */

TEST(two_sharing_threads_are_collocated)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 20);
	assert_int_equal(propose(), 1);
	const struct nm_proposal *move = &proposals.items[0];
	assert_int_equal(move->kind, NM_PROPOSAL_MIGRATE);
	assert_int_not_equal(move->moves[0].node_from, move->moves[0].node_to);
	assert_true(move->cost_before == 20 * 20);
	assert_true(move->cost_after == 20 * 10);
	assert_true(move->shared[0] == 20);
	assert_true(move->tickets.total == 0 && isnan(move->draw));
}

/* Their data would follow them to one controller: it must not serve more than that of any node does
 * by now, or than the slowest one can. */
TEST(threads_that_fill_controllers_stay_apart)
{
	static const struct {
		const char *name;
		double traffic;
		size_t moves;
	} rows[] = {{"unknown", NAN, 1}, {"little", 3.9e9, 1}, {"too much for one", 4.1e9, 0}};

	EACH_ROW(row, rows)
	{
		renew(2, 2);
		for (size_t i = 0; i < 2; i++) {
			machine_thread(machine, 10, 2 * (int)i, -1);
			machine_perform(machine, i, 1, 1, row->traffic, 1);
		}
		share(0, 1, 20);
		CHECK(row, propose() == row->moves);
	}
}

TEST(the_stationary_partner_is_bound)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 3, -1);
	share(0, 1, 20);
	assert_int_equal(propose(), 1);
	assert_int_equal(proposals.count, 2);
	uint32_t goes = proposals.items[0].moves[0].thread;
	const struct nm_proposal *stays = &proposals.items[1];
	assert_int_equal(stays->kind, NM_PROPOSAL_MIGRATE);
	assert_int_equal(stays->moves[0].thread, 1 - goes);
	assert_int_equal(stays->moves[0].node_from, proposals.items[0].moves[0].node_to);
	assert_int_equal(stays->moves[0].cpu_from, stays->moves[0].cpu_to);
	assert_true(stays->shared[0] == 20);
	assigned = (int)stays->moves[0].thread;
	assert_int_equal(propose(), 1);
	assert_int_equal(proposals.count, 1);
}

/* Each thread would follow its partner, but both pairs are equally near. */
TEST(equally_near_pairs_are_not_swapped)
{
	int to[] = {4, 5, 2, 3, 0, 1, 6, 6};
	renew(4, 2);
	for (int cpu = 0; cpu < 7; cpu++)
		machine_thread(machine, 10, cpu, -1);
	machine_thread(machine, 10, 0, -1);
	share(0, 1, 400);
	share(4, 5, 400);
	share(1, 2, 3);
	share(6, 7, 400);
	to[7] = 7;
	assert_int_equal(moves_to(to), 1);
	assert_int_equal(proposals.items[0].moves[0].thread, 7);
}

TEST(threads_without_sharing_stay)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	assert_int_equal(propose(), 0);
}

TEST(collocated_threads_stay)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 1, -1);
	share(0, 1, 100);
	assert_int_equal(propose(), 0);
}

/* Nine sharings are 3 standard deviations of their number. */
TEST(random_sharing_moves_no_threads)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 9);
	assert_int_equal(propose(), 0);
	share(0, 1, 1);
	assert_int_equal(propose(), 1);
}

TEST(without_a_noise_margin_one_sharing_suffices)
{
	machine->config.rules.gate_sigmas = 0;
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 1);
	assert_int_equal(propose(), 1);
}

TEST(sharing_threads_move_to_their_memory)
{
	for (int node = 0; node < 2; node++) {
		renew(2, 2);
		machine_thread(machine, 10, 0, node);
		machine_thread(machine, 10, 2, node);
		share(0, 1, 20);
		for (seed = 0; seed < 10; seed++) {
			assert_int_equal(propose(), 1);
			assert_int_equal(proposals.items[0].moves[0].node_to, node);
		}
	}
}

/* The same if all CPUs are occupied: they are swapped. */
TEST(pairs_on_full_nodes_are_swapped)
{
	for (int cpu = 0; cpu < 4; cpu++)
		machine_thread(machine, 10, cpu, -1);
	share(0, 2, 30);
	share(1, 3, 30);
	assert_int_equal(propose(), 1);
	const struct nm_proposal *swap = &proposals.items[0];
	assert_int_equal(swap->kind, NM_PROPOSAL_SWAP);
	assert_int_equal(swap->moves[0].cpu_to, swap->moves[1].cpu_from);
	assert_int_equal(swap->moves[1].cpu_to, swap->moves[0].cpu_from);
	assert_true(swap->shared[0] == 30 && swap->shared[1] == 30);
	assert_true(swap->cost_before == 60 * 20 && swap->cost_after == 60 * 10);
}

/* A thread with a cooldown is not moved, so the other moves to it with any seed. */
TEST(partners_move_to_an_immovable_thread)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 20);
	for (size_t stays = 0; stays < 2; stays++) {
		machine->members[stays].adopted_ns = machine->now_ns;
		machine->members[1 - stays].adopted_ns = 1;
		for (seed = 0; seed < 10; seed++) {
			assert_int_equal(propose(), 1);
			assert_int_equal(proposals.items[0].moves[0].thread, 1 - stays);
		}
	}
	machine->members[0].adopted_ns = machine->members[1].adopted_ns = machine->now_ns;
	assert_int_equal(propose(), 0);
}

TEST(affinities_are_kept)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 20);
	machine_allow(machine, 0, "0-1");
	for (seed = 0; seed < 10; seed++) {
		assert_int_equal(propose(), 1);
		assert_move(&proposals.items[0].moves[0], 1, 2, 1);
	}
	machine_allow(machine, 1, "2-3");
	assert_int_equal(propose(), 0);
}

/* Two sharing threads need the places of two others that share nothing. */
TEST(a_single_thread_yields_only_if_necessary)
{
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 3, -1);
	share(0, 1, 20);
	assert_int_equal(propose(), 1);
	assert_int_equal(proposals.items[0].kind, NM_PROPOSAL_MIGRATE);
	assert_move(&proposals.items[0].moves[0], 1, 2, 1);
}

/* ---- from a mapping to moves ---- */

TEST(threads_do_not_yield_to_other_users)
{
	int cpus[] = {0, 3, 1, 2};
	for (int cpu = 0; cpu < 4; cpu++)
		machine_thread(machine, cpu == 1 ? 11 : 10, cpu, -1);
	machine_process(machine, 11)->uid = 1001;
	share(0, 2, 30);
	assert_int_equal(moves_to(cpus), 0);
	machine->config.rules.cross_owner_swap = true;
	assert_int_equal(moves_to(cpus), 1);
	assert_move(&proposals.items[0].moves[0], 1, 1, 2);
	assert_move(&proposals.items[0].moves[1], 2, 2, 1);
}

/* Threads 0 to 2 are one node before their partners, 3 to 5. */
static void make_ring(void)
{
	renew(3, 2);
	for (int i = 0; i < 3; i++)
		machine_thread(machine, 10, 2 * i, -1);
	for (int i = 0; i < 3; i++)
		machine_thread(machine, 10, 2 * i + 1, -1);
	for (size_t i = 0; i < 3; i++)
		share(i, 3 + (i + 1) % 3, 20);
}

TEST(a_ring_of_threads_rotates_at_once)
{
	int cpus[] = {2, 4, 0, 1, 3, 5};
	make_ring();
	assert_int_equal(moves_to(cpus), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_move(&proposals.items[i].moves[0], i, 2 * (int)i, cpus[i]);
}

TEST(half_a_ring_is_not_made)
{
	int cpus[] = {2, 4, 0, 1, 3, 5};
	make_ring();
	machine->config.rules.moves_per_interval = 2;
	assert_int_equal(moves_to(cpus), 0);
	machine->config.rules.moves_per_interval = 3;
	assert_int_equal(moves_to(cpus), 3);
	machine_allow(machine, 2, "1-5");
	assert_int_equal(moves_to(cpus), 0);
}

/* Thread 0 gets the CPU that thread 1 leaves for an idle one. */
static void make_chain(void)
{
	renew(3, 2);
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 3, -1);
	machine_thread(machine, 10, 5, -1);
	share(0, 2, 20);
	share(1, 3, 20);
}

TEST(departures_precede_arrivals)
{
	int cpus[] = {2, 4, 3, 5};
	make_chain();
	assert_int_equal(moves_to(cpus), 2);
	assert_move(&proposals.items[0].moves[0], 1, 2, 4);
	assert_move(&proposals.items[1].moves[0], 0, 0, 2);
	machine->config.rules.moves_per_interval = 1;
	assert_int_equal(moves_to(cpus), 1);
	assert_move(&proposals.items[0].moves[0], 1, 2, 4);
}

/* It does not gain itself, and moves only for the other. */
TEST(threads_yield_to_those_that_gain)
{
	int cpus[] = {2, 4, 3};
	renew(3, 2);
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 3, -1);
	share(0, 2, 20);
	assert_int_equal(moves_to(cpus), 2);
	cpus[0] = 0;
	assert_int_equal(moves_to(cpus), 0);
}

TEST(a_full_node_receives_no_threads)
{
	int cpus[] = {2, 2, 3};
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 3, -1);
	share(0, 1, 20);
	assert_int_equal(moves_to(cpus), 0);
	machine->busy[2] = 0; /* its thread is almost idle */
	assert_int_equal(moves_to(cpus), 0);
}

/* A CPU is idle there, but only because two threads share the other one. */
TEST(a_node_in_demand_receives_no_threads)
{
	int cpus[] = {3, 2, 2};
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 10, 2, -1);
	share(0, 1, 20);
	assert_int_equal(moves_to(cpus), 0);
	machine->config.rules.paper = true;
	assert_int_equal(moves_to(cpus), 1);
}

/* Four threads on each of two nodes of eight CPUs that share with those on the other; returns how
 * many move to the first. */
static size_t gather_eight(unsigned smt)
{
	static int cpus[] = {0, 2, 4, 6, 1, 3, 5, 7};
	renew_of_size(2, 8, smt, 64);
	for (int i = 0; i < 8; i++)
		machine_thread(machine, 10, 2 * i, -1);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 4; j < 8; j++)
			share(i, j, 30);
	return moves_to(cpus);
}

/* On four cores of two siblings, thread 5 still gains; eight would slow each other down. */
TEST(capacity_counts_cores_not_threads)
{
	assert_int_equal(gather_eight(1), 4);
	assert_int_equal(gather_eight(2), 1);
}

TEST(a_shared_cpu_is_not_left_idle)
{
	int cpus[] = {2, 4, 3, 5, 2};
	make_chain();
	machine_thread(machine, 10, 2, -1);
	assert_int_equal(moves_to(cpus), 1);
	assert_move(&proposals.items[0].moves[0], 1, 2, 4);
}

/* Unmanaged load keeps the CPU busy after the thread has left it. */
TEST(a_cpu_with_unmanaged_load_is_not_left_idle)
{
	int cpus[] = {2, 4, 3, 5};
	make_chain();
	machine->busy[2] = 1;
	machine->figures[1].run_share = 0.5;
	assert_int_equal(moves_to(cpus), 1);
	assert_move(&proposals.items[0].moves[0], 1, 2, 4);
}

TEST(an_ineligible_mapping_moves_no_threads)
{
	int cpus[] = {2, 3};
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 3, -1);
	share(0, 1, 20);
	assert_int_equal(moves_to(cpus), 1);
	machine->config.rules.mapping_gain = 0.51; /* from 20 to 10 is 50 % */
	assert_int_equal(moves_to(cpus), 0);
}

TEST(the_paper_follows_every_mapping)
{
	int cpus[] = {2, 3, 1};
	machine_thread(machine, 10, 0, -1);
	machine_thread(machine, 10, 2, -1);
	machine_thread(machine, 11, 1, -1);
	assert_int_equal(moves_to(cpus), 0);
	machine->config.rules.paper = true;
	assert_int_equal(moves_to(cpus), 1);
	assert_int_equal(proposals.count, 2);
	assert_move(&proposals.items[0].moves[0], 0, 0, 2);
	assert_move(&proposals.items[1].moves[0], 1, 2, 3);
}

/* ---- last-level caches ---- */

/* One node of two caches with four CPUs each, and another node. */
static void split_caches(void)
{
	renew_of_size(2, 8, 1, 64);
	for (unsigned cpu = 0; cpu < 16; cpu++)
		machine->topology->cpus[cpu].cache = (int)cpu / 4;
}

/* Threads 0 to 3 share in pairs below different caches: 0 with 2, 1 with 3. */
static void share_across_caches(unsigned among_pairs)
{
	static const int cpus[] = {0, 1, 4, 5};
	split_caches();
	for (size_t i = 0; i < 4; i++)
		machine_thread(machine, 10, cpus[i], -1);
	share(0, 2, 200);
	share(1, 3, 200);
	for (size_t i = 0; i < 4 && among_pairs; i++)
		for (size_t j = i + 1; j < 4; j++)
			if (j != i + 2)
				share(i, j, among_pairs);
}

TEST(within_a_node_threads_move_below_one_cache)
{
	int cpus[] = {0, 4, 1, 5};
	share_across_caches(0);
	(void)moves_to(cpus);
	assert_int_equal(proposals.count, 1);
	const struct nm_proposal *swap = &proposals.items[0];
	assert_int_equal(swap->kind, NM_PROPOSAL_SWAP);
	assert_move(&swap->moves[0], 1, 1, 4);
	assert_move(&swap->moves[1], 2, 4, 1);
	assert_true(swap->moves[0].below_cache && swap->moves[1].below_cache);
	assert_true(swap->cost_before == 400 * 10 && swap->cost_after == 400 * 5);
}

/* All pairs share 200 times, up to chance: no placement is better than another. */
TEST(partners_that_differ_by_chance_stay_where_they_are)
{
	int cpus[] = {0, 4, 1, 5};
	share_across_caches(190);
	(void)moves_to(cpus);
	assert_int_equal(proposals.count, 0);
}

TEST(one_cache_for_a_node_is_the_node)
{
	int cpus[] = {0, 4, 1, 5};
	share_across_caches(0);
	for (unsigned cpu = 0; cpu < 16; cpu++)
		machine->topology->cpus[cpu].cache = (int)cpu / 8;
	(void)moves_to(cpus);
	assert_int_equal(proposals.count, 0);
}

/* Four threads communicate at random, a hundred times each pair: at three standard errors at most
 * four of 200 matrices are taken for a pattern, and nearly all are if one partner has twice as
 * much. */
TEST(heterogeneity_exceeds_chance)
{
	int cpus[] = {0, 4, 1, 5};
	struct nm_rng rng;
	unsigned moved[2] = {0};
	nm_rng_seed(&rng, 3);
	for (unsigned twice = 0; twice < 2; twice++)
		for (int round = 0; round < 200; round++) {
			share_across_caches(0);
			nm_affinity_free(affinity);
			nm_affinity_new(&machine->config, &affinity);
			for (int n = 0; n < 600; n++) {
				size_t a = nm_rng_below(&rng, 4);
				share(a, (a + 1 + nm_rng_below(&rng, 3)) % 4, 1);
			}
			share(0, 2, twice * 100);
			share(1, 3, twice * 100);
			(void)moves_to(cpus);
			moved[twice] += proposals.count > 0;
		}
	assert_true(moved[0] <= 4);
	assert_true(moved[1] >= 190);
}

/* ---- any machine ---- */

/* ---- bounded cost ---- */

enum { THREADS_MANY = 3000, CPUS_MANY = 512 };

/* As many threads of each of two users, each on a node, that want to move to the other and may not
 * be swapped. */
static void fill_nodes(int *cpus)
{
	renew_of_size(2, CPUS_MANY, 1, 2 * THREADS_MANY);
	for (int i = 0; i < 2 * THREADS_MANY; i++) {
		int cpu = i % CPUS_MANY + (i < THREADS_MANY ? 0 : CPUS_MANY);
		machine_thread(machine, i < THREADS_MANY ? 10 : 11, cpu, -1);
		cpus[i] = (cpu + CPUS_MANY) % (2 * CPUS_MANY);
	}
	machine_process(machine, 11)->uid = 1001;
}

static uint64_t comparisons_for(int *cpus)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_autofree uint32_t *first = calloc(machine->count + 1, sizeof(*first));
	nm_autofree struct nm_affinity_row *rows = calloc(machine->count + 1, sizeof(*rows));
	struct nm_affinity_graph graph = {
		.nr_threads = machine->count, .first = first, .rows = rows};
	struct nm_mapping mapping = {.nr_threads = machine->count, .cpu = cpus, .worthwhile = true};
	nm_proposals_clear(&proposals);
	nm_kmaf_moves(snapshot, &machine->config, &graph, &mapping, &proposals);
	return proposals.comparisons;
}

/* It exceeds the bound at most by the cost of one thread, as each search checks the bound. */
TEST(comparisons_are_bounded)
{
	static int cpus[2 * THREADS_MANY];
	fill_nodes(cpus);
	assert_in_range(comparisons_for(cpus), NM_KMAF_COMPARISONS_MAX,
			NM_KMAF_COMPARISONS_MAX + 4 * THREADS_MANY);
}

static unsigned pick(struct nm_rng *rng, unsigned below)
{
	return (unsigned)nm_rng_below(rng, below);
}

static void make_any(struct nm_rng *rng)
{
	unsigned nodes = 2 + pick(rng, 3), each = 1 + pick(rng, 3);
	unsigned threads = 1 + pick(rng, 2 * nodes * each);
	renew(nodes, each);
	for (unsigned i = 0; i < threads; i++)
		machine_thread(machine, 10 + pick(rng, 2), (int)pick(rng, nodes * each), -1);
	for (unsigned i = 0; i < threads; i++)
		if (pick(rng, 4) == 0) {
			int node = machine->figures[i].main_node;
			hwloc_bitmap_or(machine->masks[i], machine->topology->nodes[node].cpus,
					machine->topology->nodes[pick(rng, nodes)].cpus);
		}
	for (unsigned i = 0; i < threads; i++)
		share(pick(rng, threads), pick(rng, threads), 10 + pick(rng, 90));
}

static void carry_out(const struct nm_proposal *proposal, unsigned *on_node, unsigned *moved)
{
	unsigned count = proposal->kind == NM_PROPOSAL_SWAP ? 2 : 1;
	for (unsigned i = 0; i < count; i++) {
		const struct nm_move *move = &proposal->moves[i];
		assert_true(
			hwloc_bitmap_isset(machine->masks[move->thread], (unsigned)move->cpu_to));
		assert_int_equal(move->cpu_from, machine->figures[move->thread].main_cpu);
		assert_int_equal(moved[move->thread]++, 0);
		on_node[move->node_from]--;
		on_node[move->node_to]++;
	}
}

/* Finally no node has more threads than CPUs, unless it had as many before; in between at most one
 * more, in a ring. */
TEST(no_node_is_crowded)
{
	struct nm_rng rng;
	unsigned moves = 0;
	nm_rng_seed(&rng, 5);
	for (int round = 0; round < 300; round++) {
		unsigned before[8] = {0}, now[8] = {0}, moved[64] = {0};
		make_any(&rng);
		unsigned each = machine->topology->nr_cpus / machine->topology->nr_nodes;
		for (size_t i = 0; i < machine->count; i++)
			now[machine->figures[i].main_node]++;
		memcpy(before, now, sizeof(before));
		seed = (uint32_t)round;
		moves += (unsigned)propose();
		for (size_t p = 0; p < proposals.count; p++) {
			carry_out(&proposals.items[p], now, moved);
			assert_true(proposals.items[p].cost_after < proposals.items[p].cost_before);
			for (unsigned k = 0; k < machine->topology->nr_nodes; k++)
				assert_true(now[k] <= (before[k] > each ? before[k] : each) + 1);
		}
		for (unsigned k = 0; k < machine->topology->nr_nodes; k++)
			if (now[k] > (before[k] > each ? before[k] : each))
				fail_msg("round %d node %u each %u before %u now %u", round, k,
					 each, before[k], now[k]);
	}
	assert_true(moves > 100);
}

TEST(the_same_seed_gives_the_same_moves)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, 9);
	for (int round = 0; round < 20; round++) {
		struct nm_proposals first;
		make_any(&rng);
		propose();
		first = proposals;
		proposals = (struct nm_proposals){0};
		propose();
		assert_int_equal(proposals.count, first.count);
		for (size_t i = 0; i < first.count; i++)
			for (unsigned m = 0; m < 2; m++) {
				const struct nm_move *a = &first.items[i].moves[m];
				const struct nm_move *b = &proposals.items[i].moves[m];
				assert_int_equal(a->thread, b->thread);
				assert_int_equal(a->cpu_to, b->cpu_to);
			}
		nm_proposals_clear(&first);
	}
}

RUN_TESTS()
