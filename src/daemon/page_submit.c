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

static void add_total(struct nm_decision *decision, uint64_t pages, uint64_t bytes, int from, int to)
{
	struct nm_step *sum = &decision->steps[0];
	bool first = decision->pages.pages == 0;

	sum->node_from = first || sum->node_from == from ? from : -1;
	sum->node_to = first || sum->node_to == to ? to : -1;
	decision->pages.pages += pages;
	decision->pages.bytes += bytes;
}

/* Sets the number of pages, and their common node before and after the move; -1: several. */
static void set_totals(struct nm_decision *decision, const struct nm_page_batch *batch)
{
	decision->pages.pages = decision->pages.bytes = 0;
	for (size_t i = 0; i < batch->count; i++)
		add_total(decision, 1, batch->steps[i].bytes, batch->steps[i].from,
			  batch->steps[i].to);
	for (size_t i = 0; i < batch->nr_back; i++)
		add_total(decision, batch->back[i].pages, batch->back[i].pages * 4096ULL,
			  batch->back[i].now_on, batch->back[i].was_on);
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

int nm_page_stage_submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_page_process *process,
			 const struct nm_pages_reason *reason, uint64_t undoes,
			 struct nm_page_batch **batch)
{
	struct nm_decision decision =
		nm_decision_of_process(NM_DECISION_PAGES, daemon->next_decision, process->pid,
				       process->start_ticks, process->comm);

	decision.interval = snapshot->interval;
	decision.undoes = undoes;
	decision.pages = *reason;
	if (undoes == 0 && !nm_trial_stage_allows(daemon, process->pid))
		return -ECANCELED;
	set_totals(&decision, *batch);
	(*batch)->rollback = undoes != 0;
	const struct nm_migration migration = {
		.decision = decision,
		.domain = nm_roster_domain(daemon->pipeline.roster, process->pid),
		.owner = process->owner};
	int r = nm_migration_begin(&daemon->pipeline.migrations, daemon->pipeline.mover, &migration,
				   batch);
	if (r < 0)
		return r;
	daemon->next_decision++;
	nm_feedback_disturb(daemon->pipeline.feedback, process->pid);
	const struct nm_verifier_input input = {snapshot, daemon->pipeline.feedback, daemon->config,
						NULL};
	nm_verifier_add(daemon->pipeline.verifier, &input, &decision);
	return 0;
}
