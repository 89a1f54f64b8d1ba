/* SPDX-License-Identifier: MIT */
/* The consequences of results of moves: for single pages, and for how long those of a process
 * stay. */
#include <math.h>

#include "numa-migrd/page_choice.h"

#define ROLLBACKS_MAX 6
#define NO_GAIN_COOLDOWNS 10
/* After its threads moved: time until accesses from the new node outweigh those from the old one.
 */
#define THREADS_SETTLE_INTERVALS 3

/* ---- pages ---- */

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

/* ---- processes ---- */

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
