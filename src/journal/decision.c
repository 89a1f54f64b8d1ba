/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balance.h"
#include "say.h"

enum outcome { DONE, WOULD, REFUSED };

/* A dry run's platform refuses each write with -EROFS: that, and only that, is "would move". */
static enum outcome outcome_of(const struct nm_entry_context *context,
			       const struct nm_receipt *receipt)
{
	if (receipt->applied)
		return context->dry_run ? WOULD : DONE;
	if (!context->dry_run)
		return REFUSED;
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].error != 0 && receipt->steps[i].error != -EROFS)
			return REFUSED;
	return WOULD;
}

/* Bound to the node where it is. */
static bool is_kept(const struct nm_step *step)
{
	return step->node_from == step->node_to && step->cpu_from == step->cpu_to;
}

static const char *verb(const struct nm_decision *decision, enum outcome outcome)
{
	static const char *const kept[] = {"bound", "would bind", "did not bind"};
	static const char *const verbs[][3] = {
		[NM_DECISION_MIGRATE] = {"moved", "would move", "did not move"},
		[NM_DECISION_SWAP] = {"swapped", "would swap", "did not swap"},
		[NM_DECISION_ROLLBACK] = {"moved back", "would move back", "did not move back"},
	};
	if (decision->nr_steps == 1 && is_kept(&decision->steps[0]))
		return kept[outcome];
	return verbs[decision->kind][outcome];
}

static void say_thread(struct nm_entry *entry, const struct nm_step *step)
{
	nm_entry_say(entry, "%s[%u/%u]", step->comm, step->pid, step->tid);
}

static void say_cpu(struct nm_entry *entry, const struct nm_entry_context *context, int cpu,
		    int node)
{
	char word[NM_WORD_BYTES];
	nm_say_node(context, node, word);
	if (cpu >= 0)
		nm_entry_say(entry, "CPU %d (%s)", cpu, word);
	else
		nm_entry_say(entry, "%s", word);
}

/* A mask of one CPU was meant as a CPU (pin = "core"); a wider one is a node's. */
static bool is_pinned_to_cpu(const struct nm_step *step)
{
	return step->target && hwloc_bitmap_weight(step->target) == 1;
}

static void say_route(struct nm_entry *entry, const struct nm_entry_context *context,
		      const struct nm_step *step)
{
	say_thread(entry, step);
	if (is_kept(step)) {
		nm_entry_say(entry, " to where it is, ");
		say_cpu(entry, context, -1, step->node_to);
		return;
	}
	nm_entry_say(entry, " from ");
	say_cpu(entry, context, step->cpu_from, step->node_from);
	nm_entry_say(entry, " to ");
	say_cpu(entry, context, is_pinned_to_cpu(step) ? step->cpu_to : -1, step->node_to);
}

static void say_what(struct nm_entry *entry, const struct nm_entry_context *context,
		     const struct nm_decision *decision, enum outcome outcome)
{
	const char *between = decision->kind == NM_DECISION_SWAP ? " with " : " and ";
	nm_entry_say(entry, "%s ", verb(decision, outcome));
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		if (i > 0)
			nm_entry_say(entry, "%s", between);
		say_route(entry, context, &decision->steps[i]);
	}
}

/* What a placement by sharing is for: it is one, however many threads it moves. */
static void say_sharing(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision)
{
	char node[NM_WORD_BYTES], saved[NM_WORD_BYTES];
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		nm_entry_say(entry, "%s %.0f sharings with threads on %s",
			     i > 0 ? " and" : ": it has", step->shared,
			     nm_say_node(context, step->node_to, node));
	}
	nm_say_percent(1 - decision->cost_after / decision->cost_before, saved);
	nm_entry_say(entry, "; the distance of all that share falls from %.4g to %.4g, by %s",
		     decision->cost_before, decision->cost_after, saved);
}

/* For one thread the gain is the difference of two shares, so the destination's share is known too.
 */
static void say_evidence_of_one(struct nm_entry *entry, const struct nm_entry_context *context,
				const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	char there[NM_WORD_BYTES], here[NM_WORD_BYTES], to[NM_WORD_BYTES], from[NM_WORD_BYTES];
	nm_say_percent(step->local_before, here);
	nm_say_node(context, step->node_from, from);
	if (!isfinite(decision->gain + step->local_before)) {
		nm_entry_say(entry, ": %s of %.0f accesses are on %s", here, step->samples_before,
			     from);
		return;
	}
	nm_say_percent(step->local_before + decision->gain, there);
	nm_say_node(context, step->node_to, to);
	nm_entry_say(entry, ": %s of %.0f accesses are on %s, %s on %s", there,
		     step->samples_before, to, here, from);
}

static void say_evidence_of_two(struct nm_entry *entry, const struct nm_decision *decision)
{
	char share[2][NM_WORD_BYTES], gain[NM_WORD_BYTES];
	const struct nm_step *steps = decision->steps;
	nm_entry_say(entry,
		     ": %s of %.0f and %s of %.0f accesses were local, %s more of both expected",
		     nm_say_percent(steps[0].local_before, share[0]), steps[0].samples_before,
		     nm_say_percent(steps[1].local_before, share[1]), steps[1].samples_before,
		     nm_say_percent(decision->gain, gain));
}

static const char *performance_is(const struct nm_decision *decision)
{
	if (!decision->by_locality)
		return "; performance";
	return decision->balance.given ? "; performance (its locality by its share of a CPU)"
				       : "; performance (its locality)";
}

/* P of a thread and beside its process, and how the clause begins. */
static void say_performance_of(struct nm_entry *entry, const struct nm_decision *decision,
			       unsigned index)
{
	const struct nm_step *step = &decision->steps[index];
	char now[NM_WORD_BYTES], relative[NM_WORD_BYTES];
	nm_entry_say(entry, "%s %s, %s of its process's mean",
		     index > 0 ? " and" : performance_is(decision),
		     nm_say_figure(step->performance_before, now),
		     nm_say_percent(step->relative_before, relative));
}

/* What P of the threads was, and what is remembered of where they go. */
static void say_performance(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_decision *decision)
{
	if (!decision->by_performance || decision->kind == NM_DECISION_ROLLBACK)
		return;
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		char record[NM_WORD_BYTES], node[NM_WORD_BYTES];
		say_performance_of(entry, decision, i);
		if (decision->policy == NM_POLICY_IMAR2)
			nm_entry_say(entry, ", %s on %s", nm_say_figure(step->record, record),
				     nm_say_node(context, step->node_to, node));
	}
}

static void say_why(struct nm_entry *entry, const struct nm_entry_context *context,
		    const struct nm_decision *decision)
{
	if (decision->kind == NM_DECISION_ROLLBACK)
		nm_entry_say(entry, ": undoes decision %lu", (unsigned long)decision->undoes);
	else if (decision->by_sharing)
		say_sharing(entry, context, decision);
	else if (decision->balance.given)
		nm_say_balance(entry, context, decision);
	else if (decision->nr_steps == 2)
		say_evidence_of_two(entry, decision);
	else
		say_evidence_of_one(entry, context, decision);
}

static void say_tickets(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_tickets *tickets = &decision->tickets;
	if (decision->kind == NM_DECISION_ROLLBACK || decision->by_sharing ||
	    decision->balance.given)
		return;
	const struct {
		double tickets;
		const char *of;
	} parts[] = {
		{tickets->free_cpu, "free CPU"},
		{tickets->preferred, "preferred node"},
		{tickets->record, "record"},
		{tickets->partner, "partner's preferred node"},
		{tickets->partner_record, "partner's record"},
		{tickets->partner_slow, "slow partner"},
	};
	const char *between = " of ";
	nm_entry_say(entry, "; tickets %g", tickets->total);
	for (size_t i = 0; i < NM_ARRAY_SIZE(parts); i++) {
		if (parts[i].tickets <= 0)
			continue;
		nm_entry_say(entry, "%s%s", between, parts[i].of);
		if (parts[i].tickets < tickets->total)
			nm_entry_say(entry, " (%g)", parts[i].tickets);
		between = " and ";
	}
	nm_entry_say(entry, ", draw %.3g", decision->draw);
}

static const char *pin_name(const struct nm_step *step)
{
	return step->pin == NM_STEP_NUDGE ? "nudge" : "lease";
}

static void say_pin(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	nm_entry_say(entry, "; %s", pin_name(step));
	if (step->pin == NM_STEP_NUDGE)
		nm_say_runtime(entry, step->runtime);
	nm_entry_say(entry, " (decision %lu)", (unsigned long)decision->id);
}

/* What follows from a refusal; the check or call that refused has been named. */
static const char *consequence(int error)
{
	switch (error) {
	case -ESRCH:
		return "the thread had ended, nothing was changed";
	case -ESTALE:
		return "somebody else had changed its mask meanwhile, nothing was done";
	case -EROFS:
		return "the ledger cannot be written, and without it nothing is changed: "
		       "see the owner and free space of /run/numa-migrd";
	case -EPERM:
	case -EACCES:
		return "the thread stays where it was: numa-migrd needs CAP_SYS_NICE";
	case -EINVAL:
		return "the thread stays where it was: its cpuset allows none of these CPUs";
	default:
		return "the thread stays where it was";
	}
}

/* The other half of a swap: taken back at once, or, if that failed too, by its lease. */
static void say_other_half(struct nm_entry *entry, const struct nm_decision *decision,
			   const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++) {
		if (!receipt->steps[i].applied)
			continue;
		nm_entry_say(entry, "; ");
		say_thread(entry, &decision->steps[i]);
		nm_entry_say(
			entry, "%s",
			receipt->steps[i].undone
				? " was sent back"
				: " could not be sent back and keeps a lease until it expires");
	}
}

static const struct nm_receipt_step *failed_step(const struct nm_receipt *receipt)
{
	for (unsigned i = 0; i < receipt->nr_steps; i++)
		if (receipt->steps[i].error != 0)
			return &receipt->steps[i];
	return NULL;
}

static void say_refusal(struct nm_entry *entry, const struct nm_decision *decision,
			const struct nm_receipt *receipt)
{
	const struct nm_receipt_step *step = failed_step(receipt);
	if (step) {
		const char *what = step->what ? step->what : "a check";
		nm_entry_say(entry, ": %s refused (%s): %s", what, nm_say_error(step->error),
			     consequence(step->error));
		nm_entry_field(entry, "CHECK", "%s", what);
		nm_field_errno(entry, step->error);
		if (step->error != -ESRCH && step->error != -ESTALE)
			entry->priority = LOG_WARNING;
	}
	say_other_half(entry, decision, receipt);
	nm_entry_say(entry, " (decision %lu)", (unsigned long)decision->id);
}

static void step_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_step *step, unsigned index)
{
	char name[NM_NAME_BYTES];
	nm_entry_field(entry, nm_numbered("PID", index, name), "%u", step->pid);
	nm_entry_field(entry, nm_numbered("TID", index, name), "%u", step->tid);
	nm_entry_field(entry, nm_numbered("COMM", index, name), "%s", step->comm);
	nm_field_cpu(entry, nm_numbered("CPU_FROM", index, name), step->cpu_from);
	nm_field_cpu(entry, nm_numbered("CPU_TO", index, name), step->cpu_to);
	nm_field_node(entry, context, nm_numbered("NODE_FROM", index, name), step->node_from);
	nm_field_node(entry, context, nm_numbered("NODE_TO", index, name), step->node_to);
	nm_field_permille(entry, nm_numbered("LOCAL_SHARE_PERMILLE", index, name),
			  step->local_before);
	if (isfinite(step->samples_before))
		nm_entry_field(entry, nm_numbered("ACCESSES", index, name), "%.0f",
			       step->samples_before);
	nm_entry_field(entry, nm_numbered("PIN", index, name), "%s", pin_name(step));
	if (step->runtime != NM_RUNTIME_NONE)
		nm_entry_field(entry, nm_numbered("RUNTIME", index, name), "%s",
			       nm_runtime_name(step->runtime));
}

static void performance_fields(struct nm_entry *entry, const struct nm_step *step, unsigned index)
{
	char name[NM_NAME_BYTES];
	nm_field_figure(entry, nm_numbered("PERFORMANCE", index, name), step->performance_before);
	nm_field_permille(entry, nm_numbered("RELATIVE_PERMILLE", index, name),
			  step->relative_before);
	nm_field_figure(entry, nm_numbered("RECORD", index, name), step->record);
	nm_field_figure(entry, nm_numbered("LATENCY_CYCLES", index, name), step->latency_before);
}

static void lottery_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_tickets *tickets = &decision->tickets;
	nm_entry_field(entry, "TICKETS", "%g", tickets->total);
	if (decision->policy == NM_POLICY_IMAR2)
		nm_entry_field(entry, "TICKETS_PARTS",
			       "free_cpu=%g preferred=%g record=%g partner=%g partner_record=%g "
			       "partner_slow=%g",
			       tickets->free_cpu, tickets->preferred, tickets->record,
			       tickets->partner, tickets->partner_record, tickets->partner_slow);
	else
		nm_entry_field(entry, "TICKETS_PARTS", "free_cpu=%g preferred=%g partner=%g",
			       tickets->free_cpu, tickets->preferred, tickets->partner);
	nm_entry_field(entry, "DRAW", "%.17g", decision->draw);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
}

static void sharing_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	char name[NM_NAME_BYTES];
	nm_field_figure(entry, "SHARING_COST_BEFORE", decision->cost_before);
	nm_field_figure(entry, "SHARING_COST_AFTER", decision->cost_after);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	for (unsigned i = 0; i < decision->nr_steps; i++)
		nm_field_figure(entry, nm_numbered("SHARED", i, name), decision->steps[i].shared);
}

static void decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			    const struct nm_decision *decision, enum outcome outcome)
{
	static const char *const results[] = {"applied", "dry-run", "refused"};
	nm_entry_field(entry, "KIND", "%s", nm_decision_kind_name(decision->kind));
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)decision->id);
	nm_entry_field(entry, "INTERVAL", "%lu", (unsigned long)decision->interval);
	nm_entry_field(entry, "POLICY", "%s", context->policy);
	nm_entry_field(entry, "SEED", "%lu", (unsigned long)context->seed);
	nm_entry_field(entry, "RESULT", "%s", results[outcome]);
	if (decision->kind == NM_DECISION_ROLLBACK)
		nm_entry_field(entry, "UNDOES", "%lu", (unsigned long)decision->undoes);
	else if (decision->by_sharing)
		sharing_fields(entry, decision);
	else if (decision->balance.given)
		nm_balance_fields(entry, decision);
	else
		lottery_fields(entry, decision);
	if (decision->by_performance)
		nm_entry_field(entry, "PERFORMANCE_OF", "%s",
			       decision->by_locality ? "locality" : context->performance);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		step_fields(entry, context, &decision->steps[i], i);
		if (decision->by_performance)
			performance_fields(entry, &decision->steps[i], i);
	}
}

void nm_entry_decision(struct nm_entry *entry, const struct nm_entry_context *context,
		       const struct nm_decision *decision, const struct nm_receipt *receipt)
{
	enum outcome outcome = outcome_of(context, receipt);
	nm_entry_begin(entry, NM_MESSAGE_DECISION, LOG_INFO);
	decision_fields(entry, context, decision, outcome);
	say_what(entry, context, decision, outcome);
	entry->reason = strlen(entry->text);
	if (outcome == REFUSED) {
		say_refusal(entry, decision, receipt);
		return;
	}
	say_why(entry, context, decision);
	say_performance(entry, context, decision);
	say_tickets(entry, decision);
	say_pin(entry, decision);
}
