/* SPDX-License-Identifier: MIT */
/* Chooses single pages that the table of pages has found on the wrong node (kMAF, section 3.3). */
#include <math.h>
#include <stdlib.h>

#include "policy/page_choice.h"

bool nm_page_budget_use(struct nm_page_budget *room, uint64_t bytes)
{
	if (room->pages == 0 || (room->bytes < bytes && !room->whole))
		return false;
	room->whole = false;
	room->pages--;
	room->bytes -= bytes < room->bytes ? bytes : room->bytes;
	return true;
}

static int by_process_and_address(const void *left, const void *right)
{
	const struct nm_page_selection *a = left, *b = right;

	return NM_COMPARE(a->pid, b->pid) ?: NM_COMPARE(a->page.address, b->page.address);
}

struct nm_page_process *nm_page_process_of(const struct nm_column *processes, uint32_t pid)
{
	struct nm_page_process *process = nm_column_find(processes, pid);

	return process && process->owner ? process : NULL;
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
static void share_out(const struct nm_column *processes, const struct nm_memory_wanted *wanted,
		      size_t count, size_t pages)
{
	size_t sharers = 0;

	for (size_t i = 0; i < processes->count; i++)
		nm_page_process_at(processes, i)->share = 0;
	for (size_t i = 0; i < count; i++) {
		struct nm_page_process *process = nm_page_process_of(processes, wanted[i].pid);
		if (process && !wanted[i].checked)
			sharers += process->share++ == 0;
	}
	for (size_t i = 0; i < processes->count && sharers > 0; i++)
		nm_page_process_at(processes, i)->share = pages / sharers + 1;
}

static bool is_movable(const struct nm_page_process *process, const struct nm_page_id *page)
{
	uint64_t bytes = nm_page_bytes(page->size);

	return nm_page_may_move(process, page->address & ~(bytes - 1), bytes);
}

bool nm_page_rule_excludes(const struct nm_column *processes, const struct nm_memory_wanted *one)
{
	const struct nm_page_process *process = nm_page_process_of(processes, one->pid);

	return process && process->regions && process->owner == one->page.owner &&
	       !is_movable(process, &one->page);
}

static bool may_move(const struct nm_page_process *process, const struct nm_page_id *page)
{
	return process && process->regions && !process->waits && process->owner == page->owner &&
	       process->share > 0 && is_movable(process, page) &&
	       !is_spread(process, page->address);
}

size_t nm_page_rule_choose(const struct nm_column *processes, const struct nm_memory_wanted *wanted,
			   size_t count, struct nm_page_budget *room, struct nm_page_selection *ret)
{
	size_t used = 0;

	share_out(processes, wanted, count, room->pages);
	for (size_t i = 0; i < count; i++) {
		const struct nm_memory_wanted *one = &wanted[i];
		struct nm_page_process *process = nm_page_process_of(processes, one->pid);
		uint64_t bytes = nm_page_bytes(one->page.size);
		if (one->checked || !may_move(process, &one->page) ||
		    !nm_page_budget_use(room, bytes))
			continue;
		process->share--;
		ret[used++] = (struct nm_page_selection){
			.pid = one->pid,
			.index = i,
			.page = {.address = one->page.address & ~(bytes - 1),
				 .bytes = bytes,
				 .from = one->from,
				 .to = one->to},
		};
	}
	qsort(ret, used, sizeof(*ret), by_process_and_address);
	return used;
}

double nm_page_rule_exclusivity(const struct nm_memory *memory, unsigned nr_nodes,
				const struct nm_memory_wanted *wanted,
				const struct nm_page_selection *found, size_t count)
{
	double most = 0, total = 0;
	struct nm_page_view view;

	for (size_t i = 0; i < count; i++) {
		const struct nm_memory_wanted *one = &wanted[found[i].index];
		if (nm_memory_look(memory, &one->page, &view) < 0)
			continue;
		most += view.accesses[one->to];
		for (unsigned k = 0; k < nr_nodes; k++)
			total += view.accesses[k];
	}
	return total > 0 ? most / total : (double)NAN;
}
