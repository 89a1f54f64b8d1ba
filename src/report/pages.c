/* SPDX-License-Identifier: MIT */
/* Moves of pages. */
#include "entry.h"

static const char *const reason_names[] = {
	[NM_PAGE_REASON_PAGES] = "pages",
	[NM_PAGE_REASON_REGION] = "region",
	[NM_PAGE_REASON_CONTENTION] = "contention",
	[NM_PAGE_REASON_ROLLBACK] = "rollback",
};

/* ---- the decision ---- */

static void append_node_or_several(struct nm_entry *entry, const struct nm_entry_context *context,
				   int node)
{
	char word[NM_WORD_BYTES];
	nm_entry_append(entry, "%s",
			node < 0 ? "several nodes" : nm_node_text(context, node, word));
}

static void append_reason(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision)
{
	char share[NM_WORD_BYTES], node[NM_WORD_BYTES];
	nm_percent_text(decision->pages.exclusivity, share);
	nm_node_text(context, decision->steps[0].node_to, node);
	nm_entry_begin_reasons(entry);
	switch (decision->pages.reason) {
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

void nm_pages_fields(struct nm_entry *entry, const struct nm_pages_reason *pages)
{
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)pages->pages);
	nm_entry_field(entry, "BYTES", "%lu", (unsigned long)pages->bytes);
	nm_entry_field(entry, "REASON", "%s", reason_names[pages->reason]);
	nm_field_permille(entry, "EXCLUSIVITY_PERMILLE", pages->exclusivity);
}

void nm_append_pages(struct nm_entry *entry, const struct nm_entry_context *context,
		     const struct nm_decision *decision)
{
	const struct nm_pages_reason *pages = &decision->pages;
	const struct nm_step *step = &decision->steps[0];
	nm_entry_append(entry, "%s %lu page%s (", context->dry_run ? "Would migrate" : "Migrated",
			(unsigned long)pages->pages, nm_plural(pages->pages, "", "s"));
	nm_append_size(entry, pages->bytes);
	nm_entry_append(entry, ") of ");
	nm_append_subject(entry, step->comm, step->pid, 0);
	nm_entry_append(entry, " from ");
	append_node_or_several(entry, context, step->node_from);
	nm_entry_append(entry, " to ");
	append_node_or_several(entry, context, step->node_to);
	append_reason(entry, context, decision);
}

/* ---- the verdict ---- */

struct outcome {
	const char *field;
	uint64_t pages;
	const char *name;
};

/* Adds the page counts as fields and, if no page was migrated, the most frequent reason as text. */
static void append_failures(struct nm_entry *entry, const struct nm_page_results *results)
{
	uint64_t reported = results->busy + results->gone + results->denied + results->no_memory +
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
		{"PAGES_FAILED", results->failed > reported ? results->failed - reported : 0,
		 "failed"},
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
		nm_entry_append(entry, " (%lu %s)", (unsigned long)most->pages, most->name);
}

void nm_append_pages_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	const struct nm_page_results *results = &verdict->results;
	uint64_t pages = verdict->pages.pages;
	nm_pages_fields(entry, &verdict->pages);
	nm_entry_field(entry, "TOGETHER", "%u", verdict->together);
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)results->moved);
	nm_entry_append(entry, ", %lu of %lu page%s migrated", (unsigned long)results->moved,
			(unsigned long)pages, nm_plural(pages, "", "s"));
	append_failures(entry, results);
	if (results->forgotten > 0)
		nm_entry_field(entry, "PAGES_FORGOTTEN", "%lu", (unsigned long)results->forgotten);
	nm_field_errno(entry, results->error);
	if (results->error < 0)
		nm_entry_append(entry, ": %s", nm_error_text(results->error));
}
