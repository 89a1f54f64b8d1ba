/* SPDX-License-Identifier: MIT */
/* Who may be asked, by who did not answer. Pure; times are CLOCK_MONOTONIC. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_BARS_H
#define NUMA_MIGRD_PLATFORM_WORKER_BARS_H

#include "numa-migrd/worker.h"
#include "worker_subject.h"

#define NM_WORKER_MISSED_MOST 1024U

struct nm_worker_bars {
	unsigned stuck_count;
	struct nm_worker_stuck {
		struct nm_tenant tenant; /* of the process that it was asked about */
		bool at_work; /* it has not missed its deadline: it only needs more time */
	} stuck[NM_STUCK_WORKERS_MOST];
	size_t missed_count; /* ever; the oldest gives way */
	struct {
		uint32_t pid;
		uint64_t start_ticks, until_ns;
	} missed[NM_WORKER_MISSED_MOST];
};

/*
 * 0: it may be asked. -EALREADY: it has missed its deadline lately, or its tenant has a share of the
 * stuck workers that leaves no other; -EINPROGRESS: likewise, and a worker of its tenant's is still
 * at work. `others`: calls under way that may get stuck too.
 */
int nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		      unsigned others, uint64_t now_ns);
/* It missed its deadline: it is not asked until then. */
void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns);
/* A worker that has asked one of this tenant's has not answered: it is the last of `stuck`. Only
 * where it might be asked. */
void nm_worker_stuck(struct nm_worker_bars *bars, const struct nm_tenant *tenant, bool at_work);
/* That stuck worker has answered or ended: the last one takes its place. */
void nm_worker_released(struct nm_worker_bars *bars, unsigned index);

#endif
