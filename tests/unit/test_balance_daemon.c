/* SPDX-License-Identifier: MIT */
/* Policy "balance" through every stage of the daemon in simulated time: threads that queue on one
 * node are spread over the others within affinities and budgets, and the journal logs reasons and
 * verdicts. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "balance_words.h"

/* ---- relief ---- */

SCRIPT(an_overloaded_node_is_relieved,
       "overload 6 memory node3; balance first_fit; " SETTLE "mark; run 60; queue = 1",
       "entries decision = 0; verdicts_rolled_back = 0; failed = 0; verdicts_improved = 4",
       "applied = 4")

/* If locality replaces P, a shorter queue outweighs the longer distance. */
SCRIPT(relief_outweighs_locality,
       "overload 6 memory node3; balance first_fit; set has_flops = 0; " SETTLE "run 20",
       "verdicts_rolled_back = 0; verdicts_improved = 4",
       "journal decision KIND=migrate PERFORMANCE_OF=locality; logged 1  replaced by locality ")

/* Every node has the same load. */
SCRIPT(an_even_load_is_not_read,
       "thread 1000 cpu0 node0; thread 1100 cpu1 node0; thread 1200 cpu2 node0",
       "thread 1300 cpu3 node0; thread 1400 cpu4 node0; thread 1500 cpu5 node0",
       "thread 1600 cpu6 node0; thread 1700 cpu7 node0; balance first_fit; run 20; load_reads = 0",
       "entries decision = 0")

/* Three threads on a CPU run for less than min_run each; the move is judged by their run time. */
SCRIPT(queued_threads_have_a_performance,
       "set has_flops = 0; set has_dram = 0; overload 6 memory node0; balance first_fit",
       "set min_run = 0.5; " SETTLE "run 5",
       "journal decision KIND=migrate PERFORMANCE>0 PERFORMANCE<0.5 PERFORMANCE_OF=locality",
       "journal verdict DECISION=$DECISION PERFORMANCE_AFTER>$PERFORMANCE_BEFORE")

/* ---- within bounds ---- */

/* All threads may use the CPUs of nodes 0 and 1. */
WORD(pin_all)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_pin(world.fake, world.workers[i].tid, fake_cpus(0, 3));
}

SCRIPT(owner_affinities_limit_moves,
       "overload 6 memory node0; pin_all; balance first_fit; run 30; on_cpu 2 = 1; on_cpu 3 = 1",
       "on_cpu 4 = 0; on_cpu 5 = 0; on_cpu 6 = 0; on_cpu 7 = 0; failed = 0")

KNOB(silent, world.silent)

SCRIPT(missing_schedstat_is_logged_and_disables_balancing,
       "set silent = 1; overload 6 memory node0; balance first_fit; run 20; entries decision = 0",
       "logged 1 No run queue delay in ")

/* ---- selection ---- */

ACTION(pinned, fake_pin(world.fake, add_worker(U(0), (int)N(1), 0)->tid, fake_cpus(0, 3)))

/* A process whose first thread is on node 1 has queued threads on node 0. First threads stay, and
 * so do threads on the node of their leader. */
SCRIPT(a_thread_that_can_join_its_leader_moves,
       "thread 1000 cpu3 node0; pinned 1000 cpu0; pinned 1000 cpu0; pinned 1000 cpu0",
       "thread 2000 cpu1 node0; thread 3000 cpu1 node0; balance exclusivity; run 15",
       "journal decision KIND=migrate SELECTION=exclusivity",
       "journal decision SELECTED_BY=leader NODE_TO=1 PID=1000; text  by exclusivity (leader) [#",
       "node 0 = 1; node 4 = 0; node 5 = 0")

/* ---- the journal ---- */

static bool is_near(const char *a, const char *b, double part)
{
	const double value = number_of(script_world.entry, a),
		     other = number_of(script_world.entry, b);
	return fabs(value - other) < part * other;
}

/* Of the entry found last. */
QUANTITY(gain_is_all, is_near("GAIN_PAGES", "RESIDENT_PAGES", 1e-3))
QUANTITY(prediction_holds, is_near("MEASURED_BENEFIT", "PREDICTED_BENEFIT", 0.1))
QUANTITY(predicted, number_of(script_world.entry, "PREDICTED_BENEFIT"))
QUANTITY(resident, number_of(script_world.entry, "RESIDENT_PAGES"))

/* All accesses go to the pages that the prediction counts. */
SCRIPT(predicted_and_measured_benefit_are_logged,
       "overload 6 memory node1; balance most_benefit; set balance_min_gain = 1; run 12",
       "journal decision KIND=migrate POLICY=balance NODE_TO=1 SELECTION=most_benefit "
       "SELECTED_BY=rule RESIDENT_PAGES>0 METRIC>=$GAIN_PAGES METRIC<=$GAIN_PAGES "
       "RESIDENCY_AGE_S=0 LOAD_FROM>2.5 "
       "LOAD_TO<0.1 LOAD_GAP>2.5 TICKETS=-",
       "text : load ; gain_is_all = 1; keep pages = resident; keep benefit = predicted",
       "predicted > pages*0.5",
       "journal verdict DECISION=$DECISION VERDICT=improved ACCESS_COST_AFTER=1",
       "predicted > benefit*0.999; predicted < benefit*1.001; prediction_holds = 1",
       "text  (predicted ")

/* The program that was moved first makes almost no progress from then on. */
WORD(slow_moved)
{
	for (size_t i = 0; i < world.nr_workers; i++)
		if (world.workers[i].tid == (uint32_t)number_of(script_world.entry, "TID"))
			world.workers[i].speed = 0.02;
}

#define PERFORMANCE_FALLS                                                                          \
	"overload 6 memory node0; balance first_fit; set moves_per_interval = 1; "                 \
	"until entries decision > 0 within 30; journal decision KIND=migrate; slow_moved; run 2"

/* With the rules of the papers. */
SCRIPT(disabled_rollback_undoes_no_move, "set rollback = 0; " PERFORMANCE_FALLS,
       "journal verdict DECISION=$DECISION VERDICT=neutral PERFORMANCE_LEFT<0.5",
       "verdicts_rolled_back = 0")

SCRIPT(a_move_after_which_the_performance_fell_is_undone, PERFORMANCE_FALLS,
       "journal verdict DECISION=$DECISION VERDICT=rolled-back",
       "journal decision UNDOES=$DECISION RESULT=applied NODE_TO=0 SELECTION=-; interval_s = 1")

/* ---- others ---- */

/* Later there is one thread per CPU, and two nodes with one idle CPU each. */
SCRIPT(begin_and_end_of_balancing_are_logged,
       "overload 6 memory node3; balance first_fit; " SETTLE
       "logged 1 Balancing nodes: loads differ",
       "set balance_begin = 1.5; set balance_end = 1.5; run 3; logged 1 Balancing ended: ; run 10",
       "logged 2 Balancing ")

static bool has_been_read(uint32_t tid)
{
	const struct nm_balancer_thread_state *known =
		nm_column_find(&nm_balancer_of(&world.daemon.pipeline)->threads, tid);
	return known->read_interval == world.daemon.tally.intervals;
}

QUANTITY(read, has_been_read(U(0)))
ACTION(reuse_first, nm_balancer_of(&world.daemon.pipeline)->threads.keys[0].start_ticks++)

/* A thread exits and its number is reused: metrics of the former thread do not apply to the new
 * one. */
SCRIPT(a_reused_number_starts_without_history,
       "overload 6 memory node3; balance first_fit; set balance_persist = 1000; run 4",
       "read 1000 = 1; waiting = 6; reuse_first; run 1; waiting = 5; run 1; waiting = 6")

ACTION(reset, nm_pipeline_reset_performance(&world.daemon))

SCRIPT(a_policy_change_drops_the_state,
       "overload 6 memory node0; balance first_fit; run 3; balancer = 1; reset; balancer = 0",
       "set policy = lbma; run 3; balancer = 0")

static int load_a_node_per_cpu(void *context, struct nm_topology **ret)
{
	(void)context;
	*ret = machine_topology(CPUS, CPUS);
	return *ret ? 0 : -ENOMEM;
}

WORD(change_nodes)
{
	world.daemon.options.topology.load = load_a_node_per_cpu;
	world.fake->online &= ~fake_cpus(CPUS - 1, CPUS - 1);
}

QUANTITY(follows_topology,
	 nm_balancer_of(&world.daemon.pipeline)->topology == world.daemon.pipeline.topology)

/* The state refers to the former nodes. */
SCRIPT(nodes_that_change_begin_anew,
       "overload 6 memory node0; balance first_fit; set balance_persist = 1000; run 4; waiting = 6",
       "change_nodes; run 1; logged 1 online: 0-6; follows_topology = 1; waiting = 0; run 2",
       "waiting = 6")

static const char *status_text(const char *name)
{
	static char text[64];
	show_document(nm_command_dump(&world.daemon), "status");
	snprintf(text, sizeof(text), "%s", shown_text(0, name));
	shown_clear();
	return text;
}

TEXT(status_is, status_text(step->word[0]))

SCRIPT(the_status_contains_balancing_metrics,
       "overload 6 memory node0; balance first_fit; set balance_persist = 10; run 4",
       "status threads_waiting = 6; status load_gap in 2.9..3.1; status_is selection = first_fit",
       "status_is dtas = off")

RUN_TESTS()
