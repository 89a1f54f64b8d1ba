/* SPDX-License-Identifier: MIT */
/* Metrics as text: order, labels, numbers; and consistency with the manual page. */
#define SET_UP begin
#include "../support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <math.h>

#include "report/statistics.h"

#define PAGE NM_SOURCE_DIR "/man/numa-migrd-metrics.5"

static struct nm_statistics statistics;

static int begin(void **state)
{
	(void)state;
	statistics = (struct nm_statistics){.parts = 1U << NM_PART_SERVICE};
	statistics.service.version = statistics.service.source = "";
	statistics.service.policy = statistics.service.pages_policy = "";
	return 0;
}

static void assert_has(const char *expected)
{
	nm_autofree char *text = nm_statistics_metrics(&statistics, NULL, 0);
	if (!strstr(text, expected))
		fail_msg("no \"%s\" in:\n%s", expected, text);
}

/* All values of a metric follow its help text. */
TEST(test_text)
{
	statistics.parts |= 1U << NM_PART_PAGES | 1U << NM_PART_SOURCE;
	statistics.tally.verdicts[NM_VERDICT_IMPROVED] = 3;
	statistics.pages.verdicts[NM_VERDICT_IMPROVED] = 1000000000000;
	statistics.mover.call_ns = NM_NSEC_PER_SEC / 2;
	statistics.tally.cpu_share = 0.1;
	assert_has("\n# HELP numa_migrd_paused 1 while the service is paused: nothing is sampled, "
		   "and all affinities are restored.\n"
		   "# TYPE numa_migrd_paused gauge\n"
		   "numa_migrd_paused 0\n");
	assert_has("\n# HELP numa_migrd_verdicts_total Verdicts on decisions.\n"
		   "# TYPE numa_migrd_verdicts_total counter\n"
		   "numa_migrd_verdicts_total{of=\"threads\",verdict=\"improved\"} 3\n");
	assert_has("=\"inconclusive\"} 0\n"
		   "numa_migrd_verdicts_total{of=\"threads\",verdict=\"unverified\"} 0\n"
		   "numa_migrd_verdicts_total{of=\"pages\",verdict=\"improved\"} 1e+12\n");
	assert_has("\nnuma_migrd_overhead_ratio 0.1\n");
	assert_has("\nnuma_migrd_page_call_seconds_total 0.5\n");
	assert_has("\n# EOF\n");
}

/* Unavailable values are omitted, not 0; a metric without values has no header. */
TEST(test_unavailable)
{
	const struct nm_node_row nodes[] = {
		{.node = 0, .load = (double)NAN, .threads = -1, .access_share = (double)NAN},
		{.node = 7, .load = (double)INFINITY, .threads = -1, .access_share = (double)NAN},
	};
	statistics.parts |= 1U << NM_PART_TASKS;
	statistics.tally.local_share = (double)NAN;
	nm_autofree char *text = nm_statistics_metrics(&statistics, nodes, NM_ARRAY_SIZE(nodes));
	assert_null(strstr(text, "local_access"));
	assert_null(strstr(text, "node=\"0\""));
	assert_null(strstr(text, "numa_migrd_node_threads"));
	assert_null(strstr(text, "numa_migrd_pages_total"));
	assert_non_null(strstr(text, "numa_migrd_node_cpu_busy_ratio{node=\"7\"} +Inf\n"));
}

/* SECURITY: labels */
TEST(test_hostile_label)
{
	statistics.service.source = "a\"b\\c\nd";
	assert_has(",source=\"a\\\"b\\\\c\\nd\",");
}

static void assert_number(double value)
{
	statistics.service.resident_bytes = value;
	nm_autofree char *text = nm_statistics_metrics(&statistics, NULL, 0);
	const char *line = strstr(text, "\nnuma_migrd_resident_memory_bytes ");
	assert_non_null(line);
	assert_true(strtod(strchr(line, ' '), NULL) == value);
}

TEST(test_numbers)
{
	static const double numbers[] = {0,	  1,	1e-9,	    1.0 / 3, 123456789,
					 1.5e300, -2.5, 4294967296, 0.7,     9007199254740991};
	for (size_t i = 0; i < NM_ARRAY_SIZE(numbers); i++)
		assert_number(numbers[i]);
}

/* ---- names ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), wanted = strlen(end);
	return length > wanted && strcmp(name + length - wanted, end) == 0;
}

/* Returns the first row of the metric, before this one; NULL: this is the first. */
static const struct nm_statistic *first_of(const struct nm_statistic *row)
{
	for (const struct nm_statistic *at = nm_statistic_rows; at < row; at++)
		if (at->metric && strcmp(at->metric, row->metric) == 0)
			return at;
	return NULL;
}

/* The first row of a metric describes it; all rows have a value for each label. */
TEST_BETWEEN(NULL, NULL, test_names)
{
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const struct nm_statistic *row = &nm_statistic_rows[i], *first;
		if (!row->metric)
			continue;
		first = first_of(row);
		if (!first != (row->help != NULL))
			fail_msg("%s: its first row, and no other, has a help text", row->metric);
		first = first ? first : row;
		assert_int_equal(strspn(row->metric, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(row->metric));
		assert_true(ends_in(first->help, "."));
		assert_int_equal(strcspn(first->help, "\\\n"), strlen(first->help));
		for (unsigned k = 0; k < NM_METRIC_LABELS && row->type != NM_VALUE_NONE; k++)
			if (!row->of_node && !first->labels[k] != !row->values[k])
				fail_msg("%s: labels and their values differ", row->metric);
	}
}

static char *read_page(void)
{
	enum { MOST = 1 << 16 };
	FILE *file = fopen(PAGE, "r");
	char *page = calloc(1, MOST);
	if (!file || !page || fread(page, 1, MOST - 1, file) == 0 || fclose(file) != 0)
		fail_msg("%s cannot be read", PAGE);
	return page;
}

/* Each is documented with its kind, its labels and its help text. */
TEST_BETWEEN(NULL, NULL, test_manual_page)
{
	nm_autofree char *page = read_page();
	size_t items = 0, metrics = 0;
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const struct nm_statistic *row = &nm_statistic_rows[i];
		char expected[512], labels[128] = "";
		if (!row->help)
			continue;
		for (unsigned k = 0; k < NM_METRIC_LABELS && row->labels[k]; k++)
			(void)snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels),
				       "%s%s", k ? ", " : "; by ", row->labels[k]);
		(void)snprintf(expected, sizeof(expected), "\n.It Li %s Pq %s%s\n%s\n", row->metric,
			       ends_in(row->metric, "_total") ? "counter" : "gauge", labels,
			       row->help);
		metrics++;
		if (!strstr(page, expected))
			fail_msg("%s lacks:%s", PAGE, expected);
	}
	for (const char *at = page; (at = strstr(at, "\n.It Li numa_migrd_")) != NULL; at++)
		items++;
	assert_int_equal(items, metrics);
}

RUN_TESTS()
