/* SPDX-License-Identifier: MIT */
/* Declarations shared by the mover's files. */
#ifndef NM_MOVER_INTERNAL_H
#define NM_MOVER_INTERNAL_H

#include "known.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/worker.h"
#include "pace.h"

#define NM_SMALL_PAGE 4096U
#define NM_HUGE_PAGE ((uint64_t)2 << 20)

/* The bytes of one node that may still be taken. */
struct nm_node_free {
	uint64_t memory_ns, huge_ns, pool_ns; /* when they were read; 0: never */
	uint64_t memory, huge, pool;
	uint64_t pool_page_bytes; /* page size of that pool */
};

/* rules.c: copies of the settings and nodes for the batches; replaced between steps. */
struct nm_mover_rules {
	struct nm_maps_rules may;
	bool barred;
	double keep_free;
	struct nm_known_limits maps;
	unsigned nr_nodes;
	unsigned *node_ids;	    /* by index, the kernel's number */
	int16_t *stand_ins;	    /* by index, the index of the nearest node with CPUs */
	struct nm_node_free *rooms; /* by index, the free memory */
};

/* One page of a call. */
struct nm_unit {
	uint64_t address, bytes;
	size_t step;
	int to;	   /* the kernel's number of the node */
	int was;   /* the node where it was found, or a negative errno */
	bool pool; /* from the pool of huge pages */
};

/* The batch in progress, and its state. */
struct nm_work {
	struct nm_page_batch *batch; /* NULL: none */
	bool dropped, discarded;
	bool lacks; /* a mapping was missing in `known` */
	size_t next;
	/* For a bulk batch: the pages that were found last, and how many of them are done. */
	struct nm_worker_found found;
	unsigned found_next;
	uint64_t refused_block; /* number of the last block of 2 MiB for which there was no room */
	uint64_t back_next;	/* batch->next after the pages of the call that takes pages back */
	struct nm_known_entry *known; /* used by the step in progress: must not be replaced */
	uint32_t tid; /* a thread of the process that has not exited; the first one if possible */
	uint64_t tid_ticks;  /* start time of that thread */
	uint64_t checked_ns; /* when the identity of the process was checked */
	/* In this step: */
	uint64_t step_began_ns;
	uint64_t held_ns;		       /* time spent reading its mappings */
	struct nm_mover_counts before;	       /* the counts at its start */
	size_t base_pages[NM_PACE_PAGES_MOST]; /* steps whose base pages are still to be moved, one
						  step after the other */
	size_t nr_base_pages;
	uint64_t base_offset; /* within the last of them */
	/*
	 * The node where each base page of the last of them was before it moved, or NM_BASE_STAYS.
	 */
	int16_t base_was[NM_HUGE_PAGE / NM_SMALL_PAGE];
};
#define NM_BASE_STAYS (-2)

struct nm_mover;

/* Continues a step with the result of a call. Returns the result of the step, or NM_CALL_BEGUN if
 * another call is in progress. */
typedef int (*nm_then_fn)(struct nm_mover *mover, int r);

/* The arguments and the results of a call. */
struct nm_call {
	struct nm_unit units[NM_PACE_PAGES_MOST];
	uint64_t addresses[NM_PACE_PAGES_MOST];
	int nodes[NM_PACE_PAGES_MOST], statuses[NM_PACE_PAGES_MOST];
	struct nm_worker_range ranges[NM_WORKER_RANGES_MOST];
	unsigned count;
	uint64_t now_ns;     /* when the process was examined */
	unsigned pages_most; /* in the next move */
	uint64_t bytes_most;
	enum nm_pace_class class;
	struct nm_worker_moved moved; /* what became of the units, in their order */
};

struct nm_mover {
	struct nm_platform *platform; /* borrowed */
	/* The step in progress: it continues with `then` when its call has ended; `read` continues
	 * it when mappings were read. NULL: none. */
	nm_then_fn then, read;
	void (*end)(struct nm_mover *mover, int r); /* called with the result of the step */

	bool has_next;
	struct nm_mover_rules next; /* adopted when no step is in progress */
	struct nm_page_batch *queue[NM_BATCHES_MOST], *done[NM_BATCHES_MOST];
	size_t queue_count, done_count;
	struct nm_pace pace;
	struct nm_known known;
	struct nm_mover_counts counts;
	uint64_t splits_before, splits_ns;

	struct nm_mover_rules rules;
	struct nm_work work;
	struct nm_call call;
	struct nm_reclaim_watch reclaim;
};

/* Copies the rules, which the caller clears. */
void nm_rules_init(struct nm_mover_rules *rules, const struct nm_topology *topology,
		   const struct nm_config *config);
void nm_rules_clear(struct nm_mover_rules *rules);
bool nm_rules_same_nodes(const struct nm_mover_rules *a, const struct nm_mover_rules *b);

/* mover.c */

/* Applies the new rules, if there are any. Called when no step is in progress. */
void nm_mover_adopt(struct nm_mover *mover);

/* Counts the huge pages that the kernel split because it could not move them whole, at most once
 * per second. */
void nm_mover_count_splits(struct nm_mover *mover);

/* turn.c: continues the reading of the mappings work.known for one budget, publishes the result,
 * and then calls `read`. */
int nm_mover_read(struct nm_mover *mover, nm_then_fn read);

/* batch.c */

/* Returns false for a batch that moves all memory of a process, or pages back. */
static inline bool nm_batch_has_steps(const struct nm_page_batch *batch)
{
	return !batch->bulk && batch->nr_back == 0;
}

/* Makes the next call of the batch in progress, after reading what it requires. Returns the result
 * of the step, or NM_CALL_BEGUN. */
int nm_batch_step(struct nm_mover *mover);
/* Evaluates the result of the step. Returns -EAGAIN if there is more to do, 0 if the batch is
 * complete, or another negative errno if it has ended. */
int nm_batch_step_end(struct nm_mover *mover, int r);

/* step.c */

/* Returns whether the step may be moved, and fills in the unit. If its mapping is not known, sets
 * work->lacks. */
bool nm_step_may_move(const struct nm_mover_rules *rules, struct nm_work *work,
		      const struct nm_page_step *step, struct nm_unit *ret_unit);
/* Returns the index of the node with this kernel number, or -1 if it is unknown or if `node` is a
 * negative errno. */
int16_t nm_node_index(const struct nm_mover_rules *rules, int node);
/* Returns whether the page is on the node that the step names, and not on its target. */
bool nm_step_is_where_seen(const struct nm_page_step *step, const struct nm_unit *unit,
			   int16_t found_on);
void nm_step_moved(struct nm_page_step *step, struct nm_mover_counts *counts);
void nm_step_failed(struct nm_page_step *step, int error);
/* Records that the target has no free memory for the page. */
void nm_step_lacks_room(struct nm_page_step *step);
/* Called when all base pages of the step have been examined: sets its fate according to the
 * results, if it has none yet. */
void nm_step_end(struct nm_page_step *step);

/* call.c: the calls of a worker. A function with a parameter `then` calls it when the result is
 * known, and returns what it returns; or it returns NM_CALL_BEGUN, and the step continues with
 * `then` later. */

/* Queries the nodes of the units, into mover->call.statuses; for the class NM_PACE_HUGE followed by
 * those of their last base pages. */
int nm_call_where(struct nm_mover *mover, nm_then_fn then);

/* Finds pages in the first `count` of mover->call.ranges, into work.found. */
int nm_call_find(struct nm_mover *mover, unsigned count, nm_then_fn then);

/*
 * Moves the units, and tries once more those that the kernel gave up on. They count against the
 * limits of the pace. Afterwards mover->call.moved contains the result of each. If the result is a
 * negative errno, there are none; after -ETIMEDOUT the units may still move.
 */
int nm_call_round(struct nm_mover *mover, nm_then_fn then);

/* Counts the tries of the round of this step, if there was one, and learns their cost. Called when
 * the step ends. */
void nm_call_learn(struct nm_mover *mover);

/* bulk.c: a batch that moves all memory of a process */

#define NM_BULK_END UINT64_MAX /* batch->next: everything is done */

/*
 * Finds the next pages that are in memory, if all pages found before are done, and moves up to
 * call.pages_most of them with up to call.bytes_most bytes, or one larger page. A huge page moves
 * with the first of its base pages that does. Returns 0, NM_CALL_BEGUN, or a negative errno, which
 * ends the batch; -EPERM: the cpuset of the process does not allow the node; -ENOSPC: the node
 * reclaims memory.
 */
int nm_bulk_move(struct nm_mover *mover);

/* base_pages.c: steps requested as a huge page that is none, whose base pages are moved, some in
 * each call */

/* Records adjacent base pages that have moved. */
void nm_base_pages_moved(struct nm_page_batch *batch, uint64_t address, uint64_t pages,
			 int16_t was_on, int16_t now_on);

/* Adds a step whose base pages are to be moved. If the step is MOVED already, its first base page
 * has been moved. */
void nm_base_pages_add(struct nm_work *work, size_t step);

/* Makes the next call, with base pages of the step that was added last. Returns 0, NM_CALL_BEGUN,
 * or a negative errno, which ends the batch. */
int nm_base_pages_move(struct nm_mover *mover);

/* Called when the batch has ended: records the base pages that have moved, of the steps that are
 * not complete. */
void nm_base_pages_end(struct nm_work *work);

/* ---- the memory that moves may still use on each node ---- */

/* Returns the bytes of a node that are free in blocks of at least 2 MiB, from the text of
 * /proc/buddyinfo. Pure. */
uint64_t nm_huge_free_parse(const char *text, unsigned node);

/*
 * Takes memory for a page on the node, from the pool of huge pages or from ordinary memory. Returns
 * false if there is not enough, if that is unknown, or if the node is reclaiming memory.
 */
bool nm_mover_take_room(struct nm_mover *mover, int16_t node, uint64_t bytes, bool pool);

/* ---- the stage of pages ---- */

struct nm_page_stage;
struct nm_page_stage_input;
/* Follows processes and their mappings, and the traffic of the nodes. */
void nm_page_stage_follow(struct nm_page_stage *stage, const struct nm_page_stage_input *input);

#endif
