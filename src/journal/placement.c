/* SPDX-License-Identifier: MIT */
/* Homes of processes, policy "auto". */
#include <math.h>
#include <string.h>

#include "say.h"

static void subject(struct nm_entry *entry, const struct nm_entry_context *context,
		    const struct nm_entry_home *home)
{
	nm_entry_field(entry, "DECISION", "%lu", (unsigned long)home->decision);
	nm_entry_field(entry, "POLICY", "auto");
	nm_entry_field(entry, "PID", "%u", home->pid);
	nm_entry_field(entry, "COMM", "%s", home->comm);
	nm_field_node(entry, context, "NODE_TO", home->node);
	nm_entry_field(entry, "DRY_RUN", "%d", context->dry_run);
}

void nm_entry_placement(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_entry_home *home, const struct nm_place_proposal *proposal)
{
	char node[NM_WORD_BYTES];
	nm_entry_begin(entry, NM_MESSAGE_DECISION, LOG_INFO);
	nm_entry_field(entry, "KIND", "home");
	subject(entry, context, home);
	nm_entry_field(entry, "THREADS", "%u", home->threads);
	if (home->runtime != NM_RUNTIME_NONE)
		nm_entry_field(entry, "RUNTIME", "%s", nm_runtime_name(home->runtime));
	nm_entry_field(entry, "REASON", "%s", nm_place_reason_text(proposal->reason));
	nm_field_figure(entry, "DISTANCE", proposal->distance_now);
	nm_field_figure(entry, "DISTANCE_PREDICTED", proposal->distance_home);
	nm_entry_field(entry, "BYTES_AWAY", "%lu", (unsigned long)proposal->bytes_away);
	nm_field_figure(entry, "MOVE_S", home->move_s);
	nm_field_figure(entry, "AGE_S", home->age_s);
	nm_entry_say(entry, "%s %s[%u] a home on %s",
		     context->dry_run ? "would give" : "gave", home->comm, home->pid,
		     nm_say_node(context, home->node, node));
	entry->reason = strlen(entry->text);
	nm_entry_say(entry, ": %s; %.1f s old, %u threads on %.1f CPUs",
		     nm_place_reason_text(proposal->reason), home->age_s, home->threads,
		     home->demand_cpus);
	if (isfinite(proposal->distance_now))
		nm_entry_say(entry, ", distance to memory %.1f, predicted %.1f",
			     proposal->distance_now, proposal->distance_home);
	if (proposal->bytes_away > 0 && home->move_s > 0) {
		nm_entry_say(entry, "; ");
		nm_say_size(entry, proposal->bytes_away);
		nm_entry_say(entry, " elsewhere, %.0f ms to move", home->move_s * 1e3);
	}
	if (home->nudged) {
		nm_entry_say(entry, "; threads are nudged");
		nm_say_runtime(entry, home->runtime);
	}
	nm_entry_say(entry, " (decision %lu)", (unsigned long)home->decision);
}

void nm_entry_placement_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
				const struct nm_entry_home *home,
				const struct nm_place_verdict *verdict)
{
	static const char *const names[] = {"improved", "neutral", "rolled-back", "inconclusive"};
	char change[NM_WORD_BYTES];
	nm_entry_begin(entry, NM_MESSAGE_VERDICT, LOG_INFO);
	subject(entry, context, home);
	nm_entry_field(entry, "VERDICT", "%s", names[verdict->outcome]);
	nm_entry_field(entry, "JUDGED_BY", "%s", verdict->judged_by);
	nm_field_permille(entry, "CHANGE_PERMILLE", verdict->change);
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)home->pages_moved);
	nm_entry_say(entry, "decision %lu %s: %s[%u], judged by %s: %s, %lu pages moved",
		     (unsigned long)home->decision, names[verdict->outcome], home->comm, home->pid,
		     verdict->judged_by, nm_say_percent(verdict->change, change),
		     (unsigned long)home->pages_moved);
}
