/* SPDX-License-Identifier: MIT */
/* Handles the results of the mover, and rolls back pages whose migration did not help. */
#include <string.h>

#include "daemon.h"

#define ROLLBACKS_MAX 6
#define NO_GAIN_COOLDOWNS 10
#define SMALL_BYTES 4096ULL
#define MIB (1ULL << 20)

/* ---- receipts ---- */

static struct nm_page_results count_results(const struct nm_page_batch *batch)
{
	struct nm_page_results results = {.error = batch->error, .moved = batch->moved};

	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		results.untried += step->fate == NM_PAGE_FATE_UNTRIED;
		results.elsewhere += step->fate == NM_PAGE_FATE_ELSEWHERE;
		results.refused += step->fate == NM_PAGE_FATE_REFUSED;
		if (step->fate != NM_PAGE_FATE_FAILED)
			continue;
		results.failed++;
		results.busy += step->error == -EBUSY;
		results.gone += step->error == -ENOENT;
		results.denied += step->error == -EACCES;
		results.no_memory += step->error == -ENOMEM;
		results.fault += step->error == -EFAULT;
	}
	return results;
}

/* Remembers refusals; a lack of memory, or a page that is gone, is none. */
static void note_refusal(struct nm_page_process *process, const struct nm_page_step *step)
{
	bool refused = step->fate == NM_PAGE_FATE_REFUSED && step->error != -ENOSPC;
	bool failed = step->fate == NM_PAGE_FATE_FAILED && step->error != -ENOMEM &&
		      step->error != -ENOENT;

	if (step->fate == NM_PAGE_FATE_MOVED)
		nm_page_accept(process, step->address);
	else if (refused || failed)
		nm_page_refuse(process, step->address,
			       step->error == -EBUSY ? 1 : NM_PAGE_REFUSED_TIMES);
}

static void settle_page(struct nm_memory *memory, const struct nm_migration *migration,
			const struct nm_page_step *step, int error)
{
	struct nm_page_id page = {.address = step->address,
				  .owner = migration->owner,
				  .size = step->bytes > 2 * MIB	   ? NM_PAGE_1G
					  : step->bytes == 2 * MIB ? NM_PAGE_2M
								   : NM_PAGE_4K};
	/* An immediate second request would be refused, too. */
	bool final = error == -EPERM || error == -EFBIG || error == -EROFS;
	enum nm_page_outcome outcome = NM_PAGE_DROPPED;

	if (step->fate == NM_PAGE_FATE_MOVED ||
	    (step->fate == NM_PAGE_FATE_ELSEWHERE && step->found_on == step->to))
		outcome = NM_PAGE_MOVED;
	else if (step->fate == NM_PAGE_FATE_FAILED || step->fate == NM_PAGE_FATE_REFUSED || final)
		outcome = NM_PAGE_FAILED;
	/* For a range only moved pages matter: its other pages were not found by the rule. */
	if (outcome == NM_PAGE_MOVED || migration->decision.pages.reason == NM_PAGE_REASON_PAGES)
		nm_memory_settle_page(memory, &page, outcome, (unsigned)step->to);
}

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

/* Records the original locations, and counts the pages without one. */
static void record_origins(struct nm_daemon *daemon, struct nm_migration *migration,
			   const struct nm_page_batch *batch, struct nm_page_results *results)
{
	uint64_t moved = batch->base_pages_lost;

	for (size_t i = 0; i < batch->nr_base_pages; i++)
		moved += batch->base_pages[i].pages;
	results->remembered = nm_migration_remember(&daemon->pipeline.migrations, migration, batch,
						    daemon->config);
	results->forgotten = moved - results->remembered;
}

/* ---- collecting ---- */

static void tally(struct nm_page_tally *tally, const struct nm_page_results *results)
{
	tally->moved += results->moved;
	tally->elsewhere += results->elsewhere;
	tally->refused += results->refused;
	tally->failed += results->failed;
	tally->untried += results->untried;
	tally->forgotten += results->forgotten;
}

/* For a range that is recorded as placed. */
static void retry_missed(const struct nm_page_stage *stage, const struct nm_page_batch *batch)
{
	struct nm_page_process *process = nm_page_process_of(&stage->processes, batch->pid);

	for (size_t i = 0; process && i < batch->count; i++)
		if (batch->steps[i].fate == NM_PAGE_FATE_UNTRIED ||
		    (batch->steps[i].fate == NM_PAGE_FATE_FAILED &&
		     batch->steps[i].error == -ENOMEM))
			nm_page_ranges_mark_missed(process, batch->steps[i].address);
}

/* Reports what was moved. A decision that moved nothing is none. */
static void report(struct nm_daemon *daemon, struct nm_migration *migration,
		   const struct nm_page_results *results, uint64_t bytes)
{
	const struct nm_receipt receipt = {.decision = migration->decision.id, .applied = true};

	if (results->moved > 0) {
		migration->decision.pages.pages = results->moved;
		migration->decision.pages.bytes = bytes;
	} else if (results->error != -EROFS) { /* in a dry run nothing moves */
		return;
	}
	daemon->pipeline.pages->tally.decisions++;
	nm_report_decision(daemon, &migration->decision, &receipt);
}

static void finish(struct nm_daemon *daemon, struct nm_migration *migration,
		   const struct nm_page_batch *batch)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_page_process *process = nm_page_process_of(&stage->processes, batch->pid);
	struct nm_page_results results = count_results(batch);

	for (size_t i = 0; i < batch->count; i++) {
		settle_page(daemon->pipeline.memory, migration, &batch->steps[i], batch->error);
		if (process && process->owner == migration->owner)
			note_refusal(process, &batch->steps[i]);
	}
	stage->tally.bytes += batch->bytes;
	report(daemon, migration, &results, batch->bytes);
	if (!batch->rollback)
		record_origins(daemon, migration, batch, &results);
	for (size_t i = 0; batch->rollback && i < batch->nr_base_pages; i++)
		settle_returned(daemon->pipeline.memory, migration->owner, &batch->base_pages[i]);
	tally(&stage->tally, &results);
	if (migration->decision.pages.reason == NM_PAGE_REASON_REGION ||
	    migration->decision.pages.reason == NM_PAGE_REASON_CONTENTION)
		retry_missed(stage, batch);
	nm_feedback_disturb(daemon->pipeline.feedback, batch->pid);
	migration->moving = false;
	nm_verifier_done(daemon->pipeline.verifier, batch->decision, &results,
			 daemon->tally.intervals);
}

void nm_page_stage_collect(struct nm_daemon *daemon)
{
	struct nm_migrations *migrations = &daemon->pipeline.migrations;
	struct nm_page_batch *batch;

	while ((batch = nm_mover_collect(daemon->pipeline.mover, false)) != NULL) {
		struct nm_migration *one = nm_migration_find(migrations, batch->decision);
		if (one)
			finish(daemon, one, batch);
		if (one && one->nr_origins == 0)
			nm_migration_drop(migrations, one);
		nm_page_batch_free(batch);
	}
}

/* ---- verdicts ---- */

/* Pages that were moved without gain stay, twice as long after each further rollback. The decisions
 * of one evaluation count once. */
static void bar_process(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_page_process *process =
		nm_page_process_of(&daemon->pipeline.pages->processes, verdict->threads[0].pid);

	if (!process)
		return;
	if ((verdict->kind == NM_VERDICT_IMPROVED || verdict->kind == NM_VERDICT_NEUTRAL) &&
	    verdict->pages.reason != NM_PAGE_REASON_ROLLBACK)
		process->nr_rollbacks = 0;
	if (verdict->kind != NM_VERDICT_ROLLED_BACK && !verdict->no_gain)
		return;
	uint64_t wait = NO_GAIN_COOLDOWNS * nm_page_cooldown(daemon->config);
	if (process->until >= daemon->tally.intervals + wait)
		return;
	process->until = daemon->tally.intervals + (wait << process->nr_rollbacks);
	if (verdict->kind == NM_VERDICT_ROLLED_BACK && process->nr_rollbacks < ROLLBACKS_MAX)
		process->nr_rollbacks++;
}

void nm_page_stage_apply_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_migrations *migrations = &daemon->pipeline.migrations;
	struct nm_migration *one = nm_migration_find(migrations, verdict->decision);

	bar_process(daemon, verdict);
	daemon->pipeline.pages->tally.verdicts[verdict->kind]++;
	if (verdict->kind != NM_VERDICT_ROLLED_BACK)
		nm_migration_drop(migrations, one);
	else if (one)
		one->roll_back = true;
}

/* ---- rollback ---- */

/* If the first pieces of a range have not helped, the others will not. */
static void stop_range(struct nm_page_process *process, const struct nm_migration *one)
{
	uint64_t first = one->origins[0].address;

	if (one->decision.pages.reason != NM_PAGE_REASON_PAGES && first >= process->cursor.start &&
	    first < process->cursor.end)
		process->cursor.active = false;
}

/* The latest decision first, because pages of an earlier one may have moved again since. */
void nm_page_stage_roll_back(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_migrations *migrations = &daemon->pipeline.migrations;

	for (size_t i = migrations->count; i-- > 0;) {
		struct nm_migration *one = &migrations->items[i];
		struct nm_page_process *process = nm_page_process_of(
			&daemon->pipeline.pages->processes, one->decision.steps[0].pid);
		if (!one->roll_back || one->decision.kind != NM_DECISION_PAGES)
			continue;
		if (!process || process->owner != one->owner || one->nr_origins == 0) {
			nm_migration_drop(migrations, one);
			continue;
		}
		stop_range(process, one);
		if (nm_page_stage_submit_rollback(daemon, snapshot, process, one) == -EAGAIN)
			return;
	}
}
