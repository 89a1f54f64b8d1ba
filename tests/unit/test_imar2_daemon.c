/* SPDX-License-Identifier: MIT */
/* IMAR² through every stage of the daemon in simulated time: placement, rollback, and their entries
 * in the journal. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"
#include "policy/policy.h"

WORD(start)
{
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* Two processes of two threads and two of one thread, all two hops from their memory. CPUs 5 and 7
 * are idle; finally one CPU each of nodes 0 and 1 is idle. */
#define MISPLACED                                                                                  \
	"thread 1000 cpu0 node2; thread 1000 cpu1 node2; thread 1100 cpu2 node3; "                 \
	"thread 1100 cpu3 node3; thread 1200 cpu4 node0; thread 1300 cpu6 node1; start; "
#define SETTLED MISPLACED "until all_at_home = 1 within 30; "
/* Process 1300 is local on node 1; its memory moves to node 0, and it follows. */
#define FOLLOWED                                                                                   \
	SETTLED "run 12; mark; set memory 5 = 0; until journaled decision TID=1300 = 1 within "    \
		"60; "                                                                             \
		"journal decision TID=1300; "

QUANTITY(stuck, world.daemon.tally.stuck)
KNOB(noise, world.noise)
KNOB(configured_interval_s, world.daemon.config->general.interval_s)
KNOB(history_s, world.daemon.config->rules.history_s)
KNOB(n, world.daemon.config->rules.n)
KNOB(moves_per_interval, world.daemon.config->rules.moves_per_interval)
KNOB(has_flops, world.daemon.pipeline.source->status.has_flops)
KNOB(has_dram, world.daemon.pipeline.source->status.has_dram)

SCRIPT(misplaced_threads_move_to_their_memory,
       SETTLED "run 12; verdicts_rolled_back = 0; failed = 0; keep n = applied",
       "verdicts_improved = n; mark; run 200; all_at_home = 1; entries decision = 0",
       "all_problems = 0")

QUANTITY(all_problems, count_entries(0, NM_MESSAGE_PROBLEM))

/* Four users of two threads each fill the machine. All want to be on node 0, which has room for
 * two, and stay where they are. */
WORD(users_of_node_0)
{
	for (uint32_t i = 0; i < CPUS; i++)
		fake_get(world.fake, add_worker(1000 + 100 * (i / 2), (int)i, 0)->tid)->uid =
			1000 + i / 2;
	world.lazy = true;
}

SCRIPT(a_full_node_attracts_no_thread, "users_of_node_0; start; run 40; entries decision = 0")

/* Each thread is counted under the first reason that keeps it out of the lottery. */
TEST(reasons_against_candidates_have_an_order)
{
	struct nm_snap_thread thread = {.stats.main_node = -1, .relative = 1, .local_share = 0.9};
#define IS(kind)                                                                                   \
	assert_int_equal(nm_lottery_candidacy(NM_POLICY_IMAR2, world.daemon.config, &thread), kind)
	IS(NM_CANDIDACY_UNMEASURED);
	thread.measured = true;
	IS(NM_CANDIDACY_HELD);
	thread.movable = true;
	IS(NM_CANDIDACY_WANDERING);
	thread.stats.main_node = 0;
	IS(NM_CANDIDACY_SETTLED);
	thread.relative = 0.7; /* slow */
	IS(NM_CANDIDACY_YES);
	thread.relative = 1;
	thread.local_share = 0.4; /* remote, but by too few accesses */
	IS(NM_CANDIDACY_SETTLED);
	thread.valid = true;
	IS(NM_CANDIDACY_YES);
}

SCRIPT(status_counts_candidates,
       "users_of_node_0; start; run 1; held = 8; run 20; candidates = 6; stuck = 6; settled = 2",
       "held = 0")

/* Text and fields of a move and of its verdict. */
SCRIPT(the_journal_describes_a_move_completely,
       SETTLED "run 3; journal decision KIND=migrate PERFORMANCE_OF=product TICKETS>=3 DRAW>=0 "
	       "PERFORMANCE>0 RELATIVE_PERMILLE>0 LATENCY_CYCLES>250 RECORD=- "
	       "TICKETS_PARTS~preferred=4 TICKETS_PARTS~record=2",
       "journal verdict DECISION=$DECISION VERDICT=improved LATENCY_BEFORE_CYCLES>250 "
       "LATENCY_AFTER_CYCLES<110 LOCAL_SHARE_BEFORE_PERMILLE=0 LOCAL_SHARE_AFTER_PERMILLE=1000 "
       "PERFORMANCE_LEFT>1.5 GLOBAL_AFTER>$GLOBAL_BEFORE NOISE_PERMILLE>0 INTERVAL_S=1",
       "performance_gain > 2")

static double performance_gain(void)
{
	return number_of(script_world.entry, "PERFORMANCE_AFTER") /
	       number_of(script_world.entry, "PERFORMANCE_BEFORE");
}

/* Of the verdict found last. */
QUANTITY(performance_gain, performance_gain())

/* Its memory moves across the ring from its current node, and adjacent to its former one. A
 * rollback is a move like any other: its arrival is checked and logged. The recovery is not a gain:
 * T stays doubled, and no further moves follow. */
SCRIPT(a_move_that_a_change_of_phase_made_bad_is_undone,
       FOLLOWED "interval_s = 1; set memory 5 = 2; run 1",
       "journal verdict DECISION=$DECISION VERDICT=rolled-back PERFORMANCE_LEFT<0.9 "
       "GLOBAL_AFTER<$GLOBAL_BEFORE INTERVAL_S=2",
       "interval_s = 2",
       "journal decision UNDOES=$DECISION KIND=rollback RESULT=applied NODE_FROM=0 NODE_TO=1",
       "node 5 = 1; run 1",
       "journal verdict DECISION=$DECISION DECISION_KIND=rollback VERDICT=neutral RAN_ON_NODE=1 "
       "PERFORMANCE_AFTER>$PERFORMANCE_BEFORE",
       "interval_s = 2; mark; set memory 5 = 1; run 40; entries decision = 0; all_at_home = 1",
       "interval_s = 2; verdicts_rolled_back = 1")

/* Its memory moves away again at once, but it stays for threads.cooldown intervals. */
SCRIPT(the_cooldown_outlasts_the_rollbacks_verdict,
       FOLLOWED "set memory 5 = 2; run 1; verdicts_rolled_back = 1; mark; set memory 5 = 0",
       "keep cooldown = cooldown; until has_moved = 1 within 60; waited >= cooldown")

static bool has_moved(void)
{
	return find_entry(script_world.from, NM_MESSAGE_DECISION, "KIND", "migrate") ||
	       find_entry(script_world.from, NM_MESSAGE_DECISION, "KIND", "swap");
}

QUANTITY(has_moved, has_moved())

/* Its program slows down for another reason: too little to roll back the move, but the thread is
 * not faster and is left alone. */
SCRIPT(a_neutral_move_without_speedup_starts_a_cooldown,
       "set history_s = 1; " FOLLOWED "set speed 5 = 0.293209877; run 1",
       "journal verdict DECISION=$DECISION VERDICT=neutral; set memory 5 = 1; mark",
       "keep cooldown = cooldown; until journaled decision TID=1300 = 1 within 20",
       "waited >= cooldown")

/* Each placement found is a gain, so that the search accelerates. */
SCRIPT(gains_shorten_t, "set configured_interval_s = 4; set n = 1; " MISPLACED "interval_s = 4",
       "until all_at_home = 1 within 30; run 3; interval_s = 1; journal verdict INTERVAL_S=2",
       "journal verdict INTERVAL_S=1")

/* Process 1000 falls to 10 % of its speed in the interval after process 1300 was moved. */
SCRIPT(a_loss_of_one_tenant_keeps_moves_of_another,
       FOLLOWED "set speed 0 = 0.1; set speed 1 = 0.1; run 2",
       "journal verdict DECISION=$DECISION VERDICT=improved PERFORMANCE_LEFT>1 "
       "GLOBAL_AFTER<$GLOBAL_BEFORE",
       "verdicts_rolled_back = 0")

/* No thread of a well-placed machine moves, however noisy its metrics are. */
SCRIPT(noise_causes_no_moves,
       SETTLED "run 12; set noise = 0.15; mark; run 300; entries decision = 0; interval_s = 1",
       "verdicts_rolled_back = 0")

/* ---- inputs of P ---- */

SCRIPT(missing_counters_fall_back_to_locality_and_are_logged,
       "set has_flops = 0; set has_dram = 0; " SETTLED "run 20; all_problems = 1; last problem",
       "text threads.performance = \"product\"",
       "text (not sampled: floating-point operations and memory traffic)",
       "journal decision RESULT=applied PERFORMANCE_OF=locality PERFORMANCE=0.5",
       "set has_flops = 1; run 5; all_problems = 2; last problem",
       "text (not sampled: memory traffic)",
       "set has_dram = 1; run 5; all_problems = 3; last problem",
       "text : all its events are sampled", "set performance = latency; run 5; all_problems = 3")

KNOB(performance, world.daemon.config->threads.performance)
NAMES(performance, {"latency", NM_PERFORMANCE_LATENCY})

/* The source counts as failed only if latencies are missing for long. */
SCRIPT(a_lull_does_not_trigger_the_fallback,
       SETTLED "set cached = 1; run 10; set cached = 0; run 10; all_problems = 0",
       "set history_s = 3600; run 10; set cached = 1; run 65; all_problems = 1; last problem",
       "text (not sampled: latencies)")

/* ---- exec ---- */

/* Accesses of the former program are no reason to move the new one. */
SCRIPT(an_exec_resets_history,
       SETTLED "run 12; set moves_per_interval = 0; set memory 5 = 0; run 20; exec 1300",
       "set moves_per_interval = 64; keep node = node 5; set memory 5 = node; mark; run 30",
       "entries decision = 0")

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

QUANTITY(moved_twice_running, moved_twice_running())
KNOB(gate, world.daemon.config->rules.gate)
NAMES(gate, {"paper", NM_GATE_PAPER})
KNOB(delta_r, world.daemon.config->rules.delta_r)
KNOB(delta_g, world.daemon.config->rules.delta_g)

SCRIPT(the_paper_waits_for_no_verdict,
       "set gate = paper; set cooldown = 0; set delta_r = 1; set delta_g = 0; " MISPLACED "run 60",
       "moved_twice_running = 0; entries decision > 20; set paper = 1; run 60",
       "moved_twice_running > 0")

/* ---- nodes change ---- */

/* The same number of nodes, in the opposite order. */
static int load_nodes_in_reverse(void *context, struct nm_topology **ret)
{
	struct nm_topology *topology = machine_topology(NODES, CPUS);
	(void)context;
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

static int load_the_same_nodes(void *context, struct nm_topology **ret)
{
	(void)context;
	*ret = machine_topology(NODES, CPUS);
	return 0;
}

/* cpu_goes_offline, nodes reversed or not: the worker runs on node 1 from now on */
WORD(cpu_goes_offline)
{
	world.daemon.options.topology.load =
		step_has(step, "reversed") ? load_nodes_in_reverse : load_the_same_nodes;
	world.fake->online &= ~fake_cpus(CPUS - 1, CPUS - 1);
	fake_get(world.fake, 1000)->processor = CPUS / NODES;
}

WORD(all_online)
{
	world.fake->online = world.fake->all;
	fake_cpuset(world.fake, "/", world.fake->all); /* the kernel widens affinities again */
}

static double record_on(int node)
{
	const struct nm_daemon *daemon = &world.daemon;
	return nm_record_get(daemon->pipeline.policies.states[NM_POLICY_IMAR2],
			     daemon->views.snapshot, daemon->config, 0, node);
}

QUANTITY(has_record, record_on((int)N(0)) > 0)

/* The performance of a thread on a node is not that on another one with the same index. */
SCRIPT(the_record_ends_when_the_nodes_change,
       "thread 1000 cpu0 node0; start; run 4; has_record node0 = 1",
       "cpu_goes_offline reversed; run 1; has_record node0 = 0")

/* The memory of a virtual machine may change every few seconds. */
SCRIPT(the_record_outlasts_other_changes,
       "thread 1000 cpu0 node0; start; run 4; has_record node0 = 1; cpu_goes_offline; run 1",
       "has_record node0 = 1; all_online")

RUN_TESTS()
