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

/* Takes the steps over, also on failure. */
static struct nm_page_batch *batch_of(const struct nm_decision *decision,
				      struct nm_page_step *steps, size_t count)
{
	struct nm_page_batch *batch = nm_must(calloc(1, sizeof(*batch)));

	*batch = (struct nm_page_batch){.decision = decision->id,
					.pid = decision->steps[0].pid,
					.start_ticks = decision->steps[0].start_ticks,
					.rollback = decision->undoes != 0,
					.count = count,
					.steps = steps};
	return batch;
}

/* Sets the number of pages, and their common node before and after the move; -1: several. */
static void set_totals(struct nm_decision *decision, const struct nm_page_step *steps, size_t count)
{
	struct nm_step *sum = &decision->steps[0];

	sum->node_from = steps[0].from;
	sum->node_to = steps[0].to;
	decision->pages.pages = count;
	decision->pages.bytes = 0;
	for (size_t i = 0; i < count; i++) {
		decision->pages.bytes += steps[i].bytes;
		if (steps[i].from != sum->node_from)
			sum->node_from = -1;
		if (steps[i].to != sum->node_to)
			sum->node_to = -1;
	}
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
			 struct nm_page_step *steps, size_t count)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_decision decision = {.id = daemon->next_decision,
				       .kind = NM_DECISION_PAGES,
				       .interval = snapshot->interval,
				       .undoes = undoes,
				       .pages = *reason,
				       .gain = NAN,
				       .nr_steps = 1,
				       .steps = {{.pid = process->pid,
						  .start_ticks = process->start_ticks,
						  .cpu_from = -1,
						  .cpu_to = -1,
						  .local_before = NAN,
						  .samples_before = NAN,
						  .latency_before = NAN}}};

	if (undoes == 0 && !nm_trial_stage_allows(daemon, process->pid)) {
		free(steps);
		return -ECANCELED;
	}
	memcpy(decision.steps[0].comm, process->comm, sizeof(process->comm));
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		batch_of(&decision, steps, count);
	NM_RESERVE(stage->migrations, stage->migration_capacity, stage->nr_migrations);
	set_totals(&decision, steps, count);
	batch->domain = nm_roster_domain(daemon->pipeline.roster, batch->pid);
	int r = nm_mover_submit(daemon->pipeline.mover, batch);
	if (r < 0)
		return r;
	(void)NM_TAKE(batch);
	daemon->next_decision++;
	nm_feedback_disturb(daemon->pipeline.feedback, process->pid);
	const struct nm_verifier_input input = {snapshot, daemon->pipeline.feedback, daemon->config,
						NULL};
	nm_verifier_add(daemon->pipeline.verifier, &input, &decision);
	stage->migrations[stage->nr_migrations++] = (struct nm_page_migration){
		.decision = decision, .owner = process->owner, .moving = true, .judged = true};
	return 0;
}
