/* SPDX-License-Identifier: MIT */
/* Text and fields of moves that balance nodes, and of their verdicts. */
#include <math.h>

#include "entry.h"

/* A lower cost is better, but a higher benefit is. */
static double benefit(const struct nm_balance_reason *reason)
{
	return -reason->cost_change;
}

void nm_append_balance(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	nm_entry_detail(entry, "load %.2f " NM_ARROW " %.2f", reason->load_from, reason->load_to);
	nm_entry_detail(entry, "by %s%s", nm_selection_name(reason->selection),
			reason->by == NM_SELECTED_BY_LEADER ? " (leader)" : "");
}

static void prediction_fields(struct nm_entry *entry, const struct nm_balance_reason *reason)
{
	nm_field_real(entry, "PREDICTED_BENEFIT", benefit(reason));
	nm_field_real(entry, "RESIDENT_PAGES", reason->resident);
}

void nm_balance_fields(struct nm_entry *entry, const struct nm_decision *decision)
{
	const struct nm_balance_reason *reason = &decision->balance;
	nm_entry_field(entry, "SELECTION", "%s", nm_selection_name(reason->selection));
	nm_entry_field(entry, "SELECTED_BY", "%s",
		       reason->by == NM_SELECTED_BY_LEADER ? "leader" : "rule");
	nm_field_real(entry, "METRIC", reason->metric);
	nm_field_real(entry, "LOAD", reason->load);
	nm_field_real(entry, "LOAD_FROM", reason->load_from);
	nm_field_real(entry, "LOAD_TO", reason->load_to);
	nm_field_real(entry, "LOAD_GAP", reason->gap);
	nm_field_real(entry, "GAIN_PAGES", reason->gain);
	nm_field_real(entry, "RESIDENCY_AGE_S", reason->age_s);
	nm_field_real(entry, "ACCESS_COST", decision->steps[0].access_cost_before);
	nm_field_permille(entry, "GAIN_PERMILLE", decision->gain);
	prediction_fields(entry, reason);
}

void nm_append_balance_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char measured[NM_WORD_BYTES], predicted[NM_WORD_BYTES];
	nm_entry_append(entry, ", benefit %s (predicted %s)",
			nm_number_text(verdict->measured_benefit, measured),
			nm_number_text(benefit(&verdict->balance), predicted));
}

void nm_balance_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	nm_field_real(entry, "ACCESS_COST_BEFORE", verdict->threads[0].access_cost_before);
	nm_field_real(entry, "ACCESS_COST_AFTER", verdict->threads[0].access_cost_after);
	nm_field_real(entry, "MEASURED_BENEFIT", verdict->measured_benefit);
	prediction_fields(entry, &verdict->balance);
}
