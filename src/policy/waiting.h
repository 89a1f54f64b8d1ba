/* SPDX-License-Identifier: MIT */
/* The threads that wait on each CPU, in the order in which a round meets them. */
#ifndef NM_POLICY_WAITING_H
#define NM_POLICY_WAITING_H

#include "numa-migrd/balance.h"

struct nm_waiting {
	const struct nm_balance_thread *threads; /* the input's */
	struct nm_waiter {
		uint64_t start_ticks;
		uint32_t tid;
		uint32_t thread; /* index */
	} * items;		 /* grouped by CPU */
	struct nm_queue {
		uint32_t first, count; /* in items */
		bool ready;	       /* in order, and reach is known */
		bool everywhere;       /* one of them may go to any usable CPU */
		hwloc_bitmap_t reach;  /* else: where at least one may go */
	} * queues;		       /* per CPU */
	unsigned nr_cpus;
	size_t total;
};

/* Returns 0 or -ENOMEM, with nothing to clear. */
int nm_waiting_init(struct nm_waiting *waiting, const struct nm_balance_input *input);
void nm_waiting_clear(struct nm_waiting *waiting);

/* Puts a CPU's threads in order of (start time, tid), when they are first looked at. -ENOMEM. */
int nm_waiting_prepare(struct nm_waiting *waiting, uint32_t cpu);

/* May one of the prepared threads go there? It stays true of those that have left. */
bool nm_waiting_reaches(const struct nm_waiting *waiting, uint32_t cpu, uint32_t to);

/* The position-th of the CPU's threads has left. */
void nm_waiting_remove(struct nm_waiting *waiting, uint32_t cpu, uint32_t position);

bool nm_waiting_may_run(const struct nm_balance_thread *thread, uint32_t cpu);

#endif
