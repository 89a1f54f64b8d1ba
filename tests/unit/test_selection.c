/* SPDX-License-Identifier: MIT */
/* Selection of a thread: tables and figures of kMLB and of thread-aware exclusivity, and ties. */
#define SET_UP begin
#include "../support/test.h"

#include <math.h>

#include "../support/machine.h"
#include "../support/script.h"
#include "numa-migrd/base.h"
#include "policy/policy.h"

enum { NODES = 4, MOST = 8, FROM = 0, TO = 1 };

/* Groups and threads on the source CPU, as a test draws them. */
static struct drawing {
	double resident[MOST][NODES];
	uint32_t members[MOST][NODES];
	struct nm_selection_group groups[MOST];
	struct nm_selection_candidate candidates[MOST];
	uint32_t nr_groups;
	size_t count;
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

static void add_group(int leader_node)
{
	const uint32_t i = drawing.nr_groups++;
	drawing.groups[i] = (struct nm_selection_group){.resident = drawing.resident[i],
							.members = drawing.members[i],
							.leader_node = leader_node};
}

static void add_thread(uint32_t group, bool leader)
{
	drawing.candidates[drawing.count++] =
		(struct nm_selection_candidate){.group = group, .leader = leader};
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

/* ---- words ---- */

/* pages GROUP 6 2 1 0: on each node; nan: not known */
WORD(pages)
{
	const uint32_t group = U(0);
	for (unsigned k = 0; k < NODES; k++)
		drawing.resident[group][k] = N(1 + k);
	if (isnan(N(1)))
		drawing.groups[group].resident = NULL;
}

/* members GROUP 3 1 0 0: threads on each node */
WORD(members)
{
	for (unsigned k = 0; k < NODES; k++)
		drawing.members[U(0)][k] = U(1 + k);
}

/* task 3 7: a program of one thread, for which rules about leaders do not matter */
WORD(task)
{
	add_thread(drawing.nr_groups, true);
	drawing.members[drawing.nr_groups][FROM] = 1;
	drawing.resident[drawing.nr_groups][FROM] = N(0);
	drawing.resident[drawing.nr_groups][TO] = N(1);
	add_group(FROM);
}

/* threads 0 0 1: of these groups, which are no leaders */
WORD(threads)
{
	for (unsigned i = 0; i < step->count; i++)
		add_thread(U(i), false);
}

ACTION(group_led_on, add_group((int)N(0)))
ACTION(leader, add_thread(U(0), true))
ACTION(as_in_the_paper, drawing.paper = true)
KNOB(min_gain, drawing.min_gain)
QUANTITY(share, nm_selection_exclusivity(drawing.members[U(0)], NODES))
QUANTITY(leader_node, nm_selection_leader_node(&drawing.groups[U(0)], NODES))

/*
 * All fields, without counts of 0 and without NaN: "3, metric 0.4, gain -6, of 4" is the
 * fourth thread, after four were evaluated; "joins 3" is by its leader. "stay": for their leaders,
 * "lose": because of their gain.
 */
static const char *result_of(enum nm_selection rule)
{
	static const char *const names[] = {"metric", "gain", "of", "stay", "lose", "unknown"};
	static char text[256];
	const struct nm_selection_result result = choose(rule);
	const double values[] = {result.metric,		 result.gain,
				 result.evaluated,	 result.stopped_by_leader,
				 result.stopped_by_gain, result.unknown};
	int used = snprintf(text, sizeof(text), "%s%zu",
			    result.reason == NM_SELECTED_BY_LEADER ? "joins " : "", result.chosen);
	if (result.reason == NM_SELECTED_NONE)
		used = snprintf(text, sizeof(text), "none");
	for (size_t i = 0; i < NM_ARRAY_SIZE(values); i++)
		if (!isnan(values[i]) && (i < 2 || values[i] > 0))
			used += snprintf(text + used, sizeof(text) - (size_t)used, ", %s %.6g",
					 names[i], values[i]);
	return text;
}

TEXT(first_fit, result_of(NM_SELECTION_FIRST_FIT))
TEXT(total_min, result_of(NM_SELECTION_TOTAL_MIN))
TEXT(remote_min, result_of(NM_SELECTION_REMOTE_MIN))
TEXT(local_max, result_of(NM_SELECTION_LOCAL_MAX))
TEXT(most_benefit, result_of(NM_SELECTION_MOST_BENEFIT))
TEXT(cost_effective, result_of(NM_SELECTION_COST_EFFECTIVE))
TEXT(exclusivity_base, result_of(NM_SELECTION_EXCLUSIVITY_BASE))
TEXT(exclusivity, result_of(NM_SELECTION_EXCLUSIVITY))
TEXT(most_benefit_plus, result_of(NM_SELECTION_MOST_BENEFIT_PLUS))

/* ---- rules by pages ---- */

/* Exclusivity, figure 2 and table 1: tasks 3, 9 and 10. */
SCRIPT(test_table_1, "task 3 7; task 3 3; task 5 10", "first_fit = 0, gain 4, of 1",
       "total_min = 1, metric 6, gain 0, of 3", "remote_min = 0, metric 3, gain 4, of 3",
       "local_max = 2, metric 10, gain 5, of 3", "most_benefit = 2, metric 5, gain 5, of 3",
       "cost_effective = 0, metric 1.33333, gain 4, of 3")

/*
 * kMLB, figures 11 to 14. Their text gives the chosen thread and its number (2 pages on the source
 * node, 7 on the other, 6 in total); the other values are ours.
 */
SCRIPT(test_kmlb_figures, "task 5 7; task 3 3; task 2 5", "first_fit = 0, gain 2, of 1",
       "remote_min = 2, metric 2, gain 3, of 3", "local_max = 0, metric 7, gain 2, of 3",
       "total_min = 1, metric 6, gain 0, of 3")

SCRIPT(test_no_remaining_pages_is_best, "task 0 0; task 1 1000",
       "cost_effective = 1, metric 999, gain 999, of 2", "task 0 2; task 0 3; task 0 3",
       "cost_effective = 3, metric inf, gain 3, of 5")

SCRIPT(test_process_without_pages_has_no_benefit, "task 4 2; task 0 0",
       "cost_effective = 1, metric 0, gain 0, of 2")

/* ---- invariants of all rules ---- */

SCRIPT(test_gain_below_the_least_is_refused, "group_led_on 2; pages 0 6 3 10 0; members 0 1 0 1 0",
       "group_led_on 1; pages 1 6 3 10 0; members 1 1 1 0 0; threads 0 1", "set min_gain = -3",
       "first_fit = 0, gain -3, of 1", "total_min = 0, metric 19, gain -3, of 2",
       "remote_min = 0, metric 6, gain -3, of 2", "local_max = 0, metric 3, gain -3, of 2",
       "most_benefit = 0, metric -3, gain -3, of 2",
       "cost_effective = 0, metric -0.5, gain -3, of 2",
       "exclusivity_base = 0, metric 0.5, gain -3, of 2", "exclusivity = joins 1, gain -3, of 1",
       "most_benefit_plus = joins 1, gain -3, of 1", "set min_gain = -2",
       "first_fit = none, lose 2", "total_min = none, lose 2", "remote_min = none, lose 2",
       "local_max = none, lose 2", "most_benefit = none, lose 2", "cost_effective = none, lose 2",
       "exclusivity_base = none, lose 2", "exclusivity = none, lose 2",
       "most_benefit_plus = none, lose 2")

SCRIPT(test_unknown_pages, "group_led_on 2; pages 0 nan 0 0 0; members 0 1 0 1 0; threads 0",
       "first_fit = 0, of 1", "total_min = none, unknown 1", "remote_min = none, unknown 1",
       "local_max = none, unknown 1", "most_benefit = none, unknown 1",
       "cost_effective = none, unknown 1", "exclusivity_base = 0, metric 0.5, of 1",
       "exclusivity = 0, metric 0.5, of 1", "most_benefit_plus = none, unknown 1",
       "set min_gain = -1e300", "first_fit = none, unknown 1", "total_min = none, unknown 1",
       "remote_min = none, unknown 1", "local_max = none, unknown 1",
       "most_benefit = none, unknown 1", "cost_effective = none, unknown 1",
       "exclusivity_base = none, unknown 1", "exclusivity = none, unknown 1",
       "most_benefit_plus = none, unknown 1")

/* ---- exclusivity ---- */

/* Figure 9 and table 3a: a leader and tasks 4 and 5 of one group, task 10 of another. */
SCRIPT(test_figure_9,
       "group_led_on 0; pages 0 8 2 0 0; members 0 4 1 0 0; group_led_on 2; pages 1 8 2 0 0; "
       "members 1 1 1 2 1",
       "leader 0; threads 0 0 1; share 0 = 0.8", "exclusivity_base = 3, metric 0.4, gain -6, of 4",
       "exclusivity = 3, metric 0.4, gain -6, of 1, stay 3")

/* Figure 7 and table 3b; leaders: pentagon here, rectangle there, the other two elsewhere. */
#define FIGURE_7                                                                                   \
	"group_led_on 0; pages 0 6 2 1 0; members 0 3 1 0 0",                                      \
		"group_led_on 1; pages 1 2 6 1 0; members 1 1 2 1 1",                              \
		"group_led_on 2; pages 2 2 2 6 0; members 2 2 0 2 1",                              \
		"group_led_on 3; pages 3 1 3 6 0; members 3 2 0 0 3"

/* The threads are tasks 11, 19, 6, 16 and 9 after one of the pentagon. */
SCRIPT(test_table_3b, FIGURE_7, "threads 0 1 2 3 2 3",
       "share 0 = 0.75; share 1 = 0.4; share 2 = 0.4; share 3 = 0.6",
       "exclusivity_base = 1, metric 0.4, gain 4, of 6")

SCRIPT(test_figure_7_joins_the_leader_at_once, FIGURE_7, "threads 0 1 2 3 2 3",
       "exclusivity = joins 1, gain 4, stay 1", "most_benefit_plus = joins 1, gain 4, stay 1")

/* Without task 11. */
SCRIPT(test_figure_7_then_evaluates_one_of_each_group, FIGURE_7, "threads 0 2 3 2 3",
       "exclusivity = 1, metric 0.4, gain 0, of 2, stay 1",
       "most_benefit_plus = 2, metric 2, gain 2, of 2, stay 1",
       "most_benefit = 2, metric 2, gain 2, of 5")

/* Figure 10: two groups at 0.8, one of which has its leader and its pages on the other node. */
SCRIPT(test_figure_10,
       "group_led_on 0; pages 0 8 2 0 0; members 0 4 1 0 0; group_led_on 1; pages 1 2 8 0 0; "
       "members 1 4 1 0 0",
       "threads 0 1", "exclusivity_base = 0, metric 0.8, gain -6, of 2",
       "exclusivity = joins 1, gain 6, stay 1")

/* A leader that has exited is replaced by the pages. */
SCRIPT(test_leader_gone, "group_led_on -1; members 0 2 1 1 0; threads 0",
       "pages 0 7 2 1 0; exclusivity = none, stay 1",
       "pages 0 7 8 1 0; exclusivity = joins 0, gain 1",
       "pages 0 7 8 9 0; exclusivity = 0, metric 0.5, gain 1, of 1",
       "pages 0 nan 0 0 0; exclusivity = 0, metric 0.5, of 1")

/* Exclusivity, 3.2.2: without a leader no node is that of the leader. */
SCRIPT(test_leader_gone_in_the_paper,
       "as_in_the_paper; group_led_on -1; members 0 2 1 1 0; threads 0",
       "pages 0 7 8 1 0; exclusivity = 0, metric 0.5, gain 1, of 1",
       "pages 0 9 8 1 0; exclusivity = 0, metric 0.5, gain -1, of 1")

SCRIPT(test_leader_node, "group_led_on 3; pages 0 1 5 5 0; leader_node 0 = 3",
       "group_led_on -1; pages 1 1 5 5 0; leader_node 1 = 1",
       "pages 1 0 0 0 0; leader_node 1 = -1; pages 1 nan 0 0 0; leader_node 1 = -1")

SCRIPT(test_exclusivity_is_between_even_and_alone,
       "members 0 3 3 3 3; share 0 = 0.25; members 0 0 0 7 0; share 0 = 1",
       "members 0 0 0 0 0; share 0 = nan")

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
	const double gain = pages[TO] - pages[FROM];
	const double metrics[NM_SELECTION_MAX] = {
		[NM_SELECTION_TOTAL_MIN] = -sum,
		[NM_SELECTION_REMOTE_MIN] = -pages[FROM],
		[NM_SELECTION_LOCAL_MAX] = pages[TO],
		[NM_SELECTION_MOST_BENEFIT] = gain,
		[NM_SELECTION_MOST_BENEFIT_PLUS] = gain,
		[NM_SELECTION_COST_EFFECTIVE] = gain / pages[FROM],
		[NM_SELECTION_EXCLUSIVITY_BASE] = -most / threads,
		[NM_SELECTION_EXCLUSIVITY] = -most / threads,
	};
	return metrics[rule];
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

static void draw(struct nm_rng *dice)
{
	(void)begin(NULL);
	for (uint32_t i = 0, count = 1 + below(dice, 4); i < count; i++) {
		add_group((int)below(dice, NODES));
		for (unsigned k = 0; k < NODES; k++) {
			drawing.resident[i][k] = (k == FROM) + below(dice, 6);
			drawing.members[i][k] = (k == FROM) + below(dice, 3);
		}
	}
	while (drawing.count < MOST) {
		uint32_t group = below(dice, drawing.nr_groups);
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
		for (enum nm_selection rule = 0; rule < NM_SELECTION_MAX; rule++) {
			struct nm_selection_result result = choose(rule);
			size_t expected = search(rule);
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
	const double accesses[2] = {3, 1}, none[2] = {0};
	double factors[4];
	assert_non_null(topology);
	topology->distance[1] = 16;
	topology->distance[2] = 21;
	nm_selection_factors(topology, factors);
	const double near = nm_selection_access_cost(topology, accesses, 0);
	const double nowhere = nm_selection_access_cost(topology, none, 0);
	nm_topology_free(topology);
	assert_true(factors[0] == 1 && factors[1] == 1.6 && factors[2] == 2.1 && factors[3] == 1);
	assert_true(fabs(near - (3 + 1.6) / 4) < 1e-9);
	assert_true(isnan(nowhere));
}

RUN_TESTS()
