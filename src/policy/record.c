/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "numa-migrd/record.h"

/* Rows are in ascending tid order, like the snapshot's threads. */
struct row {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
};

struct cell {
	double performance; /* NaN: never ran there */
	uint64_t interval;
};

struct nm_record {
	struct row *rows;
	struct cell *cells; /* count × nr_nodes */
	size_t count;
	unsigned nr_nodes;
	enum nm_performance performance;
	bool by_locality;
};

int nm_record_new(struct nm_record **ret)
{
	struct nm_record *record = calloc(1, sizeof(*record));
	if (!record)
		return -ENOMEM;
	*ret = record;
	return 0;
}

static void clear(struct nm_record *record)
{
	free(record->rows);
	free(record->cells);
	*record = (struct nm_record){0};
}

void nm_record_free(struct nm_record *record)
{
	if (!record)
		return;
	clear(record);
	free(record);
}

static bool is_same(const struct row *row, const struct nm_snap_thread *thread)
{
	return row->tid == thread->tid && row->pid == thread->pid &&
	       row->start_ticks == thread->start_ticks && row->adopted_ns == thread->adopted_ns;
}

/* Copies the values of the thread; *position only increases, because both lists are ascending. */
static void copy_cells(const struct nm_record *old, const struct nm_snap_thread *thread,
		       size_t *position, struct cell *cells)
{
	while (*position < old->count && old->rows[*position].tid < thread->tid)
		(*position)++;
	if (*position == old->count || !is_same(&old->rows[*position], thread))
		return;
	memcpy(cells, old->cells + *position * old->nr_nodes, old->nr_nodes * sizeof(*cells));
}

static void fill(const struct nm_record *old, const struct nm_snapshot *snapshot,
		 struct nm_record *record)
{
	size_t position = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		struct cell *cells = record->cells + i * record->nr_nodes;
		record->rows[i] = (struct row){.tid = thread->tid,
					       .pid = thread->pid,
					       .start_ticks = thread->start_ticks,
					       .adopted_ns = thread->adopted_ns};
		for (unsigned node = 0; node < record->nr_nodes; node++)
			cells[node] = (struct cell){.performance = NAN};
		if (old)
			copy_cells(old, thread, &position, cells);
		if (thread->measured && thread->main_node >= 0)
			cells[thread->main_node] = (struct cell){.performance = thread->performance,
								 .interval = snapshot->interval};
	}
}

/* An interval without measured threads does not determine what is sampled. */
static bool is_comparable(const struct nm_record *old, const struct nm_record *fresh,
			  const struct nm_snapshot *snapshot)
{
	if (old->nr_nodes != fresh->nr_nodes || old->performance != fresh->performance)
		return false;
	return snapshot->measured == 0 || old->by_locality == fresh->by_locality;
}

int nm_record_update(struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config)
{
	struct nm_record fresh = {
		.count = snapshot->nr_threads,
		.nr_nodes = snapshot->topology->nr_nodes,
		.performance = config->threads.performance,
		.by_locality = snapshot->by_locality,
	};
	fresh.rows = calloc(fresh.count + 1, sizeof(*fresh.rows));
	fresh.cells = calloc(fresh.count * fresh.nr_nodes + 1, sizeof(*fresh.cells));
	if (!fresh.rows || !fresh.cells) {
		clear(&fresh);
		return -ENOMEM;
	}
	bool comparable = is_comparable(record, &fresh, snapshot);
	if (comparable && snapshot->measured == 0)
		fresh.by_locality = record->by_locality;
	fill(comparable ? record : NULL, snapshot, &fresh);
	clear(record);
	*record = fresh;
	return 0;
}

static double unless_expired(const struct cell *cell, uint64_t interval, uint64_t age)
{
	return age > 0 && interval - cell->interval > age ? (double)NAN : cell->performance;
}

/* Returns the cells of the thread, or NULL. */
static const struct cell *cells_of(const struct nm_record *record,
				   const struct nm_snapshot *snapshot, uint32_t thread)
{
	if (thread >= record->count || !is_same(&record->rows[thread], &snapshot->threads[thread]))
		return NULL;
	return &record->cells[thread * (size_t)record->nr_nodes];
}

double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node)
{
	const struct cell *cells = cells_of(record, snapshot, thread);
	if (!cells)
		return NAN;
	return unless_expired(&cells[node], snapshot->interval, config->threads.record_age);
}

void nm_record_get_all(const struct nm_record *record, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, uint32_t thread, double *ret)
{
	const struct cell *cells = cells_of(record, snapshot, thread);
	for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
		ret[node] = cells ? unless_expired(&cells[node], snapshot->interval,
						   config->threads.record_age)
				  : (double)NAN;
}

int nm_record_compare(double record, double now, double band)
{
	if (record > now * (1 + band))
		return 1;
	if (record < now * (1 - band))
		return -1;
	return 0;
}
