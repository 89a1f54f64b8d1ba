/* SPDX-License-Identifier: MIT */
/*
 * A stage's state of each thread or process: an array by index of the snapshot, which follows the
 * tasks from one snapshot to the next. A task is the same as long as its number, its start time and
 * its program are. Pure.
 */
#ifndef NUMA_MIGRD_COLUMN_H
#define NUMA_MIGRD_COLUMN_H

#include "numa-migrd/snapshot.h"

/* The identity of a task, and the index of its cell. */
struct nm_column_key {
	uint32_t id, row;
	uint64_t start_ticks;
	uint64_t program_ns; /* start of its program; of a thread: when it was adopted */
};

/* Initially zero, except for the first two fields. */
struct nm_column {
	size_t cell_bytes;
	void (*clear)(void *cell); /* frees what a cell owns; NULL: nothing */
	void *cells;
	struct nm_column_key *keys; /* ascending id */
	size_t count;
};

/* Moves each cell to the index of its thread or process in the snapshot. Cells of tasks that are
 * not in it are cleared; those of new tasks are zero. Returns 0, or -ENOMEM with the column
 * unchanged. Called by a stage before it uses the column in an interval. */
int nm_column_follow_threads(struct nm_column *column, const struct nm_snapshot *snapshot);
int nm_column_follow_processes(struct nm_column *column, const struct nm_snapshot *snapshot);

/* Returns the cell of the task with this TID or PID, or NULL. It moves when the column follows. */
void *nm_column_find(const struct nm_column *column, uint32_t id);

/* Clears all cells, and frees the arrays. */
void nm_column_clear(struct nm_column *column);

#endif
