/* SPDX-License-Identifier: MIT */
/*
 * Pages → other nodes, by a worker thread beside the tick: each call of move_pages(2) drains every
 * CPU and may wait long. Batches go in, receipts come out; nothing here decides. Not pure: with
 * actuate the only stage that writes to the machine.
 */
#ifndef NUMA_MIGRD_MOVER_H
#define NUMA_MIGRD_MOVER_H

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/topology.h"

enum nm_page_fate {
	NM_PAGE_FATE_UNTRIED,	/* the batch ended before: stopped, out of budget, process gone */
	NM_PAGE_FATE_MOVED,	/* it is on `to` now */
	NM_PAGE_FATE_ELSEWHERE, /* it was not where it had been seen, and was left */
	NM_PAGE_FATE_REFUSED,	/* by us: policy of the mapping, shared, no room on the node */
	NM_PAGE_FATE_FAILED	/* by the kernel: `error` */
};

/* One page, or one huge page: never a part of one. */
struct nm_page_step {
	uint64_t address; /* its first byte */
	uint64_t bytes;	  /* 4 KiB, 2 MiB, 1 GiB */
	int16_t from, to; /* node indices; from -1: wherever it is */
	uint8_t fate;	  /* enum nm_page_fate; set by the worker */
	int16_t found_on; /* node index where it was; -1: not known; set by the worker */
	int error;	  /* negative errno of FAILED */
};

/* What one process's pages are asked to do; the worker's while it is queued. */
struct nm_page_batch {
	uint64_t decision;
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat: guards against a reused pid */
	bool rollback;
	size_t count;
	struct nm_page_step *steps; /* owned */
	/* Set by the worker: */
	int error; /* of the batch as a whole: -ESRCH, -EPERM, -ESTALE: its mappings are not known
		    */
	uint64_t moved, call_ns, calls;
};

void nm_page_batch_free(struct nm_page_batch *batch);
NM_DEFINE_CLEANUP(struct nm_page_batch, nm_page_batch_free);

struct nm_mover_counts {
	uint64_t queued, moved, elsewhere, refused, failed;
	uint64_t busy, gone, denied, no_memory,
		fault;	   /* of failed: EBUSY, ENOENT, EACCES, ENOMEM, EFAULT */
	uint64_t backoffs; /* calls over 10 ms */
	uint64_t splits;   /* thp_migration_split of the machine since the start */
	uint64_t calls, call_ns;
};

struct nm_mover;

/*
 * Starts the worker. The platform's page operations are called from it, all others are not. Both
 * must outlive it, the topology until nm_mover_retarget(). -ENOMEM, -EAGAIN. Daemon, start.
 */
int nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		 const struct nm_config *config, struct nm_mover **ret);
/* Stops after the call under way; what is queued is dropped. */
void nm_mover_free(struct nm_mover *mover);
NM_DEFINE_CLEANUP(struct nm_mover, nm_mover_free);

/* New rules or nodes: waits for the call under way. Daemon, reload. */
void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config);

/* Takes the batch over. -EAGAIN: as much waits as may (the caller keeps it). Tick, never waits. */
int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch);

/* A finished batch, the caller's from now on; NULL: none. Tick, never waits. */
struct nm_page_batch *nm_mover_collect(struct nm_mover *mover);

/* Drops what waits for a process (exit, exec, release); it comes back as finished, UNTRIED. */
void nm_mover_drop(struct nm_mover *mover, uint32_t pid);

/* How many more pages may be submitted in this interval under pages.max_mb_per_s. */
size_t nm_mover_room(struct nm_mover *mover, uint64_t now_ns);

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover);

#endif
