/* SPDX-License-Identifier: MIT */
/*
 * Moves single pages and ranges to the nodes that use them (pages.policy): hands the chosen pages
 * (page_choice.h) of the managed processes to the mover, remembers what became of them, and rolls
 * back those whose migration did not help.
 */
#ifndef NUMA_MIGRD_PAGE_STAGE_H
#define NUMA_MIGRD_PAGE_STAGE_H

#include "policy/homes.h"
#include "policy/judge.h"
#include "mover/mover.h"
#include "policy/page_choice.h"
#include "observe/regions.h"
#include "tasks/tasks.h"

/* Totals since the start. */
struct nm_page_tally {
	uint64_t decisions, moved, bytes, elsewhere, refused, failed, untried;
	uint64_t verdicts[NM_VERDICT_KINDS];
	uint64_t forgotten; /* moved without a record of the original node */
};

struct nm_page_stage {
	const struct nm_topology *topology;
	struct nm_memory *memory;
	struct nm_mover *mover;
	struct nm_column processes; /* of struct nm_page_process */
	double *traffic;	    /* recent accesses served by each node */
	struct nm_contention contention;
	struct nm_page_tally tally;
};

/* The functions that permit decisions, and report them. */
struct nm_page_handler {
	void *context;
	/* Returns whether pages of a process may be moved. Called before each decision. */
	bool (*allows)(void *context, uint32_t pid);
	/* Pages of a decision have moved, or would have without the dry run. */
	void (*decided)(void *context, const struct nm_decision *decision);
	/* The mappings of a process cannot be read: -EPERM, or -EFBIG; or it is larger than
	 * pages.max_gb_of_process: -EDQUOT. */
	void (*unreadable)(void *context, const struct nm_page_process *process, int error);
};

/* The values of an interval. */
struct nm_page_stage_input {
	const struct nm_config *config;
	const struct nm_snapshot *snapshot;
	const struct nm_placement *placement; /* NULL: another policy than "auto" */
	const struct nm_task_table *tasks;
	struct nm_migrations *migrations;
	struct nm_verifier *verifier;
	struct nm_feedback *feedback;
	uint64_t interval, interval_ns;
	uint64_t *next_decision;
	const struct nm_sampled_thread *sampled;
	size_t nr_sampled;
	bool may_move; /* pages are not left to the kernel */
	struct nm_page_handler handler;
};

/* Creates the stage. Topology, memory and mover must outlive it. */
struct nm_page_stage *nm_page_stage_new(const struct nm_topology *topology,
					struct nm_memory *memory, struct nm_mover *mover);
/* Frees it, and drops its batches. NULL is allowed. */
/* Sets a new topology with the same nodes. */
void nm_page_stage_retarget(struct nm_page_stage *stage, const struct nm_topology *topology);
void nm_page_stage_free(struct nm_page_stage *stage);

/* Counts an access of a process, from nm_memory_add(). This is the hot path. */
void nm_page_stage_add(struct nm_page_stage *stage, uint32_t pid, const struct nm_page_touch *touch,
		       uint64_t interval);
/* Notes that threads were moved: their pages stay until accesses from the new node are counted. */
void nm_page_stage_threads_moved(struct nm_page_stage *stage,
				 const struct nm_page_stage_input *input,
				 const struct nm_decision *decision);
/* Removes a process that was released, or has ended. */
void nm_page_stage_drop(struct nm_page_stage *stage, uint32_t pid);
/* Applies the verdict on a decision about pages. */
void nm_page_stage_apply_verdict(struct nm_page_stage *stage,
				 const struct nm_page_stage_input *input,
				 const struct nm_verdict *verdict);
/* Runs one interval: collects the results of the last moves, and submits the next ones. */
void nm_page_stage_tick(struct nm_page_stage *stage, const struct nm_page_stage_input *input);

#endif
