/* SPDX-License-Identifier: MIT */
/* IMAR² through every stage of the daemon in simulated time: placement, rollback, and their entries
 * in the journal. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_fixture.h"
#include "policy/policy.h"

/* Two processes of two threads and two of one thread, all two hops from their memory. CPUs 5 and 7
 * are idle; finally one CPU each of nodes 0 and 1 is idle. */
static void misplace(void)
{
	for (int i = 0; i < 4; i++)
		add_worker(1000 + 100 * ((uint32_t)i / 2), i, ((unsigned)i / 2 + 2) % NODES);
	add_worker(1200, 4, 0);
	add_worker(1300, 6, 1);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* Runs until all threads are local, at most `most` intervals. */
static unsigned settle(unsigned most)
{
	unsigned intervals = 0;
	for (; intervals < most && !all_at_home(); intervals++)
		live_one();
	assert_true(all_at_home());
	return intervals;
}

TEST(misplaced_threads_move_to_their_memory)
{
	misplace();
	unsigned intervals = settle(30);
	live(12); /* the last verdicts */
	print_message("settled after %u intervals, %u decisions\n", intervals,
		      count_entries(0, NM_MESSAGE_DECISION));
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_int_equal(world.daemon.tally.failed, 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_IMPROVED],
			 world.daemon.tally.applied);
	size_t quiet = world.nr_entries;
	live(200);
	assert_true(all_at_home());
	assert_int_equal(count_entries(quiet, NM_MESSAGE_DECISION), 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 0);
}

/* Four users of two threads each fill the machine; the memory of user i is on node memory[i]. */
static void misplace_users(const unsigned *memory)
{
	for (uint32_t i = 0; i < CPUS; i++) {
		struct worker *worker = add_worker(1000 + 100 * (i / 2), (int)i, memory[i / 2]);
		fake_get(world.fake, worker->tid)->uid = 1000 + i / 2;
	}
	world.lazy = true;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* All want to be on node 0, which has room for two, and stay where they are. */
TEST(a_full_node_attracts_no_thread)
{
	static const unsigned memory[NODES] = {0, 0, 0, 0};
	misplace_users(memory);
	live(40);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
}

/* Each thread is counted under the first reason that keeps it out of the lottery. */
TEST(reasons_against_candidates_have_an_order)
{
	const struct nm_config *config = world.daemon.config;
	struct nm_snap_thread thread = {.main_node = -1, .relative = 1, .local_share = 0.9};
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread),
			 NM_CANDIDACY_UNMEASURED);
	thread.measured = true;
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread), NM_CANDIDACY_HELD);
	thread.movable = true;
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread),
			 NM_CANDIDACY_WANDERING);
	thread.main_node = 0;
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread),
			 NM_CANDIDACY_SETTLED);
	thread.relative = 0.7; /* slow */
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread), NM_CANDIDACY_YES);
	thread.relative = 1;
	thread.local_share = 0.4; /* remote, but by too few accesses */
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread),
			 NM_CANDIDACY_SETTLED);
	thread.valid = true;
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, config, &thread), NM_CANDIDACY_YES);
}

static uint64_t candidates(enum nm_candidacy kind)
{
	struct nm_statistics statistics;
	const struct nm_view view = nm_views_of(&world.daemon);
	nm_view_statistics(&view, &statistics);
	assert_true(statistics.parts & 1U << NM_PART_LOTTERY);
	return statistics.candidates[kind];
}

TEST(status_counts_candidates)
{
	static const unsigned memory[NODES] = {0, 0, 0, 0};
	misplace_users(memory);
	live_one();
	assert_int_equal(candidates(NM_CANDIDACY_HELD), CPUS);
	live(20);
	assert_int_equal(candidates(NM_CANDIDACY_YES), 6);
	assert_int_equal(world.daemon.tally.stuck, 6);
	assert_int_equal(candidates(NM_CANDIDACY_SETTLED), 2);
	assert_int_equal(candidates(NM_CANDIDACY_HELD), 0);
}

/* Text and fields of a move and of its verdict. */
TEST(the_journal_describes_a_move_completely)
{
	misplace();
	settle(30);
	live(3);
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "KIND", "migrate");
	assert_non_null(move);
	assert_true(has_field(move, "PERFORMANCE_OF", "product"));
	assert_true(number_of(move, "TICKETS") >= 3 && number_of(move, "DRAW") >= 0);
	assert_non_null(strstr(field_of(move, "TICKETS_PARTS"), "preferred=4 record=2"));
	assert_true(number_of(move, "PERFORMANCE") > 0);
	assert_true(number_of(move, "RELATIVE_PERMILLE") > 0);
	assert_true(number_of(move, "LATENCY_CYCLES") > 250);
	assert_null(field_of(move, "RECORD"));
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION", field_of(move, "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
	assert_true(number_of(verdict, "LATENCY_BEFORE_CYCLES") > 250);
	assert_true(number_of(verdict, "LATENCY_AFTER_CYCLES") < 110);
	assert_true(number_of(verdict, "LOCAL_SHARE_BEFORE_PERMILLE") == 0);
	assert_true(number_of(verdict, "LOCAL_SHARE_AFTER_PERMILLE") == 1000);
	assert_true(number_of(verdict, "PERFORMANCE_AFTER") >
		    2 * number_of(verdict, "PERFORMANCE_BEFORE"));
	assert_true(number_of(verdict, "PERFORMANCE_LEFT") > 1.5);
	assert_true(number_of(verdict, "GLOBAL_AFTER") > number_of(verdict, "GLOBAL_BEFORE"));
	assert_true(number_of(verdict, "NOISE_PERMILLE") > 0);
	assert_true(has_field(verdict, "INTERVAL_S", "1"));
}

/* Process 1300 is local on node 1; its memory moves to node 0, and it follows. */
static struct worker *follow_memory(const struct nm_entry **ret_move)
{
	struct worker *worker = &world.workers[5];
	settle(30);
	live(12);
	size_t from = world.nr_entries;
	worker->memory = 0;
	for (int i = 0; i < 60; i++) {
		live_one();
		*ret_move = find_entry(from, NM_MESSAGE_DECISION, "TID", "1300");
		if (*ret_move)
			return worker;
	}
	fail_msg("thread 1300 does not follow its memory");
	return worker;
}

static const struct nm_entry *verdict_on(const char *decision)
{
	return find_entry(0, NM_MESSAGE_VERDICT, "DECISION", decision);
}

TEST(a_move_that_a_change_of_phase_made_bad_is_undone)
{
	const struct nm_entry *move;
	misplace();
	struct worker *worker = follow_memory(&move);
	assert_true(nm_interval_s(&world.daemon) == 1);
	worker->memory =
		2; /* across the ring from its current node, and adjacent to its former one */
	live_one();
	const struct nm_entry *verdict = verdict_on(field_of(move, "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "rolled-back"));
	assert_true(number_of(verdict, "PERFORMANCE_LEFT") < 0.9);
	assert_true(number_of(verdict, "GLOBAL_AFTER") < number_of(verdict, "GLOBAL_BEFORE"));
	assert_true(has_field(verdict, "INTERVAL_S", "2"));
	assert_true(nm_interval_s(&world.daemon) == 2);
	const struct nm_entry *rollback =
		find_entry(0, NM_MESSAGE_DECISION, "UNDOES", field_of(move, "DECISION"));
	assert_non_null(rollback);
	assert_true(has_field(rollback, "KIND", "rollback"));
	assert_true(has_field(rollback, "RESULT", "applied"));
	assert_string_equal(field_of(rollback, "NODE_TO"), field_of(move, "NODE_FROM"));
	/* A rollback is a move like any other: its arrival is checked and logged. */
	assert_int_equal(node_of(worker), 1);
	live_one();
	verdict = verdict_on(field_of(rollback, "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "DECISION_KIND", "rollback"));
	assert_true(has_field(verdict, "VERDICT", "neutral") &&
		    has_field(verdict, "RAN_ON_NODE", "1"));
	assert_true(number_of(verdict, "PERFORMANCE_AFTER") >
		    number_of(verdict, "PERFORMANCE_BEFORE"));
	/* The recovery is not a gain: T stays doubled, and no further moves follow. */
	assert_true(nm_interval_s(&world.daemon) == 2);
	size_t quiet = world.nr_entries;
	worker->memory = 1;
	live(40);
	assert_int_equal(count_entries(quiet, NM_MESSAGE_DECISION), 0);
	assert_true(all_at_home());
	assert_true(nm_interval_s(&world.daemon) == 2);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 1);
}

/* Its memory moves away again at once, but it stays for threads.cooldown intervals. */
TEST(the_cooldown_outlasts_the_rollbacks_verdict)
{
	const struct nm_entry *move;
	unsigned intervals = 0;
	misplace();
	struct worker *worker = follow_memory(&move);
	worker->memory = 2;
	live_one();
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 1);
	size_t from = world.nr_entries;
	worker->memory = 0;
	while (!find_entry(from, NM_MESSAGE_DECISION, "KIND", "migrate") &&
	       !find_entry(from, NM_MESSAGE_DECISION, "KIND", "swap") && intervals < 60) {
		live_one();
		intervals++;
	}
	print_message("moved again after %u intervals\n", intervals);
	assert_true(intervals >= world.daemon.config->rules.cooldown && intervals < 60);
}

/* Its program slows down for another reason: too little to roll back the move, but the thread is
 * not faster and is left alone. */
TEST(a_neutral_move_without_speedup_starts_a_cooldown)
{
	const struct nm_entry *move;
	unsigned intervals = 0;
	world.daemon.config->rules.history_s = 1;
	misplace();
	struct worker *worker = follow_memory(&move);
	worker->speed = 0.95 * 100 * 100 / (180.0 * 180.0);
	live_one();
	assert_true(has_field(verdict_on(field_of(move, "DECISION")), "VERDICT", "neutral"));
	worker->memory = 1;
	size_t from = world.nr_entries;
	while (!find_entry(from, NM_MESSAGE_DECISION, "TID", "1300") && intervals < 60) {
		live_one();
		intervals++;
	}
	assert_true(intervals >= world.daemon.config->rules.cooldown && intervals < 20);
}

/* Each placement found is a gain, so that the search accelerates. */
TEST(gains_shorten_t)
{
	world.daemon.config->general.interval_s = 4;
	world.daemon.config->rules.n = 1;
	misplace();
	assert_true(nm_interval_s(&world.daemon) == 4);
	settle(30);
	live(3);
	assert_true(nm_interval_s(&world.daemon) == 1);
	assert_non_null(find_entry(0, NM_MESSAGE_VERDICT, "INTERVAL_S", "2"));
	assert_non_null(find_entry(0, NM_MESSAGE_VERDICT, "INTERVAL_S", "1"));
}

/* Process 1000 falls to 10 % of its speed in the interval after process 1300 was moved. */
TEST(a_loss_of_one_tenant_keeps_moves_of_another)
{
	const struct nm_entry *move;
	misplace();
	follow_memory(&move);
	world.workers[0].speed = world.workers[1].speed = 0.1;
	live(2);
	const struct nm_entry *verdict = verdict_on(field_of(move, "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
	assert_true(number_of(verdict, "PERFORMANCE_LEFT") > 1);
	assert_true(number_of(verdict, "GLOBAL_AFTER") < number_of(verdict, "GLOBAL_BEFORE"));
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
}

/* No thread of a well-placed machine moves, however noisy its metrics are. */
TEST(noise_causes_no_moves)
{
	misplace();
	settle(30);
	live(12);
	world.noise = 0.15;
	size_t quiet = world.nr_entries;
	live(300);
	assert_int_equal(count_entries(quiet, NM_MESSAGE_DECISION), 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_true(nm_interval_s(&world.daemon) == 1);
}

/* ---- inputs of P ---- */

static const struct nm_entry *last_problem(void)
{
	for (size_t i = world.nr_entries; i-- > 0;)
		if (world.entries[i].message == NM_MESSAGE_PROBLEM)
			return &world.entries[i];
	fail_msg("no entry was logged");
	return NULL;
}

TEST(missing_counters_fall_back_to_locality_and_are_logged)
{
	struct nm_source_status *status = &world.daemon.pipeline.source->status;
	status->has_flops = status->has_dram = false;
	misplace();
	settle(30);
	live(20);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 1);
	assert_non_null(strstr(last_problem()->text, "threads.performance = \"product\""));
	assert_non_null(strstr(last_problem()->text,
			       "(not sampled: floating-point operations and memory traffic)"));
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "RESULT", "applied");
	assert_non_null(move);
	assert_true(has_field(move, "PERFORMANCE_OF", "locality"));
	assert_true(has_field(move, "PERFORMANCE", "0.5"));
	status->has_flops = true;
	live(5);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 2);
	assert_non_null(strstr(last_problem()->text, "(not sampled: memory traffic)"));
	status->has_dram = true;
	live(5);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 3);
	assert_non_null(strstr(last_problem()->text, ": all its events are sampled"));
	world.daemon.config->threads.performance = NM_PERFORMANCE_LATENCY;
	live(5);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 3);
}

/* The source counts as failed only if latencies are missing for long. */
TEST(a_lull_does_not_trigger_the_fallback)
{
	misplace();
	settle(30);
	world.cached = true;
	live(10);
	world.cached = false;
	live(10);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 0);
	world.daemon.config->rules.history_s = 3600;
	live(10);
	world.cached = true;
	live(65);
	assert_int_equal(count_entries(0, NM_MESSAGE_PROBLEM), 1);
	assert_non_null(strstr(last_problem()->text, "(not sampled: latencies)"));
}

/* ---- exec ---- */

/* Accesses of the former program are no reason to move the new one. */
TEST(an_exec_resets_history)
{
	misplace();
	settle(30);
	live(12);
	struct worker *worker = &world.workers[5];
	world.daemon.config->rules.moves_per_interval = 0;
	worker->memory = 0;
	live(20);
	fake_exec(world.fake, worker->tid);
	world.daemon.config->rules.moves_per_interval = 64;
	worker->memory = node_of(worker);
	size_t from = world.nr_entries;
	live(30);
	assert_int_equal(count_entries(from, NM_MESSAGE_DECISION), 0);
}

/* ---- the rules of the paper ---- */

/* A thread may be moved in two consecutive intervals; with the shipped rules it waits for its
 * verdict. */
static unsigned moved_twice_running(void)
{
	unsigned twice = 0;
	for (size_t i = 1; i < world.nr_entries; i++)
		for (size_t k = 0; k < i; k++) {
			const struct nm_entry *a = &world.entries[k], *b = &world.entries[i];
			if (a->message != NM_MESSAGE_DECISION ||
			    b->message != NM_MESSAGE_DECISION || field_of(b, "UNDOES") ||
			    field_of(a, "UNDOES"))
				continue;
			twice += strcmp(field_of(a, "TID"), field_of(b, "TID")) == 0 &&
				 number_of(b, "INTERVAL") == number_of(a, "INTERVAL") + 1;
		}
	return twice;
}

TEST(the_paper_waits_for_no_verdict)
{
	struct nm_config *config = world.daemon.config;
	config->rules.gate = NM_GATE_PAPER;
	config->rules.cooldown = 0;
	config->rules.delta_r = 1;
	config->rules.delta_g = 0;
	misplace();
	live(60);
	assert_int_equal(moved_twice_running(), 0);
	assert_true(count_entries(0, NM_MESSAGE_DECISION) > 20);
	config->rules.paper = true;
	live(60);
	assert_true(moved_twice_running() > 0);
}

/* The same number of nodes, in the opposite order. */
static int load_nodes_in_reverse(void *context, struct nm_topology **ret)
{
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	(void)context;
	if (!topology)
		return -ENOMEM;
	for (unsigned k = 0; k < NODES; k++) {
		hwloc_bitmap_zero(topology->nodes[k].cpus);
		topology->nodes[k].os_id = NODES - 1 - k;
	}
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		topology->cpus[cpu].node = (int)(NODES - 1 - node_of_cpu((int)cpu));
		hwloc_bitmap_set(topology->nodes[topology->cpus[cpu].node].cpus, cpu);
	}
	*ret = topology;
	return 0;
}

static double record_on(int node)
{
	const struct nm_daemon *daemon = &world.daemon;
	return nm_record_get(daemon->pipeline.policies.states[NM_POLICY_IMAR2],
			     daemon->views.snapshot, daemon->config, 0, node);
}

static int load_the_same_nodes(void *context, struct nm_topology **ret)
{
	(void)context;
	*ret = machine_topology(NODES, CPUS);
	return *ret ? 0 : -ENOMEM;
}

/* A worker has run on node 0, and runs on node 1; then a CPU goes offline. */
static void change_cpus(int (*load)(void *context, struct nm_topology **ret))
{
	add_worker(1000, 0, 0);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
	live(4);
	assert_true(record_on(0) > 0);
	world.daemon.options.topology.load = load;
	world.fake->online &= ~fake_cpus(CPUS - 1, CPUS - 1);
	fake_get(world.fake, 1000)->processor = CPUS / NODES;
	live(1);
}

/* The performance of a thread on a node is not that on another one with the same index. */
TEST(the_record_ends_when_the_nodes_change)
{
	change_cpus(load_nodes_in_reverse);
	assert_true(isnan(record_on(0)));
}

/* The memory of a virtual machine may change every few seconds. */
TEST(the_record_outlasts_other_changes)
{
	change_cpus(load_the_same_nodes);
	assert_true(record_on(0) > 0);
	world.fake->online = world.fake->all;
	fake_cpuset(world.fake, "/", world.fake->all); /* the kernel widens affinities again */
}

RUN_TESTS()
