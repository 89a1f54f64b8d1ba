/* SPDX-License-Identifier: MIT */
/*
 * How fast each thread was on each node when it last ran there (IMAR²'s performance record;
 * lbma-imar2 section 4.3, algorithms.md section 3). A value that grows by snapshots; pure.
 */
#ifndef NUMA_MIGRD_RECORD_H
#define NUMA_MIGRD_RECORD_H

#include "numa-migrd/snapshot.h"

struct nm_record;

int nm_record_new(struct nm_record **ret);
void nm_record_free(struct nm_record *record);
NM_DEFINE_CLEANUP(struct nm_record, nm_record_free);

/*
 * Notes P of every measured thread for its home node, and drops threads that the snapshot does not
 * hold any more: one is the same thread while pid, tid, start and adoption are (an exec keeps the
 * others). Everything is forgotten when
 * P is another figure than before (threads.performance, or whether locality stands for it) or the
 * number of nodes has changed. Returns 0, or -ENOMEM (the record as it was). Tick, before the
 * policy.
 */
int nm_record_update(struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config);

/*
 * P of the thread when it last ran on the node, at most threads.record_age intervals before the
 * snapshot's (0: however long ago); NaN where there is none. The thread is the snapshot's of the
 * last update.
 */
double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node);

/* The same for every node at once: `ret` has room for nr_nodes. */
void nm_record_get_all(const struct nm_record *record, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, uint32_t thread, double *ret);

/* The record against P now: 1 better, -1 worse, 0 within threads.record_band or unknown. */
int nm_record_compare(double record, double now, double band);

#endif
