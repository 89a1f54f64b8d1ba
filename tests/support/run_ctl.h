/* SPDX-License-Identifier: MIT */
/* Runs the numa-migrctl built beside the test. Include after cmocka.h and bus_fixture.h. */
#ifndef NM_TEST_RUN_CTL_H
#define NM_TEST_RUN_CTL_H

#include <sysexits.h>

#include "run_program.h"

#define CTL "src/ctl/numa-migrctl"

/* Returns its path; skips the test if it was not built. */
static inline void ctl_path(char *path, size_t size)
{
	program_path(CTL, path, size);
	need(access(path, X_OK) == 0, "numa-migrctl is not built");
}

static inline int ctl(const char *arguments, char *text, size_t size)
{
	return run_program(CTL, arguments, text, size);
}

static inline void assert_ctl(const char *arguments, int status, const char *says)
{
	assert_program(CTL, arguments, status, says);
}

/*
 * A command, its exit status, and all that it prints, in which a … stands for any text. The name
 * of the program before an error is left out.
 */
struct ctl_row {
	const char *command;
	int status;
	const char *prints;
};

/* Returns whether all parts of the pattern, between its …, are in the text in this order. */
static inline bool ctl_matches(const char *text, const char *pattern)
{
	const char *rest = strstr(pattern, "…");
	if (!rest)
		return strcmp(text, pattern) == 0;
	if (strncmp(text, pattern, (size_t)(rest - pattern)) != 0)
		return false;
	text += rest - pattern;
	pattern = rest + strlen("…");
	for (; *text && !ctl_matches(text, pattern); text++)
		continue;
	return ctl_matches(text, pattern);
}

static inline void check_ctl(const struct ctl_row *row)
{
	char text[16384], expected[4096];
	const int status = ctl(row->command, text, sizeof(text));
	const bool error = row->status != 0 && *row->prints;
	const bool whole = strncmp(row->prints, "…", strlen("…")) != 0;
	(void)snprintf(expected, sizeof(expected), "%s%s%s", error && whole ? "numa-migrctl: " : "",
		       row->prints,
		       row->status == EX_USAGE ? "\nTry: numa-migrctl --help\n"
		       : error		       ? "\n"
					       : "");
	if (status != row->status || !ctl_matches(text, expected))
		fail_msg("%s: exit %d: \"%s\"\n\texpected %d: \"%s\"", row->command, status, text,
			 row->status, expected);
}

static inline int begin_ctl(void **state, bus_server_fn service)
{
	(void)setenv("LC_ALL", "C.UTF-8", 1);
	(void)setenv("TZ", "UTC", 1);
	return setup(state, open_policy, service);
}

/* A test of these commands, with a service or without one. */
#define CTL_TEST(name, service, ...)                                                               \
	static int name##_begin(void **state)                                                      \
	{                                                                                          \
		return begin_ctl(state, service);                                                  \
	}                                                                                          \
	TEST_BETWEEN(name##_begin, teardown, name)                                                 \
	{                                                                                          \
		static const struct ctl_row rows[] = {__VA_ARGS__};                                \
		need_bus(state);                                                                   \
		EACH_ROW(row, rows)                                                                \
		check_ctl(row);                                                                    \
	}

#endif
