/* SPDX-License-Identifier: MIT */
/* Invariants of LBMA on any machine and over time. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/any_machine.h"
#include "../support/gate.h"

static struct machine *machine;
static struct nm_proposals proposals;
static struct nm_rng rng;

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	nm_rng_seed(&rng, 42);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_proposals_clear(&proposals);
	machine_free(machine);
	return 0;
}

static void propose(void)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_proposals_clear(&proposals);
	machine_propose(machine, &nm_lbma_policy, NULL, snapshot, &rng, &proposals);
}

static void assert_still(void)
{
	propose();
	assert_int_equal(proposals.count, 0);
}

static uint32_t owner_of(const struct nm_snapshot *snapshot, const struct nm_move *move)
{
	return snapshot->processes[snapshot->threads[move->thread].process].uid;
}

static void check_swap(const struct nm_snapshot *snapshot, const struct nm_config *config,
		       const struct nm_proposal *proposal, bool *moved)
{
	const struct nm_move *moves = proposal->moves;
	check_move(snapshot, &moves[1], moved);
	assert_int_equal(moves[0].cpu_from, moves[1].cpu_to);
	assert_int_equal(moves[0].cpu_to, moves[1].cpu_from);
	if (config->rules.cross_owner_swap)
		return;
	const struct nm_snap_thread *threads = snapshot->threads;
	for (unsigned i = 0;
	     i < 2 && owner_of(snapshot, &moves[0]) != owner_of(snapshot, &moves[1]); i++) {
		const struct nm_snap_thread *thread = &threads[moves[i].thread];
		assert_int_equal(config->rules.gate, NM_GATE_BENEFIT);
		assert_true(thread->stats.accesses[moves[i].node_to] >
			    thread->stats.accesses[moves[i].node_from]);
	}
}

/* The winner, followed by the best of the others. */
static void check_alternatives(const struct nm_snapshot *snapshot,
			       const struct nm_proposal *proposal)
{
	const struct nm_alternative *alternatives = proposal->alternatives;
	bool swap = proposal->kind == NM_PROPOSAL_SWAP;
	uint32_t partner = swap ? snapshot->threads[proposal->moves[1].thread].tid : 0;
	size_t all = proposal->nr_candidates;
	assert_int_equal(proposal->nr_alternatives,
			 all < NM_ALTERNATIVES_MAX ? all : NM_ALTERNATIVES_MAX);
	assert_int_equal(alternatives[0].node_to, proposal->moves[0].node_to);
	assert_int_equal(alternatives[0].partner, partner);
	assert_true(alternatives[0].tickets == proposal->tickets.total);
	for (size_t i = 2; i < proposal->nr_alternatives; i++)
		assert_true(alternatives[i].tickets <= alternatives[i - 1].tickets);
}

static void check_proposals(const struct nm_snapshot *snapshot, const struct nm_config *config)
{
	bool moved[32] = {false}, claimed[64] = {false};
	assert_true(proposals.count <= config->rules.n);
	for (size_t i = 0; i < proposals.count; i++) {
		const struct nm_proposal *proposal = &proposals.items[i];
		const struct nm_tickets *tickets = &proposal->tickets;
		bool swap = proposal->kind == NM_PROPOSAL_SWAP;
		check_move(snapshot, &proposal->moves[0], moved);
		if (swap) {
			check_swap(snapshot, config, proposal, moved);
		} else {
			int cpu = proposal->moves[0].cpu_to;
			assert_true(snapshot->cpus[cpu].free);
			assert_false(claimed[cpu]);
			claimed[cpu] = true;
		}
		check_alternatives(snapshot, proposal);
		assert_true(tickets->total ==
			    tickets->free_cpu + tickets->preferred + tickets->partner);
		if (config->rules.gate == NM_GATE_PAPER)
			continue;
		assert_true(tickets->total > 0);
		assert_true(moves_pass_gate(snapshot, proposal->moves, swap ? 2 : 1, 0.05,
					    config->rules.gate_sigmas));
	}
}

TEST(winners_follow_the_rules_on_any_machine)
{
	size_t winners = 0, swaps = 0;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		machine_free(machine);
		machine = any_machine(seed);
		propose();
		nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
		check_proposals(snapshot, &machine->config);
		winners += proposals.count;
		for (size_t i = 0; i < proposals.count; i++)
			swaps += proposals.items[i].kind == NM_PROPOSAL_SWAP;
	}
	print_message("winners checked: %zu, of them swaps: %zu\n", winners, swaps);
	assert_true(swaps > 500 && winners - swaps > 500);
}

/* Without fields that only IMAR² sets. */
#define MOVE_BYTES (offsetof(struct nm_move, node_to) + sizeof(int))

/* Every bit of the decisions on 300 machines. */
static uint64_t fingerprint(uint64_t first_seed)
{
	uint64_t print = FINGERPRINT_START;
	for (uint64_t seed = first_seed; seed < first_seed + 300; seed++) {
		machine_free(machine);
		machine = any_machine(seed);
		nm_rng_seed(&rng, seed);
		propose();
		print = mix(print, &proposals.count, sizeof(proposals.count));
		for (size_t i = 0; i < proposals.count; i++) {
			const struct nm_proposal *proposal = &proposals.items[i];
			for (unsigned move = 0; move < 2; move++)
				print = mix(print, &proposal->moves[move], MOVE_BYTES);
			print = mix(print, &proposal->tickets, offsetof(struct nm_tickets, record));
			print = mix(print, &proposal->draw, sizeof(proposal->draw));
			if (!isnan(proposal->gain))
				print = mix(print, &proposal->gain, sizeof(proposal->gain));
		}
	}
	return print;
}

/* Computed with one compiler; a deliberate change of the rules changes it. */
#define FINGERPRINT 0xd9e042e1b5c6a692ULL

TEST(one_seed_gives_one_result_in_every_build)
{
	uint64_t print = fingerprint(1);
	assert_true(print == fingerprint(1));
	assert_true(print != fingerprint(2));
	if (print != FINGERPRINT)
		fail_msg("the fingerprint is 0x%llxULL", (unsigned long long)print);
}

/* ---- nothing to gain ---- */

/* The memory of every thread is evenly on all nodes, and there are only a few samples. */
static void sample_evenly(struct nm_rng *dice, size_t samples)
{
	for (size_t i = 0; i < machine->count; i++) {
		double seen[4] = {0};
		for (size_t k = 0; k < samples; k++)
			seen[below(dice, 4)]++;
		for (unsigned node = 0; node < 4; node++)
			machine_touch(machine, i, node, seen[node]);
	}
}

static uint64_t moves_on_chance(double sigmas)
{
	struct nm_rng dice;
	uint64_t moves = 0;
	nm_rng_seed(&dice, 9);
	machine_free(machine);
	machine = machine_new(4, 8);
	for (int i = 0; i < 32; i++)
		machine_thread(machine, 10, i, 0);
	machine->config.rules.n = 8;
	machine->config.rules.gate_sigmas = sigmas;
	for (int interval = 0; interval < 300; interval++) {
		sample_evenly(&dice, 14);
		propose();
		moves += proposals.count;
	}
	return moves;
}

TEST(evenly_spread_memory_is_left_alone)
{
	assert_true(moves_on_chance(0) > 300);
	assert_in_range(moves_on_chance(3), 0, 3);
}

/* ---- convergence ---- */

/* Eight threads, the memory of two on each node, on random CPUs of other nodes. */
static void scatter(struct nm_rng *dice)
{
	int memory[8];
	bool stray;
	do {
		stray = true;
		for (int i = 0; i < 8; i++)
			memory[i] = i / 2;
		for (int i = 7; i > 0; i--) {
			int j = (int)below(dice, (unsigned)i + 1), kept = memory[i];
			memory[i] = memory[j];
			memory[j] = kept;
		}
		for (int i = 0; i < 8; i++)
			stray = stray && memory[i] != i / 2;
	} while (!stray);
	machine_free(machine);
	machine = machine_new(4, 2);
	for (int i = 0; i < 8; i++)
		machine_thread(machine, 10 + (uint32_t)memory[i], i, memory[i]);
}

static void apply(void)
{
	for (size_t i = 0; i < proposals.count; i++) {
		const struct nm_proposal *proposal = &proposals.items[i];
		machine_run_on(machine, proposal->moves[0].thread, proposal->moves[0].cpu_to);
		if (proposal->kind == NM_PROPOSAL_SWAP)
			machine_run_on(machine, proposal->moves[1].thread,
				       proposal->moves[1].cpu_to);
	}
}

static bool is_settled(void)
{
	for (size_t i = 0; i < machine->count; i++) {
		unsigned node = (unsigned)machine->sampled[i].stats.main_node;
		if (machine->accesses[i * 4 + node] < 100)
			return false;
	}
	return true;
}

static unsigned intervals_to_settle(struct nm_rng *dice, uint64_t n)
{
	unsigned intervals = 0;
	scatter(dice);
	machine->config.rules.n = n;
	while (!is_settled()) {
		propose();
		apply();
		intervals++;
		assert_true(intervals < 100);
	}
	for (int i = 0; i < 20; i++)
		assert_still();
	return intervals;
}

TEST(scattered_threads_settle_and_stay)
{
	const uint64_t ns[] = {1, 4, 8};
	struct nm_rng dice;
	nm_rng_seed(&dice, 3);
	for (size_t i = 0; i < NM_ARRAY_SIZE(ns); i++) {
		unsigned sum = 0, worst = 0;
		for (int run = 0; run < 1000; run++) {
			unsigned took = intervals_to_settle(&dice, ns[i]);
			sum += took;
			worst = took > worst ? took : worst;
		}
		print_message("n = %llu: settled after %.3f intervals on average, %u at worst\n",
			      (unsigned long long)ns[i], sum / 1000.0, worst);
	}
}

RUN_TESTS()
