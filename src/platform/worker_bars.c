/* SPDX-License-Identifier: MIT */
#include "worker_bars.h"

static bool is_stuck(const struct nm_worker_bars *bars, uint32_t uid)
{
	for (unsigned i = 0; i < bars->stuck_count; i++)
		if (bars->stuck_uids[i] == uid)
			return true;
	return false;
}

static bool rests(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		  uint64_t now_ns)
{
	size_t known = bars->missed_count < NM_WORKER_MISSED_MOST ? bars->missed_count
								   : NM_WORKER_MISSED_MOST;

	for (size_t i = 0; i < known; i++)
		if (bars->missed[i].pid == subject->pid &&
		    bars->missed[i].start_ticks == subject->start_ticks &&
		    now_ns < bars->missed[i].until_ns)
			return true;
	return false;
}

bool nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		       unsigned others, uint64_t now_ns)
{
	return bars->stuck_count + others < NM_WORKER_STUCK_MOST &&
	       !is_stuck(bars, subject->uid) && !rests(bars, subject, now_ns);
}

void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns)
{
	size_t place = bars->missed_count++ % NM_WORKER_MISSED_MOST;

	bars->missed[place].pid = pid;
	bars->missed[place].start_ticks = start_ticks;
	bars->missed[place].until_ns = until_ns;
}

void nm_worker_stuck(struct nm_worker_bars *bars, uint32_t uid)
{
	if (bars->stuck_count < NM_WORKER_STUCK_MOST)
		bars->stuck_uids[bars->stuck_count++] = uid;
}

void nm_worker_released(struct nm_worker_bars *bars, uint32_t uid)
{
	for (unsigned i = 0; i < bars->stuck_count; i++) {
		if (bars->stuck_uids[i] != uid)
			continue;
		bars->stuck_uids[i] = bars->stuck_uids[--bars->stuck_count];
		return;
	}
}
