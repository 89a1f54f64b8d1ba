/* SPDX-License-Identifier: MIT */
/* Invariants of IMAR² on any machine, and over time with its feedback. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/any_machine.h"
#include "../support/gate.h"
#include "policy/judge.h"
#include "policy/policy.h"

#define FINGERPRINT 0x4aa1f574f10516fbULL

static struct machine *machine;
static void *record;
static struct nm_feedback *feedback;
static struct nm_proposals proposals;
static struct nm_rng rng;

static void forget(void)
{
	if (record)
		nm_imar2_policy.close(record);
	nm_feedback_free(feedback);
	record = NULL;
	feedback = NULL;
}

static void begin_anew(void)
{
	forget();
	record = nm_imar2_policy.open(machine->topology, 4096);
	feedback = nm_feedback_new();
}

static int set_up(void **state)
{
	(void)state;
	machine = machine_new(4, 2);
	nm_rng_seed(&rng, 42);
	begin_anew();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_proposals_clear(&proposals);
	forget();
	machine_free(machine);
	return 0;
}

/* ---- any machine ---- */

static void shuffle_performance(struct machine *m, struct nm_rng *dice)
{
	m->config.threads.policy = NM_POLICY_IMAR2;
	m->config.threads.performance = (enum nm_performance)below(dice, 6);
	m->config.rules.remote_below = below(dice, 3) ? 0.5 : 0;
	for (size_t i = 0; i < m->count; i++) {
		if (below(dice, 8) == 0)
			continue;
		double instructions = 1e9 * nm_rng_unit(dice);
		double operations = instructions * (1 + nm_rng_unit(dice));
		double traffic = 1e6 * (1 + nm_rng_unit(dice));
		machine_perform(m, i, instructions, operations, traffic, 50 + below(dice, 400));
		if (below(dice, 10) == 0)
			m->sampled[i].stats.recent_latency_samples = 3;
	}
}

/* A few intervals with threads on random CPUs, so that records exist. */
static void live_through(struct machine *m, struct nm_rng *dice)
{
	for (unsigned k = below(dice, 4); k > 0; k--) {
		nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(m);
		nm_imar2_policy.follow(record, snapshot, &m->config);
		for (size_t i = 0; i < m->count; i++)
			if (m->sampled[i].stats.main_cpu >= 0)
				machine_run_on(m, i, (int)below(dice, m->topology->nr_cpus));
		m->interval++;
	}
}

/* Returns whether another proposal moves the thread away whose main CPU this is. */
static bool is_left(int cpu)
{
	for (size_t i = 0; i < proposals.count; i++)
		if (proposals.items[i].moves[0].cpu_from == cpu)
			return true;
	return false;
}

static void check_tickets(const struct nm_config *config, const struct nm_proposal *proposal)
{
	const struct nm_tickets *tickets = &proposal->tickets;
	double sum = tickets->free_cpu + tickets->preferred + tickets->record + tickets->partner +
		     tickets->partner_record + tickets->partner_slow;
	bool swap = proposal->kind == NM_PROPOSAL_SWAP;
	assert_true(tickets->total == sum);
	assert_true(tickets->total >= 2 && tickets->total <= (swap ? 19 : 10));
	assert_true(tickets->preferred == 0 || tickets->preferred == config->rules.q2);
	assert_true(tickets->partner_slow == 0 || swap);
	assert_true(tickets->free_cpu == 0 || !swap);
}

static void check_considered(const struct nm_config *config, const struct nm_snap_thread *thread)
{
	assert_true(thread->measured);
	assert_true(thread->relative < config->rules.delta_r ||
		    thread->local_share < config->rules.remote_below);
}

static void check_proposal(const struct nm_snapshot *snapshot, const struct nm_proposal *proposal,
			   bool *moved)
{
	const struct nm_move *moves = proposal->moves;
	const struct nm_config *config = &machine->config;
	size_t count = proposal->kind == NM_PROPOSAL_SWAP ? 2 : 1;
	for (size_t i = 0; i < count; i++)
		check_move(snapshot, &moves[i], moved);
	check_considered(config, &snapshot->threads[moves[0].thread]);
	check_tickets(config, proposal);
	if (count == 1)
		assert_true(snapshot->cpus[moves[0].cpu_to].free ? proposal->tickets.free_cpu > 0
								 : is_left(moves[0].cpu_to));
	if (config->rules.gate == NM_GATE_BENEFIT)
		assert_true(
			moves_pass_gate(snapshot, moves, count, 0.05, config->rules.gate_sigmas));
}

static void draw_machine(uint64_t seed)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, seed * 31);
	machine_free(machine);
	machine = any_machine(seed);
	shuffle_performance(machine, &dice);
	begin_anew();
	live_through(machine, &dice);
}

static struct nm_snapshot *propose(void)
{
	struct nm_snapshot *snapshot = machine_snapshot(machine);
	nm_proposals_clear(&proposals);
	nm_imar2_policy.follow(record, snapshot, &machine->config);
	machine_propose(machine, &nm_imar2_policy, record, snapshot, &rng, &proposals);
	return snapshot;
}

TEST(winners_follow_the_rules_on_any_machine)
{
	size_t winners = 0, swaps = 0;
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		bool moved[32] = {false};
		draw_machine(seed);
		nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = propose();
		assert_true(proposals.count <= machine->config.rules.n);
		for (size_t i = 0; i < proposals.count; i++) {
			check_proposal(snapshot, &proposals.items[i], moved);
			swaps += proposals.items[i].kind == NM_PROPOSAL_SWAP;
		}
		winners += proposals.count;
	}
	print_message("winners checked: %zu, of them swaps: %zu\n", winners, swaps);
	assert_true(swaps > 300 && winners - swaps > 300);
}

/* Affinities known to the task table save queries and change no decision. */
static void note_masks(void)
{
	for (size_t i = 0; i < machine->count; i++)
		machine->managed[i].everywhere =
			hwloc_bitmap_isincluded(machine->topology->usable, machine->masks[i]);
}

static uint64_t fingerprint(uint64_t first_seed, bool masks_known)
{
	uint64_t print = FINGERPRINT_START;
	for (uint64_t seed = first_seed; seed < first_seed + 300; seed++) {
		draw_machine(seed);
		if (masks_known)
			note_masks();
		nm_rng_seed(&rng, seed);
		nm_snapshot_free(propose());
		print = mix(print, &proposals.count, sizeof(proposals.count));
		for (size_t i = 0; i < proposals.count; i++) {
			const struct nm_proposal *proposal = &proposals.items[i];
			print = mix(print, &proposal->moves[0].thread, sizeof(uint32_t));
			print = mix(print, &proposal->moves[0].cpu_to, sizeof(int));
			print = mix(print, &proposal->tickets, sizeof(proposal->tickets));
			print = mix(print, &proposal->draw, sizeof(proposal->draw));
		}
	}
	return print;
}

/* Computed with one compiler; a deliberate change of the rules changes it. */
TEST(one_seed_gives_one_result_in_every_build)
{
	uint64_t print = fingerprint(1, false);
	assert_true(print == fingerprint(1, true));
	assert_true(print != fingerprint(2, false));
	if (print != FINGERPRINT)
		fail_msg("the fingerprint is 0x%llxULL", (unsigned long long)print);
}

/* ---- over time ---- */

/* P and L of a thread depend on its node and that of its memory, with a little noise. */
static void perform(size_t i, unsigned memory, double noise)
{
	bool local = machine->sampled[i].stats.main_node == (int)memory;
	double latency = (local ? 100 : 180) * (1 + noise * (nm_rng_unit(&rng) - 0.5));
	double instructions = 1e9 * 100 / latency;
	machine_perform(machine, i, instructions, 2 * instructions, 1e8, latency);
}

struct run {
	unsigned intervals, moves, undone;
	double seconds;
	bool settled;
};

static void apply(const struct nm_move *move)
{
	machine_run_on(machine, move->thread, move->cpu_to);
}

static void undo(const struct nm_proposal *done)
{
	for (size_t i = 0; i < (done->kind == NM_PROPOSAL_SWAP ? 2U : 1U); i++)
		machine_run_on(machine, done->moves[i].thread, done->moves[i].cpu_from);
}

static void act(const struct nm_snapshot *snapshot, struct run *run)
{
	for (size_t i = 0; i < proposals.count; i++) {
		const struct nm_proposal *proposal = &proposals.items[i];
		for (size_t k = 0; k < (proposal->kind == NM_PROPOSAL_SWAP ? 2U : 1U); k++) {
			apply(&proposal->moves[k]);
			nm_feedback_moved(feedback, snapshot, i + 1,
					  snapshot->threads[proposal->moves[k].thread].pid, false);
		}
		run->moves++;
	}
}

static void tick(struct run *run)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(machine);
	struct nm_feedback_result result;
	machine->interval++;
	nm_imar2_feedback(feedback, snapshot, &machine->config, &result);
	assert_true(result.interval_s >= 1 && result.interval_s <= 4);
	run->intervals++;
	run->seconds += result.interval_s;
	if (result.outcome == NM_FEEDBACK_ROLL_BACK) {
		run->undone++;
		for (size_t i = 0; i < proposals.count; i++)
			undo(&proposals.items[i]);
	}
	nm_proposals_clear(&proposals);
	if (!result.may_propose)
		return;
	nm_auto(nm_snapshot_freep) struct nm_snapshot *again = propose();
	act(again, run);
}

/* Eight threads of four processes, with the memory of two on each node, on random CPUs. */
static void scatter(unsigned memory[8])
{
	machine_free(machine);
	machine = machine_new(4, 2);
	machine->config.threads.policy = NM_POLICY_IMAR2;
	machine->config.threads.performance = NM_PERFORMANCE_PRODUCT;
	for (unsigned i = 0; i < 8; i++)
		memory[i] = i / 2;
	for (unsigned i = 7; i > 0; i--) {
		unsigned j = below(&rng, i + 1), kept = memory[i];
		memory[i] = memory[j];
		memory[j] = kept;
	}
	for (unsigned i = 0; i < 8; i++)
		machine_thread(machine, 10 + memory[i], (int)i, (int)memory[i]);
	begin_anew();
}

static bool all_at_home(const unsigned memory[8])
{
	for (size_t i = 0; i < 8; i++)
		if (machine->sampled[i].stats.main_node != (int)memory[i])
			return false;
	return true;
}

static struct run settle(uint64_t n, double noise)
{
	unsigned memory[8];
	struct run run = {0};
	scatter(memory);
	machine->config.rules.n = n;
	while (!all_at_home(memory) && run.intervals < 60) {
		for (size_t i = 0; i < 8; i++)
			perform(i, memory[i], noise);
		tick(&run);
	}
	run.settled = all_at_home(memory);
	return run;
}

TEST(scattered_threads_move_to_their_memory)
{
	const uint64_t ns[] = {1, 4, 8};
	for (size_t k = 0; k < NM_ARRAY_SIZE(ns); k++) {
		unsigned sum = 0, worst = 0, undone = 0;
		for (int i = 0; i < 300; i++) {
			struct run run = settle(ns[k], 0.1);
			assert_true(run.settled);
			sum += run.intervals;
			undone += run.undone;
			worst = run.intervals > worst ? run.intervals : worst;
		}
		print_message("n = %llu: settled after %.3f intervals on average, %u at worst, %u "
			      "undone\n",
			      (unsigned long long)ns[k], sum / 300.0, worst, undone);
	}
}

/* Perfectly placed, but uneven: one thread of each process is inherently slow. */
TEST(a_well_placed_machine_stays)
{
	struct run run = {0};
	for (int i = 0; i < 8; i++)
		machine_thread(machine, 10 + (uint32_t)i / 4, i, i / 2);
	machine->config.rules.n = 8;
	for (int k = 0; k < 200; k++) {
		for (size_t i = 0; i < 8; i++) {
			double speed = (i % 4 == 0 ? 1e8 : 1e9) * (0.9 + 0.2 * nm_rng_unit(&rng));
			machine_perform(machine, i, speed, speed, 1e8, 100);
		}
		tick(&run);
	}
	assert_int_equal(run.moves, 0);
	assert_true(run.seconds == 200);
}

/* With the published rules moves never stop: an inherently slow thread is moved repeatedly, and
 * losses are rolled back. */
TEST(the_papers_rules_keep_going)
{
	struct run run = {0};
	machine_paper(&machine->config);
	for (int i = 0; i < 8; i++)
		machine_thread(machine, 10 + (uint32_t)i / 4, i, i / 2);
	for (int k = 0; k < 300; k++) {
		for (unsigned i = 0; i < 8; i++) {
			perform(i, i / 2, 0.1);
			if (i % 4 == 0)
				machine_perform(machine, i, 1e8, 2e8, 1e8,
						machine->sampled[i].stats.latency);
		}
		tick(&run);
	}
	print_message("paper: %u moves, %u undone in 300 intervals of %.3f s on average\n",
		      run.moves, run.undone, run.seconds / 300);
	assert_true(run.moves > 100 && run.undone > 20);
}

RUN_TESTS()
