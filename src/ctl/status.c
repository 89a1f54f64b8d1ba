/* SPDX-License-Identifier: MIT */
/* numa-migrctl status: the state of the service in a few lines. */
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

/* Returns the lines for display, without those whose values are missing. */
static json_t *lines_of(const json_t *status)
{
	const json_t *cost = json_object_get(status, "cpu_share");
	return json_pack("{sO*sO*so*so*so*soso*sO*}", "state", json_object_get(status, "summary"),
			 "sampling", json_object_get(status, "source"), "policy",
			 policy_text(status), "managed", managed_text(status), "local",
			 local_text(status), "verdicts", verdicts_text(status), "cost",
			 cost ? json_sprintf("%.2f %% of one CPU", 100 * json_number_value(cost))
			      : NULL,
			 "today", json_object_get(status, "compared_today"));
}

int nm_ctl_status(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *document = NULL;
	(void)words;
	int r = nm_ctl_fetch(NULL, &document);
	if (r != EXIT_SUCCESS)
		return r;
	json_t *status = json_object_get(document, "status");
	if (ctl->json)
		return nm_ctl_print_document("status", json_incref(status));
	nm_auto(json_decrefp) json_t *lines = nm_must(lines_of(status));
	nm_ctl_print_lines(stdout, &ctl->style, lines);
	return nm_ctl_close_output();
}
