/* SPDX-License-Identifier: MIT */
/* A trial: for some time many processes are left alone, and compared with the others. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"

#define POLL_S 5

static const struct nm_column columns[] = {
	{.key = "comm", .head = "COMMAND", .left = true},
	{.key = "managed_units", .head = "MANAGED"},
	{.key = "control_units", .head = "ALONE"},
	{.key = "cpu_change", .head = "CPU", .kind = NM_CELL_SHARE},
	{.key = "cpu_low", .head = "FROM", .kind = NM_CELL_SHARE},
	{.key = "cpu_high", .head = "TO", .kind = NM_CELL_SHARE},
	{.key = "elapsed_change", .head = "ELAPSED", .kind = NM_CELL_SHARE},
	{.key = "elapsed_low", .head = "FROM", .kind = NM_CELL_SHARE},
	{.key = "elapsed_high", .head = "TO", .kind = NM_CELL_SHARE},
	{.key = "state", .head = "STATE", .left = true},
};

static const char caveat[] =
	"Both groups share this machine, so that each affects the other: this is no comparison with\n"
	"a machine without the service.\n";

static const char *text_of(const json_t *summary, const char *name)
{
	const char *text = json_string_value(json_object_get(summary, name));
	return text ? text : "";
}

static long long number_of(const json_t *summary, const char *name)
{
	return (long long)json_integer_value(json_object_get(summary, name));
}

/* One line, on a terminal only. */
static void show_progress(const json_t *summary)
{
	const char *forecast = text_of(summary, "forecast");
	bool drawing = json_is_true(json_object_get(summary, "drawing"));
	if (!isatty(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r\033[K%lld min left, %lld managed and %lld left alone%s%s%s",
		      (number_of(summary, "remaining_s") + 59) / 60,
		      number_of(summary, "managed_units"), number_of(summary, "control_units"),
		      drawing ? "" : "; waiting for the last ones", *forecast ? "; " : "", forecast);
}

/* Waits until a signal of the set comes. Returns true then, and false after POLL_S. */
static bool is_interrupted(const sigset_t *signals)
{
	const struct timespec wait = {.tv_sec = POLL_S};
	return sigtimedwait(signals, NULL, &wait) > 0;
}

/* *ret gets the last answer, an array of summary and programs. */
static int follow(const sigset_t *signals, json_t **ret)
{
	bool interrupted = false;
	for (;;) {
		json_decref(NM_TAKE(*ret));
		int r = nm_ctl_ask_once("Trial", NM_RIGHT_READ, ret, "");
		if (r != EXIT_SUCCESS || interrupted ||
		    number_of(json_array_get(*ret, 0), "remaining_s") == 0)
			return r;
		show_progress(json_array_get(*ret, 0));
		interrupted = is_interrupted(signals);
		if (interrupted) {
			nm_auto(json_decrefp) json_t *nothing = NULL;
			r = nm_ctl_ask_once("RaiseControl", NM_RIGHT_STEER, &nothing, "ud", 0U,
					    0.0);
		}
		if (r != EXIT_SUCCESS)
			return r;
	}
}

/* Differences without an interval, which the table does not contain. */
static void print_conditions(const json_t *summary)
{
	static const struct {
		const char *text, *managed, *alone, *unit;
		double factor;
	} rows[] = {
		{"Local accesses", "managed_local", "control_local", " %", 100},
		{"Distance of accesses", "managed_distance", "control_distance", "", 1},
		{"Waiting for a CPU, of CPU time", "managed_waiting", "control_waiting", " %", 100},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(rows); i++) {
		const json_t *managed = json_object_get(summary, rows[i].managed);
		const json_t *alone = json_object_get(summary, rows[i].alone);
		if (json_is_number(managed) && json_is_number(alone))
			(void)printf("%s: %.3g%s managed, %.3g%s left alone.\n", rows[i].text,
				     rows[i].factor * json_number_value(managed), rows[i].unit,
				     rows[i].factor * json_number_value(alone), rows[i].unit);
	}
}

static int print_result(const struct nm_ctl *ctl, const json_t *answer)
{
	const json_t *summary = json_array_get(answer, 0), *programs = json_array_get(answer, 1);
	if (ctl->json)
		return nm_ctl_print_pair("trial", summary, "programs", programs);
	if (json_array_size(programs) > 0) {
		nm_table_print(stdout, &ctl->style, columns, NM_ARRAY_SIZE(columns), programs);
		(void)fputc('\n', stdout);
	}
	print_conditions(summary);
	(void)printf("Result: %s.\n%s", text_of(summary, "result"), caveat);
	if (!json_is_number(json_object_get(summary, "cpu_low")))
		(void)fputs("Programs that run for long have no comparison; their verdicts:\n"
			    "numa-migrctl decisions.\n",
			    stdout);
	return nm_ctl_close_output();
}

int nm_ctl_trial(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *nothing = NULL;
	nm_auto(json_decrefp) json_t *answer = NULL;
	sigset_t signals;
	(void)words;
	/* Blocked, so that the share is lowered again. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	int r = nm_ctl_ask_once("RaiseControl", NM_RIGHT_STEER, &nothing, "ud", ctl->minutes,
				(double)ctl->percent);
	if (r == EXIT_SUCCESS)
		r = follow(&signals, &answer);
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
	return r == EXIT_SUCCESS ? print_result(ctl, answer) : r;
}
