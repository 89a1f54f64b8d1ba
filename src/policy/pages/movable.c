/* SPDX-License-Identifier: MIT */
/* Which pages of a process may move: those in mappings that the rules of the mover permit, except
 * pages that were refused since their mapping last changed; and the consequences of results. */
#include <math.h>
#include <string.h>

#include "policy/page_choice.h"

/* A process of which this many pages were refused keeps the others, too. */
#define REFUSALS_MAX 16384U
#define ROLLBACKS_MAX 6
#define NO_GAIN_COOLDOWNS 10
/* After its threads moved: time until accesses from the new node outweigh those from the old one.
 */
#define THREADS_SETTLE_INTERVALS 3

static const struct nm_range *range_of(const struct nm_range *ranges, size_t count,
				       uint64_t address, uint64_t bytes)
{
	size_t low = NM_FIRST_ABOVE(ranges, count, end, address);
	bool inside =
		low < count && ranges[low].start <= address && bytes <= ranges[low].end - address;
	return inside ? &ranges[low] : NULL;
}

/* Returns the index of the first refused page after this one. */
static size_t after(const struct nm_page_process *process, uint64_t address)
{
	return NM_FIRST_ABOVE(process->refusals, process->nr_refusals, address, address);
}

static struct nm_page_refusal *refusal_of(const struct nm_page_process *process, uint64_t address)
{
	size_t index = after(process, address);
	bool found = index > 0 && process->refusals[index - 1].address == address;

	return found ? &process->refusals[index - 1] : NULL;
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
	if (process->nr_refusals >= REFUSALS_MAX)
		return;
	NM_RESERVE(process->refusals, process->refusal_capacity, process->nr_refusals);
	size_t index = after(process, address);
	memmove(&process->refusals[index + 1], &process->refusals[index],
		(process->nr_refusals - index) * sizeof(*process->refusals));
	process->refusals[index] = (struct nm_page_refusal){address, times};
	process->nr_refusals++;
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

/* ---- results of pages ---- */

void nm_page_results_add(struct nm_page_results *results, const struct nm_page_step *step)
{
	results->untried += step->fate == NM_PAGE_FATE_UNTRIED;
	results->elsewhere += step->fate == NM_PAGE_FATE_ELSEWHERE;
	results->refused += step->fate == NM_PAGE_FATE_REFUSED;
	if (step->fate != NM_PAGE_FATE_FAILED)
		return;
	results->failed++;
	results->busy += step->error == -EBUSY;
	results->gone += step->error == -ENOENT;
	results->denied += step->error == -EACCES;
	results->no_memory += step->error == -ENOMEM;
	results->fault += step->error == -EFAULT;
}

enum nm_page_outcome nm_page_outcome_of(const struct nm_page_step *step, int error)
{
	/* An immediate second request would be refused, too. */
	bool final = error == -EPERM || error == -EFBIG || error == -EROFS;

	if (step->fate == NM_PAGE_FATE_MOVED ||
	    (step->fate == NM_PAGE_FATE_ELSEWHERE && step->found_on == step->to))
		return NM_PAGE_MOVED;
	if (step->fate == NM_PAGE_FATE_FAILED || step->fate == NM_PAGE_FATE_REFUSED || final)
		return NM_PAGE_FAILED;
	return NM_PAGE_DROPPED;
}

/* A lack of memory, or a page that is gone, is no refusal. */
void nm_page_note(struct nm_page_process *process, const struct nm_page_step *step, bool of_range)
{
	bool failed = step->fate == NM_PAGE_FATE_FAILED;
	bool refused = (step->fate == NM_PAGE_FATE_REFUSED && step->error != -ENOSPC) ||
		       (failed && step->error != -ENOMEM && step->error != -ENOENT);
	unsigned times = step->error == -EBUSY ? 1 : NM_PAGE_REFUSED_TIMES;
	struct nm_page_refusal *refusal = refusal_of(process, step->address);

	if (refusal && step->fate == NM_PAGE_FATE_MOVED)
		refusal->times = 0;
	else if (refusal && refused)
		refusal->times += times;
	else if (refused)
		refuse(process, step->address, times);
	if (of_range && (step->fate == NM_PAGE_FATE_UNTRIED || (failed && step->error == -ENOMEM)))
		nm_page_ranges_mark_missed(process, step->address);
}

/* ---- how long the pages of a process stay ---- */

uint64_t nm_page_cooldown(const struct nm_config *config)
{
	return (uint64_t)ceil(config->rules.page_cooldown_s / config->general.interval_s);
}

void nm_page_threads_moved(struct nm_page_process *process, uint64_t interval)
{
	uint64_t until = interval + THREADS_SETTLE_INTERVALS;

	process->nr_moved_threads++;
	/* Pages that had no gain may have one for the threads on their new node. */
	if (process->until < until || process->nr_rollbacks == 0)
		process->until = until;
}

void nm_page_judged(struct nm_page_process *process, const struct nm_verdict *verdict,
		    const struct nm_config *config, uint64_t interval)
{
	uint64_t wait = NO_GAIN_COOLDOWNS * nm_page_cooldown(config);

	if ((verdict->kind == NM_VERDICT_IMPROVED || verdict->kind == NM_VERDICT_NEUTRAL) &&
	    verdict->pages.reason != NM_PAGE_REASON_ROLLBACK)
		process->nr_rollbacks = 0;
	if (verdict->kind != NM_VERDICT_ROLLED_BACK && !verdict->no_gain)
		return;
	/* The decisions of one evaluation count once. */
	if (process->until >= interval + wait)
		return;
	process->until = interval + (wait << process->nr_rollbacks);
	if (verdict->kind == NM_VERDICT_ROLLED_BACK && process->nr_rollbacks < ROLLBACKS_MAX)
		process->nr_rollbacks++;
}
