/* SPDX-License-Identifier: MIT */
/* Handles the results of the mover, and rolls back pages whose migration did not help. */
#include <string.h>

#include "daemon.h"

#define ROLLBACKS_MAX 6
#define NO_GAIN_COOLDOWNS 10
#define SMALL_BYTES 4096ULL
#define MIB (1ULL << 20)

void nm_page_migration_clear(struct nm_page_migration *migration)
{
	free(migration->back);
}

/* ---- receipts ---- */

static void count_failure(struct nm_page_results *results, int error)
{
	results->failed++;
	switch (error) {
	case -EBUSY:
		results->busy++;
		return;
	case -ENOENT:
		results->gone++;
		return;
	case -EACCES:
		results->denied++;
		return;
	case -ENOMEM:
		results->no_memory++;
		return;
	case -EFAULT:
		results->fault++;
		return;
	default:
		return;
	}
}

/* Counts results, moved pages in their actual size, all without a record yet, and their bytes. */
static struct nm_page_results count_results(const struct nm_page_batch *batch, uint64_t *ret_bytes)
{
	struct nm_page_results results = {.error = batch->error};
	uint64_t bytes = 0;

	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		switch ((enum nm_page_fate)step->fate) {
		case NM_PAGE_FATE_UNTRIED:
			results.untried++;
			break;
		case NM_PAGE_FATE_MOVED:
			results.moved++;
			results.forgotten += !step->base_pages;
			bytes += step->base_pages ? 0 : step->bytes;
			break;
		case NM_PAGE_FATE_ELSEWHERE:
			results.elsewhere++;
			break;
		case NM_PAGE_FATE_REFUSED:
			results.refused++;
			break;
		case NM_PAGE_FATE_FAILED:
			count_failure(&results, step->error);
			break;
		}
	}
	for (size_t i = 0; i < batch->nr_base_pages; i++) {
		results.forgotten += batch->base_pages[i].pages;
		bytes += batch->base_pages[i].pages * SMALL_BYTES;
	}
	*ret_bytes = bytes;
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
		/* If memory is short, the page is requested again. */
		nm_page_refuse(process, step->address,
			       step->error == -EBUSY ? 1 : NM_PAGE_REFUSED_TIMES);
}

static void settle_page(struct nm_memory *memory, const struct nm_page_migration *migration,
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

/* ---- original locations ---- */

static void remember(struct nm_page_migration *migration, uint64_t address, uint64_t bytes,
		     int was_on, int now_on)
{
	migration->back[migration->count++] = (struct nm_page_step){
		.address = address, .bytes = bytes, .from = (int16_t)now_on, .to = (int16_t)was_on};
}

/* Adds whole pages as requested, and small ones if their size was not known. */
static void remember_pages(struct nm_page_migration *migration, const struct nm_page_batch *batch,
			   size_t most)
{
	for (size_t i = 0; i < batch->count && migration->count < most; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		int was_on = step->found_on >= 0 ? step->found_on : step->from;
		if (step->fate == NM_PAGE_FATE_MOVED && !step->base_pages && was_on >= 0)
			remember(migration, step->address, step->bytes, was_on, step->to);
	}
	for (size_t i = 0; i < batch->nr_base_pages; i++) {
		const struct nm_base_pages *run = &batch->base_pages[i];
		for (uint64_t k = 0; run->was_on >= 0 && k < run->pages && migration->count < most;
		     k++)
			remember(migration, run->address + k * SMALL_BYTES, SMALL_BYTES,
				 run->was_on, run->now_on);
	}
}

/* Records the original locations within rollback_pages, and counts the pages beyond that limit. */
static void record_origins(struct nm_daemon *daemon, struct nm_page_migration *migration,
			   const struct nm_page_batch *batch, struct nm_page_results *results)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	uint64_t limit = daemon->config->rules.rollback_pages;
	size_t room = limit > stage->nr_origins ? (size_t)(limit - stage->nr_origins) : 0;
	size_t moved = results->forgotten, most = room < moved ? room : moved;

	results->forgotten = 0;
	if (batch->rollback || moved == 0)
		return;
	results->forgotten = moved + batch->base_pages_lost;
	if (migration->judged)
		migration->back = calloc(most + 1, sizeof(*migration->back));
	if (!migration->back)
		return;
	remember_pages(migration, batch, most);
	stage->nr_origins += migration->count;
	results->remembered = migration->count;
	results->forgotten -= migration->count;
}

static void drop_migration(struct nm_page_stage *stage, size_t index)
{
	stage->nr_origins -= stage->migrations[index].count;
	nm_page_migration_clear(&stage->migrations[index]);
	memmove(&stage->migrations[index], &stage->migrations[index + 1],
		(stage->nr_migrations - index - 1) * sizeof(*stage->migrations));
	stage->nr_migrations--;
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
static void report(struct nm_daemon *daemon, struct nm_page_migration *migration,
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

static void finish(struct nm_daemon *daemon, struct nm_page_migration *migration,
		   const struct nm_page_batch *batch)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_page_process *process = nm_page_process_of(&stage->processes, batch->pid);
	uint64_t bytes;
	struct nm_page_results results = count_results(batch, &bytes);

	for (size_t i = 0; i < batch->count; i++) {
		settle_page(daemon->pipeline.memory, migration, &batch->steps[i], batch->error);
		if (process && process->owner == migration->owner)
			note_refusal(process, &batch->steps[i]);
	}
	stage->tally.bytes += bytes;
	report(daemon, migration, &results, bytes);
	record_origins(daemon, migration, batch, &results);
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
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_page_batch *batch;

	while ((batch = nm_mover_collect(daemon->pipeline.mover, false)) != NULL) {
		size_t i = 0;
		while (i < stage->nr_migrations &&
		       stage->migrations[i].decision.id != batch->decision)
			i++;
		if (i < stage->nr_migrations && stage->migrations[i].moving)
			finish(daemon, &stage->migrations[i], batch);
		if (i < stage->nr_migrations && !stage->migrations[i].back)
			drop_migration(stage, i);
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
	struct nm_page_stage *stage = daemon->pipeline.pages;
	bool roll_back = verdict->kind == NM_VERDICT_ROLLED_BACK;

	bar_process(daemon, verdict);
	stage->tally.verdicts[verdict->kind]++;
	for (size_t i = 0; i < stage->nr_migrations; i++) {
		if (stage->migrations[i].decision.id != verdict->decision)
			continue;
		stage->migrations[i].roll_back = roll_back;
		if (!roll_back)
			drop_migration(stage, i);
		return;
	}
}

/* ---- rollback ---- */

static int roll_back(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		     struct nm_page_process *process, const struct nm_page_migration *migration)
{
	struct nm_page_step *steps = calloc(migration->count + 1, sizeof(*steps));
	struct nm_pages_reason reason = {.reason = NM_PAGE_REASON_ROLLBACK,
					 .exclusivity = migration->decision.pages.exclusivity};

	if (steps)
		memcpy(steps, migration->back, migration->count * sizeof(*steps));
	/* If the first pieces of a range have not helped, the others will not. */
	uint64_t first = migration->back[0].address;
	if (migration->decision.pages.reason != NM_PAGE_REASON_PAGES &&
	    first >= process->cursor.start && first < process->cursor.end)
		process->cursor.active = false;
	return nm_page_stage_submit(daemon, snapshot, process, &reason, migration->decision.id,
				    steps, migration->count);
}

/* The latest decision first, because pages of an earlier one may have moved again since. */
int nm_page_stage_roll_back(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	for (size_t i = stage->nr_migrations; i-- > 0;) {
		struct nm_page_migration *migration = &stage->migrations[i];
		struct nm_page_process *process =
			nm_page_process_of(&stage->processes, migration->decision.steps[0].pid);
		bool same = process && process->owner == migration->owner;
		if (!migration->roll_back)
			continue;
		int r = same && migration->count > 0
				? roll_back(daemon, snapshot, process, migration)
				: 0;
		if (r == -EAGAIN || r == -ENOMEM)
			return r == -ENOMEM ? r : 0;
		drop_migration(stage, i);
	}
	return 0;
}

void nm_page_stage_clear_rollbacks(struct nm_page_stage *stage)
{
	for (size_t i = stage->nr_migrations; i-- > 0;)
		if (stage->migrations[i].roll_back)
			drop_migration(stage, i);
}
