/* SPDX-License-Identifier: MIT */
/* Declarations shared by the mover's files. */
#ifndef NM_MOVER_INTERNAL_H
#define NM_MOVER_INTERNAL_H

#include "mappings_cache.h"
#include "mover/mover.h"
#include "numa-migrd/proc.h"
#include "pace.h"
#include "platform/page_jobs.h"
#include "platform/worker.h"

/* The bytes of one node that may still be taken (struct nm_page_room). */
struct nm_node_free {
	uint64_t memory_ns, huge_ns, pool_ns; /* when they were read; 0: never */
	uint64_t memory, huge, pool;
	uint64_t pool_page_bytes; /* page size of that pool */
};

/* batch_rules.c: copies of the settings and nodes for the batches; replaced between steps. */
struct nm_mover_rules {
	bool barred;
	double keep_free;
	struct nm_cache_limits maps;
	unsigned nr_nodes;
	unsigned *node_ids;	    /* by index, the kernel's number */
	int16_t *stand_ins;	    /* by index, the index of the nearest node with CPUs */
	struct nm_node_free *rooms; /* by index, the free memory */
};

/* The batch in progress, and its state. */
struct nm_work {
	struct nm_page_batch *batch; /* NULL: none */
	bool dropped, discarded;
	bool lacks;		      /* a mapping was missing in `known` */
	struct nm_cached_mappings *cache; /* used by the step in progress: must not be replaced */
	uint32_t tid; /* a thread of the process that has not exited; the first one if possible */
	uint64_t tid_ticks;  /* start time of that thread */
	uint64_t checked_ns; /* when the identity of the process was checked */
	/* In this step: */
	uint64_t now_ns;	       /* when the process was examined */
	uint64_t held_ns;	       /* time spent reading its mappings */
	struct nm_mover_counts before; /* the counts at its start */
};

/* The job in progress, and its answer. */
struct nm_job {
	enum { NM_JOB_NONE, NM_JOB_READS, NM_JOB_MOVES } kind;
	/* Of each unit, the index of its step; or, of pages that return, batch->next before it. */
	uint64_t places[NM_UNITS_MOST];
	uint64_t end; /* batch->next after all pages that return */
	struct nm_units_order units;
	struct nm_units_moved units_moved;
	struct nm_ranges_order ranges;
	struct nm_ranges_moved ranges_moved;
};

struct nm_mover {
	struct nm_platform *platform; /* borrowed */
	bool has_next;
	struct nm_mover_rules next; /* adopted when no step is in progress */
	struct nm_page_batch *queue[NM_BATCHES_MOST], *done[NM_BATCHES_MOST];
	size_t queue_count, done_count;
	struct nm_pace pace;
	struct nm_mappings_cache cache;
	struct nm_mover_counts counts;
	uint64_t splits_before, splits_ns;

	struct nm_mover_rules rules;
	struct nm_work work;
	bool in_step; /* the job in progress is one of the batch; otherwise it reads for others */
	uint64_t step_began_ns;
	struct nm_job job;
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

/* turn.c: begins a turn of reading the mappings of work.cache, as nm_batch_step(). */
int nm_mover_read(struct nm_mover *mover);

/* batch.c: one step, which is one job, or two if mappings are read first. These functions return
 * its result, or NM_CALL_BEGUN; job.kind is that of the job that has begun, or was answered at
 * once. */

/* Returns false for a batch that moves all memory of a process, or pages back. */
static inline bool nm_batch_has_steps(const struct nm_page_batch *batch)
{
	return !batch->bulk && batch->nr_back == 0;
}

/* Begins a step of the batch in progress. */
int nm_batch_step(struct nm_mover *mover);
/* Goes on when the mappings have been read with this result. */
int nm_batch_read(struct nm_mover *mover, int r);
/* Evaluates the result of the step. Returns -EAGAIN if there is more to do, 0 if the batch is
 * complete, or another negative errno if it has ended. */
int nm_batch_step_end(struct nm_mover *mover, int r);

/* Counts calls that have moved pages, learns their cost, and charges the bytes that they tried to
 * move. */
void nm_batch_learn(struct nm_mover *mover, const struct nm_page_try *tries, unsigned count,
		    uint64_t tried_bytes);

/* Returns whether there is no answer, so that the pages may still move. */
static inline bool nm_batch_is_late(int r)
{
	return r == -ETIMEDOUT || r == -EINPROGRESS;
}

/* Returns the index of the node with this kernel number, or -1 if it is unknown or if `node` is a
 * negative errno. */
int16_t nm_node_index(const struct nm_mover_rules *rules, int node);

/* batch_units.c: given pages of a process. Begin a job and take its answer, as nm_batch_step(). */
int nm_units_begin(struct nm_mover *mover);
int nm_units_end(struct nm_mover *mover, int r);

/* bulk.c: all memory of a process, the same. -EPERM: there is no such node; -ENOSPC: the node
 * reclaims memory. */
int nm_bulk_begin(struct nm_mover *mover);
int nm_bulk_end(struct nm_mover *mover, int r);

#define NM_BULK_END UINT64_MAX /* batch->next, except with steps: everything is done */

/* ---- the memory that moves may still use on each node ---- */

/* Returns the bytes of a node that are free in blocks of at least 2 MiB, from the text of
 * /proc/buddyinfo. Pure. */
uint64_t nm_huge_free_parse(const char *text, unsigned node);

/* Returns the memory that pages of this kind may still take on the node: none if that is unknown,
 * or if the node is reclaiming memory. page_bytes: of the pool. */
struct nm_page_room nm_mover_room(struct nm_mover *mover, int16_t node, enum nm_unit_kind kind,
				  uint64_t page_bytes);
/* Counts what was taken of the memory, the free blocks, or the pool, until it is read again. */
void nm_mover_use_room(struct nm_mover *mover, int16_t node, enum nm_unit_kind kind,
		       uint64_t bytes);

/* ---- the stage of pages ---- */

struct nm_page_stage;
struct nm_page_stage_input;
/* Follows processes and their mappings, and the traffic of the nodes. */
void nm_page_stage_follow(struct nm_page_stage *stage, const struct nm_page_stage_input *input);

#endif
