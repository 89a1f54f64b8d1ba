/* SPDX-License-Identifier: MIT */
#include "worker_bars.h"

#include <errno.h>

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

static bool is_at_work_for(const struct nm_worker_bars *bars, const struct nm_tenant *tenant)
{
	for (unsigned i = 0; i < bars->stuck_count; i++)
		if (bars->stuck[i].at_work && nm_tenant_same(&bars->stuck[i].tenant, tenant))
			return true;
	return false;
}

int nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		      unsigned others, uint64_t now_ns)
{
	struct nm_usage usage = {.all = others};

	if (rests(bars, subject, now_ns))
		return -EALREADY;
	for (unsigned i = 0; i < bars->stuck_count; i++)
		nm_usage_add(&usage, &subject->tenant, &bars->stuck[i].tenant, 1);
	if (nm_share_has_room(NM_SHARE_STUCK_WORKERS, &usage))
		return 0;
	return is_at_work_for(bars, &subject->tenant) ? -EINPROGRESS : -EALREADY;
}

void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns)
{
	size_t place = bars->missed_count++ % NM_WORKER_MISSED_MOST;

	bars->missed[place].pid = pid;
	bars->missed[place].start_ticks = start_ticks;
	bars->missed[place].until_ns = until_ns;
}

void nm_worker_stuck(struct nm_worker_bars *bars, const struct nm_tenant *tenant, bool at_work)
{
	bars->stuck[bars->stuck_count++] =
		(struct nm_worker_stuck){.tenant = *tenant, .at_work = at_work};
}

void nm_worker_released(struct nm_worker_bars *bars, unsigned index)
{
	bars->stuck[index] = bars->stuck[--bars->stuck_count];
}
