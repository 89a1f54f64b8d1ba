/* SPDX-License-Identifier: MIT */
/* The fields of a decision in the journal (numa-migrd-journal(7)); decision.c adds those of a
 * refusal. */
#include <math.h>
#include <stdio.h>

#include "entry.h"

static const char *selected_by(const struct nm_balance_reason *reason)
{
	return reason->by == NM_SELECTED_BY_LEADER ? "leader"
	       : reason->by == NM_SELECTED_BY_TYPE ? "type"
						   : "rule";
}

void nm_prediction_fields(struct nm_entry *entry, const struct nm_balance_reason *reason)
{
	nm_field_real(entry, "PREDICTED_BENEFIT", nm_balance_benefit(reason));
	nm_field_real(entry, "RESIDENT_PAGES", reason->resident);
}

static void balance_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	nm_entry_field(entry, "SELECTION", "%s", nm_selection_name(reason->selection));
	nm_entry_field(entry, "SELECTED_BY", "%s", selected_by(reason));
	nm_field_real(entry, "METRIC", reason->metric);
	nm_field_real(entry, "LOAD", reason->load);
	nm_field_real(entry, "LOAD_FROM", reason->load_from);
	nm_field_real(entry, "LOAD_TO", reason->load_to);
	nm_field_real(entry, "LOAD_GAP", reason->gap);
	nm_field_real(entry, "GAIN_PAGES", reason->gain);
	nm_field_real(entry, "RESIDENCY_AGE_S", reason->age_s);
	nm_field_real(entry, "ACCESS_COST", decision->steps[0].access_cost_before);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	nm_prediction_fields(entry, reason);
}

/* Returns the prediction for its home; NULL: none was made. */
static const struct nm_home_candidate *chosen_of(const struct nm_decision *decision)
{
	const struct nm_home_reason *home = &decision->home;
	for (unsigned i = 1; i < home->nr_candidates; i++)
		if (home->candidates[i].node == decision->steps[0].node_to)
			return &home->candidates[i];
	return NULL;
}

/* For example "stays 1.21, node 0 1.00, node 2 1.14": the time for the same work. */
static void candidates_field(struct nm_entry *entry, const struct nm_entry_context *context,
			     const struct nm_home_reason *home)
{
	char text[NM_HOME_CANDIDATES_MAX * (NM_WORD_BYTES + 48)] = "", node[NM_WORD_BYTES];
	size_t used = 0;
	for (unsigned i = 0; i < home->nr_candidates; i++) {
		const struct nm_home_candidate *one = &home->candidates[i];
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			"%s%s %.2f (distance %.1f, contention %.2f, waiting %.2f)", i ? ", " : "",
			one->node < 0 ? "stays" : nm_node_text(context, one->node, node),
			one->at.time, one->at.distance, one->at.contention, one->at.waiting);
	}
	if (used > 0)
		nm_entry_field(entry, "CANDIDATES", "%s", text);
}

static void home_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_decision *decision)
{
	const struct nm_home_reason *home = &decision->home;
	const struct nm_home_candidate *chosen = chosen_of(decision);
	nm_entry_field(entry, "THREADS", "%u", home->threads);
	nm_field_real(entry, "DEMAND_CPUS", home->demand_cpus);
	nm_entry_field(entry, "REASON", "%s", nm_place_reason_text(home->reason));
	nm_field_real(entry, "DISTANCE", home->distance_now);
	nm_field_real(entry, "DISTANCE_PREDICTED", home->distance_home);
	nm_field_real(entry, "EXPECTED_PERCENT", 100 * home->gain);
	if (chosen) {
		const struct nm_prediction *stays = &home->candidates[0].at, *there = &chosen->at;
		nm_field_real(entry, "STALLED_PERCENT", 100 * there->stalled);
		nm_field_real(entry, "CONTENTION", stays->contention);
		nm_field_real(entry, "CONTENTION_PREDICTED", there->contention);
		nm_field_real(entry, "WAITING", stays->waiting);
		nm_field_real(entry, "WAITING_PREDICTED", there->waiting);
		candidates_field(entry, context, home);
	}
	nm_entry_field(entry, "BYTES_AWAY", "%lu", (unsigned long)home->bytes_away);
	nm_field_real(entry, "MOVE_S", home->move_s);
	nm_field_real(entry, "AGE_S", home->age_s);
}

static const char *const reason_names[] = {
	[NM_PAGE_REASON_PAGES] = "pages",
	[NM_PAGE_REASON_REGION] = "region",
	[NM_PAGE_REASON_CONTENTION] = "contention",
	[NM_PAGE_REASON_ROLLBACK] = "rollback",
};

void nm_pages_fields(struct nm_entry *entry, const struct nm_pages_reason *pages)
{
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)pages->pages);
	nm_entry_field(entry, "BYTES", "%lu", (unsigned long)pages->bytes);
	nm_entry_field(entry, "REASON", "%s", reason_names[pages->reason]);
	nm_field_permille(entry, "EXCLUSIVITY_PERMILLE", pages->exclusivity);
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
	nm_field_real(entry, "SHARING_COST_BEFORE", decision->cost_before);
	nm_field_real(entry, "SHARING_COST_AFTER", decision->cost_after);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		entry->thread = i;
		nm_field_real(entry, "SHARED", decision->steps[i].shared);
	}
	entry->thread = 0;
}

static void reason_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			  const struct nm_decision *decision)
{
	if (decision->kind == NM_DECISION_HOME)
		home_fields(entry, context, decision);
	else if (decision->kind == NM_DECISION_PAGES)
		nm_pages_fields(entry, &decision->pages);
	else if (nm_policy_is_by_sharing(decision->policy))
		sharing_fields(entry, decision);
	else if (decision->balance.given)
		balance_fields(entry, decision);
	else if (nm_policy_draws(decision->policy))
		lottery_fields(entry, decision);
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
}

static void performance_fields(struct nm_entry *entry, const struct nm_step *step)
{
	nm_field_real(entry, "PERFORMANCE", step->performance_before);
	nm_field_permille(entry, "RELATIVE_PERMILLE", step->relative_before);
	nm_field_real(entry, "RECORD", step->record);
	nm_field_real(entry, "LATENCY_CYCLES", step->latency_before);
}

void nm_decision_fields(struct nm_entry *entry, const struct nm_entry_context *context,
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
		reason_fields(entry, context, decision);
	if (decision->by_performance)
		nm_entry_field(entry, "PERFORMANCE_OF", "%s",
			       decision->by_locality ? "locality" : context->performance);
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		entry->thread = i;
		step_fields(entry, context, &decision->steps[i]);
		if (decision->by_performance)
			performance_fields(entry, &decision->steps[i]);
	}
	entry->thread = 0;
}
