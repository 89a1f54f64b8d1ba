/* SPDX-License-Identifier: MIT */
/* Selection of a thread: tables and figures of kMLB and of thread-aware exclusivity, and ties. */
#define SET_UP begin
#include "../support/test.h"

#include <math.h>

#include "../support/machine.h"
#include "numa-migrd/base.h"
#include "policy/policy.h"

enum { NODES = 4, MOST = 8, FROM = 0, TO = 1 };

/* Groups and threads on the source CPU, as a test draws them. */
static struct drawing {
	double resident[MOST][NODES];
	uint32_t members[MOST][NODES];
	struct nm_selection_group groups[MOST];
	struct nm_selection_candidate candidates[MOST];
	size_t nr_groups, count;
	bool judged[MOST];
	double min_gain;
	bool paper; /* pages do not replace a leader */
} drawing;

static int begin(void **state)
{
	(void)state;
	drawing = (struct drawing){.min_gain = -INFINITY};
	return 0;
}

static uint32_t add_group(int leader_node, double here, double there, double elsewhere)
{
	size_t i = drawing.nr_groups++;
	drawing.resident[i][FROM] = here;
	drawing.resident[i][TO] = there;
	drawing.resident[i][2] = elsewhere;
	drawing.groups[i] = (struct nm_selection_group){.resident = drawing.resident[i],
							.members = drawing.members[i],
							.leader_node = leader_node};
	return (uint32_t)i;
}

static void spread(uint32_t group, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const uint32_t members[NODES] = {a, b, c, d};
	memcpy(drawing.members[group], members, sizeof(members));
}

static void add_thread(uint32_t group, bool leader)
{
	drawing.candidates[drawing.count++] =
		(struct nm_selection_candidate){.group = group, .leader = leader};
}

/* A program of one thread, for which rules about leaders do not matter. */
static void add_task(double here, double there)
{
	uint32_t group = add_group(FROM, here, there, 0);
	spread(group, 1, 0, 0, 0);
	add_thread(group, true);
}

static struct nm_selection_result choose(enum nm_selection rule)
{
	const struct nm_selection_input input = {.rule = rule,
						 .nr_nodes = NODES,
						 .from = FROM,
						 .to = TO,
						 .min_gain = drawing.min_gain,
						 .pages_lead = !drawing.paper,
						 .groups = drawing.groups,
						 .candidates = drawing.candidates,
						 .nr_candidates = drawing.count,
						 .judged = drawing.judged};
	struct nm_selection_result result = nm_selection_choose(&input);
	for (size_t i = 0; i < MOST; i++)
		assert_false(drawing.judged[i]);
	return result;
}

static void expect(enum nm_selection rule, size_t chosen, double metric)
{
	struct nm_selection_result result = choose(rule);
	assert_int_equal(result.reason, NM_SELECTED_BY_RULE);
	assert_int_equal(result.chosen, chosen);
	assert_true(isnan(metric) ? isnan(result.metric) : result.metric == metric);
}

static void expect_no_choice(enum nm_selection rule)
{
	struct nm_selection_result result = choose(rule);
	assert_int_equal(result.reason, NM_SELECTED_NONE);
	assert_true(isnan(result.metric) && isnan(result.gain));
}

/* ---- rules by pages ---- */

/* Exclusivity, figure 2 and table 1. */
TEST(test_table_1)
{
	enum { TASK_3, TASK_9, TASK_10 };
	add_task(3, 7);
	add_task(3, 3);
	add_task(5, 10);
	expect(NM_SELECTION_FIRST_FIT, TASK_3, NAN);
	expect(NM_SELECTION_TOTAL_MIN, TASK_9, 6);
	expect(NM_SELECTION_REMOTE_MIN, TASK_3, 3);
	expect(NM_SELECTION_LOCAL_MAX, TASK_10, 10);
	expect(NM_SELECTION_MOST_BENEFIT, TASK_10, 5);
	expect(NM_SELECTION_COST_EFFECTIVE, TASK_3, 4.0 / 3);
	assert_true(choose(NM_SELECTION_FIRST_FIT).gain == 4);
	assert_int_equal(choose(NM_SELECTION_MOST_BENEFIT).evaluated, 3);
	assert_int_equal(choose(NM_SELECTION_FIRST_FIT).evaluated, 1);
}

/*
 * kMLB, figures 11 to 14. Their text gives the chosen thread and its number (2 pages on the source
 * node, 7 on the other, 6 in total); the other values are ours.
 */
TEST(test_kmlb_figures)
{
	add_task(5, 7);
	add_task(3, 3);
	add_task(2, 5);
	expect(NM_SELECTION_FIRST_FIT, 0, NAN);
	expect(NM_SELECTION_REMOTE_MIN, 2, 2);
	expect(NM_SELECTION_LOCAL_MAX, 0, 7);
	expect(NM_SELECTION_TOTAL_MIN, 1, 6);
}

TEST(test_no_remaining_pages_is_best)
{
	add_task(0, 0);
	add_task(1, 1000);
	expect(NM_SELECTION_COST_EFFECTIVE, 1, 999);
	add_task(0, 2);
	add_task(0, 3);
	add_task(0, 3);
	expect(NM_SELECTION_COST_EFFECTIVE, 3, INFINITY);
}

TEST(test_process_without_pages_has_no_benefit)
{
	add_task(4, 2);
	add_task(0, 0);
	expect(NM_SELECTION_COST_EFFECTIVE, 1, 0);
}

/* ---- invariants of all rules ---- */

static const enum nm_selection every_rule[] = {
	NM_SELECTION_FIRST_FIT,	       NM_SELECTION_TOTAL_MIN,	  NM_SELECTION_REMOTE_MIN,
	NM_SELECTION_LOCAL_MAX,	       NM_SELECTION_MOST_BENEFIT, NM_SELECTION_COST_EFFECTIVE,
	NM_SELECTION_EXCLUSIVITY_BASE, NM_SELECTION_EXCLUSIVITY,  NM_SELECTION_MOST_BENEFIT_PLUS,
};

TEST(test_gain_below_the_least_is_refused)
{
	spread(add_group(2, 6, 3, 10), 1, 0, 1, 0);
	spread(add_group(TO, 6, 3, 10), 1, 1, 0, 0);
	add_thread(0, false);
	add_thread(1, false);
	for (size_t i = 0; i < NM_ARRAY_SIZE(every_rule); i++) {
		drawing.min_gain = -3;
		assert_int_not_equal(choose(every_rule[i]).reason, NM_SELECTED_NONE);
		drawing.min_gain = -2;
		expect_no_choice(every_rule[i]);
		assert_int_equal(choose(every_rule[i]).stopped_by_gain, 2);
	}
}

TEST(test_unknown_pages)
{
	spread(add_group(2, 0, 0, 0), 1, 0, 1, 0);
	drawing.groups[0].resident = NULL;
	add_thread(0, false);
	for (size_t i = 0; i < NM_ARRAY_SIZE(every_rule); i++) {
		bool asks = every_rule[i] != NM_SELECTION_FIRST_FIT &&
			    every_rule[i] != NM_SELECTION_EXCLUSIVITY_BASE &&
			    every_rule[i] != NM_SELECTION_EXCLUSIVITY;
		drawing.min_gain = -INFINITY;
		struct nm_selection_result result = choose(every_rule[i]);
		assert_int_equal(result.reason, asks ? NM_SELECTED_NONE : NM_SELECTED_BY_RULE);
		assert_int_equal(result.unknown, asks);
		assert_true(isnan(result.gain));
		drawing.min_gain = -1e300;
		expect_no_choice(every_rule[i]);
	}
}

/* ---- exclusivity ---- */

/* Figure 9 and table 3a: a leader and tasks 4 and 5 of one group, task 10 of another. */
TEST(test_figure_9)
{
	enum { LEADER, TASK_4, TASK_5, TASK_10 };
	uint32_t hexagon = add_group(FROM, 8, 2, 0), rectangle = add_group(2, 8, 2, 0);
	spread(hexagon, 4, 1, 0, 0);
	spread(rectangle, 1, 1, 2, 1);
	add_thread(hexagon, true);
	add_thread(hexagon, false);
	add_thread(hexagon, false);
	add_thread(rectangle, false);
	assert_true(nm_selection_exclusivity(drawing.members[hexagon], NODES) == 0.8);
	expect(NM_SELECTION_EXCLUSIVITY_BASE, TASK_10, 0.4);
	expect(NM_SELECTION_EXCLUSIVITY, TASK_10, 0.4);
	assert_int_equal(choose(NM_SELECTION_EXCLUSIVITY_BASE).evaluated, 4);
	assert_int_equal(choose(NM_SELECTION_EXCLUSIVITY).stopped_by_leader, 3);
}

/* Figure 7 and table 3b; leaders: pentagon here, rectangle there, the other two elsewhere. */
enum { PENTAGON, RECTANGLE, SHAPE, HEXAGON };

static void draw_figure_7(bool with_task_11)
{
	add_group(FROM, 6, 2, 1);
	add_group(TO, 2, 6, 1);
	add_group(2, 2, 2, 6);
	add_group(3, 1, 3, 6);
	spread(PENTAGON, 3, 1, 0, 0);
	spread(RECTANGLE, 1, 2, 1, 1);
	spread(SHAPE, 2, 0, 2, 1);
	spread(HEXAGON, 2, 0, 0, 3);
	add_thread(PENTAGON, false);
	if (with_task_11)
		add_thread(RECTANGLE, false);
	add_thread(SHAPE, false);   /* 19 */
	add_thread(HEXAGON, false); /* 6 */
	add_thread(SHAPE, false);   /* 16 */
	add_thread(HEXAGON, false); /* 9 */
}

TEST(test_table_3b)
{
	draw_figure_7(true);
	const double expected[] = {3.0 / 4, 2.0 / 5, 2.0 / 5, 3.0 / 5};
	for (unsigned i = 0; i < 4; i++)
		assert_true(nm_selection_exclusivity(drawing.members[i], NODES) == expected[i]);
	expect(NM_SELECTION_EXCLUSIVITY_BASE, 1, 0.4);
	assert_int_equal(choose(NM_SELECTION_EXCLUSIVITY_BASE).evaluated, 6);
}

TEST(test_figure_7_joins_the_leader_at_once)
{
	const enum nm_selection enhanced[] = {NM_SELECTION_EXCLUSIVITY,
					      NM_SELECTION_MOST_BENEFIT_PLUS};
	draw_figure_7(true);
	for (unsigned i = 0; i < 2; i++) {
		struct nm_selection_result result = choose(enhanced[i]);
		assert_int_equal(result.reason, NM_SELECTED_BY_LEADER);
		assert_int_equal(result.chosen, 1);
		assert_int_equal(result.evaluated, 0);
		assert_true(isnan(result.metric));
		assert_true(result.gain == 4);
	}
}

TEST(test_figure_7_then_evaluates_one_of_each_group)
{
	draw_figure_7(false);
	expect(NM_SELECTION_EXCLUSIVITY, 1, 0.4); /* task 19 */
	struct nm_selection_result result = choose(NM_SELECTION_EXCLUSIVITY);
	assert_int_equal(result.evaluated, 2);
	assert_int_equal(result.stopped_by_leader, 1);
	expect(NM_SELECTION_MOST_BENEFIT_PLUS, 2, 2); /* task 6 */
	assert_int_equal(choose(NM_SELECTION_MOST_BENEFIT_PLUS).evaluated, 2);
	assert_int_equal(choose(NM_SELECTION_MOST_BENEFIT).evaluated, 5);
}

/* Figure 10: two groups at 0.8, one of which has its leader and its pages on the other node. */
TEST(test_figure_10)
{
	uint32_t rectangle = add_group(FROM, 8, 2, 0), hexagon = add_group(TO, 2, 8, 0);
	spread(rectangle, 4, 1, 0, 0);
	spread(hexagon, 4, 1, 0, 0);
	add_thread(rectangle, false);
	add_thread(hexagon, false);
	expect(NM_SELECTION_EXCLUSIVITY_BASE, 0, 0.8);
	struct nm_selection_result result = choose(NM_SELECTION_EXCLUSIVITY);
	assert_int_equal(result.reason, NM_SELECTED_BY_LEADER);
	assert_int_equal(result.chosen, 1);
}

/* A leader that has exited is replaced by the pages. */
TEST(test_leader_gone)
{
	uint32_t group = add_group(-1, 7, 2, 1);
	spread(group, 2, 1, 1, 0);
	add_thread(group, false);
	expect_no_choice(NM_SELECTION_EXCLUSIVITY);
	drawing.resident[group][TO] = 8;
	assert_int_equal(choose(NM_SELECTION_EXCLUSIVITY).reason, NM_SELECTED_BY_LEADER);
	drawing.resident[group][2] = 9;
	expect(NM_SELECTION_EXCLUSIVITY, 0, 0.5);
	drawing.groups[group].resident = NULL;
	expect(NM_SELECTION_EXCLUSIVITY, 0, 0.5);
}

/* Exclusivity, 3.2.2: without a leader no node is that of the leader. */
TEST(test_leader_gone_in_the_paper)
{
	drawing.paper = true;
	uint32_t group = add_group(-1, 7, 8, 1);
	spread(group, 2, 1, 1, 0);
	add_thread(group, false);
	expect(NM_SELECTION_EXCLUSIVITY, 0, 0.5);
	drawing.resident[group][FROM] = 9;
	expect(NM_SELECTION_EXCLUSIVITY, 0, 0.5);
}

TEST(test_leader_node)
{
	const double pages[NODES] = {1, 5, 5, 0}, none[NODES] = {0};
	struct nm_selection_group group = {.resident = pages, .leader_node = 3};
	assert_int_equal(nm_selection_leader_node(&group, NODES), 3);
	group.leader_node = -1;
	assert_int_equal(nm_selection_leader_node(&group, NODES), 1);
	group.resident = none;
	assert_int_equal(nm_selection_leader_node(&group, NODES), -1);
	group.resident = NULL;
	assert_int_equal(nm_selection_leader_node(&group, NODES), -1);
}

TEST(test_exclusivity_is_between_even_and_alone)
{
	const uint32_t even[NODES] = {3, 3, 3, 3}, alone[NODES] = {0, 0, 7, 0}, none[NODES] = {0};
	assert_true(nm_selection_exclusivity(even, NODES) == 1.0 / NODES);
	assert_true(nm_selection_exclusivity(alone, NODES) == 1);
	assert_true(isnan(nm_selection_exclusivity(none, NODES)));
}

/* ---- any threads ---- */

/* The rules as published; the highest value is chosen. */
static double printed_metric(enum nm_selection rule, const double *pages, const uint32_t *members)
{
	double sum = 0, most = 0, threads = 0;
	for (unsigned k = 0; k < NODES; k++) {
		sum += pages[k];
		threads += members[k];
		most = members[k] > most ? members[k] : most;
	}
	switch (rule) {
	case NM_SELECTION_TOTAL_MIN:
		return -sum;
	case NM_SELECTION_REMOTE_MIN:
		return -pages[FROM];
	case NM_SELECTION_LOCAL_MAX:
		return pages[TO];
	case NM_SELECTION_MOST_BENEFIT:
	case NM_SELECTION_MOST_BENEFIT_PLUS:
		return pages[TO] - pages[FROM];
	case NM_SELECTION_COST_EFFECTIVE:
		return (pages[TO] - pages[FROM]) / pages[FROM];
	case NM_SELECTION_EXCLUSIVITY_BASE:
	case NM_SELECTION_EXCLUSIVITY:
		return -most / threads;
	default:
		return 0;
	}
}

/* Returns the first of the best threads of any group, or MOST for none. */
static size_t search(enum nm_selection rule)
{
	bool enhanced = rule == NM_SELECTION_EXCLUSIVITY || rule == NM_SELECTION_MOST_BENEFIT_PLUS;
	size_t best = MOST;
	double most = 0;
	for (size_t i = 0; i < drawing.count; i++) {
		const struct nm_selection_candidate *candidate = &drawing.candidates[i];
		const double *pages = drawing.resident[candidate->group];
		int leader = drawing.groups[candidate->group].leader_node;
		double metric = printed_metric(rule, pages, drawing.members[candidate->group]);
		if (pages[TO] - pages[FROM] < drawing.min_gain)
			continue;
		if (enhanced && (candidate->leader || leader == FROM))
			continue;
		if (enhanced && leader == TO)
			return i;
		if (best == MOST || metric > most) {
			best = i;
			most = metric;
		}
	}
	return best;
}

static uint32_t below(struct nm_rng *dice, uint32_t bound)
{
	return (uint32_t)nm_rng_below(dice, bound);
}

static void draw_group(struct nm_rng *dice)
{
	uint32_t group = add_group((int)below(dice, NODES), 0, 0, 0);
	for (unsigned k = 0; k < NODES; k++) {
		drawing.resident[group][k] = (k == FROM) + below(dice, 6);
		drawing.members[group][k] = (k == FROM) + below(dice, 3);
	}
}

static void draw(struct nm_rng *dice)
{
	(void)begin(NULL);
	for (unsigned i = 1 + below(dice, 4); i > 0; i--)
		draw_group(dice);
	while (drawing.count < MOST) {
		uint32_t group = below(dice, (uint32_t)drawing.nr_groups);
		add_thread(group, below(dice, 5) == 0);
	}
	if (below(dice, 2))
		drawing.min_gain = (double)below(dice, 6) - 3;
}

TEST(test_the_first_best_candidate_is_chosen)
{
	struct nm_rng dice;
	nm_rng_seed(&dice, 7);
	for (unsigned i = 0; i < 3000; i++) {
		draw(&dice);
		for (size_t k = 0; k < NM_ARRAY_SIZE(every_rule); k++) {
			struct nm_selection_result result = choose(every_rule[k]);
			size_t expected = search(every_rule[k]);
			assert_true((result.reason == NM_SELECTED_NONE) == (expected == MOST));
			if (expected < MOST)
				assert_int_equal(result.chosen, expected);
		}
	}
}

/* ---- cost of access ---- */

TEST(test_cost_of_table_1)
{
	const double factors[4] = {1, 1.6, 1.6, 1};
	const double task_10[2] = {5, 10};
	double change = nm_selection_cost_change(task_10, factors, 2, 0, 1);
	assert_true(fabs(change - (-3)) < 1e-9);
	assert_true(isnan(nm_selection_cost_change(NULL, factors, 2, 0, 1)));
}

/* Equations 1 to 3 as published, but for unequal distances. */
static double total_cost(const double *pages, const uint32_t *threads, const double *factors)
{
	double cost = 0;
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++)
			cost += threads[i] * pages[j] * factors[i * NODES + j];
	return cost;
}

TEST(test_cost_is_the_difference_of_totals)
{
	const double pages[NODES] = {12, 3, 40, 7};
	const double factors[NODES * NODES] = {1, 2,   3, 2.5, 2,   1, 1.5, 3,
					       3, 1.5, 1, 2,   2.5, 3, 2,   1};
	for (int from = 0; from < NODES; from++)
		for (int to = 0; to < NODES; to++) {
			uint32_t threads[NODES] = {3, 1, 4, 2};
			double before = total_cost(pages, threads, factors);
			threads[from]--;
			threads[to]++;
			double change = total_cost(pages, threads, factors) - before;
			double predicted =
				nm_selection_cost_change(pages, factors, NODES, from, to);
			assert_true(fabs(predicted - change) < 1e-9);
		}
}

TEST(test_factors_are_relative_to_local)
{
	struct nm_topology *topology = machine_topology(2, 2);
	double factors[4];
	assert_non_null(topology);
	topology->distance[1] = 16;
	topology->distance[2] = 21;
	nm_selection_factors(topology, factors);
	nm_topology_free(topology);
	assert_true(factors[0] == 1 && factors[1] == 1.6 && factors[2] == 2.1 && factors[3] == 1);
}

RUN_TESTS()
