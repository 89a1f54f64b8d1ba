/* SPDX-License-Identifier: MIT */
/* A trial: for some time many processes are left alone, and compared with the others. The daemon
 * carries it out and keeps its result. */
#include <inttypes.h>
#include <string.h>

#include "cell.h"
#include "ctl.h"

#define WINDOW_MINUTES 10 /* NM_TRIAL_WINDOW_MINUTES of the daemon */

static const char legend[] =
	"A unit is one process, or several drawn together: a parent and its children, or children "
	"of\n"
	"one parent with the same command. It is managed or left alone as a whole. CPU and "
	"ELAPSED\n"
	"are the change of the time from the first decision to exit; FROM and TO enclose the true\n"
	"change with a probability of 95 %, whenever you look.\n";

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

static long long minutes_left(const json_t *trial)
{
	return (json_integer_value(json_object_get(trial, "remaining_s")) + 59) / 60;
}

bool nm_ctl_trial_has_run(const json_t *trial)
{
	return json_number_value(json_object_get(trial, "control_percent")) > 0;
}

void nm_ctl_trial_state(const json_t *trial, char *out, size_t size)
{
	const char *early = json_string_value(json_object_get(trial, "ended_early"));
	long long left = minutes_left(trial);
	double percent = json_number_value(json_object_get(trial, "control_percent"));
	if (left > 0 && json_is_true(json_object_get(trial, "drawing")))
		(void)snprintf(out, size,
			       "running, %lld min left, draws processes for %lld min more; %g %% "
			       "are left alone",
			       left, left - WINDOW_MINUTES, percent);
	else if (left > 0)
		(void)snprintf(out, size,
			       "running, %lld min left, waits for the last processes; %g %% were "
			       "left alone",
			       left, percent);
	else
		(void)snprintf(out, size, "over%s%s; %g %% of the processes were left alone",
			       early ? ", ended early: " : "", early ? early : "", percent);
}

static int print_result(const struct nm_ctl *ctl, const json_t *document)
{
	json_t *trial = json_object_get(document, "trial");
	const json_t *programs = nm_ctl_rows(trial, &nm_program_table);
	char text[NM_CELL_SIZE], state[NM_CELL_SIZE];
	if (ctl->json)
		return nm_ctl_print_document("trial", json_incref(trial));
	if (!nm_ctl_trial_has_run(trial)) {
		(void)puts("There was no trial since numa-migrd started: numa-migrctl trial start");
		return nm_ctl_close_output();
	}
	nm_ctl_trial_state(trial, text, sizeof(text));
	(void)nm_text_fit(state, sizeof(state), text, NM_TEXT_ANY_WIDTH, &ctl->style);
	(void)copy_text(ctl, trial, "result", text);
	(void)printf("Trial: %s.\nResult: %s.\n", state, text);
	if (copy_text(ctl, trial, "forecast", text))
		(void)printf("Outlook: %s.\n", text);
	if (json_array_size(programs) > 0) {
		(void)fputc('\n', stdout);
		nm_table_print(stdout, &ctl->style, &nm_program_table, programs);
	}
	(void)printf("\n%s%s", legend, caveat);
	if (!json_is_number(json_object_get(trial, "cpu_low")))
		(void)fputs("Programs that run for long are not compared; for a service:\n"
			    "numa-migrctl trial service UNIT --measure COMMAND.\n",
			    stdout);
	return nm_ctl_close_output();
}

static int show(const struct nm_ctl *ctl)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	int r = nm_ctl_fetch(NULL, &document);
	return r == EXIT_SUCCESS ? print_result(ctl, document) : r;
}

static int start(const struct nm_ctl *ctl)
{
	int r = nm_ctl_change("RaiseControl", "ud", ctl->minutes, (double)ctl->percent);
	if (r != EXIT_SUCCESS || ctl->json)
		return r == EXIT_SUCCESS ? nm_ctl_done(ctl, "trial started") : r;
	(void)printf("The trial takes %" PRIu32 " min: %" PRIu32
		     " %% of the processes that start in the first %" PRIu32 " min are\n"
		     "left alone, for at most %d min each. It continues without this terminal; the "
		     "result is kept\nuntil the next trial: numa-migrctl trial status, or "
		     "journalctl -t numa-migrd KIND=trial.\n",
		     ctl->minutes, ctl->percent, ctl->minutes - WINDOW_MINUTES, WINDOW_MINUTES);
	return nm_ctl_close_output();
}

static int stop(const struct nm_ctl *ctl)
{
	int r = nm_ctl_change("RaiseControl", "ud", 0U, 0.0);
	return r == EXIT_SUCCESS ? show(ctl) : r;
}

int nm_ctl_trial(const struct nm_ctl *ctl, char *const *words)
{
	static const struct {
		const char *word;
		int (*run)(const struct nm_ctl *ctl);
	} actions[] = {{"status", show}, {"start", start}, {"stop", stop}};
	const char *word = words[0] ? words[0] : "status";
	bool service = strcmp(word, "service") == 0;
	if (service && !words[1])
		return nm_ctl_wrong_usage("trial service needs a unit", NULL);
	if (!service && words[0] && words[1])
		return nm_ctl_wrong_usage("one argument too many", words[1]);
	if (!service && (ctl->measure || ctl->periods_given))
		return nm_ctl_wrong_usage("--measure, --periods and --seconds go with trial "
					  "service, not with trial",
					  word);
	if (service)
		return ctl->trial_given
			       ? nm_ctl_wrong_usage("--minutes and --percent go with trial start, "
						    "not with trial",
						    word)
			       : nm_ctl_trial_service(ctl, words[1]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(actions); i++)
		if (strcmp(actions[i].word, word) == 0)
			return ctl->trial_given && actions[i].run != start
				       ? nm_ctl_wrong_usage("--minutes and --percent go with trial "
							    "start, not with trial",
							    word)
				       : actions[i].run(ctl);
	return nm_ctl_wrong_usage("trial must be start, status, stop or service", word);
}
