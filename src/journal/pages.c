/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "say.h"

static const char *const reason_names[] = {
	[NM_PAGE_REASON_PAGES] = "pages",
	[NM_PAGE_REASON_REGION] = "region",
	[NM_PAGE_REASON_CONTENTION] = "contention",
	[NM_PAGE_REASON_ROLLBACK] = "rollback",
};

/* ---- the decision ---- */

static void say_node_or_several(struct nm_entry *entry, const struct nm_entry_context *context,
				int node)
{
	char word[NM_WORD_BYTES];
	nm_entry_say(entry, "%s", node < 0 ? "several nodes" : nm_say_node(context, node, word));
}

static void say_reason(struct nm_entry *entry, const struct nm_page_decision *decision)
{
	char share[NM_WORD_BYTES];
	nm_say_percent(decision->exclusivity, share);
	switch (decision->reason) {
	case NM_PAGE_REASON_PAGES:
		nm_entry_say(entry, ": each is accessed most from there (%s of their accesses)",
			     share);
		return;
	case NM_PAGE_REASON_REGION:
		nm_entry_say(entry, ": %s of the accesses to their range come from there", share);
		return;
	case NM_PAGE_REASON_CONTENTION:
		nm_entry_say(entry,
			     ": several nodes use their range, and one node serves too much of all "
			     "accesses");
		return;
	case NM_PAGE_REASON_ROLLBACK:
		nm_entry_say(entry, ": undoes decision %lu", (unsigned long)decision->undoes);
		return;
	}
}

static void decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_page_decision *decision)
{
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)decision->id);
	nm_entry_field(entry, "INTERVAL", "%lu", (unsigned long)decision->interval);
	nm_entry_field(entry, "PID", "%u", decision->pid);
	nm_entry_field(entry, "COMM", "%s", decision->comm);
	nm_field_node(entry, context, "NODE_FROM", decision->node_from);
	nm_field_node(entry, context, "NODE_TO", decision->node_to);
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)decision->pages);
	nm_entry_field(entry, "BYTES", "%lu", (unsigned long)decision->bytes);
	nm_entry_field(entry, "REASON", "%s", reason_names[decision->reason]);
	nm_field_permille(entry, "EXCLUSIVITY_PERMILLE", decision->exclusivity);
	if (decision->reason == NM_PAGE_REASON_ROLLBACK)
		nm_entry_field(entry, "UNDOES", "%lu", (unsigned long)decision->undoes);
}

void nm_entry_page_decision(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_page_decision *decision)
{
	nm_entry_begin(entry, NM_MESSAGE_PAGES, LOG_INFO);
	decision_fields(entry, context, decision);
	nm_entry_field(entry, "RESULT", "%s", context->dry_run ? "dry-run" : "asked");
	nm_entry_say(entry, "%s %lu page%s (", context->dry_run ? "would move" : "moving",
		     (unsigned long)decision->pages, decision->pages == 1 ? "" : "s");
	nm_say_size(entry, decision->bytes);
	nm_entry_say(entry, ") of %s[%u] from ", decision->comm, decision->pid);
	say_node_or_several(entry, context, decision->node_from);
	nm_entry_say(entry, " to ");
	say_node_or_several(entry, context, decision->node_to);
	entry->reason = strlen(entry->text);
	say_reason(entry, decision);
	nm_entry_say(entry, " (decision %lu)", (unsigned long)decision->id);
}

/* ---- the verdict ---- */

static void say_count(struct nm_entry *entry, const char *name, uint64_t count, const char *words)
{
	if (count == 0)
		return;
	nm_entry_field(entry, name, "%lu", (unsigned long)count);
	nm_entry_say(entry, ", %lu %s", (unsigned long)count, words);
}

static void say_results(struct nm_entry *entry, const struct nm_page_results *results)
{
	uint64_t told = results->busy + results->gone + results->denied + results->no_memory +
			results->fault;
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)results->moved);
	nm_entry_say(entry, "%lu moved", (unsigned long)results->moved);
	say_count(entry, "PAGES_ELSEWHERE", results->elsewhere,
		  "not where they were or there already");
	say_count(entry, "PAGES_REFUSED", results->refused, "left alone");
	say_count(entry, "PAGES_UNTRIED", results->untried, "not tried");
	say_count(entry, "PAGES_EBUSY", results->busy, "busy");
	say_count(entry, "PAGES_ENOENT", results->gone, "not present");
	say_count(entry, "PAGES_EACCES", results->denied, "shared with other processes");
	say_count(entry, "PAGES_ENOMEM", results->no_memory, "without room on the node");
	say_count(entry, "PAGES_EFAULT", results->fault, "of zeros or not mapped");
	say_count(entry, "PAGES_FAILED", results->failed > told ? results->failed - told : 0,
		  "failed otherwise");
	say_count(entry, "PAGES_FORGOTTEN", results->forgotten,
		  "of which it is not remembered where they were");
	nm_field_errno(entry, results->error);
	if (results->error < 0)
		nm_entry_say(entry, " (%s)", nm_say_error(results->error));
}

static void say_effect(struct nm_entry *entry, const struct nm_page_verdict *verdict)
{
	char before[NM_WORD_BYTES], after[NM_WORD_BYTES], left[NM_WORD_BYTES];
	const struct nm_feedback_change *change = &verdict->performance;
	nm_entry_say(entry, "; local share of the process %s before, %s now",
		     nm_say_percent(verdict->local_before, before),
		     nm_say_percent(verdict->local_after, after));
	nm_field_permille(entry, "LOCAL_SHARE_BEFORE_PERMILLE", verdict->local_before);
	nm_field_permille(entry, "LOCAL_SHARE_AFTER_PERMILLE", verdict->local_after);
	nm_entry_field(entry, "ACCESSES", "%lu", (unsigned long)verdict->accesses_after);
	if (!isfinite(change->figure))
		return;
	nm_entry_say(entry, ", %s of its performance left", nm_say_percent(change->figure, left));
	nm_field_figure(entry, "PERFORMANCE_BEFORE", change->before);
	nm_field_figure(entry, "PERFORMANCE_AFTER", change->after);
	nm_field_figure(entry, "PERFORMANCE_LEFT", change->figure);
	nm_field_permille(entry, "NOISE_PERMILLE", 1 - exp(-change->noise));
}

void nm_entry_page_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_page_verdict *verdict)
{
	static const char *const heads[] = {
		[NM_VERDICT_IMPROVED] = "improved",	    [NM_VERDICT_NEUTRAL] = "neutral",
		[NM_VERDICT_ROLLED_BACK] = "rolled back",   [NM_VERDICT_CANCELLED] = "cancelled",
		[NM_VERDICT_INCONCLUSIVE] = "inconclusive",
	};
	const struct nm_page_decision *decision = &verdict->decision;
	bool rollback = decision->reason == NM_PAGE_REASON_ROLLBACK;
	nm_entry_begin(entry, NM_MESSAGE_VERDICT, LOG_INFO);
	decision_fields(entry, context, decision);
	nm_entry_field(entry, "DECISION_KIND", "%s", rollback ? "pages-rollback" : "pages");
	nm_entry_field(entry, "VERDICT", "%s", nm_verdict_kind_name(verdict->kind));
	nm_entry_field(entry, "INTERVALS", "%u", verdict->intervals);
	nm_entry_field(entry, "TOGETHER", "%u", verdict->together);
	nm_entry_say(entry, "decision %lu %s after %u interval%s: of %lu page%s of %s[%u] ",
		     (unsigned long)decision->id, heads[verdict->kind], verdict->intervals,
		     verdict->intervals == 1 ? "" : "s", (unsigned long)decision->pages,
		     decision->pages == 1 ? "" : "s", decision->comm, decision->pid);
	say_results(entry, &verdict->results);
	say_effect(entry, verdict);
	if (verdict->together > 1)
		nm_entry_say(entry, " (with %u decisions beside it)", verdict->together - 1);
}
