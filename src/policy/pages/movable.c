/* SPDX-License-Identifier: MIT */
/* Which pages of a process may move: those in mappings that the rules of the mover permit, except
 * pages that were refused since their mapping last changed. */
#include <string.h>

#include "numa-migrd/page_choice.h"

/* A process of which this many pages were refused keeps the others, too. */
#define REFUSALS_MAX 16384U

static const struct nm_range *range_of(const struct nm_range *ranges, size_t count,
				       uint64_t address, uint64_t bytes)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	bool inside =
		low < count && ranges[low].start <= address && bytes <= ranges[low].end - address;
	return inside ? &ranges[low] : NULL;
}

/* Returns the index of the page, or of the first one after it. */
static size_t position_of(const struct nm_page_process *process, uint64_t address)
{
	size_t low = 0, high = process->nr_refusals;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (process->refusals[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct nm_page_refusal *refusal_of(const struct nm_page_process *process, uint64_t address)
{
	size_t index = position_of(process, address);
	bool found = index < process->nr_refusals && process->refusals[index].address == address;

	return found ? &process->refusals[index] : NULL;
}

bool nm_page_is_refused(const struct nm_page_process *process, uint64_t address)
{
	const struct nm_page_refusal *refusal = refusal_of(process, address);

	return process->nr_refusals >= REFUSALS_MAX ||
	       (refusal && refusal->times >= NM_PAGE_REFUSED_TIMES);
}

bool nm_page_may_move(const struct nm_page_process *process, uint64_t address, uint64_t bytes)
{
	return range_of(process->ranges, process->nr_ranges, address, bytes) &&
	       !nm_page_is_refused(process, address);
}

static void refuse(struct nm_page_process *process, uint64_t address, unsigned times)
{
	struct nm_page_refusal *refusal = refusal_of(process, address);

	if (refusal) {
		refusal->times += times;
		return;
	}
	if (process->nr_refusals >= REFUSALS_MAX)
		return;
	NM_RESERVE(process->refusals, process->refusal_capacity, process->nr_refusals);
	size_t index = position_of(process, address);
	memmove(&process->refusals[index + 1], &process->refusals[index],
		(process->nr_refusals - index) * sizeof(*process->refusals));
	process->refusals[index] = (struct nm_page_refusal){address, times};
	process->nr_refusals++;
}

/* A lack of memory, or a page that is gone, is no refusal. */
void nm_page_note(struct nm_page_process *process, const struct nm_page_step *step, bool of_range)
{
	bool failed = step->fate == NM_PAGE_FATE_FAILED;
	bool refused = (step->fate == NM_PAGE_FATE_REFUSED && step->error != -ENOSPC) ||
		       (failed && step->error != -ENOMEM && step->error != -ENOENT);
	struct nm_page_refusal *refusal = refusal_of(process, step->address);

	if (step->fate == NM_PAGE_FATE_MOVED && refusal)
		refusal->times = 0;
	else if (refused)
		refuse(process, step->address, step->error == -EBUSY ? 1 : NM_PAGE_REFUSED_TIMES);
	if (of_range && (step->fate == NM_PAGE_FATE_UNTRIED || (failed && step->error == -ENOMEM)))
		nm_page_ranges_mark_missed(process, step->address);
}

void nm_page_set_mappings(struct nm_page_process *process, struct nm_range *ranges, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->nr_refusals; i++) {
		struct nm_page_refusal refusal = process->refusals[i];
		const struct nm_range *old =
			range_of(process->ranges, process->nr_ranges, refusal.address, 1);
		const struct nm_range *now = range_of(ranges, count, refusal.address, 1);
		if (old && now && old->start == now->start && old->end == now->end &&
		    old->page_bytes == now->page_bytes)
			process->refusals[kept++] = refusal;
	}
	process->nr_refusals = kept;
	free(process->ranges);
	process->ranges = ranges;
	process->nr_ranges = count;
}
