/* SPDX-License-Identifier: MIT */
/* Policy "balance" through every stage of the daemon in simulated time: threads that queue on one
 * node are spread over the others within affinities and budgets, and the journal logs reasons and
 * verdicts. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "balance_daemon_fixture.h"
#include "dump_fixture.h"

/* ---- relief ---- */

TEST(an_overloaded_node_is_relieved)
{
	overload(6, 3);
	begin(NM_SELECTION_FIRST_FIT);
	print_message("settled after %u intervals\n", settle(15));
	size_t quiet = world.nr_entries;
	live(60);
	assert_int_equal(longest_queue(), 1);
	assert_int_equal(count_entries(quiet, NM_MESSAGE_DECISION), 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_int_equal(world.daemon.tally.failed, 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_IMPROVED],
			 world.daemon.tally.applied);
	assert_int_equal(world.daemon.tally.applied, 4);
}

/* If locality replaces P, a shorter queue outweighs the longer distance. */
TEST(relief_outweighs_locality)
{
	overload(6, 3);
	begin(NM_SELECTION_FIRST_FIT);
	world.daemon.pipeline.source->status.has_flops = false;
	settle(15);
	live(20);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_IMPROVED], 4);
	assert_true(has_field(first_move(), "PERFORMANCE_OF", "locality"));
	assert_int_equal(count_logged(" replaced by locality "), 1);
}

/* Every node has the same load. */
TEST(an_even_load_is_not_read)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		add_worker(1000 + 100 * (uint32_t)cpu, cpu, 0);
	begin(NM_SELECTION_FIRST_FIT);
	live(20);
	assert_int_equal(nm_balancer_of(&world.daemon)->tally.reads, 0);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
}

/* Three threads on a CPU run for less than min_run each; the move is judged by their run time. */
TEST(queued_threads_have_a_performance)
{
	struct nm_source_status *status = &world.daemon.pipeline.source->status;
	status->has_flops = status->has_dram = false;
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	config()->rules.min_run = 0.5;
	settle(30);
	live(5);
	const struct nm_entry *move = first_move();
	assert_true(number_of(move, "PERFORMANCE") > 0);
	assert_true(number_of(move, "PERFORMANCE") < 0.5);
	assert_true(has_field(move, "PERFORMANCE_OF", "locality"));
	const struct nm_entry *verdict = verdict_of(move);
	assert_true(number_of(verdict, "PERFORMANCE_AFTER") >
		    number_of(verdict, "PERFORMANCE_BEFORE"));
}

/* ---- within bounds ---- */

TEST(owner_affinities_limit_moves)
{
	overload(6, 0);
	for (size_t i = 0; i < world.nr_workers; i++)
		fake_pin(world.fake, world.workers[i].tid, fake_cpus(0, 3));
	begin(NM_SELECTION_FIRST_FIT);
	live(30);
	for (size_t i = 0; i < world.nr_workers; i++)
		assert_true(node_of(&world.workers[i]) <= 1);
	assert_true(workers_on(2) == 1 && workers_on(3) == 1);
	assert_int_equal(world.daemon.tally.failed, 0);
}

TEST(missing_schedstat_is_logged_and_disables_balancing)
{
	world.silent = true;
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	live(20);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_int_equal(count_logged("No run queue delay in "), 1);
}

/* ---- selection ---- */

/* A process whose first thread is on node 1 has queued threads on node 0. */
TEST(a_thread_that_can_join_its_leader_moves)
{
	add_worker(1000, 3, 0);
	for (int i = 0; i < 3; i++)
		fake_pin(world.fake, add_worker(1000, 0, 0)->tid, fake_cpus(0, 3));
	add_worker(2000, 1, 0);
	add_worker(3000, 1, 0);
	begin(NM_SELECTION_EXCLUSIVITY);
	live(15);
	const struct nm_entry *move = first_move();
	assert_true(has_field(move, "SELECTION", "exclusivity"));
	const struct nm_entry *joined = find_entry(0, NM_MESSAGE_DECISION, "SELECTED_BY", "leader");
	assert_non_null(joined);
	assert_true(has_field(joined, "NODE_TO", "1") && has_field(joined, "PID", "1000"));
	assert_non_null(strstr(joined->text, "; by exclusivity (leader) [#"));
	/* First threads stay, and so do threads on the node of their leader. */
	assert_int_equal(node_of(&world.workers[0]), 1);
	assert_int_equal(node_of(&world.workers[4]), 0);
	assert_int_equal(node_of(&world.workers[5]), 0);
}

/* ---- the journal ---- */

TEST(predicted_and_measured_benefit_are_logged)
{
	overload(6, 1);
	begin(NM_SELECTION_MOST_BENEFIT);
	config()->rules.balance_min_gain = 1;
	live(12);
	const struct nm_entry *move = first_move(), *verdict = verdict_of(move);
	double pages = number_of(move, "RESIDENT_PAGES");
	double predicted = number_of(move, "PREDICTED_BENEFIT");
	assert_true(has_field(move, "POLICY", "balance") && has_field(move, "NODE_TO", "1"));
	assert_true(has_field(move, "SELECTION", "most_benefit"));
	assert_true(has_field(move, "SELECTED_BY", "rule"));
	assert_true(pages > 0 && fabs(number_of(move, "GAIN_PAGES") - pages) < 1e-3 * pages);
	assert_true(number_of(move, "METRIC") == number_of(move, "GAIN_PAGES"));
	assert_true(number_of(move, "RESIDENCY_AGE_S") == 0);
	assert_true(number_of(move, "LOAD_FROM") > 2.5 && number_of(move, "LOAD_TO") < 0.1);
	assert_true(number_of(move, "LOAD_GAP") > 2.5);
	assert_null(field_of(move, "TICKETS"));
	assert_non_null(strstr(move->text, ": load "));
	/* All accesses go to the pages that the prediction counts. */
	assert_true(predicted > 0.5 * pages);
	assert_true(has_field(verdict, "VERDICT", "improved"));
	assert_true(fabs(number_of(verdict, "PREDICTED_BENEFIT") - predicted) < 1e-3 * predicted);
	assert_true(fabs(number_of(verdict, "MEASURED_BENEFIT") - predicted) < 0.1 * predicted);
	assert_true(number_of(verdict, "ACCESS_COST_AFTER") == 1);
	assert_non_null(strstr(verdict->text, " (predicted "));
}

/* The program that was moved first makes almost no progress from then on. */
static void let_performance_fall(void)
{
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	config()->rules.moves_per_interval = 1;
	while (count_entries(0, NM_MESSAGE_DECISION) == 0)
		live_one();
	const char *tid = field_of(first_move(), "TID");
	for (size_t i = 0; i < world.nr_workers; i++)
		if (world.workers[i].tid == strtoul(tid, NULL, 10))
			world.workers[i].speed = 0.02;
	live(2);
}

/* With the rules of the papers. */
TEST(disabled_rollback_undoes_no_move)
{
	config()->rules.rollback = false;
	let_performance_fall();
	assert_true(has_field(verdict_of(first_move()), "VERDICT", "neutral"));
	assert_true(number_of(verdict_of(first_move()), "PERFORMANCE_LEFT") < 0.5);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
}

TEST(a_move_after_which_the_performance_fell_is_undone)
{
	let_performance_fall();
	assert_true(has_field(verdict_of(first_move()), "VERDICT", "rolled-back"));
	const struct nm_entry *back =
		find_entry(0, NM_MESSAGE_DECISION, "UNDOES", field_of(first_move(), "DECISION"));
	assert_non_null(back);
	assert_true(has_field(back, "RESULT", "applied") && has_field(back, "NODE_TO", "0"));
	assert_null(field_of(back, "SELECTION"));
	assert_true(nm_interval_s(&world.daemon) == 1);
}

/* ---- others ---- */

TEST(begin_and_end_of_balancing_are_logged)
{
	overload(6, 3);
	begin(NM_SELECTION_FIRST_FIT);
	settle(15);
	assert_int_equal(count_logged("Balancing nodes: loads differ"), 1);
	/* One thread per CPU, and two nodes with one idle CPU each. */
	config()->rules.balance_begin = config()->rules.balance_end = 1.5;
	live(3);
	assert_int_equal(count_logged("Balancing ended: "), 1);
	live(10);
	assert_int_equal(count_logged("Balancing "), 2);
}

/* A thread exits and its number is reused: metrics of the former thread do not apply to the new
 * one. */
TEST(a_reused_number_starts_without_history)
{
	overload(6, 3);
	begin(NM_SELECTION_FIRST_FIT);
	config()->rules.balance_persist = 1000;
	live(4);
	struct nm_column *threads = &nm_balancer_of(&world.daemon)->threads;
	const struct nm_balancer_thread_state *known = nm_column_find(threads, 1000);
	assert_true(known->read_interval == world.daemon.tally.intervals);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 6);
	threads->keys[0].start_ticks++;
	live(1);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 5);
	live(1);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 6);
}

TEST(a_policy_change_drops_the_state)
{
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	live(3);
	assert_non_null(nm_balancer_of(&world.daemon));
	nm_pipeline_reset_performance(&world.daemon);
	assert_null(nm_balancer_of(&world.daemon));
	config()->threads.policy = NM_POLICY_LBMA;
	live(3);
	assert_null(nm_balancer_of(&world.daemon));
}

static int load_a_node_per_cpu(void *context, struct nm_topology **ret)
{
	(void)context;
	*ret = machine_topology(CPUS, CPUS);
	return *ret ? 0 : -ENOMEM;
}

/* The state refers to the former nodes. */
TEST(nodes_that_change_begin_anew)
{
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	config()->rules.balance_persist = 1000;
	live(4);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 6);
	world.daemon.options.topology.load = load_a_node_per_cpu;
	world.fake->online &= ~fake_cpus(CPUS - 1, CPUS - 1);
	live(1);
	assert_int_equal(count_logged("CPUs changed; online: 0-6"), 1);
	assert_ptr_equal(nm_balancer_of(&world.daemon)->topology, world.daemon.pipeline.topology);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 0);
	live(2);
	assert_int_equal(nm_balancer_of(&world.daemon)->state.waiting, 6);
}

TEST(the_status_contains_balancing_metrics)
{
	overload(6, 0);
	begin(NM_SELECTION_FIRST_FIT);
	config()->rules.balance_persist = 10;
	live(4);
	show_document(nm_command_dump(&world.daemon), "status");
	assert_shown(0, "threads_waiting", "6");
	assert_true(fabs(shown_number(0, "load_gap") - 3) < 0.1);
	assert_shown(0, "selection", "first_fit");
	assert_shown(0, "dtas", "off");
	shown_clear();
}

RUN_TESTS()
