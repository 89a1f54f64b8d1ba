/* SPDX-License-Identifier: MIT */
/* P of all processes in two intervals, and how much it varies without moves. Pure. */
#ifndef NM_PERFORMANCE_CHANGE_H
#define NM_PERFORMANCE_CHANGE_H

#include "numa-migrd/config.h"
#include "numa-migrd/snapshot.h"

/* P of a thread in one interval. */
struct nm_reading {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns, domain;
	double performance;
};

/* The measured threads of one interval, ascending tid. */
struct nm_readings {
	struct nm_reading *items;
	size_t count;
	bool by_locality;
	enum nm_performance performance; /* readings with another meaning of P cannot be compared */
};

/* A process in two intervals: sums of P over the threads measured in both. */
struct nm_process_change {
	uint32_t pid;
	uint32_t first; /* index of its first thread, so that sums have the same order on any
			 * machine */
	uint64_t domain;
	double before, after;
};

struct nm_process_changes {
	struct nm_process_change *items; /* ascending pid */
	size_t count;
};

/* Lists the measured threads of the snapshot; the caller frees ret->items. */
void nm_readings_take(const struct nm_snapshot *snapshot, const struct nm_config *config,
		      struct nm_readings *ret);
void nm_readings_copy(const struct nm_readings *readings, struct nm_readings *ret);
/* Replaces `old`, which is freed, by `fresh`, which is then empty. */
void nm_readings_replace(struct nm_readings *old, struct nm_readings *fresh);

/* Sums P of each process over the threads that were measured in both. There is none if P has
 * another meaning. The caller clears *ret. */
void nm_process_changes_compare(const struct nm_readings *before, const struct nm_readings *after,
				struct nm_process_changes *ret);
void nm_process_changes_clear(struct nm_process_changes *process_changes);
/* Returns NULL if no thread of the process was measured in both. */
const struct nm_process_change *
nm_process_change_of(const struct nm_process_changes *process_changes, uint32_t pid);
/* Returns the sum over all processes; its pid is 0. */
struct nm_process_change nm_process_changes_sum(const struct nm_process_changes *process_changes);

#define NM_SPREAD_CHANGES 32

/* How much P of a process varies without moves. Initially zero. */
struct nm_spread {
	double changes[NM_SPREAD_CHANGES]; /* |ln ratio| between consecutive intervals, newest
					    * last */
	unsigned count;
};

/* Adds the change from `before` to `after`. Sums of P that are not positive are ignored. */
void nm_spread_add(struct nm_spread *spread, double before, double after);
/* Returns the spread as a standard deviation, from the median, so that a single phase change does
 * not affect the next verdicts. */
double nm_spread_sigma(const struct nm_spread *spread);

#endif
