/* SPDX-License-Identifier: MIT */
/* One interval of the stage of pages: collects the batches that the mover has finished, and submits
 * single pages, ranges, and pages that return. */
#include <string.h>

#include "mover_internal.h"
#include "mover/page_stage.h"

#define MIB 1048576.0

/* ---- decisions ---- */

/* Returns a decision about pages of the process, without its pages. */
static struct nm_migration migration_of(const struct nm_page_stage_input *input,
					const struct nm_page_process *process,
					enum nm_page_reason reason, double exclusivity)
{
	struct nm_migration migration = {.decision = nm_decision_of_process(
						 NM_DECISION_PAGES, *input->next_decision,
						 process->pid, process->start_ticks, process->comm),
					 .domain = process->domain,
					 .owner = process->owner};

	migration.decision.interval = input->snapshot->interval;
	migration.decision.pages.reason = reason;
	migration.decision.pages.exclusivity = exclusivity;
	return migration;
}

/* Sets the number of pages, and their common node before and after the move; -1: several. */
static void add_total(struct nm_decision *decision, uint64_t pages, uint64_t bytes, int from,
		      int to)
{
	struct nm_step *sum = &decision->steps[0];
	bool first = decision->pages.pages == 0;

	sum->node_from = first || sum->node_from == from ? from : -1;
	sum->node_to = first || sum->node_to == to ? to : -1;
	decision->pages.pages += pages;
	decision->pages.bytes += bytes;
}

/* The decision is reported when the mover has moved at least one page. */
static void begun(const struct nm_page_stage_input *input, const struct nm_decision *decision)
{
	const struct nm_verifier_input verifier_input = {input->snapshot, input->feedback,
							 input->config, NULL};

	++*input->next_decision;
	nm_feedback_disturb(input->feedback, decision->steps[0].pid);
	nm_verifier_add(input->verifier, &verifier_input, decision);
}

/* Hands the pages over, and takes the array `steps` over in any case. Returns 0; -ECANCELED: the
 * process is left alone; or -EAGAIN: the mover is full. */
static int submit(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		  struct nm_migration *migration, struct nm_page_step *steps, size_t count)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));

	batch->steps = steps;
	batch->count = count;
	uint32_t pid = migration->decision.steps[0].pid;
	const struct nm_process *known = nm_tasks_process(input->tasks, pid);
	if ((known && nm_config_keeps_memory(input->config, known->rss_bytes)) ||
	    !input->handler.allows(input->handler.context, pid))
		return -ECANCELED;
	for (size_t i = 0; i < count; i++)
		add_total(&migration->decision, 1, steps[i].bytes, steps[i].from, steps[i].to);
	int r = nm_migration_begin(input->migrations, stage->mover, migration, &batch);
	if (r == 0)
		begun(input, &migration->decision);
	return r;
}

/* ---- single pages ---- */

/* Submits pages of one process. */
static int move_pages(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		      const struct nm_memory_wanted *wanted, const struct nm_page_selection *found,
		      size_t count)
{
	struct nm_page_step *steps = nm_must(calloc(count, sizeof(*steps)));
	struct nm_migration migration = migration_of(
		input, nm_page_process_of(&stage->processes, found[0].pid), NM_PAGE_REASON_PAGES,
		nm_page_rule_exclusivity(stage->memory, stage->topology->nr_nodes, wanted, found,
					 count));

	for (size_t i = 0; i < count; i++)
		steps[i] = found[i].page;
	int r = submit(stage, input, &migration, steps, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		nm_memory_take(stage->memory, found[i].index);
	return r;
}

/* Pages beyond the budget are dropped by nm_memory_update(), and may be found again. */
static void move_by_rule(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
			 struct nm_page_budget *room)
{
	const struct nm_memory_wanted *wanted;
	nm_memory_flush(stage->memory);
	size_t count = nm_memory_wanted(stage->memory, &wanted), end;
	nm_autofree struct nm_page_selection *found = nm_must(calloc(count + 1, sizeof(*found)));

	/* Pages that may not move are not found again for some time. */
	for (size_t i = 0; i < count; i++) {
		if (!nm_page_rule_excludes(&stage->processes, &wanted[i]))
			continue;
		nm_memory_take(stage->memory, i);
		nm_memory_end_check(stage->memory, &wanted[i].page, NM_PAGE_FAILED, 0);
	}
	count = nm_page_rule_choose(&stage->processes, wanted, count, room, found);
	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && found[end].pid == found[i].pid;)
			end++;
		if (move_pages(stage, input, wanted, found + i, end - i) < 0)
			return;
	}
}

/* ---- ranges ---- */

/* Moves pages of one process; items has room for the whole budget. */
static int move_ranges(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		       struct nm_page_process *process, struct nm_page_budget *room,
		       struct nm_page_step *items)
{
	const struct nm_page_input page_input = {.topology = stage->topology,
						 .config = input->config,
						 .memory = stage->memory,
						 .contention = &stage->contention,
						 .interval = input->interval};
	struct nm_page_choices choices = {.items = items, .most = room->pages};

	nm_page_ranges_choose(&page_input, process, room, &choices);
	if (choices.count == 0)
		return 0;
	struct nm_migration migration =
		migration_of(input, process, choices.reason, choices.exclusivity);
	struct nm_page_step *steps = nm_must(calloc(choices.count, sizeof(*steps)));
	memcpy(steps, items, choices.count * sizeof(*steps));
	int r = submit(stage, input, &migration, steps, choices.count);
	if (r < 0)
		nm_page_ranges_restore(process, &choices);
	return r;
}

/* Each interval starts with another process. */
static void move_by_range(const struct nm_page_stage *stage,
			  const struct nm_page_stage_input *input, struct nm_page_budget *room)
{
	size_t count = stage->processes.count;
	nm_autofree struct nm_page_step *items = nm_must(calloc(room->pages + 1, sizeof(*items)));

	for (size_t i = 0; i < count && room->pages > 0; i++) {
		struct nm_page_process *process = nm_page_process_at(
			&stage->processes, (input->snapshot->interval + i) % count);
		if (process->owner && move_ranges(stage, input, process, room, items) < 0)
			return;
	}
}

/* ---- the budget of an interval ---- */

/* The rules of the papers let pages follow at once: with them threads move in most intervals, so
 * that pages would wait without end. */
static void update_waiting(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	for (size_t i = 0; i < stage->processes.count; i++) {
		struct nm_page_process *process = nm_page_process_at(&stage->processes, i);
		process->waits = !input->config->rules.paper &&
				 (input->interval < process->until ||
				  nm_verifier_awaits(input->verifier, process->pid,
						     process->start_ticks, input->interval));
	}
	for (size_t i = 0; i < input->migrations->count; i++) {
		const struct nm_migration *one = &input->migrations->items[i];
		struct nm_page_process *process =
			nm_page_process_of(&stage->processes, one->decision.steps[0].pid);
		if (process && one->roll_back)
			process->waits = true;
	}
}

static void move(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	const struct nm_config *config = input->config;
	uint64_t bytes = nm_mover_room_bytes(stage->mover, input->snapshot->time_ns);
	struct nm_page_budget room = {.pages = (size_t)(bytes / NM_BASE_BYTES), .bytes = bytes};

	update_waiting(stage, input);
	room.whole = (double)room.bytes + 1 >
		     (double)config->pages.max_mb_per_s * MIB * config->general.interval_s;
	/* Alternates the order, so that each of the two gets its share of the budget. */
	bool ranges_first = input->snapshot->interval % 2;
	if (ranges_first)
		move_by_range(stage, input, &room);
	move_by_rule(stage, input, &room);
	if (!ranges_first)
		move_by_range(stage, input, &room);
}

/* ---- rollback ---- */

static void roll_back(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		      struct nm_page_process *process, struct nm_migration *one)
{
	const struct nm_pages_reason *undone = &one->decision.pages;
	struct nm_range_cursor *cursor = &process->cursor;
	uint64_t first = one->origins[0].address;
	struct nm_migration back =
		migration_of(input, process, NM_PAGE_REASON_ROLLBACK, undone->exclusivity);

	/* If the first pieces of a range have not helped, the others will not. */
	if (undone->reason != NM_PAGE_REASON_PAGES && first >= cursor->start && first < cursor->end)
		cursor->active = false;
	back.decision.undoes = one->decision.id;
	for (size_t i = 0; i < one->nr_origins; i++) {
		const struct nm_base_pages *run = &one->origins[i];
		add_total(&back.decision, run->pages, run->pages * (uint64_t)NM_BASE_BYTES,
			  run->now_on, run->was_on);
	}
	if (nm_migration_roll_back(input->migrations, stage->mover, one, &back) == 0)
		begun(input, &back.decision);
}

/* The latest decision first, because pages of an earlier one may have moved again since. If there
 * is no room for a batch of a domain, its earlier ones wait, too; those of others do not. */
static void roll_back_all(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	for (size_t i = input->migrations->count; i-- > 0;) {
		struct nm_migration *one = &input->migrations->items[i];
		struct nm_page_process *process =
			nm_page_process_of(&stage->processes, one->decision.steps[0].pid);
		if (!one->roll_back)
			continue;
		if (!process || process->owner != one->owner || one->nr_origins == 0)
			nm_migration_drop(input->migrations, one);
		else
			roll_back(stage, input, process, one);
	}
}

/* ---- results ---- */

/* A page is tracked in the size of its samples, which a run of base pages does not show. */
static void settle_returned(struct nm_memory *memory, uint16_t owner,
			    const struct nm_base_pages *run)
{
	uint64_t end = run->address + run->pages * nm_page_bytes(NM_PAGE_4K);

	for (uint8_t size = NM_PAGE_4K; size <= NM_PAGE_1G; size++) {
		uint64_t bytes = nm_page_bytes(size);
		struct nm_page_id page = {(run->address + bytes - 1) / bytes * bytes, owner, size};
		for (; page.address + bytes <= end; page.address += bytes)
			nm_memory_end_check(memory, &page, NM_PAGE_MOVED, (unsigned)run->now_on);
	}
}

static void note_pages(const struct nm_page_stage *stage, const struct nm_migration *migration,
		       const struct nm_page_batch *batch, struct nm_page_results *results)
{
	struct nm_page_process *process = nm_page_process_of(&stage->processes, batch->pid);
	bool by_rule = migration->decision.pages.reason == NM_PAGE_REASON_PAGES;

	for (size_t i = 0; i < batch->count; i++) {
		const struct nm_page_step *step = &batch->steps[i];
		enum nm_page_outcome outcome = nm_page_outcome_of(step, batch->error);
		/* As when it was chosen: any page above 2 MiB counts as one of 1 GiB. */
		bool larger = step->bytes > nm_page_bytes(NM_PAGE_2M);
		struct nm_page_id page = {.address = step->address,
					  .owner = migration->owner,
					  .size = larger ? NM_PAGE_1G
							 : nm_page_size_of(step->bytes)};
		nm_page_results_add(results, step);
		/* For a range only moved pages matter: its other pages were not found by the rule.
		 */
		if (by_rule || outcome == NM_PAGE_MOVED)
			nm_memory_end_check(stage->memory, &page, outcome, (unsigned)step->to);
		if (process && process->owner == migration->owner)
			nm_page_note(process, step, !by_rule);
	}
	for (size_t i = 0; batch->rollback && i < batch->nr_base_pages; i++)
		settle_returned(stage->memory, migration->owner, &batch->base_pages[i]);
}

static void finish(struct nm_page_stage *stage, const struct nm_page_stage_input *input,
		   struct nm_migration *migration, const struct nm_page_batch *batch)
{
	struct nm_page_tally *tally = &stage->tally;
	struct nm_page_results results = {.error = batch->error, .moved = batch->moved};

	note_pages(stage, migration, batch, &results);
	if (!batch->rollback) {
		results.remembered =
			nm_migration_remember(input->migrations, migration, batch, input->config);
		results.forgotten = batch->base_pages_lost - results.remembered;
	}
	for (size_t i = 0; !batch->rollback && i < batch->nr_base_pages; i++)
		results.forgotten += batch->base_pages[i].pages;
	if (batch->moved > 0) {
		migration->decision.pages.pages = batch->moved;
		migration->decision.pages.bytes = batch->bytes;
	}
	/* A decision that moved nothing is none, except in a dry run. */
	if (batch->moved > 0 || batch->error == -EROFS) {
		tally->decisions++;
		input->handler.decided(input->handler.context, &migration->decision);
	}
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

static void collect(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
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

/* ---- one interval ---- */

void nm_page_stage_tick(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	nm_page_stage_follow(stage, input);
	collect(stage, input);
	if (!input->may_move) {
		nm_migrations_drop(input->migrations, true);
		return;
	}
	roll_back_all(stage, input);
	if (!nm_mover_is_barred(stage->mover))
		move(stage, input);
}
