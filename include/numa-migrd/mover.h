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
#include "numa-migrd/tenant.h"
#include "numa-migrd/regions.h"
#include "numa-migrd/topology.h"

enum nm_page_fate {
	NM_PAGE_FATE_UNTRIED,	/* the batch ended before: stopped, dropped, process gone */
	NM_PAGE_FATE_MOVED,	/* it is on `to` now; of small pages asked for as one: some are */
	NM_PAGE_FATE_ELSEWHERE, /* it was not where it had been seen, or on `to` already: left */
	NM_PAGE_FATE_REFUSED,	/* by us: policy of the mapping, shared, cpuset, no room */
	NM_PAGE_FATE_FAILED	/* by the kernel: `error` */
};

/*
 * One page, or one huge page: never a part of one. What is no huge page after all (nobody but the
 * kernel knows) goes as the small pages that it is.
 */
struct nm_page_step {
	uint64_t address; /* its first byte */
	uint64_t bytes;	  /* 4 KiB, 2 MiB, 1 GiB */
	int16_t from, to; /* node indices; from -1: wherever it is */
	/* Set by the worker: */
	uint8_t fate;	  /* enum nm_page_fate */
	bool base_pages;  /* small pages after all: those that moved are in `loose` of the batch */
	int16_t found_on; /* node index where it was, if loose one of them; -1: not known */
	int error;	  /* negative errno of FAILED */
};

/* Small pages in a row that were moved: of what had been asked for as a huge page, or of all of a process. */
struct nm_base_pages {
	uint64_t address;	/* of the first; of 4 KiB each */
	uint32_t pages;		/* 1–512 */
	int16_t was_on, now_on; /* node indices; was_on -1: on none that is known */
};

/* What one process's pages are asked to do; the worker's while it is queued. */
struct nm_page_batch {
	uint64_t decision;
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat: guards against a reused pid */
	struct nm_tenant tenant;
	bool rollback;
	/* All of the process's memory that may be moved goes to that node, by longer calls; no steps. */
	bool bulk;
	int16_t to;
	/* Of a bulk batch, instead: these go back, each to the node that it was on. Owned. */
	struct nm_base_pages *back;
	size_t nr_back;
	size_t count;
	struct nm_page_step *steps; /* owned */
	/* Set by the worker: */
	/*
	 * Of the batch as a whole, which ended there: -ESRCH the process is gone or another;
	 * -ESTALE its mappings are not known yet, but are being read: try again; -ECANCELED
	 * dropped; -EPERM we may not; -EFBIG it has too many mappings, or more in
	 * memory than pages.maps_max_rss_gb; -ENOSPC a bulk batch's node lacks memory and reclaims
	 * what programs use: later; -EROFS dry run.
	 */
	int error;
	uint64_t moved, bytes, call_ns, calls;
	/*
	 * Which small pages of the steps marked `loose`, or of a bulk batch, were moved, and from where, also of
	 * a batch that ended early; each page once. It may lack some that went along with a huge page which
	 * the kernel then split, and lacks what the kernel moved all at once (migrate_pages(2)). NULL: none.
	 * Owned. loose_lost: those lacking for want of memory, or beyond 65,536 runs.
	 */
	struct nm_base_pages *base_pages;
	size_t nr_base_pages;
	uint64_t loose_lost;
	/* The worker's own, of a bulk batch: what lies below has been dealt with; it rests until then; so
	 * often its mappings could not be read. */
	uint64_t next, again_ns;
	unsigned refused;
	size_t loose_capacity;
};

void nm_page_batch_free(struct nm_page_batch *batch);
NM_DEFINE_CLEANUP(struct nm_page_batch, nm_page_batch_free);

/* Sums since the start, in pages of whatever size but where it says otherwise. */
struct nm_mover_counts {
	uint64_t queued, moved, elsewhere, refused, failed;
	uint64_t busy, gone, denied, no_memory,
		fault;	   /* of failed: EBUSY, ENOENT, EACCES, ENOMEM, EFAULT */
	uint64_t backoffs; /* calls over pages.call_limit_ms */
	uint64_t splits;   /* thp_migration_split of the machine since the start */
	uint64_t calls, call_ns, call_longest_ns;
	uint64_t bytes; /* moved */
	uint64_t bound, shared, unknown, outside,
		full;	    /* of refused: policy, sharing, no such mapping, cpuset, no room */
	uint64_t map_reads; /* of the mappings of a process, whole ones */
	uint64_t map_ns;    /* spent on them */
	uint64_t waiting;   /* now: batches queued or under way */
};

struct nm_mover;

/*
 * Starts the worker. The platform's now_ns, open_directory, open_file, read_some, read_file,
 * list_directory, close, pages_where, pages_find, pages_migrate and pages_move are called from it,
 * beside the tick. The mover keeps a reference to the platform, and copies what it needs of the
 * topology and the configuration. -ENOMEM, -EAGAIN. Daemon, start.
 */
int nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		 const struct nm_config *config, struct nm_mover **ret);
/*
 * The same without a thread: what waits is done by nm_mover_work(), for machines whose time is not
 * ours (simulator, replay). -ENOMEM.
 */
int nm_mover_new_threadless(struct nm_platform *platform, const struct nm_topology *topology,
			    const struct nm_config *config, struct nm_mover **ret);
/* Does what may be done by now, by the platform's clock. Only without a thread. */
void nm_mover_work(struct nm_mover *mover);
/*
 * Stops after the call under way, and drops what is queued. It waits for that call for a second at
 * most. If the call takes longer, the thread frees the mover and its reference to the platform once
 * the call has returned. Daemon, stop and reload.
 */
void nm_mover_free(struct nm_mover *mover);
NM_DEFINE_CLEANUP(struct nm_mover, nm_mover_free);

/*
 * New rules or nodes, from the end of the call under way on; never waits for it. Where the nodes
 * are others now, what waits comes back UNTRIED with -ECANCELED, as does the rest of the batch
 * under way: their node indices mean the old ones. Daemon, reload.
 */
void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config);

/* No pages move on this machine: it has isolated or nohz_full CPUs, which every call would
 * disturb, and pages.isolated_cpus does not allow it. Daemon, start and reload: to be told. */
bool nm_mover_is_barred(struct nm_mover *mover);

/*
 * Takes the batch over (allocated, as are its steps). -EAGAIN: NM_SHARE_BATCHES has no room for its
 * tenant (a rollback may use all of it); -EPERM: nm_mover_is_barred(). Then the caller keeps it. Tick, never waits for a call.
 */
int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch);

/* A finished batch, the caller's from now on; NULL: none. Tick, never waits for a call. */
struct nm_page_batch *nm_mover_collect(struct nm_mover *mover);

/*
 * Drops what waits for a process (exit, exec, release), and what is known of its mappings; it comes
 * back as finished, -ECANCELED, UNTRIED from where it was. Tick, never waits for a call.
 */
void nm_mover_drop(struct nm_mover *mover, uint32_t pid);

/*
 * How many more pages, and bytes of them, may be submitted in this interval under
 * pages.max_pages_per_interval and pages.max_mb_per_s, beyond what waits: a huge page is one page.
 * More may be submitted, and then waits for its time. Tick.
 */
size_t nm_mover_room(struct nm_mover *mover, uint64_t now_ns);
uint64_t nm_mover_room_bytes(struct nm_mover *mover, uint64_t now_ns);

/*
 * The process's mappings whose pages may be moved, for nm_regions_set_ranges(); the caller frees
 * the array. -EAGAIN: not known; they are being read from now on, or wait for those of others to be
 * asked for: ask again. -ENOMEM; -ESRCH, -EPERM, -EFBIG as for a batch. Tick.
 */
int nm_mover_ranges(struct nm_mover *mover, uint32_t pid, uint64_t start_ticks,
		    struct nm_range **ret, size_t *ret_count);

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover);

#endif
