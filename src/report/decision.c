/* SPDX-License-Identifier: MIT */
/* The text of a decision: what was done, or why it was refused, and the reason. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "entry.h"

#define LINE_CHARACTERS 120 /* maximum for the text of a decision, including its number */

enum outcome { DONE, DRY_RUN, REFUSED, REQUESTED };

/* A dry run's platform fails each write with -EROFS; only this error means "would move". */
static enum outcome outcome_of(const struct nm_entry_context *context,
			       const struct nm_receipt *receipt)
{
	if (!receipt)
		return context->dry_run ? DRY_RUN : REQUESTED;
	if (receipt->applied)
		return context->dry_run ? DRY_RUN : DONE;
	if (!context->dry_run)
		return REFUSED;
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].error != 0 && receipt->steps[i].error != -EROFS)
			return REFUSED;
	return DRY_RUN;
}

/* Returns whether the thread is only bound to the node on which it already runs. */
static bool is_kept(const struct nm_step *step)
{
	return step->node_from == step->node_to && step->cpu_from == step->cpu_to;
}

static const char *verb(const struct nm_decision *decision, enum outcome outcome)
{
	static const char *const kept[] = {"Bound", "Would bind", "Could not bind"};
	static const char *const verbs[][3] = {
		[NM_DECISION_MIGRATE] = {"Moved", "Would move", "Could not move"},
		[NM_DECISION_SWAP] = {"Swapped", "Would swap", "Could not swap"},
		[NM_DECISION_ROLLBACK] = {"Moved back", "Would move back", "Could not move back"},
	};
	if (decision->nr_steps == 1 && is_kept(&decision->steps[0]))
		return kept[outcome];
	return verbs[decision->kind][outcome];
}

/* An affinity of one CPU (pin = "core") is shown as that CPU, a wider one as a node. */
static bool is_pinned_to_cpu(const struct nm_step *step)
{
	return step->target && hwloc_bitmap_weight(step->target) == 1;
}

static void append_cpu(struct nm_entry *entry, const struct nm_entry_context *context, int cpu,
		       int node)
{
	char word[NM_WORD_BYTES];
	nm_node_text(context, node, word);
	if (cpu >= 0)
		nm_entry_append(entry, "CPU %d (%s)", cpu, word);
	else
		nm_entry_append(entry, "%s", word);
}

static void append_swap(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision)
{
	char node[NM_WORD_BYTES];
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		if (i > 0)
			nm_entry_append(entry, " and ");
		nm_append_subject(entry, step->comm, step->pid, step->tid);
		if (step->node_from == step->node_to)
			nm_entry_append(entry, " (CPU %d)", step->cpu_from);
		else
			nm_entry_append(entry, " (%s)",
					nm_node_text(context, step->node_from, node));
	}
}

/* Within a node kmaf moves threads between last-level caches. */
static bool is_between_caches(const struct nm_decision *decision, const struct nm_step *step)
{
	return decision->policy == NM_POLICY_KMAF && step->node_from == step->node_to &&
	       !is_kept(step) && !is_pinned_to_cpu(step);
}

static void append_route(struct nm_entry *entry, const struct nm_entry_context *context,
			 const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	bool caches = is_between_caches(decision, step);
	nm_append_subject(entry, step->comm, step->pid, step->tid);
	if (!is_kept(step)) {
		nm_entry_append(entry, " from ");
		append_cpu(entry, context, step->cpu_from, step->node_from);
	}
	nm_entry_append(entry, caches ? " to the cache of " : " to ");
	append_cpu(entry, context, caches || is_pinned_to_cpu(step) ? step->cpu_to : -1,
		   step->node_to);
}

static void append_action(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision, enum outcome outcome)
{
	nm_entry_append(entry, "%s ", verb(decision, outcome));
	if (decision->nr_steps > 1)
		append_swap(entry, context, decision);
	else
		append_route(entry, context, decision);
	nm_entry_begin_reasons(entry);
}

/* The costs are those of all decisions of the interval. */
static void append_sharing(struct nm_entry *entry, const struct nm_decision *decision)
{
	char change[NM_WORD_BYTES];
	nm_change_text(decision->cost_after / decision->cost_before - 1, change);
	nm_entry_detail(entry, "sharing cost %.4g " NM_ARROW " %.4g (%s)", decision->cost_before,
			decision->cost_after, change);
}

static void append_performance(struct nm_entry *entry, const struct nm_decision *decision)
{
	double relative = decision->steps[0].relative_before;
	if (decision->by_performance && fabs(relative - 1) >= 0.005)
		nm_entry_detail(entry, "%.0f %% %s mean", fabs(relative - 1) * 100,
				relative < 1 ? "below" : "above");
}

/* For one thread the gain is the difference of two shares, so that the destination's share is
 * known, too. */
static void append_accesses(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	double there = step->local_before + decision->gain;
	char share[NM_WORD_BYTES], node[NM_WORD_BYTES];
	if (isfinite(there))
		nm_entry_detail(entry, "%s of %.0f accesses on %s", nm_percent_text(there, share),
				step->samples_before, nm_node_text(context, step->node_to, node));
	else if (isfinite(step->local_before))
		nm_entry_detail(entry, "%s of %.0f accesses local",
				nm_percent_text(step->local_before, share), step->samples_before);
}

/* ---- moves that balance nodes ---- */

/* A lower cost is better, but a higher benefit is. */
double nm_balance_benefit(const struct nm_balance_reason *reason)
{
	return -reason->cost_change;
}

static void append_balance(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	nm_entry_detail(entry, "load %.2f " NM_ARROW " %.2f", reason->load_from, reason->load_to);
	if (reason->by == NM_SELECTED_BY_TYPE)
		nm_entry_detail(entry, "to CPUs of its type");
	else
		nm_entry_detail(entry, "by %s%s", nm_selection_name(reason->selection),
				reason->by == NM_SELECTED_BY_LEADER ? " (leader)" : "");
}

/* ---- homes, policy "auto" ---- */

static void append_home_reason(struct nm_entry *entry, const struct nm_home_reason *home)
{
	nm_entry_begin_reasons(entry);
	nm_entry_detail(entry, "%s", nm_place_reason_text(home->reason));
	if (isfinite(home->gain))
		nm_entry_append(entry, ", %.0f %% expected", 100 * home->gain);
	nm_entry_detail(entry, "%u thread%s, %.1f CPUs", home->threads,
			nm_plural(home->threads, "", "s"), home->demand_cpus);
	if (isfinite(home->distance_now))
		nm_entry_append(entry, ", distance %.1f " NM_ARROW " %.1f", home->distance_now,
				home->distance_home);
	if (home->bytes_away > 0 && home->move_s > 0) {
		nm_entry_append(entry, ", ");
		nm_append_size(entry, home->bytes_away);
		nm_entry_append(entry, " to migrate");
	}
	if (home->keeps_memory)
		nm_entry_append(entry, ", memory stays (max_gb_of_process)");
}

static void append_home(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	char node[NM_WORD_BYTES];
	nm_entry_append(entry, context->dry_run ? "Would place " : "Placed ");
	nm_append_subject(entry, step->comm, step->pid, 0);
	nm_entry_append(entry, " on %s", nm_node_text(context, step->node_to, node));
	append_home_reason(entry, &decision->home);
}

/* ---- pages ---- */

static void append_node_or_several(struct nm_entry *entry, const struct nm_entry_context *context,
				   int node)
{
	char word[NM_WORD_BYTES];
	nm_entry_append(entry, "%s",
			node < 0 ? "several nodes" : nm_node_text(context, node, word));
}

static void append_pages_reason(struct nm_entry *entry, const struct nm_entry_context *context,
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

static void append_pages(struct nm_entry *entry, const struct nm_entry_context *context,
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
	append_pages_reason(entry, context, decision);
}

/* ---- the reason, or why a move was refused ---- */

static void append_reason(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision)
{
	if (decision->kind == NM_DECISION_ROLLBACK) {
		nm_entry_detail(entry, "rollback of #%lu", (unsigned long)decision->undoes);
	} else if (nm_policy_is_by_sharing(decision->policy)) {
		append_sharing(entry, decision);
	} else if (decision->balance.given) {
		append_balance(entry, decision);
	} else if (decision->nr_steps == 2) {
		if (isfinite(decision->gain))
			nm_entry_detail(entry, "%+.0f points of local accesses",
					decision->gain * 100);
	} else {
		append_performance(entry, decision);
		append_accesses(entry, context, decision);
	}
}

/* Returns the cause of the error, or NULL if its description suffices. */
static const char *cause(int error)
{
	switch (error) {
	case -ESRCH:
		return "thread ended";
	case -ESTALE:
		return "affinity changed meanwhile";
	case -EROFS:
		return "moves cannot be recorded";
	case -EPERM:
	case -EACCES:
		return "CAP_SYS_NICE is missing";
	case -EINVAL:
		return "cpuset allows none of its CPUs";
	default:
		return NULL;
	}
}

static void append_other_half(struct nm_entry *entry, const struct nm_decision *decision,
			      const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].applied)
			nm_entry_detail(entry, "TID %u moved", decision->steps[i].tid);
}

static const struct nm_receipt_step *failed_step(const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].error != 0)
			return &receipt->steps[i];
	return NULL;
}

static void append_refusal(struct nm_entry *entry, const struct nm_decision *decision,
			   const struct nm_receipt *receipt)
{
	const struct nm_receipt_step *step = failed_step(receipt);
	if (step) {
		const char *what = step->what ? step->what : "a check";
		const char *why = cause(step->error);
		if (why)
			nm_entry_detail(entry, "%s", why);
		else
			nm_entry_detail(entry, "%s: %s", what, nm_error_text(step->error));
		nm_entry_field(entry, "CHECK", "%s", what);
		nm_field_errno(entry, step->error);
		if (step->error != -ESRCH && step->error != -ESTALE)
			entry->priority = LOG_WARNING;
	}
	append_other_half(entry, decision, receipt);
}

const char *nm_decision_result_name(const struct nm_entry_context *context,
				    const struct nm_receipt *receipt)
{
	static const char *const results[] = {"applied", "dry-run", "refused", "asked"};
	return results[outcome_of(context, receipt)];
}

/* Counts characters, without the continuation bytes of UTF-8. */
static size_t characters(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Drops the last detail. Returns false if there is none. */
static bool drop_detail(struct nm_entry *entry)
{
	if (entry->reason == 0 || !entry->text[entry->reason])
		return false;
	size_t at = strlen(entry->text) - 1;
	while (at > entry->reason && strncmp(entry->text + at, "; ", 2) != 0 &&
	       strncmp(entry->text + at, ", ", 2) != 0)
		at--;
	entry->text[at] = '\0';
	return true;
}

static void append_number(struct nm_entry *entry, uint64_t decision)
{
	char number[NM_WORD_BYTES + 4];
	int length = snprintf(number, sizeof(number), " [#%lu]", (unsigned long)decision);
	while (characters(entry->text) + (size_t)length > LINE_CHARACTERS)
		if (!drop_detail(entry))
			break;
	nm_entry_append(entry, "%s", number);
}

static void append_move(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision, const struct nm_receipt *receipt)
{
	enum outcome outcome = outcome_of(context, receipt);
	append_action(entry, context, decision, outcome);
	if (outcome == REFUSED)
		append_refusal(entry, decision, receipt);
	else
		append_reason(entry, context, decision);
}

void nm_entry_decision(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_decision *decision, const struct nm_receipt *receipt)
{
	nm_entry_begin(entry, NM_MESSAGE_DECISION, LOG_INFO);
	nm_decision_fields(entry, context, decision, receipt);
	if (decision->kind == NM_DECISION_HOME)
		append_home(entry, context, decision);
	else if (decision->kind == NM_DECISION_PAGES)
		append_pages(entry, context, decision);
	else
		append_move(entry, context, decision, receipt);
	append_number(entry, decision->id);
}
