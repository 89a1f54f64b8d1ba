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

static void say_reason(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_page_decision *decision)
{
	char share[NM_WORD_BYTES], node[NM_WORD_BYTES];
	nm_say_percent(decision->exclusivity, share);
	nm_say_node(context, decision->node_to, node);
	switch (decision->reason) {
	case NM_PAGE_REASON_PAGES:
		nm_entry_detail(entry, "%s of accesses from %s", share, node);
		return;
	case NM_PAGE_REASON_REGION:
		nm_entry_detail(entry, "%s of range accesses from %s", share, node);
		return;
	case NM_PAGE_REASON_CONTENTION:
		nm_entry_detail(entry, "shared range, one node overloaded");
		return;
	case NM_PAGE_REASON_ROLLBACK:
		nm_entry_detail(entry, "rollback of #%lu", (unsigned long)decision->undoes);
		return;
	}
}

static void decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_page_decision *decision)
{
	nm_entry_set_decision(entry, decision->id);
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

const char *nm_page_result_name(const struct nm_entry_context *context)
{
	return context->dry_run ? "dry-run" : "asked";
}

void nm_entry_page_decision(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_page_decision *decision)
{
	nm_entry_begin(entry, NM_MESSAGE_PAGES, LOG_INFO);
	decision_fields(entry, context, decision);
	nm_entry_field(entry, "RESULT", "%s", nm_page_result_name(context));
	nm_entry_say(entry, "%s %lu page%s (", context->dry_run ? "Would migrate" : "Migrating",
		     (unsigned long)decision->pages, nm_plural(decision->pages, "", "s"));
	nm_say_size(entry, decision->bytes);
	nm_entry_say(entry, ") of ");
	nm_say_subject(entry, decision->comm, decision->pid, 0);
	nm_entry_say(entry, " from ");
	say_node_or_several(entry, context, decision->node_from);
	nm_entry_say(entry, " to ");
	say_node_or_several(entry, context, decision->node_to);
	nm_entry_because(entry);
	say_reason(entry, context, decision);
	nm_say_decision(entry, decision->id);
}

/* ---- the verdict ---- */

struct outcome {
	const char *field;
	uint64_t pages;
	const char *name;
};

/* Adds the page counts as fields and, if no page was migrated, the most frequent reason as text. */
static void say_failures(struct nm_entry *entry, const struct nm_page_results *results)
{
	uint64_t told = results->busy + results->gone + results->denied + results->no_memory +
			results->fault;
	const struct outcome outcomes[] = {
		{"PAGES_ELSEWHERE", results->elsewhere, "already there or moved"},
		{"PAGES_REFUSED", results->refused, "excluded"},
		{"PAGES_UNTRIED", results->untried, "not tried"},
		{"PAGES_EBUSY", results->busy, "busy"},
		{"PAGES_ENOENT", results->gone, "not present"},
		{"PAGES_EACCES", results->denied, "shared with other processes"},
		{"PAGES_ENOMEM", results->no_memory, "without free memory on the node"},
		{"PAGES_EFAULT", results->fault, "not mapped"},
		{"PAGES_FAILED", results->failed > told ? results->failed - told : 0, "failed"},
	};
	const struct outcome *most = &outcomes[0];
	for (size_t i = 0; i < NM_ARRAY_SIZE(outcomes); i++) {
		if (outcomes[i].pages > 0)
			nm_entry_field(entry, outcomes[i].field, "%lu",
				       (unsigned long)outcomes[i].pages);
		if (outcomes[i].pages > most->pages)
			most = &outcomes[i];
	}
	if (results->moved == 0 && most->pages > 0)
		nm_entry_say(entry, " (%lu %s)", (unsigned long)most->pages, most->name);
}

static void say_results(struct nm_entry *entry, const struct nm_page_verdict *verdict)
{
	const struct nm_page_results *results = &verdict->results;
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)results->moved);
	nm_entry_say(entry, ", %lu of %lu page%s migrated", (unsigned long)results->moved,
		     (unsigned long)verdict->decision.pages, nm_plural(verdict->decision.pages, "", "s"));
	say_failures(entry, results);
	if (results->forgotten > 0)
		nm_entry_field(entry, "PAGES_FORGOTTEN", "%lu", (unsigned long)results->forgotten);
	nm_field_errno(entry, results->error);
	if (results->error < 0)
		nm_entry_say(entry, ": %s", nm_say_error(results->error));
}

static void effect_fields(struct nm_entry *entry, const struct nm_page_verdict *verdict)
{
	const struct nm_feedback_change *change = &verdict->performance;
	nm_field_permille(entry, "LOCAL_SHARE_BEFORE_PERMILLE", verdict->local_before);
	nm_field_permille(entry, "LOCAL_SHARE_AFTER_PERMILLE", verdict->local_after);
	nm_entry_field(entry, "ACCESSES", "%lu", (unsigned long)verdict->accesses_after);
	if (!isfinite(change->figure))
		return;
	nm_field_figure(entry, "PERFORMANCE_BEFORE", change->before);
	nm_field_figure(entry, "PERFORMANCE_AFTER", change->after);
	nm_field_figure(entry, "PERFORMANCE_LEFT", change->figure);
	nm_field_permille(entry, "NOISE_PERMILLE", 1 - exp(-change->noise));
}

static void say_effect(struct nm_entry *entry, const struct nm_page_verdict *verdict)
{
	char before[NM_WORD_BYTES], after[NM_WORD_BYTES];
	if (isfinite(verdict->performance.figure))
		nm_entry_say(entry, " performance %s",
			     nm_say_change(verdict->performance.figure - 1, after));
	else if (isfinite(verdict->local_after))
		nm_entry_say(entry, " local accesses %s " NM_ARROW " %s",
			     nm_say_percent(verdict->local_before, before),
			     nm_say_percent(verdict->local_after, after));
}

void nm_entry_page_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_page_verdict *verdict)
{
	const struct nm_page_decision *decision = &verdict->decision;
	bool rollback = decision->reason == NM_PAGE_REASON_ROLLBACK;
	nm_entry_begin_verdict(entry, decision->id, verdict->kind);
	decision_fields(entry, context, decision);
	nm_entry_field(entry, "DECISION_KIND", "%s", rollback ? "pages-rollback" : "pages");
	nm_entry_field(entry, "INTERVALS", "%u", verdict->intervals);
	nm_entry_field(entry, "TOGETHER", "%u", verdict->together);
	nm_say_subject(entry, decision->comm, decision->pid, 0);
	say_effect(entry, verdict);
	effect_fields(entry, verdict);
	say_results(entry, verdict);
}
