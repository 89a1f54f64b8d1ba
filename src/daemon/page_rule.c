/* SPDX-License-Identifier: MIT */
/* Migrates single pages that the table of pages has found on the wrong node. */
#include "daemon.h"

/* Submits the pages of one process. */
static int submit_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct nm_memory_wanted *wanted,
			const struct nm_page_selection *found, size_t count)
{
	struct nm_memory *memory = daemon->pipeline.memory;
	struct nm_pages_reason reason = {
		.reason = NM_PAGE_REASON_PAGES,
		.exclusivity = nm_page_rule_exclusivity(memory, daemon->pipeline.topology->nr_nodes,
							wanted, found, count)};
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));

	batch->count = count;
	batch->steps = nm_must(calloc(count, sizeof(*batch->steps)));
	for (size_t i = 0; i < count; i++)
		batch->steps[i] = found[i].page;
	int r = nm_page_stage_submit(
		daemon, snapshot,
		nm_page_process_of(&daemon->pipeline.pages->processes, found[0].pid), &reason, &batch);
	for (size_t i = 0; r == 0 && i < count; i++)
		nm_memory_take(memory, found[i].index);
	return r;
}

/* Pages that may not move are not found again for some time. */
static void settle_excluded(struct nm_daemon *daemon, const struct nm_memory_wanted *wanted,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (nm_page_rule_excludes(&daemon->pipeline.pages->processes, &wanted[i]))
			nm_memory_settle(daemon->pipeline.memory, i, NM_PAGE_FAILED, 0);
}

/* Pages beyond the budget are dropped by nm_memory_clear_wanted(), and may be found again. */
void nm_page_stage_by_rule(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  struct nm_page_budget *room)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	const struct nm_memory_wanted *wanted;
	nm_memory_flush(daemon->pipeline.memory);
	size_t count = nm_memory_wanted(daemon->pipeline.memory, &wanted);
	nm_autofree struct nm_page_selection *found = nm_must(calloc(count + 1, sizeof(*found)));
	size_t end;

	settle_excluded(daemon, wanted, count);
	count = nm_page_rule_choose(&stage->processes, wanted, count, room, found);
	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && found[end].pid == found[i].pid;)
			end++;
		if (submit_pages(daemon, snapshot, wanted, found + i, end - i) < 0)
			return;
	}
}
