/* SPDX-License-Identifier: MIT */
/* Decisions about pages: their numbers, their batch for the mover, and the threads that they use.
 */
#include "daemon.h"

/*
 * After its threads moved: time until accesses from the new node outweigh those from the old one.
 */
#define THREADS_SETTLE_INTERVALS 3

uint64_t nm_page_cooldown(const struct nm_config *config)
{
	return (uint64_t)ceil(config->rules.page_cooldown_s / config->general.interval_s);
}

/* Sets the number of pages, and their common node before and after the move; -1: several. */
static void add_total(struct nm_decision *decision, uint64_t pages, uint64_t bytes, int from, int to)
{
	struct nm_step *sum = &decision->steps[0];
	bool first = decision->pages.pages == 0;

	sum->node_from = first || sum->node_from == from ? from : -1;
	sum->node_to = first || sum->node_to == to ? to : -1;
	decision->pages.pages += pages;
	decision->pages.bytes += bytes;
}

void nm_page_stage_threads_moved(struct nm_daemon *daemon, const struct nm_decision *decision)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	for (unsigned i = 0; stage && i < decision->nr_steps; i++) {
		struct nm_page_process *process =
			nm_page_process_of(&stage->processes, decision->steps[i].pid);
		if (decision->steps[i].node_from == decision->steps[i].node_to)
			continue;
		nm_feedback_disturb(daemon->pipeline.feedback, decision->steps[i].pid);
		nm_verifier_disturb(daemon->pipeline.verifier, decision->steps[i].pid);
		if (!process)
			continue;
		process->nr_moved_threads++;
		/* Pages that had no gain may have one for the threads on their new node. */
		uint64_t until = daemon->tally.intervals + THREADS_SETTLE_INTERVALS;
		if (process->until < until || process->nr_rollbacks == 0)
			process->until = until;
	}
}

static struct nm_migration migration_of(const struct nm_daemon *daemon,
					const struct nm_snapshot *snapshot,
					const struct nm_page_process *process,
					const struct nm_pages_reason *reason)
{
	struct nm_migration migration = {
		.decision = nm_decision_of_process(NM_DECISION_PAGES, daemon->next_decision,
						   process->pid, process->start_ticks,
						   process->comm),
		.domain = nm_roster_domain(daemon->pipeline.roster, process->pid),
		.owner = process->owner};

	migration.decision.interval = snapshot->interval;
	migration.decision.pages = *reason;
	return migration;
}

static void begun(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  const struct nm_decision *decision)
{
	const struct nm_verifier_input input = {snapshot, daemon->pipeline.feedback, daemon->config,
						NULL};

	daemon->next_decision++;
	nm_feedback_disturb(daemon->pipeline.feedback, decision->steps[0].pid);
	nm_verifier_add(daemon->pipeline.verifier, &input, decision);
}

int nm_page_stage_submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_page_process *process,
			 const struct nm_pages_reason *reason, struct nm_page_batch **batch)
{
	struct nm_migration migration = migration_of(daemon, snapshot, process, reason);

	if (!nm_trial_stage_allows(daemon, process->pid))
		return -ECANCELED;
	for (size_t i = 0; i < (*batch)->count; i++)
		add_total(&migration.decision, 1, (*batch)->steps[i].bytes,
			  (*batch)->steps[i].from, (*batch)->steps[i].to);
	int r = nm_migration_begin(&daemon->pipeline.migrations, daemon->pipeline.mover, &migration,
				   batch);
	if (r == 0)
		begun(daemon, snapshot, &migration.decision);
	return r;
}

int nm_page_stage_submit_rollback(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
				  const struct nm_page_process *process, struct nm_migration *one)
{
	const struct nm_pages_reason reason = {.reason = NM_PAGE_REASON_ROLLBACK,
					       .exclusivity = one->decision.pages.exclusivity};
	struct nm_migration migration = migration_of(daemon, snapshot, process, &reason);

	migration.decision.undoes = one->decision.id;
	for (size_t i = 0; i < one->nr_origins; i++)
		add_total(&migration.decision, one->origins[i].pages,
			  one->origins[i].pages * 4096ULL, one->origins[i].now_on,
			  one->origins[i].was_on);
	int r = nm_migration_roll_back(&daemon->pipeline.migrations, daemon->pipeline.mover, one,
				       &migration);
	if (r == 0)
		begun(daemon, snapshot, &migration.decision);
	return r;
}
