/* SPDX-License-Identifier: MIT */
/* Homes of processes, policy "auto". */
#include <math.h>

#include "entry.h"

void nm_home_fields(struct nm_entry *entry, const struct nm_home_reason *home)
{
	nm_entry_field(entry, "THREADS", "%u", home->threads);
	nm_field_real(entry, "DEMAND_CPUS", home->demand_cpus);
	nm_entry_field(entry, "REASON", "%s", nm_place_reason_text(home->reason));
	nm_field_real(entry, "DISTANCE", home->distance_now);
	nm_field_real(entry, "DISTANCE_PREDICTED", home->distance_home);
	nm_entry_field(entry, "BYTES_AWAY", "%lu", (unsigned long)home->bytes_away);
	nm_field_real(entry, "MOVE_S", home->move_s);
	nm_field_real(entry, "AGE_S", home->age_s);
}

static void append_reason(struct nm_entry *entry, const struct nm_home_reason *home)
{
	nm_entry_begin_reasons(entry);
	nm_entry_detail(entry, "%s", nm_place_reason_text(home->reason));
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
}

void nm_append_home(struct nm_entry *entry, const struct nm_entry_context *context,
		    const struct nm_decision *decision)
{
	const struct nm_step *step = &decision->steps[0];
	char node[NM_WORD_BYTES];
	nm_entry_append(entry, context->dry_run ? "Would place " : "Placed ");
	nm_append_subject(entry, step->comm, step->pid, 0);
	nm_entry_append(entry, " on %s", nm_node_text(context, step->node_to, node));
	append_reason(entry, &decision->home);
}

/* The change in the verdict is positive if it is an improvement; the text has the change of the
 * measure itself. */
static void append_measure(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	char change[NM_WORD_BYTES];
	switch (verdict->judged_by) {
	case NM_PLACE_BY_PERFORMANCE:
		nm_entry_append(entry, " performance %s", nm_change_text(verdict->change, change));
		return;
	case NM_PLACE_BY_DISTANCE:
		nm_entry_append(entry, " memory distance %s",
				nm_change_text(1 / (1 + verdict->change) - 1, change));
		return;
	case NM_PLACE_BY_DELAY:
		nm_entry_append(entry, " run queue delay %s of its CPU time",
				nm_change_text(-verdict->change, change));
		return;
	case NM_PLACE_BY_NOTHING:
		nm_entry_append(entry, ", no comparable samples");
	}
}

void nm_append_home_verdict(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	uint64_t pages = verdict->results.moved;
	append_measure(entry, verdict);
	if (pages > 0)
		nm_entry_append(entry, ", %lu page%s migrated", (unsigned long)pages,
				nm_plural(pages, "", "s"));
}

void nm_home_verdict_fields(struct nm_entry *entry, const struct nm_verdict *verdict)
{
	static const char *const measures[] = {
		[NM_PLACE_BY_NOTHING] = "none",
		[NM_PLACE_BY_PERFORMANCE] = "performance",
		[NM_PLACE_BY_DISTANCE] = "distance",
		[NM_PLACE_BY_DELAY] = "run-queue-delay",
	};
	nm_entry_field(entry, "JUDGED_BY", "%s", measures[verdict->judged_by]);
	nm_field_permille(entry, "CHANGE_PERMILLE", verdict->change);
	nm_entry_field(entry, "PAGES_MOVED", "%lu", (unsigned long)verdict->results.moved);
}
