/* SPDX-License-Identifier: MIT */
/* Migrates single pages that the table of pages has found on the wrong node (kMAF, section 3.3). */
#include <math.h>
#include <string.h>

#include "daemon.h"

struct choice {
	uint32_t pid;
	uint64_t address;
	size_t index; /* in nm_memory_wanted() */
};

static uint64_t bytes_of(const struct nm_page_id *page)
{
	static const uint64_t bytes[] = {
		[NM_PAGE_4K] = 4096, [NM_PAGE_2M] = 2ULL << 20, [NM_PAGE_1G] = 1ULL << 30};

	return bytes[page->size];
}

static int by_process_and_address(const void *left, const void *right)
{
	const struct choice *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->address > b->address) - (a->address < b->address);
}

/*
 * Returns whether the page is in a range that was spread because several nodes use it. A few
 * accesses could move it by chance, or to the overloaded node; such a page is only moved with its
 * range.
 */
static bool is_spread(const struct nm_page_process *process, uint64_t address)
{
	size_t index;

	if (!nm_regions_find(process->regions, address, &index))
		return false;
	struct nm_region region = nm_regions_at(process->regions, index);
	return region.placed == NM_REGION_EVERYWHERE ||
	       (region.placed >= 0 && region.placed == region.second);
}

/* Each process gets its share of the budget, so that a busy one does not exclude the others. */
static void share_out(struct nm_page_stage *stage, const struct nm_memory_wanted *wanted,
		      size_t count, size_t pages)
{
	size_t sharers = 0;

	for (size_t i = 0; i < stage->nr_processes; i++)
		stage->processes[i].share = 0;
	for (size_t i = 0; i < count; i++) {
		struct nm_page_process *process = nm_page_process_of(stage, wanted[i].pid);
		if (process)
			sharers += process->share++ == 0;
	}
	for (size_t i = 0; i < stage->nr_processes && sharers > 0; i++)
		stage->processes[i].share = pages / sharers + 1;
}

/* Selects pages in the order in which they were found, within the budget. */
static size_t choose(struct nm_daemon *daemon, const struct nm_memory_wanted *wanted, size_t count,
		     struct nm_page_room *room, struct choice *choices)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	size_t used = 0;

	share_out(stage, wanted, count, room->pages);
	for (size_t i = 0; i < count; i++) {
		struct nm_page_process *process = nm_page_process_of(stage, wanted[i].pid);
		uint64_t bytes = bytes_of(&wanted[i].page);
		if (!process || !process->regions || process->waits ||
		    process->owner != wanted[i].page.owner || process->share == 0 ||
		    is_spread(process, wanted[i].page.address) || !nm_page_room_take(room, bytes))
			continue;
		process->share--;
		choices[used++] = (struct choice){.pid = wanted[i].pid,
						  .address = wanted[i].page.address & ~(bytes - 1),
						  .index = i};
	}
	return used;
}

/* Equation 4 over the pages that move. */
static double exclusivity_of(struct nm_daemon *daemon, const struct nm_memory_wanted *wanted,
			     const struct choice *choices, size_t count)
{
	struct nm_memory *memory = daemon->pipeline.memory;
	double most = 0, total = 0;
	struct nm_page_view view;

	for (size_t i = 0; i < count; i++) {
		const struct nm_memory_wanted *one = &wanted[choices[i].index];
		if (nm_memory_look(memory, &one->page, &view) < 0)
			continue;
		most += view.accesses[one->to];
		for (unsigned k = 0; k < daemon->pipeline.topology->nr_nodes; k++)
			total += view.accesses[k];
	}
	return total > 0 ? most / total : (double)NAN;
}

static int move_some(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		     const struct nm_memory_wanted *wanted, const struct choice *choices,
		     size_t count)
{
	struct nm_page_decision decision = {.reason = NM_PAGE_REASON_PAGES,
					    .exclusivity =
						    exclusivity_of(daemon, wanted, choices, count)};
	nm_autofree struct nm_page_step *steps = calloc(count, sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct nm_memory_wanted *one = &wanted[choices[i].index];
		steps[i] = (struct nm_page_step){.address = choices[i].address,
						 .bytes = bytes_of(&one->page),
						 .from = one->from,
						 .to = one->to};
	}
	int r = nm_page_stage_submit(daemon, snapshot,
				     nm_page_process_of(daemon->pipeline.pages, choices[0].pid),
				     &decision, steps, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		nm_memory_take(daemon->pipeline.memory, choices[i].index);
	return r;
}

/* Pages beyond the budget are dropped by nm_memory_clear_wanted(), and may be found again. */
int nm_page_stage_by_rule(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  struct nm_page_room *room)
{
	const struct nm_memory_wanted *wanted;
	nm_memory_flush(daemon->pipeline.memory);
	size_t count = nm_memory_wanted(daemon->pipeline.memory, &wanted);
	nm_autofree struct choice *choices = calloc(count + 1, sizeof(*choices));
	size_t end;

	if (!choices)
		return -ENOMEM;
	count = choose(daemon, wanted, count, room, choices);
	qsort(choices, count, sizeof(*choices), by_process_and_address);
	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && choices[end].pid == choices[i].pid;)
			end++;
		int r = move_some(daemon, snapshot, wanted, choices + i, end - i);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
	}
	return 0;
}
