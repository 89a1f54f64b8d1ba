/* SPDX-License-Identifier: MIT */
/* Metrics as text: order, labels, numbers; and consistency with the manual page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "numa-migrd/statistics.h"

#define PAGE NM_SOURCE_DIR "/man/numa-migrd-metrics.5"

static void test_text(void **state)
{
	struct nm_export out = {0};
	(void)state;
	nm_export_put(&out, NM_METRIC_PAUSED, NULL, 0);
	nm_export_put(&out, NM_METRIC_VERDICTS, NM_LABELS("threads", "improved"), 3);
	nm_export_put(&out, NM_METRIC_VERDICTS, NM_LABELS("pages", "improved"), 1e12);
	nm_export_put(&out, NM_METRIC_OVERHEAD, NULL, 0.1);
	assert_int_equal(nm_export_finish(&out), 0);
	const char *paused = nm_metric_kind(NM_METRIC_PAUSED)->help;
	const char *verdicts = nm_metric_kind(NM_METRIC_VERDICTS)->help;
	const char *overhead = nm_metric_kind(NM_METRIC_OVERHEAD)->help;
	char expected[2048];
	(void)snprintf(expected, sizeof(expected),
		       "# HELP numa_migrd_paused %s\n"
		       "# TYPE numa_migrd_paused gauge\n"
		       "numa_migrd_paused 0\n"
		       "# HELP numa_migrd_verdicts_total %s\n"
		       "# TYPE numa_migrd_verdicts_total counter\n"
		       "numa_migrd_verdicts_total{of=\"threads\",verdict=\"improved\"} 3\n"
		       "numa_migrd_verdicts_total{of=\"pages\",verdict=\"improved\"} 1e+12\n"
		       "# HELP numa_migrd_overhead_ratio %s\n"
		       "# TYPE numa_migrd_overhead_ratio gauge\n"
		       "numa_migrd_overhead_ratio 0.1\n"
		       "# EOF\n",
		       paused, verdicts, overhead);
	assert_string_equal(out.text, expected);
	assert_int_equal(out.length, strlen(expected));
	nm_export_clear(&out);
}

/* Unavailable values are omitted, not 0; a metric without values has no header. */
static void test_unavailable(void **state)
{
	struct nm_export out = {0};
	(void)state;
	nm_export_put(&out, NM_METRIC_LOCAL, NULL, (double)NAN);
	nm_export_put(&out, NM_METRIC_NODE_BUSY, NM_LABELS("0"), (double)NAN);
	nm_export_put(&out, NM_METRIC_NODE_BUSY, NM_LABELS("1"), (double)INFINITY);
	assert_int_equal(nm_export_finish(&out), 0);
	assert_null(strstr(out.text, "local_access"));
	assert_null(strstr(out.text, "node=\"0\""));
	assert_non_null(strstr(out.text, "numa_migrd_node_cpu_busy_ratio{node=\"1\"} +Inf\n"));
	nm_export_clear(&out);
}

/* SECURITY: labels */
static void test_hostile_label(void **state)
{
	struct nm_export out = {0};
	(void)state;
	nm_export_put(&out, NM_METRIC_PROCESSES, NM_LABELS("a\"b\\c\nd"), 1);
	assert_int_equal(nm_export_finish(&out), 0);
	assert_non_null(strstr(out.text, "{state=\"a\\\"b\\\\c\\nd\"} 1\n"));
	nm_export_clear(&out);
}

static void assert_number(double value)
{
	struct nm_export out = {0};
	nm_export_put(&out, NM_METRIC_RESIDENT, NULL, value);
	assert_int_equal(nm_export_finish(&out), 0);
	const char *line = strstr(out.text, "\nnuma_migrd_resident_memory_bytes ");
	assert_non_null(line);
	assert_true(strtod(strchr(line, ' '), NULL) == value);
	nm_export_clear(&out);
}

static void test_numbers(void **state)
{
	static const double numbers[] = {0,	  1,	1e-9,	    1.0 / 3, 123456789,
					 1.5e300, -2.5, 4294967296, 0.7,     9007199254740991};
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(numbers); i++)
		assert_number(numbers[i]);
}

/* Readers would reject a family whose values are not contiguous. */
static void test_order(void **state)
{
	struct nm_export out = {0};
	(void)state;
	nm_export_put(&out, NM_METRIC_LEASES, NULL, 1);
	nm_export_put(&out, NM_METRIC_PAUSED, NULL, 1);
	assert_int_equal(nm_export_finish(&out), -EINVAL);
	nm_export_clear(&out);
}

/* ---- names ---- */

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), wanted = strlen(end);
	return length > wanted && strcmp(name + length - wanted, end) == 0;
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NM_METRIC_MAX; i++) {
		const struct nm_metric_kind *kind = nm_metric_kind((enum nm_metric)i);
		assert_non_null(kind->name);
		assert_true(strncmp(kind->name, "numa_migrd_", strlen("numa_migrd_")) == 0);
		assert_int_equal(strspn(kind->name, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(kind->name));
		if (ends_in(kind->name, "_total") != kind->counter)
			fail_msg("%s: counters, and only these, end in _total", kind->name);
		assert_true(ends_in(kind->help, "."));
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(kind->name,
						nm_metric_kind((enum nm_metric)k)->name);
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
static void test_manual_page(void **state)
{
	nm_autofree char *page = read_page();
	size_t items = 0;
	(void)state;
	for (unsigned i = 0; i < NM_METRIC_MAX; i++) {
		const struct nm_metric_kind *kind = nm_metric_kind((enum nm_metric)i);
		char expected[512], labels[128] = "";
		for (unsigned k = 0; k < NM_METRIC_LABELS && kind->labels[k]; k++)
			(void)snprintf(labels + strlen(labels), sizeof(labels) - strlen(labels),
				       "%s%s", k ? ", " : "; by ", kind->labels[k]);
		(void)snprintf(expected, sizeof(expected), "\n.It Li %s Pq %s%s\n%s\n", kind->name,
			       kind->counter ? "counter" : "gauge", labels, kind->help);
		if (!strstr(page, expected))
			fail_msg("%s lacks:%s", PAGE, expected);
	}
	for (const char *at = page; (at = strstr(at, "\n.It Li numa_migrd_")) != NULL; at++)
		items++;
	assert_int_equal(items, NM_METRIC_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	      cmocka_unit_test(test_unavailable),
		cmocka_unit_test(test_hostile_label), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_order),	      cmocka_unit_test(test_names),
		cmocka_unit_test(test_manual_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
