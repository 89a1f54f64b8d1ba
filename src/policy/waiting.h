/* SPDX-License-Identifier: MIT */
/* The threads that wait on each CPU, in the order in which a round examines them. */
#ifndef NM_POLICY_WAITING_H
#define NM_POLICY_WAITING_H

#include "numa-migrd/balance.h"

struct nm_waiting {
	const struct nm_balance_thread *threads; /* those of the input */
	struct nm_waiter {
		uint64_t start_ticks;
		uint32_t tid;
		uint32_t thread; /* index */
	} * items;		 /* grouped by CPU */
	struct nm_queue {
		uint32_t first, count; /* in items */
		bool ready;	       /* sorted, and `reach` is known */
		bool everywhere;       /* one of the threads may run on any usable CPU */
		hwloc_bitmap_t reach;  /* otherwise: the CPUs that at least one of them may use */
	} * queues;		       /* per CPU */
	unsigned nr_cpus;
	size_t total;
};

/* Returns 0. */
void nm_waiting_init(struct nm_waiting *waiting, const struct nm_balance_input *input);
void nm_waiting_clear(struct nm_waiting *waiting);

/*
 * Sorts the threads of a CPU by (start time, tid), when they are first used. Returns 0.
 */
void nm_waiting_prepare(struct nm_waiting *waiting, uint32_t cpu);

/* Returns whether one of the prepared threads may run there; also true if that thread has been
 * removed since. */
bool nm_waiting_reaches(const struct nm_waiting *waiting, uint32_t cpu, uint32_t to);

/* Removes the thread at this position of the CPU. */
void nm_waiting_remove(struct nm_waiting *waiting, uint32_t cpu, uint32_t position);

bool nm_waiting_may_run(const struct nm_balance_thread *thread, uint32_t cpu);

#endif
