/* SPDX-License-Identifier: MIT */
/* From chosen pages to batches of the mover: single pages, ranges, and pages that return. */
#include <string.h>

#include "page_internal.h"

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
	if (!input->handler.allows(input->handler.context, migration->decision.steps[0].pid))
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
	for (size_t i = 0; i < count; i++)
		if (nm_page_rule_excludes(&stage->processes, &wanted[i]))
			nm_memory_settle(stage->memory, i, NM_PAGE_FAILED, 0);
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

static void update_waiting(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	for (size_t i = 0; i < stage->processes.count; i++) {
		struct nm_page_process *process = nm_page_process_at(&stage->processes, i);
		process->waits = input->interval < process->until ||
				 (!input->config->rules.paper &&
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

void nm_page_stage_move(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	const struct nm_config *config = input->config;
	uint64_t now_ns = input->snapshot->time_ns;
	struct nm_page_budget room = {.pages = nm_mover_room(stage->mover, now_ns),
				      .bytes = nm_mover_room_bytes(stage->mover, now_ns)};

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

static int roll_back(const struct nm_page_stage *stage, const struct nm_page_stage_input *input,
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
		add_total(&back.decision, run->pages, run->pages * 4096ULL, run->now_on,
			  run->was_on);
	}
	int r = nm_migration_roll_back(input->migrations, stage->mover, one, &back);
	if (r == 0)
		begun(input, &back.decision);
	return r;
}

/* The latest decision first, because pages of an earlier one may have moved again since. */
void nm_page_stage_roll_back(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	for (size_t i = input->migrations->count; i-- > 0;) {
		struct nm_migration *one = &input->migrations->items[i];
		struct nm_page_process *process =
			nm_page_process_of(&stage->processes, one->decision.steps[0].pid);
		if (!one->roll_back || one->decision.kind != NM_DECISION_PAGES)
			continue;
		if (!process || process->owner != one->owner || one->nr_origins == 0)
			nm_migration_drop(input->migrations, one);
		else if (roll_back(stage, input, process, one) == -EAGAIN)
			return;
	}
}
