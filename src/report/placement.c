/* SPDX-License-Identifier: MIT */
/* Homes of processes, policy "auto". */
#include <math.h>

#include "say.h"

static void subject_fields(struct nm_entry *entry, const struct nm_entry_context *context,
			   const struct nm_entry_home *home)
{
	nm_entry_set_decision(entry, home->decision);
	nm_entry_field(entry, "POLICY", "auto");
	nm_entry_field(entry, "PID", "%u", home->pid);
	nm_entry_field(entry, "COMM", "%s", home->comm);
	nm_field_node(entry, context, "NODE_TO", home->node);
	nm_entry_field(entry, "DRY_RUN", "%d", context->dry_run);
}

static void placement_fields(struct nm_entry *entry, const struct nm_entry_home *home,
			     const struct nm_place_proposal *proposal)
{
	nm_entry_field(entry, "THREADS", "%u", home->threads);
	nm_field_figure(entry, "DEMAND_CPUS", home->demand_cpus);
	nm_entry_field(entry, "PIN", "%s", home->nudged ? "nudge" : "lease");
	if (home->runtime != NM_RUNTIME_NONE)
		nm_entry_field(entry, "RUNTIME", "%s", nm_runtime_name(home->runtime));
	nm_entry_field(entry, "REASON", "%s", nm_place_reason_text(proposal->reason));
	nm_field_figure(entry, "DISTANCE", proposal->distance_now);
	nm_field_figure(entry, "DISTANCE_PREDICTED", proposal->distance_home);
	nm_entry_field(entry, "BYTES_AWAY", "%lu", (unsigned long)proposal->bytes_away);
	nm_field_figure(entry, "MOVE_S", home->move_s);
	nm_field_figure(entry, "AGE_S", home->age_s);
}

void nm_entry_placement(struct nm_entry *entry, const struct nm_entry_context *context,
			const struct nm_entry_home *home, const struct nm_place_proposal *proposal)
{
	char node[NM_WORD_BYTES];
	nm_entry_begin(entry, NM_MESSAGE_DECISION, LOG_INFO);
	nm_entry_field(entry, "KIND", "home");
	subject_fields(entry, context, home);
	placement_fields(entry, home, proposal);
	nm_entry_say(entry, context->dry_run ? "Would place " : "Placed ");
	nm_say_subject(entry, home->comm, home->pid, 0);
	nm_entry_say(entry, " on %s", nm_say_node(context, home->node, node));
	nm_entry_because(entry);
	nm_entry_detail(entry, "%s", nm_place_reason_text(proposal->reason));
	nm_entry_detail(entry, "%u thread%s, %.1f CPUs", home->threads, nm_plural(home->threads, "", "s"),
			home->demand_cpus);
	if (isfinite(proposal->distance_now))
		nm_entry_say(entry, ", distance %.1f " NM_ARROW " %.1f", proposal->distance_now,
			     proposal->distance_home);
	if (proposal->bytes_away > 0 && home->move_s > 0) {
		nm_entry_say(entry, ", ");
		nm_say_size(entry, proposal->bytes_away);
		nm_entry_say(entry, " to migrate");
	}
	nm_say_decision(entry, home->decision);
}

/* The change in the verdict is positive if it is an improvement; the text has the change of the
 * measure itself. */
static void say_measure(struct nm_entry *entry, const struct nm_place_verdict *verdict)
{
	char change[NM_WORD_BYTES];
	switch (verdict->judged_by) {
	case NM_PLACE_BY_PERFORMANCE:
		nm_entry_say(entry, " performance %s", nm_say_change(verdict->change, change));
		return;
	case NM_PLACE_BY_DISTANCE:
		nm_entry_say(entry, " memory distance %s",
			     nm_say_change(1 / (1 + verdict->change) - 1, change));
		return;
	case NM_PLACE_BY_DELAY:
		nm_entry_say(entry, " run queue delay %s of its CPU time",
			     nm_say_change(-verdict->change, change));
		return;
	case NM_PLACE_BY_NOTHING:
		nm_entry_say(entry, ", no samples");
	}
}

void nm_entry_placement_verdict(struct nm_entry *entry, const struct nm_entry_context *context,
				const struct nm_entry_home *home,
				const struct nm_place_verdict *verdict)
{
	static const char *const measures[] = {
		[NM_PLACE_BY_NOTHING] = "none",
		[NM_PLACE_BY_PERFORMANCE] = "performance",
		[NM_PLACE_BY_DISTANCE] = "distance",
		[NM_PLACE_BY_DELAY] = "run-queue-delay",
	};
	nm_entry_begin_verdict(entry, home->decision, verdict->kind);
	subject_fields(entry, context, home);
	nm_entry_field(entry, "JUDGED_BY", "%s", measures[verdict->judged_by]);
	nm_field_permille(entry, "CHANGE_PERMILLE", verdict->change);
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)home->pages_moved);
	nm_say_subject(entry, home->comm, home->pid, 0);
	say_measure(entry, verdict);
	if (home->pages_moved > 0)
		nm_entry_say(entry, ", %lu page%s migrated", (unsigned long)home->pages_moved,
			     nm_plural(home->pages_moved, "", "s"));
}
