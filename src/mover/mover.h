/* SPDX-License-Identifier: MIT */
/*
 * Moves pages to other nodes between ticks, by calls of worker processes, because each call of
 * move_pages(2) drains the per-CPU lists of every CPU and may take long. Batches go in and come out
 * finished; nothing here decides, and nothing waits. Not pure: apart from actuate, the only stage
 * that writes to the machine.
 */
#ifndef NUMA_MIGRD_MOVER_H
#define NUMA_MIGRD_MOVER_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "policy/plan.h"
#include "numa-migrd/platform.h"
#include "observe/regions.h"
#include "numa-migrd/topology.h"

/* Adjacent pages that were moved between the same nodes. */
struct nm_base_pages {
	uint64_t address;	/* of the first one */
	uint32_t pages;		/* of 4 KiB; a larger page counts as its base pages */
	int16_t was_on, now_on; /* node indices; was_on -1: unknown */
};

/* The pages of one process that are to be moved. Owned by the mover while it is queued. */
struct nm_page_batch {
	uint64_t decision;
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat: detects a reused pid */
	uint64_t domain;
	bool rollback;
	/* All memory of the process that may be moved goes to node `to`, in longer calls; there are
	 * no steps. */
	bool bulk;
	int16_t to;
	/* Instead, without `bulk`: these pages go back to the nodes that they were on, except
	 * those that are no longer where they were moved to. Owned. */
	struct nm_base_pages *back;
	size_t nr_back;
	size_t count;
	struct nm_page_step *steps; /* owned */
	/* Set by the mover: */
	/*
	 * Error of the batch as a whole, which ended there. -ESRCH: the process has exited, or its
	 * pid was reused; -ESTALE: its mappings are not known yet, but are being read: try again;
	 * -ECANCELED: dropped; -EPERM: not permitted; -EFBIG: it has too many mappings, or more
	 * memory than 256 GiB; -ENOSPC: the node of a bulk batch lacks memory, for
	 * all pages that remain or for some: try later; -EROFS: dry run.
	 */
	int error;
	uint64_t moved, bytes, call_ns, calls;
	uint64_t
		stayed_bytes; /* of a bulk batch: not moved by the kernel, or the pool is used up */
	/*
	 * Without `bulk`: the pages that were moved, with the node where they were, also if the
	 * batch ended early; each page occurs once. Pages that moved together with a huge page that the kernel then
	 * split may be missing. NULL: none. Owned. base_pages_lost: number of pages beyond 65,536
	 * runs.
	 */
	struct nm_base_pages *base_pages;
	size_t nr_base_pages;
	uint64_t base_pages_lost;
	/* Used internally: everything below `next`, an address of a bulk batch, a page of `back`,
	 * or else a step, is done; the batch rests until again_ns; `refused` is the number of times
	 * that the mappings for a bulk batch could not be read. */
	uint64_t next, again_ns;
	unsigned refused;
	bool full; /* the node lacked memory for some base pages */
	size_t base_pages_capacity;
};

/* Frees a batch that the mover has not taken over, or has returned. NULL is allowed. */
static inline void nm_page_batch_free(struct nm_page_batch *batch)
{
	if (!batch)
		return;
	free(batch->steps);
	free(batch->base_pages);
	free(batch->back);
	free(batch);
}
NM_DEFINE_CLEANUP(struct nm_page_batch, nm_page_batch_free);

/* Totals since the start. */
struct nm_mover_counts {
	uint64_t moved, bytes; /* pages of any size, and their bytes */
	uint64_t calls, call_ns, call_longest_ns;
	uint64_t backoffs;  /* calls over call_limit_ms; those of bulk batches, over 1 s */
	uint64_t splits;    /* thp_migration_split of the machine since the start */
	uint64_t map_reads; /* complete reads of the mappings of a process */
	uint64_t waiting;   /* at present: batches queued or in progress */
};

struct nm_mover;

/*
 * Creates a mover, which the caller frees before the platform. It copies what it needs of the
 * topology and the configuration.
 */
void nm_mover_new(struct nm_platform *platform, const struct nm_topology *topology,
		  const struct nm_config *config, struct nm_mover **ret);
/*
 * Does all work that is due by the platform's clock, without waiting for calls in progress. Returns
 * the time after which to call it again; also to be called when query_fd of the platform is
 * readable.
 */
uint64_t nm_mover_work(struct nm_mover *mover);
/* Abandons the call in progress, and drops the queue. */
void nm_mover_free(struct nm_mover *mover);
NM_DEFINE_CLEANUP(struct nm_mover, nm_mover_free);

/*
 * Sets new rules or nodes, which apply from the end of the step in progress. If the nodes have
 * changed, or moves are barred, the queued batches come back UNTRIED with -ECANCELED, as does the
 * rest of the batch in progress, because their node indices refer to the old nodes.
 */
void nm_mover_configure(struct nm_mover *mover, const struct nm_topology *topology,
			const struct nm_config *config);

/* Returns whether no pages move on this machine, because it has isolated or nohz_full CPUs, which
 * every call would disturb, and pages.also does not allow this. */
bool nm_mover_is_barred(struct nm_mover *mover);

/*
 * Takes over the batch (allocated, as are its steps). Returns 0; -EAGAIN if its domain has used its
 * share of NM_BATCHES_MOST (a rollback may use all of it); or -EPERM if nm_mover_is_barred(). On an
 * error the caller keeps the batch.
 */
int nm_mover_submit(struct nm_mover *mover, struct nm_page_batch *batch);

/* Returns a finished batch, bulk or not, which the caller frees; NULL: none. Bulk batches are those
 * of policy "auto", the others those of the page policies. */
struct nm_page_batch *nm_mover_collect(struct nm_mover *mover, bool bulk);

/*
 * Drops the batches of a process, bulk or not, and the data on its mappings. The batches come back
 * as finished, with -ECANCELED, and UNTRIED from where they were.
 */
void nm_mover_drop(struct nm_mover *mover, uint32_t pid, bool bulk);

/* Frees all batches, bulk or not; that in progress when its call has ended. Called when the policy
 * that submitted them ends, and another one still uses the mover. */
void nm_mover_discard(struct nm_mover *mover, bool bulk);

/*
 * Returns the number of bytes that may be submitted in this interval under pages.max_mb_per_s, in
 * addition to those that are queued. More may be submitted, and is delayed.
 */
uint64_t nm_mover_room_bytes(struct nm_mover *mover, uint64_t now_ns);

/*
 * Returns the mappings of the process whose pages may be moved, for nm_regions_set_ranges(); the
 * caller frees the array. -EAGAIN: not known; they are being read from now on, or wait until the
 * mappings of other processes have been delivered: call again. -ESRCH, -EPERM, -EFBIG as for a
 * batch.
 */
int nm_mover_ranges(struct nm_mover *mover, uint32_t pid, uint64_t start_ticks, uint64_t domain,
		    struct nm_range **ret, size_t *ret_count);

struct nm_mover_counts nm_mover_counts(struct nm_mover *mover);

/* ---- location.c: where the memory of a process is ---- */

struct nm_location;

/* Sends a query about a process with this much memory except huge pages from the pool. Returns 0,
 * or the negative errno of memory_query. Called for processes of the policies "auto" and "balance".
 */
int nm_location_query(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		      uint64_t bytes, uint64_t *ret_query_id);
/*
 * Adds the number of pages found on each node to the two arrays of *ret, which the caller
 * allocates, and sets the rest of it. Returns 0, -EAGAIN while there is no answer, or another
 * negative errno; *ticket is 0 except after -EAGAIN. Too small a sample counts as no pages.
 */
int nm_location_poll(struct nm_platform *platform, const struct nm_topology *topology,
		     uint64_t *query_id, struct nm_location *ret);
/* Ends a pending query; 0: there is none. */
void nm_location_cancel(struct nm_platform *platform, uint64_t *query_id);

struct nm_balancer;
struct nm_snapshot;
/* Policy "balance": while `due`, estimates the location of pages from accesses, and counts the
 * pages of one process per tick. */
void nm_balancer_locate(struct nm_platform *platform, struct nm_balancer *balancer,
			const struct nm_snapshot *snapshot, bool due);

/* ---- migrations.c: decisions that move memory, until they cannot be rolled back any more ---- */

/* Pages, which are one batch. */
struct nm_migration {
	struct nm_decision decision;
	uint64_t domain;
	uint16_t owner; /* their process in the table of pages */
	bool moving;	/* the mover has a batch */
	bool roll_back; /* to be rolled back, and not yet submitted to the mover as a whole */
	bool abandoned; /* what the batch moves is not remembered */
	struct nm_base_pages *origins; /* what was moved, and can return; owned */
	size_t nr_origins;
};

struct nm_migrations {
	struct nm_migration *items; /* in the order in which they began */
	size_t count, capacity;
};

/* Return the migration of this decision, or NULL, and the number of pages that can return. */
struct nm_migration *nm_migration_find(const struct nm_migrations *migrations, uint64_t decision);
uint64_t nm_migrations_remembered(const struct nm_migrations *migrations);
/* Hands a batch over, and adds the migration `one`. Returns 0 and sets *batch to NULL, or the error
 * of nm_mover_submit(). */
int nm_migration_begin(struct nm_migrations *migrations, struct nm_mover *mover,
		       const struct nm_migration *one, struct nm_page_batch **batch);
/* Records where the pages of a batch were, while its domain has room within rollback_pages. Returns
 * the number of pages that can return. */
uint64_t nm_migration_remember(const struct nm_migrations *migrations, struct nm_migration *one,
			       const struct nm_page_batch *batch, const struct nm_config *config);
/* Hands over the pages that can return, as a batch of the new migration `as`, and drops `one`.
 * Returns 0; -EAGAIN: the mover is full, and all is kept for the next call; or -EPERM. */
int nm_migration_roll_back(struct nm_migrations *migrations, struct nm_mover *mover,
			   struct nm_migration *one, const struct nm_migration *as);
/* NULL is allowed. */
void nm_migration_drop(struct nm_migrations *migrations, struct nm_migration *one);
/* Drops all migrations; roll_back: only those that are to be rolled back. */
void nm_migrations_drop(struct nm_migrations *migrations, bool roll_back);
/* The moved pages of this process get no verdict any more: nothing is remembered of them. */
void nm_migrations_abandon(struct nm_migrations *migrations, uint32_t pid);

/* ---- home_memory.c: the memory of the processes of policy "auto" ---- */

struct nm_feedback;
struct nm_home_state;
struct nm_placement;

/* The objects that its functions use. */
struct nm_home_memory {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	const struct nm_config *config;
	struct nm_placement *placement;
	struct nm_mover *mover;
	struct nm_feedback *feedback;
	uint64_t ticked_ns; /* end of the last interval */
};

/* Collects an answer about the location of the memory of a process, and sends a query if it is not
 * known. kernel_moves: as for nm_home_state_must_query(). */
void nm_home_locate(const struct nm_home_memory *memory, struct nm_home_state *state,
		    bool kernel_moves, uint64_t now_ns);
/* Reads the available memory of each node, unless that was done shortly before: it costs more than
 * the examination of a process. Called before homes are assigned. */
void nm_home_read_available(const struct nm_home_memory *memory, uint64_t now_ns);
/* Collects the results of the mover; adds the numbers of moved pages and of their bytes. */
void nm_home_collect(const struct nm_home_memory *memory, uint64_t *pages, uint64_t *bytes);
/* Hands memory to the mover if its migration is worth the cost, in descending order of lost time
 * per byte. interval_s: time since the last interval, or 0. */
void nm_home_migrate(const struct nm_home_memory *memory, double interval_s);

#endif
