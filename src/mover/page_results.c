/* SPDX-License-Identifier: MIT */
/* Handles the batches that the mover has finished, and the verdicts. */
#include "page_internal.h"

#define SMALL_BYTES 4096ULL
#define MIB (1ULL << 20)

/* A page is tracked in the size of its samples, which a run of base pages does not show. */
static void settle_returned(struct nm_memory *memory, uint16_t owner,
			    const struct nm_base_pages *run)
{
	static const struct {
		uint8_t size; /* enum nm_page_size */
		uint64_t bytes;
	} sizes[] = {{NM_PAGE_4K, SMALL_BYTES}, {NM_PAGE_2M, 2 * MIB}, {NM_PAGE_1G, 1024 * MIB}};
	uint64_t end = run->address + run->pages * SMALL_BYTES;

	for (size_t i = 0; i < NM_ARRAY_SIZE(sizes); i++) {
		uint64_t bytes = sizes[i].bytes;
		for (uint64_t address = (run->address + bytes - 1) / bytes * bytes;
		     address + bytes <= end; address += bytes) {
			struct nm_page_id page = {
				.address = address, .owner = owner, .size = sizes[i].size};
			nm_memory_settle_page(memory, &page, NM_PAGE_MOVED, (unsigned)run->now_on);
		}
	}
}

/* For a range only moved pages matter: its other pages were not found by the rule. */
static void settle_pages(const struct nm_page_stage *stage, const struct nm_migration *migration,
			 const struct nm_page_batch *batch)
{
	bool found = migration->decision.pages.reason == NM_PAGE_REASON_PAGES;

	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		enum nm_page_outcome outcome = nm_page_outcome_of(step, batch->error);
		struct nm_page_id page = {.address = step->address,
					  .owner = migration->owner,
					  .size = step->bytes > 2 * MIB	   ? NM_PAGE_1G
						  : step->bytes == 2 * MIB ? NM_PAGE_2M
									   : NM_PAGE_4K};
		if (found || outcome == NM_PAGE_MOVED)
			nm_memory_settle_page(stage->memory, &page, outcome, (unsigned)step->to);
	}
	for (size_t i = 0; batch->rollback && i < batch->nr_base_pages; i++)
		settle_returned(stage->memory, migration->owner, &batch->base_pages[i]);
}

static void note_results(const struct nm_page_stage *stage, const struct nm_migration *migration,
			 const struct nm_page_batch *batch)
{
	struct nm_page_process *process = nm_page_process_of(&stage->processes, batch->pid);
	bool of_range = migration->decision.pages.reason != NM_PAGE_REASON_PAGES;

	for (size_t i = 0; process && process->owner == migration->owner && i < batch->count; i++)
		nm_page_note(process, &batch->steps[i], of_range);
}

/* Reports what was moved. A decision that moved nothing is none, except in a dry run. */
static void report(struct nm_page_stage *stage, const struct nm_page_handler *handler,
		   struct nm_migration *migration, const struct nm_page_batch *batch)
{
	if (batch->moved > 0) {
		migration->decision.pages.pages = batch->moved;
		migration->decision.pages.bytes = batch->bytes;
	} else if (batch->error != -EROFS) {
		return;
	}
	stage->tally.decisions++;
	handler->decided(handler->context, &migration->decision);
}

/* Records the original locations. Returns the results, with the number of pages without one. */
static struct nm_page_results remember(const struct nm_page_stage_input *input,
				       struct nm_migration *migration,
				       const struct nm_page_batch *batch)
{
	struct nm_page_results results = {.error = batch->error, .moved = batch->moved};

	for (size_t i = 0; i < batch->count; i++)
		nm_page_results_add(&results, &batch->steps[i]);
	if (batch->rollback)
		return results;
	results.remembered =
		nm_migration_remember(input->migrations, migration, batch, input->config);
	results.forgotten = batch->base_pages_lost - results.remembered;
	for (size_t i = 0; i < batch->nr_base_pages; i++)
		results.forgotten += batch->base_pages[i].pages;
	return results;
}

static void finish(struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		   struct nm_migration *migration, const struct nm_page_batch *batch)
{
	struct nm_page_tally *tally = &stage->tally;
	struct nm_page_results results = remember(input, migration, batch);

	settle_pages(stage, migration, batch);
	note_results(stage, migration, batch);
	report(stage, &input->handler, migration, batch);
	tally->bytes += batch->bytes;
	tally->moved += results.moved;
	tally->elsewhere += results.elsewhere;
	tally->refused += results.refused;
	tally->failed += results.failed;
	tally->untried += results.untried;
	tally->forgotten += results.forgotten;
	nm_feedback_disturb(input->feedback, batch->pid);
	migration->moving = false;
	nm_verifier_done(input->verifier, batch->decision, &results, input->interval);
}

void nm_page_stage_collect(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	struct nm_page_batch *batch;

	while ((batch = nm_mover_collect(stage->mover, false)) != NULL) {
		struct nm_migration *one = nm_migration_find(input->migrations, batch->decision);
		if (one)
			finish(stage, input, one, batch);
		if (one && one->nr_origins == 0)
			nm_migration_drop(input->migrations, one);
		nm_page_batch_free(batch);
	}
}

void nm_page_stage_apply_verdict(struct nm_page_stage *stage,
				 const struct nm_page_stage_input *input,
				 const struct nm_verdict *verdict)
{
	struct nm_migration *one = nm_migration_find(input->migrations, verdict->decision);
	struct nm_page_process *process =
		nm_page_process_of(&stage->processes, verdict->threads[0].pid);

	if (process)
		nm_page_judged(process, verdict, input->config, input->interval);
	stage->tally.verdicts[verdict->kind]++;
	if (verdict->kind != NM_VERDICT_ROLLED_BACK)
		nm_migration_drop(input->migrations, one);
	else if (one)
		one->roll_back = true;
}
