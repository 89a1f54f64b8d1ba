/* SPDX-License-Identifier: MIT */
/* Compares P of threads and processes between two intervals, for IMAR²'s feedback. */
#ifndef NM_POLICY_READINGS_H
#define NM_POLICY_READINGS_H

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

void nm_readings_take(const struct nm_snapshot *snapshot, const struct nm_config *config,
		      struct nm_readings *ret);
void nm_readings_copy(const struct nm_readings *readings, struct nm_readings *ret);
/* Replaces `old`, which is freed, by `fresh`. */
void nm_readings_replace(struct nm_readings *old, struct nm_readings *fresh);

void nm_process_changes_compare(const struct nm_readings *before, const struct nm_readings *after,
				struct nm_process_changes *ret);
void nm_process_changes_clear(struct nm_process_changes *process_changes);
/* Returns NULL if no thread of the process was measured in both. */
const struct nm_process_change *
nm_process_change_of(const struct nm_process_changes *process_changes, uint32_t pid);
/* Returns the sum over all processes; its pid is 0. */
struct nm_process_change nm_process_changes_sum(const struct nm_process_changes *process_changes);

#endif
