/* SPDX-License-Identifier: MIT */
/* Who may be asked, by who did not answer. Pure; times are CLOCK_MONOTONIC. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_BARS_H
#define NUMA_MIGRD_PLATFORM_WORKER_BARS_H

#include "numa-migrd/worker.h"
#include "worker_subject.h"

#define NM_WORKER_MISSED_MOST 1024U

struct nm_worker_bars {
	unsigned stuck_count;
	uint32_t stuck_uids[NM_WORKER_STUCK_MOST];
	size_t missed_count; /* ever; the oldest gives way */
	struct {
		uint32_t pid;
		uint64_t start_ticks, until_ns;
	} missed[NM_WORKER_MISSED_MOST];
};

/* `others`: calls under way that may get stuck too. */
bool nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		       unsigned others, uint64_t now_ns);
/* It missed its deadline: it is not asked until then. */
void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns);
/* A worker that has asked one of this user's has not answered. Only where it might be asked. */
void nm_worker_stuck(struct nm_worker_bars *bars, uint32_t uid);
/* A stuck worker that had asked one of this user's has ended. */
void nm_worker_released(struct nm_worker_bars *bars, uint32_t uid);

#endif
