/* SPDX-License-Identifier: MIT */
/*
 * The performance of each thread on each node when it last ran there (IMAR²'s performance record;
 * lbma-imar2 section 4.3, algorithms.md section 3). A value that is updated from snapshots. Pure.
 */
#ifndef NUMA_MIGRD_RECORD_H
#define NUMA_MIGRD_RECORD_H

#include "numa-migrd/snapshot.h"

struct nm_record;

int nm_record_new(struct nm_record **ret);
void nm_record_free(struct nm_record *record);
NM_DEFINE_CLEANUP(struct nm_record, nm_record_free);

/*
 * Records P of every measured thread for its main node, and drops threads that are not in the
 * snapshot (column.h). The whole record is cleared when P has a different meaning
 * (threads.performance, or derived from locality) or the number of nodes has changed. Returns 0, or
 * -ENOMEM: it must not be read in this interval. Called by the tick before the policy.
 */
int nm_record_update(struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config);

/*
 * Returns P of the thread when it last ran on the node, at most threads.record_age intervals before
 * the snapshot's (0: no limit); NaN if there is none. `thread` is an index into the snapshot of the
 * last update.
 */
double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node);

/* The same for every node: `ret` has room for nr_nodes values. */
void nm_record_get_all(const struct nm_record *record, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, uint32_t thread, double *ret);

/* Compares the record with the current P: 1 better, -1 worse, 0 within threads.record_band or not
 * known. */
int nm_record_compare(double record, double now, double band);

#endif
