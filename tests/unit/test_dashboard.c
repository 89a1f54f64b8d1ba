/* SPDX-License-Identifier: MIT */
/* The dashboard queries existing metrics with expressions that Prometheus accepts. */
#define SET_UP load
#define TEAR_DOWN unload
#include "../support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "report/statistics.h"

#define DASHBOARD NM_SOURCE_DIR "/conf/grafana/numa-migrd.json"

typedef void (*expression_fn)(void *context, const char *title, const char *expression);

static int load(void **state)
{
	json_error_t error;
	json_t *dashboard = json_load_file(DASHBOARD, JSON_REJECT_DUPLICATES, &error);
	if (!dashboard) {
		print_error("%s:%d: %s\n", DASHBOARD, error.line, error.text);
		return -1;
	}
	*state = dashboard;
	return 0;
}

static int unload(void **state)
{
	json_decref(*state);
	return 0;
}

static size_t each_expression_is_valid(const json_t *dashboard, expression_fn each, void *context)
{
	size_t i, k, count = 0;
	json_t *panel, *target;
	json_array_foreach(json_object_get(dashboard, "panels"), i, panel)
	{
		const char *title = json_string_value(json_object_get(panel, "title"));
		assert_non_null(title);
		json_array_foreach(json_object_get(panel, "targets"), k, target)
		{
			const char *text = json_string_value(json_object_get(target, "expr"));
			if (!text) {
				fail_msg("panel \"%s\" has no expression", title);
				return 0;
			}
			each(context, title, text);
			count++;
		}
	}
	return count;
}

static bool is_metric(const char *name, size_t length)
{
	for (size_t i = 0; i < nm_statistic_count; i++) {
		const char *known = nm_statistic_rows[i].metric;
		if (known && strlen(known) == length && strncmp(known, name, length) == 0)
			return true;
	}
	return false;
}

static void check_names(void *context, const char *title, const char *expression)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	(void)context;
	for (const char *at = expression; (at = strstr(at, "numa_migrd_")) != NULL;) {
		size_t length = strspn(at, letters);
		if (!is_metric(at, length))
			fail_msg("panel \"%s\" asks for %.*s", title, (int)length, at);
		at += length;
	}
}

TEST(test_names)
{
	assert_true(each_expression_is_valid(*state, check_names, NULL) > 20);
}

/* Copies the expression and substitutes the variables as Grafana would. */
static void substitute(const char *expression, char *out, size_t size)
{
	static const char *const variables[][2] = {{"$__range", "1h"}, {"$instance", ".*"}};
	size_t used = 0;
	while (*expression && used + 8 < size) {
		size_t taken = 0;
		for (size_t i = 0; i < NM_ARRAY_SIZE(variables) && taken == 0; i++) {
			if (strncmp(expression, variables[i][0], strlen(variables[i][0])) != 0)
				continue;
			taken = strlen(variables[i][0]);
			used += (size_t)snprintf(out + used, size - used, "%s", variables[i][1]);
		}
		if (taken == 0)
			out[used++] = *expression;
		expression += taken ? taken : 1;
	}
	out[used] = '\0';
}

/* A recording rule for each; YAML accepts the strings of JSON. */
static void write_rule(void *context, const char *title, const char *expression)
{
	char text[1024];
	(void)title;
	substitute(expression, text, sizeof(text));
	json_t *quoted = json_string(text);
	char *dumped = json_dumps(quoted, JSON_ENCODE_ANY);
	assert_non_null(dumped);
	fprintf(context, "  - record: a:b\n    expr: %s\n    labels: {n: '%ld'}\n", dumped,
		ftell(context));
	free(dumped);
	json_decref(quoted);
}

TEST(test_expressions)
{
	char path[] = "/tmp/numa-migrd-rules-XXXXXX", command[128];
	if (system("command -v promtool >/dev/null") != 0) {
		print_message("promtool (Debian's package prometheus) is not installed\n");
		skip();
	}
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *file = fdopen(fd, "w");
	assert_non_null(file);
	fprintf(file, "groups:\n- name: panels\n  rules:\n");
	(void)each_expression_is_valid(*state, write_rule, file);
	assert_int_equal(fclose(file), 0);
	(void)snprintf(command, sizeof(command), "promtool check rules '%s' >&2", path);
	int status = system(command);
	(void)unlink(path);
	assert_int_equal(status, 0);
}

RUN_TESTS()
