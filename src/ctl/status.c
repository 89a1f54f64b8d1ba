/* SPDX-License-Identifier: MIT */
/* numa-migrctl status: the state of the service in a few lines. */
#include <math.h>
#include <time.h>

#include "ctl.h"

static json_int_t number_of(const json_t *status, const char *name)
{
	return json_integer_value(json_object_get(status, name));
}

/* Only policy "auto" places processes. */
static json_t *policy_text(const json_t *status)
{
	const char *end = json_is_true(json_object_get(status, "dry_run")) ? ", dry run" : "";
	const char *policy = json_string_value(json_object_get(status, "policy"));
	if (!policy)
		return NULL;
	if (!json_object_get(status, "processes_placed"))
		return json_sprintf("%s%s", policy, end);
	return json_sprintf("%s, processes placed: %lld%s", policy,
			    number_of(status, "processes_placed"), end);
}

static json_t *verdicts_text(const json_t *status)
{
	return json_sprintf(
		"%lld improved, %lld neutral, %lld worse, %lld rolled back, %lld cancelled, "
		"%lld inconclusive, %lld unverified",
		number_of(status, "verdicts_improved"), number_of(status, "verdicts_neutral"),
		number_of(status, "verdicts_worse"), number_of(status, "verdicts_rolled_back"),
		number_of(status, "verdicts_cancelled"), number_of(status, "verdicts_inconclusive"),
		number_of(status, "verdicts_unverified"));
}

static json_t *managed_text(const json_t *status)
{
	if (!json_object_get(status, "processes_managed"))
		return NULL;
	return json_sprintf("%lld processes with %lld threads",
			    number_of(status, "processes_managed"),
			    number_of(status, "threads_managed"));
}

/* A share of few accesses means little, so their number follows. */
static json_t *local_text(const json_t *status)
{
	const json_t *share = json_object_get(status, "local_share");
	if (!share)
		return NULL;
	return json_sprintf("%.0f %% of accesses; %lld samples so far",
			    100 * json_number_value(share), number_of(status, "samples"));
}

/* The time since the start of the service; NULL also if the clock was set back. */
static json_t *uptime_text(const json_t *status)
{
	const json_t *started = json_object_get(status, "started_s");
	double minutes = (double)(time(NULL) - (time_t)json_number_value(started)) / 60;
	if (!started || minutes < 0)
		return NULL;
	return json_sprintf("%.0f d %.0f h %.0f min", floor(minutes / (24 * 60)),
			    floor(fmod(minutes / 60, 24)), floor(fmod(minutes, 60)));
}

static json_t *cost_text(const json_t *status)
{
	const json_t *cost = json_object_get(status, "cpu_share");
	const json_t *limit = json_object_get(status, "overhead_percent");
	if (!cost)
		return NULL;
	return limit ? json_sprintf("%.2f %% of one CPU; sampling is reduced above %g %%",
				    100 * json_number_value(cost), json_number_value(limit))
		     : json_sprintf("%.2f %% of one CPU", 100 * json_number_value(cost));
}

static json_t *control_text(const json_t *status)
{
	const json_t *percent = json_object_get(status, "control_percent");
	return percent ? json_sprintf("%g %% of the processes are left alone, and compared",
				      json_number_value(percent))
		       : NULL;
}

static json_t *trial_text(const json_t *trial)
{
	const char *result = json_string_value(json_object_get(trial, "result"));
	char state[256];
	if (!nm_ctl_trial_has_run(trial))
		return NULL;
	nm_ctl_trial_state(trial, state, sizeof(state));
	return json_sprintf("%s; %s", state, result ? result : "no result");
}

/* Returns the lines for display, without those whose values are missing. */
static json_t *lines_of(const json_t *document)
{
	const json_t *status = json_object_get(document, "status");
	return json_pack(
		"{sO*so*sO*so*so*so*soso*so*sO*so*}", "state", json_object_get(status, "summary"),
		"running", uptime_text(status), "sampling", json_object_get(status, "source"),
		"policy", policy_text(status), "managed", managed_text(status), "local",
		local_text(status), "verdicts", verdicts_text(status), "cost", cost_text(status),
		"control", control_text(status), "today", json_object_get(status, "compared_today"),
		"trial", trial_text(json_object_get(document, "trial")));
}

int nm_ctl_status(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	(void)words;
	int r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	if (ctl->json)
		return nm_ctl_print_document("status",
					     json_incref(json_object_get(document, "status")));
	nm_auto(json_decrefp) json_t *lines = nm_must(lines_of(document));
	nm_ctl_print_lines(stdout, &ctl->style, lines);
	return nm_ctl_close_output();
}
