/* SPDX-License-Identifier: MIT */
/* The placement of kMAF: from sharing to moves. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/policy/mapping/mapping.h"
#include "../support/interval.h"
#include "../support/script.h"
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
		snapshot->threads[assigned].assigned = snapshot->threads[assigned].stats.main_node;
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

/* ---- words ---- */

/* machine 3 2, or machine 2 8 2: nodes, CPUs of each, and siblings of a core */
WORD(machine)
{
	renew_of_size(U(0), U(1), step->nr_numbers > 2 ? U(2) : 1, 64);
}

/* threads 0 2 3: of process 10 on these CPUs, without memory; threads_near node1 0 2: with memory
 */
WORD(threads)
{
	for (unsigned i = 0; i < step->nr_numbers; i++)
		machine_thread(machine, 10, (int)N(i), -1);
}

WORD(threads_near)
{
	for (unsigned i = 1; i < step->nr_numbers; i++)
		machine_thread(machine, 10, (int)N(i), (int)N(0));
}

/* thread_of 11 1: of the process of another user */
WORD(thread_of)
{
	machine_thread(machine, U(0), (int)N(1), -1);
	machine_process(machine, U(0))->uid = 1001;
}

/* The number of moves of a mapping to these CPUs. */
static size_t moves_of(const struct step *step)
{
	int cpus[64];
	for (unsigned i = 0; i < step->nr_numbers; i++)
		cpus[i] = (int)N(i);
	return moves_to(cpus);
}

/* move 0 thread 1 from 2 to 4: of a proposal; move 0.1 is the second one of a swap */
WORD(move)
{
	const unsigned second = (unsigned)lround(10 * N(0)) % 10;
	const struct nm_move *found = &proposals.items[U(0)].moves[second];
	if (found->thread != U(1) || found->cpu_from != (int)N(2) || found->cpu_to != (int)N(3))
		script_fail(step, "found thread %u from %d to %d", found->thread, found->cpu_from,
			    found->cpu_to);
	assert_int_equal(found->node_from, machine->topology->cpus[found->cpu_from].node);
	assert_int_equal(found->node_to, machine->topology->cpus[found->cpu_to].node);
	assert_true(isnan(found->record));
}

/* A proposal exchanges two CPUs. */
static bool exchanges(const struct nm_proposal *swap)
{
	return swap->kind == NM_PROPOSAL_SWAP && swap->moves[0].cpu_to == swap->moves[1].cpu_from &&
	       swap->moves[1].cpu_to == swap->moves[0].cpu_from;
}

ACTION(share, share((size_t)N(0), (size_t)N(1), U(2)))
ACTION(perform, machine_perform(machine, (size_t)N(0), 1, 1, N(1), 1))
ACTION(assigned, assigned = (int)N(0))
ACTION(renew_members, machine->managed[U(0)].adopted_ns = U(1) ? machine->now_ns : 1)
ACTION(allow, machine_allow(machine, U(0), step->word[1]))
ACTION(next_seed, seed++)
QUANTITY(propose, propose())
QUANTITY(moves_to, moves_of(step))
QUANTITY(proposals, proposals.count)
QUANTITY(mover, proposals.items[U(0)].moves[0].thread)
QUANTITY(from_node, proposals.items[U(0)].moves[0].node_from)
QUANTITY(to_node, proposals.items[U(0)].moves[0].node_to)
QUANTITY(from_cpu, proposals.items[U(0)].moves[0].cpu_from)
QUANTITY(to_cpu, proposals.items[U(0)].moves[0].cpu_to)
QUANTITY(migrates, proposals.items[U(0)].kind == NM_PROPOSAL_MIGRATE)
QUANTITY(exchanges, exchanges(&proposals.items[U(0)]))
QUANTITY(cost_before, proposals.items[U(0)].cost_before)
QUANTITY(cost_after, proposals.items[U(0)].cost_after)
QUANTITY(shared, proposals.items[U(0)].shared[U(1)])
QUANTITY(tickets, proposals.items[U(0)].tickets.total)
QUANTITY(drawn, !isnan(proposals.items[U(0)].draw))
KNOB(gate_sigmas, machine->config.rules.gate_sigmas)
KNOB(cross_owner_swap, machine->config.rules.cross_owner_swap)
KNOB(moves_per_interval, machine->config.rules.moves_per_interval)
KNOB(paper, machine->config.rules.paper)
KNOB(mapping_gain, machine->config.rules.mapping_gain)
KNOB(busy, machine->busy[U(0)])
KNOB(run_share, machine->sampled[U(0)].stats.run_share)

/* ---- from sharing to moves ---- */

SCRIPT(two_sharing_threads_are_collocated,
       "threads 0 2; share 0 1 20; propose = 1; migrates 0 = 1; keep from = from_node 0",
       "to_node 0 != from; cost_before 0 = 400; cost_after 0 = 200; shared 0 0 = 20",
       "tickets 0 = 0; drawn 0 = 0")

/* Their data would follow them to one controller: it must not serve more than that of any node does
 * by now, or than the slowest one can. First the traffic is unknown. */
SCRIPT(threads_that_fill_controllers_stay_apart,
       "threads 0 2; perform 0 nan; perform 1 nan; share 0 1 20; propose = 1",
       "machine 2 2; threads 0 2; perform 0 3.9e9; perform 1 3.9e9; share 0 1 20; propose = 1",
       "machine 2 2; threads 0 2; perform 0 4.1e9; perform 1 4.1e9; share 0 1 20; propose = 0")

SCRIPT(the_stationary_partner_is_bound,
       "threads 0 2 3; share 0 1 20; propose = 1; proposals = 2; keep goes = mover 0",
       "keep stays = mover 1; migrates 1 = 1; keep sum = stays+goes; one = sum",
       "keep node = to_node 0; from_node 1 = node; keep cpu = from_cpu 1; to_cpu 1 = cpu",
       "shared 1 0 = 20; assigned stays; propose = 1; proposals = 1")

QUANTITY(one, 1)

/* Each thread would follow its partner, but both pairs are equally near. */
SCRIPT(equally_near_pairs_are_not_swapped,
       "machine 4 2; threads 0 1 2 3 4 5 6 0; share 0 1 400; share 4 5 400; share 1 2 3",
       "share 6 7 400; moves_to 4 5 2 3 0 1 6 7 = 1; mover 0 = 7")

SCRIPT(threads_without_sharing_stay, "threads 0 2; propose = 0")
SCRIPT(collocated_threads_stay, "threads 0 1; share 0 1 100; propose = 0")

/* Nine sharings are 3 standard deviations of their number. */
SCRIPT(random_sharing_moves_no_threads,
       "threads 0 2; share 0 1 9; propose = 0; share 0 1 1; propose = 1")

SCRIPT(without_a_noise_margin_one_sharing_suffices,
       "set gate_sigmas = 0; threads 0 2; share 0 1 1; propose = 1")

/* With any seed. */
SCRIPT(sharing_threads_move_to_their_memory, "threads_near node0 0 2; share 0 1 20",
       "each 10: next_seed; propose = 1; to_node 0 = 0",
       "machine 2 2; threads_near node1 0 2; share 0 1 20",
       "each 10: next_seed; propose = 1; to_node 0 = 1")

/* The same if all CPUs are occupied: they are swapped. */
SCRIPT(pairs_on_full_nodes_are_swapped,
       "threads 0 1 2 3; share 0 2 30; share 1 3 30; propose = 1; exchanges 0 = 1",
       "shared 0 0 = 30; shared 0 1 = 30; cost_before 0 = 1200; cost_after 0 = 600")

/* A thread with a cooldown is not moved, so the other moves to it with any seed. */
SCRIPT(partners_move_to_an_immovable_thread,
       "threads 0 2; share 0 1 20; renew_members 0 1; renew_members 1 0",
       "each 10: next_seed; propose = 1; mover 0 = 1", "renew_members 0 0; renew_members 1 1",
       "each 10: next_seed; propose = 1; mover 0 = 0", "renew_members 0 1; propose = 0")

SCRIPT(affinities_are_kept, "threads 0 2; share 0 1 20; allow 0 0-1",
       "each 10: next_seed; propose = 1; move 0 1 2 1", "allow 1 2-3; propose = 0")

/* Two sharing threads need the places of two others that share nothing. */
SCRIPT(a_single_thread_yields_only_if_necessary,
       "threads 0 2 3; share 0 1 20; propose = 1; migrates 0 = 1; move 0 1 2 1")

/* ---- from a mapping to moves ---- */

SCRIPT(threads_do_not_yield_to_other_users,
       "threads 0; thread_of 11 1; threads 2 3; share 0 2 30; moves_to 0 3 1 2 = 0",
       "set cross_owner_swap = 1; moves_to 0 3 1 2 = 1; move 0 1 1 2; move 0.1 2 2 1")

/* Threads 0 to 2 are one node before their partners, 3 to 5. */
#define RING "machine 3 2; threads 0 2 4 1 3 5; share 0 4 20; share 1 5 20; share 2 3 20; "

SCRIPT(a_ring_of_threads_rotates_at_once,
       RING "moves_to 2 4 0 1 3 5 = 3; move 0 0 0 2; move 1 1 2 4; move 2 2 4 0")

SCRIPT(half_a_ring_is_not_made,
       RING "set moves_per_interval = 2; moves_to 2 4 0 1 3 5 = 0; set moves_per_interval = 3",
       "moves_to 2 4 0 1 3 5 = 3; allow 2 1-5; moves_to 2 4 0 1 3 5 = 0")

/* Thread 0 gets the CPU that thread 1 leaves for an idle one. */
#define CHAIN "machine 3 2; threads 0 2 3 5; share 0 2 20; share 1 3 20; "

SCRIPT(departures_precede_arrivals,
       CHAIN "moves_to 2 4 3 5 = 2; move 0 1 2 4; move 1 0 0 2; set moves_per_interval = 1",
       "moves_to 2 4 3 5 = 1; move 0 1 2 4")

/* It does not gain itself, and moves only for the other. */
SCRIPT(threads_yield_to_those_that_gain,
       "machine 3 2; threads 0 2 3; share 0 2 20; moves_to 2 4 3 = 2; moves_to 0 4 3 = 0")

/* Also if its thread is almost idle. */
SCRIPT(a_full_node_receives_no_threads,
       "threads 0 2 3; share 0 1 20; moves_to 2 2 3 = 0; set busy 2 = 0; moves_to 2 2 3 = 0")

/* A CPU is idle there, but only because two threads share the other one. */
SCRIPT(a_node_in_demand_receives_no_threads,
       "threads 0 2 2; share 0 1 20; moves_to 3 2 2 = 0; set paper = 1; moves_to 3 2 2 = 1")

/* The first four share with each of the last four. */
WORD(share_halves)
{
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 4; j < 8; j++)
			share(i, j, 30);
}

/* Four threads on each of two nodes of eight CPUs. On four cores of two siblings, thread 5 still
 * gains; eight would slow each other down. */
#define EIGHT "threads 0 2 4 6 8 10 12 14; share_halves; moves_to 0 2 4 6 1 3 5 7 = "

SCRIPT(capacity_counts_cores_not_threads, "machine 2 8 1; " EIGHT "4", "machine 2 8 2; " EIGHT "1")

SCRIPT(a_shared_cpu_is_not_left_idle, CHAIN "threads 2; moves_to 2 4 3 5 2 = 1; move 0 1 2 4")

/* Unmanaged load keeps the CPU busy after the thread has left it. */
SCRIPT(a_cpu_with_unmanaged_load_is_not_left_idle,
       CHAIN "set busy 2 = 1; set run_share 1 = 0.5; moves_to 2 4 3 5 = 1; move 0 1 2 4")

/* From 20 to 10 is 50 %. */
SCRIPT(an_ineligible_mapping_moves_no_threads,
       "threads 0 3; share 0 1 20; moves_to 2 3 = 1; set mapping_gain = 0.51; moves_to 2 3 = 0")

SCRIPT(the_paper_follows_every_mapping,
       "threads 0 2; thread_of 11 1; moves_to 2 3 1 = 0; set paper = 1; moves_to 2 3 1 = 1",
       "proposals = 2; move 0 0 0 2; move 1 1 2 3")

/* ---- last-level caches ---- */

static void split_caches(unsigned cpus)
{
	for (unsigned cpu = 0; cpu < machine->topology->nr_cpus; cpu++)
		machine->topology->cpus[cpu].cache = (int)(cpu / cpus);
}

/* caches 4: of as many CPUs each */
ACTION(caches, split_caches(U(0)))

QUANTITY(below_cache, proposals.items[U(0)].moves[U(1)].below_cache)

/* One node of two caches with four CPUs each, and another node. Threads 0 and 2, 1 and 3 share
 * below different caches. */
#define ACROSS "machine 2 8; caches 4; threads 0 1 4 5; share 0 2 200; share 1 3 200; "

SCRIPT(within_a_node_threads_move_below_one_cache,
       ACROSS "moves_to 0 4 1 5 = 0; proposals = 1; exchanges 0 = 1; move 0 1 1 4; move 0.1 2 4 1",
       "below_cache 0 0 = 1; below_cache 0 1 = 1; cost_before 0 = 4000; cost_after 0 = 2000")

/* All pairs share 200 times, up to chance: no placement is better than another. */
SCRIPT(partners_that_differ_by_chance_stay_where_they_are,
       ACROSS "share 0 1 190; share 0 3 190; share 1 2 190; share 2 3 190; moves_to 0 4 1 5 = 0",
       "proposals = 0")

SCRIPT(one_cache_for_a_node_is_the_node, ACROSS "caches 8; moves_to 0 4 1 5 = 0; proposals = 0")

/* Four threads communicate at random, a hundred times each pair: at three standard errors at most
 * four of 200 matrices are taken for a pattern, and nearly all are if one partner has twice as
 * much.
 */
TEST(heterogeneity_exceeds_chance)
{
	int at[] = {0, 1, 4, 5}, cpus[] = {0, 4, 1, 5};
	struct nm_rng rng;
	unsigned moved[2] = {0};
	nm_rng_seed(&rng, 3);
	for (unsigned twice = 0; twice < 2; twice++)
		for (int round = 0; round < 200; round++) {
			renew(2, 8);
			split_caches(4);
			for (size_t i = 0; i < 4; i++)
				machine_thread(machine, 10, at[i], -1);
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
			int node = machine->sampled[i].stats.main_node;
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
		assert_int_equal(move->cpu_from, machine->sampled[move->thread].stats.main_cpu);
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
			now[machine->sampled[i].stats.main_node]++;
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
