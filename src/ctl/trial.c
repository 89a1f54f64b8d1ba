/* SPDX-License-Identifier: MIT */
/* A trial: for some time many processes are left alone, and compared with the others. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"

#define POLL_S 5

static const char caveat[] = "Both groups share this machine, so that each affects the other: this "
			     "is no comparison with\n"
			     "a machine without the service.\n";

/* Writes the text of a member; "" if it is missing. Returns whether there is one. */
static bool copy_text(const struct nm_ctl *ctl, const json_t *trial, const char *name,
		      char out[NM_CELL_SIZE])
{
	const char *text = json_string_value(json_object_get(trial, name));
	(void)nm_text_fit(out, NM_CELL_SIZE, text ? text : "", NM_TEXT_ANY_WIDTH, &ctl->style);
	return out[0] != '\0';
}

static long long number_of(const json_t *summary, const char *name)
{
	return (long long)json_integer_value(json_object_get(summary, name));
}

/* One line, on a terminal only. */
static void show_progress(const struct nm_ctl *ctl, const json_t *summary)
{
	char forecast[NM_CELL_SIZE];
	(void)copy_text(ctl, summary, "forecast", forecast);
	bool drawing = json_is_true(json_object_get(summary, "drawing"));
	if (!isatty(STDERR_FILENO))
		return;
	(void)fprintf(stderr, "\r\033[K%lld min left, %lld managed and %lld left alone%s%s%s",
		      (number_of(summary, "remaining_s") + 59) / 60,
		      number_of(summary, "managed_units"), number_of(summary, "control_units"),
		      drawing ? "" : "; waiting for the last ones", *forecast ? "; " : "",
		      forecast);
}

/* *ret gets the last document. A signal ends the trial, unless another client has begun it. */
static int follow(const struct nm_ctl *ctl, const sigset_t *signals, bool own, json_t **ret)
{
	bool interrupted = false;
	for (;;) {
		json_decref(NM_TAKE(*ret));
		int r = nm_ctl_fetch(NULL, ret);
		const json_t *trial = json_object_get(*ret, "trial");
		if (r != EXIT_SUCCESS || interrupted || number_of(trial, "remaining_s") == 0)
			return r;
		show_progress(ctl, trial);
		/* Without a signal the next poll follows after POLL_S. */
		const struct timespec wait = {.tv_sec = POLL_S};
		interrupted = sigtimedwait(signals, NULL, &wait) > 0;
		if (interrupted && own)
			r = nm_ctl_change("RaiseControl", "ud", 0U, 0.0);
		if (r != EXIT_SUCCESS)
			return r;
	}
}

/* Differences without an interval, which the table does not contain. */
static void print_conditions(const json_t *trial)
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
		const json_t *managed = json_object_get(trial, rows[i].managed);
		const json_t *alone = json_object_get(trial, rows[i].alone);
		if (json_is_number(managed) && json_is_number(alone))
			(void)printf("%s: %.3g%s managed, %.3g%s left alone.\n", rows[i].text,
				     rows[i].factor * json_number_value(managed), rows[i].unit,
				     rows[i].factor * json_number_value(alone), rows[i].unit);
	}
}

static int print_result(const struct nm_ctl *ctl, const json_t *document)
{
	json_t *trial = json_object_get(document, "trial");
	const json_t *programs = nm_ctl_rows(trial, &nm_program_table);
	char text[NM_CELL_SIZE];
	if (ctl->json)
		return nm_ctl_print_document("trial", json_incref(trial));
	if (json_array_size(programs) > 0) {
		nm_table_print(stdout, &ctl->style, &nm_program_table, programs);
		(void)fputc('\n', stdout);
	}
	print_conditions(trial);
	if (number_of(trial, "remaining_s") > 0)
		(void)printf("The trial continues: %lld min left.\n",
			     (number_of(trial, "remaining_s") + 59) / 60);
	if (copy_text(ctl, trial, "ended_early", text))
		(void)printf("The trial ended early: %s.\n", text);
	(void)copy_text(ctl, trial, "result", text);
	(void)printf("Result: %s.\n%s", text, caveat);
	if (!json_is_number(json_object_get(trial, "cpu_low")))
		(void)fputs("Programs that run for long have no comparison; their verdicts:\n"
			    "numa-migrctl decisions.\n",
			    stdout);
	return nm_ctl_close_output();
}

/* Returns whether no trial runs yet. */
static int find_running(bool *ret_own)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	int r = nm_ctl_fetch(NULL, &document);
	if (r == EXIT_SUCCESS)
		*ret_own = number_of(json_object_get(document, "trial"), "remaining_s") == 0;
	return r;
}

int nm_ctl_trial(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	sigset_t signals;
	bool own = true;
	(void)words;
	/* Blocked, so that the share is lowered again. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	int r = find_running(&own);
	if (r == EXIT_SUCCESS)
		r = nm_ctl_change("RaiseControl", "ud", ctl->minutes, (double)ctl->percent);
	if (r == EXIT_SUCCESS)
		r = follow(ctl, &signals, own, &document);
	if (isatty(STDERR_FILENO))
		(void)fputs("\r\033[K", stderr);
	if (r != EXIT_SUCCESS)
		return r;
	const json_t *cause = json_object_get(json_object_get(document, "trial"), "ended_early");
	r = print_result(ctl, document);
	/* The caller's own interrupt is no failure. */
	return r == EXIT_SUCCESS && cause &&
			       strcmp(json_string_value(cause) ?: "", "by command") != 0
		       ? EXIT_FAILURE
		       : r;
}
