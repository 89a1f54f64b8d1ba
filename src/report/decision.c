/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

#include "entry.h"

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
		nm_entry_append(entry, " (%s)", nm_node_text(context, step->node_from, node));
	}
}

static void append_route(struct nm_entry *entry, const struct nm_entry_context *context,
			 const struct nm_step *step)
{
	nm_append_subject(entry, step->comm, step->pid, step->tid);
	if (!is_kept(step)) {
		nm_entry_append(entry, " from ");
		append_cpu(entry, context, step->cpu_from, step->node_from);
	}
	nm_entry_append(entry, " to ");
	append_cpu(entry, context, is_pinned_to_cpu(step) ? step->cpu_to : -1, step->node_to);
}

static void append_action(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision, enum outcome outcome)
{
	nm_entry_append(entry, "%s ", verb(decision, outcome));
	if (decision->nr_steps > 1)
		append_swap(entry, context, decision);
	else
		append_route(entry, context, &decision->steps[0]);
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

static void append_reason(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision)
{
	if (decision->kind == NM_DECISION_ROLLBACK) {
		nm_entry_detail(entry, "rollback of #%lu", (unsigned long)decision->undoes);
	} else if (nm_policy_ops(decision->policy)->by_sharing) {
		append_sharing(entry, decision);
	} else if (decision->balance.given) {
		nm_append_balance(entry, decision);
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
		return "ledger not writable";
	case -EPERM:
	case -EACCES:
		return "CAP_SYS_NICE is missing";
	case -EINVAL:
		return "cpuset allows none of its CPUs";
	default:
		return NULL;
	}
}

/* The other half of a failed swap is moved back at once or, if that fails, too, when its lease
 * expires. */
static void append_other_half(struct nm_entry *entry, const struct nm_decision *decision,
			      const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].applied)
			nm_entry_detail(entry, "TID %u %s", decision->steps[i].tid,
					receipt->steps[i].undone ? "moved back" : "still leased");
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

static void step_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_step *step)
{
	nm_field_subject(entry, step->comm, step->pid, step->tid);
	nm_field_cpu(entry, "CPU_FROM", step->cpu_from);
	nm_field_cpu(entry, "CPU_TO", step->cpu_to);
	nm_field_node(entry, context, "NODE_FROM", step->node_from);
	nm_field_node(entry, context, "NODE_TO", step->node_to);
	nm_field_permille(entry, "LOCAL_SHARE_PERMILLE", step->local_before);
	if (isfinite(step->samples_before))
		nm_entry_field(entry, "ACCESSES", "%.0f", step->samples_before);
	if (step->runtime != NM_RUNTIME_NONE)
		nm_entry_field(entry, "RUNTIME", "%s", nm_runtime_name(step->runtime));
}

static void performance_fields(struct nm_entry *entry, const struct nm_step *step)
{
	nm_field_real(entry, "PERFORMANCE", step->performance_before);
	nm_field_permille(entry, "RELATIVE_PERMILLE", step->relative_before);
	nm_field_real(entry, "RECORD", step->record);
	nm_field_real(entry, "LATENCY_CYCLES", step->latency_before);
}

bool nm_decision_has_tickets(const struct nm_decision *decision)
{
	return (decision->kind == NM_DECISION_MIGRATE || decision->kind == NM_DECISION_SWAP) &&
	       !nm_policy_ops(decision->policy)->by_sharing && !decision->balance.given;
}

const char *nm_tickets_text(const struct nm_tickets *tickets, enum nm_thread_policy policy,
			    char ret[static NM_TICKETS_BYTES])
{
	if (policy == NM_POLICY_IMAR2)
		(void)snprintf(ret, NM_TICKETS_BYTES,
			       "free_cpu=%g preferred=%g record=%g partner=%g partner_record=%g "
			       "partner_slow=%g",
			       tickets->free_cpu, tickets->preferred, tickets->record,
			       tickets->partner, tickets->partner_record, tickets->partner_slow);
	else
		(void)snprintf(ret, NM_TICKETS_BYTES, "free_cpu=%g preferred=%g partner=%g",
			       tickets->free_cpu, tickets->preferred, tickets->partner);
	return ret;
}

static void lottery_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	char parts[NM_TICKETS_BYTES];
	nm_entry_field(entry, "TICKETS", "%g", decision->tickets.total);
	nm_entry_field(entry, "TICKETS_PARTS", "%s",
		       nm_tickets_text(&decision->tickets, decision->policy, parts));
	nm_entry_field(entry, "DRAW", "%.17g", decision->draw);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
}

static void sharing_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	nm_field_real(entry, "SHARING_COST_BEFORE", decision->cost_before);
	nm_field_real(entry, "SHARING_COST_AFTER", decision->cost_after);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		entry->thread = i;
		nm_field_real(entry, "SHARED", decision->steps[i].shared);
	}
	entry->thread = 0;
}

const char *nm_decision_result_name(const struct nm_entry_context *context,
				    const struct nm_receipt *receipt)
{
	static const char *const results[] = {"applied", "dry-run", "refused", "asked"};
	return results[outcome_of(context, receipt)];
}

static void reason_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	if (decision->kind == NM_DECISION_HOME)
		nm_home_fields(entry, &decision->home);
	else if (decision->kind == NM_DECISION_PAGES)
		nm_pages_fields(entry, &decision->pages);
	else if (nm_policy_ops(decision->policy)->by_sharing)
		sharing_fields(entry, decision);
	else if (decision->balance.given)
		nm_balance_fields(entry, decision);
	else
		lottery_fields(entry, decision);
}

static void decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_decision *decision, const struct nm_receipt *receipt)
{
	nm_entry_field(entry, "KIND", "%s", nm_decision_kind_name(decision->kind));
	nm_entry_set_decision(entry, decision->id);
	nm_entry_field(entry, "INTERVAL", "%lu", (unsigned long)decision->interval);
	nm_entry_field(entry, "POLICY", "%s", context->policy);
	nm_entry_field(entry, "SEED", "%lu", (unsigned long)context->seed);
	nm_entry_field(entry, "RESULT", "%s", nm_decision_result_name(context, receipt));
	if (decision->undoes)
		nm_entry_field(entry, "UNDOES", "%lu", (unsigned long)decision->undoes);
	if (decision->kind != NM_DECISION_ROLLBACK)
		reason_fields(entry, decision);
	if (decision->by_performance)
		nm_entry_field(entry, "PERFORMANCE_OF", "%s",
			       decision->by_locality ? "locality" : context->performance);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		entry->thread = i;
		step_fields(entry, context, &decision->steps[i]);
		if (decision->kind != NM_DECISION_PAGES)
			nm_entry_field(entry, "PIN", "%s",
				       decision->steps[i].pin == NM_STEP_NUDGE ? "nudge" : "lease");
		if (decision->by_performance)
			performance_fields(entry, &decision->steps[i]);
	}
	entry->thread = 0;
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
	decision_fields(entry, context, decision, receipt);
	if (decision->kind == NM_DECISION_HOME)
		nm_append_home(entry, context, decision);
	else if (decision->kind == NM_DECISION_PAGES)
		nm_append_pages(entry, context, decision);
	else
		append_move(entry, context, decision, receipt);
	nm_append_decision(entry, decision->id);
}
