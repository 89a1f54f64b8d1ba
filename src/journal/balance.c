/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "balance.h"
#include "say.h"

static const char *const sources[] = {
	[NM_RESIDENCY_NONE] = "none",	   [NM_RESIDENCY_ACCESSES] = "accesses",
	[NM_RESIDENCY_QUERY] = "query",	   [NM_RESIDENCY_CGROUP] = "cgroup",
	[NM_RESIDENCY_MAPS] = "numa_maps",
};

/* Negative is better of a cost, and more is of a benefit. */
static double benefit(const struct nm_balance_reason *reason)
{
	return -reason->cost_change;
}

static void say_choice(struct nm_entry *entry, const struct nm_balance_reason *reason)
{
	const char *rule = nm_selection_name(reason->selection);
	char metric[NM_WORD_BYTES];
	if (reason->by == NM_SELECTED_BY_LEADER)
		nm_entry_say(entry,
			     "; \"%s\" took it, as its process's first thread, or while that rests "
			     "most of its memory, is there",
			     rule);
	else if (isnan(reason->metric))
		nm_entry_say(entry, "; \"%s\" took it", rule);
	else
		nm_entry_say(entry, "; \"%s\" took it by %s", rule,
			     nm_say_figure(reason->metric, metric));
}

static void say_pages(struct nm_entry *entry, const struct nm_balance_reason *reason,
		      const char *there, const char *here)
{
	char gain[NM_WORD_BYTES], error[NM_WORD_BYTES], all[NM_WORD_BYTES], saved[NM_WORD_BYTES];
	if (isnan(reason->gain)) {
		nm_entry_say(entry, "; where its process's pages are is not known");
		return;
	}
	nm_entry_say(
		entry,
		"; of %s pages of its process %s (\xc2\xb1 %s) more are on %s than on %s, as %s "
		"told %.0f s ago; one access to each is to cost %s local ones less",
		nm_say_figure(reason->resident, all), nm_say_figure(reason->gain, gain),
		nm_say_figure(reason->gain_error, error), there, here, sources[reason->source],
		reason->age_s, nm_say_figure(benefit(reason), saved));
}

void nm_say_balance(struct nm_entry *entry, const struct nm_entry_context *context,
		    const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	const struct nm_step *step = &decision->steps[0];
	char there[NM_WORD_BYTES], here[NM_WORD_BYTES];
	nm_entry_say(entry, ": it waited, with a load of %.2f on its CPU and %.2f on CPU %d",
		     reason->load_from, reason->load_to, step->cpu_to);
	say_choice(entry, reason);
	say_pages(entry, reason, nm_say_node(context, step->node_to, there),
		  nm_say_node(context, step->node_from, here));
}

static void prediction_fields(struct nm_entry *entry, const struct nm_balance_reason *reason)
{
	nm_field_figure(entry, "PREDICTED_BENEFIT", benefit(reason));
	nm_field_figure(entry, "RESIDENT_PAGES", reason->resident);
}

void nm_balance_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	nm_entry_field(entry, "SELECTION", "%s", nm_selection_name(reason->selection));
	nm_entry_field(entry, "SELECTED_BY", "%s",
		       reason->by == NM_SELECTED_BY_LEADER ? "leader" : "rule");
	nm_field_figure(entry, "METRIC", reason->metric);
	nm_field_figure(entry, "LOAD", reason->load);
	nm_field_figure(entry, "LOAD_FROM", reason->load_from);
	nm_field_figure(entry, "LOAD_TO", reason->load_to);
	nm_field_figure(entry, "LOAD_GAP", reason->gap);
	nm_field_figure(entry, "GAIN_PAGES", reason->gain);
	nm_field_figure(entry, "GAIN_ERROR_PAGES", reason->gain_error);
	nm_entry_field(entry, "RESIDENCY", "%s", sources[reason->source]);
	nm_field_figure(entry, "RESIDENCY_AGE_S", reason->age_s);
	nm_field_figure(entry, "ACCESS_COST", decision->steps[0].access_cost_before);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	prediction_fields(entry, reason);
}

void nm_say_balance_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	char before[NM_WORD_BYTES], after[NM_WORD_BYTES], told[NM_WORD_BYTES],
		measured[NM_WORD_BYTES];
	nm_entry_say(entry,
		     "; an access cost %s local ones before, %s now: over its process's pages a "
		     "benefit of %s, where %s was predicted",
		     nm_say_figure(thread->access_cost_before, before),
		     nm_say_figure(thread->access_cost_after, after),
		     nm_say_figure(verdict->measured_benefit, measured),
		     nm_say_figure(benefit(&verdict->balance), told));
}

void nm_balance_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_figure(entry, "ACCESS_COST_BEFORE", verdict->threads[0].access_cost_before);
	nm_field_figure(entry, "ACCESS_COST_AFTER", verdict->threads[0].access_cost_after);
	nm_field_figure(entry, "MEASURED_BENEFIT", verdict->measured_benefit);
	prediction_fields(entry, &verdict->balance);
}
