/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "numa-migrd/snapshot.h"

static void *cell_at(const struct nm_column *column, const struct nm_column_key *key)
{
	return (uint8_t *)column->cells + key->row * column->cell_bytes;
}

static struct nm_column_key *find_key(const struct nm_column *column, uint32_t id)
{
	if (column->count == 0)
		return NULL;
	return bsearch(&id, column->keys, column->count, sizeof(*column->keys), nm_compare_u32);
}

static struct nm_column_key *find_same(const struct nm_column *column,
				       const struct nm_column_key *task)
{
	struct nm_column_key *key = find_key(column, task->id);
	bool same =
		key && key->start_ticks == task->start_ticks && key->program_ns == task->program_ns;
	return same ? key : NULL;
}

void *nm_column_find(const struct nm_column *column, uint32_t id)
{
	const struct nm_column_key *key = find_key(column, id);
	return key ? cell_at(column, key) : NULL;
}

/* No task has this start time. */
void nm_column_renew(struct nm_column *column, uint32_t id)
{
	struct nm_column_key *key = find_key(column, id);
	if (key)
		key->start_ticks = UINT64_MAX;
}

void nm_column_clear(struct nm_column *column)
{
	for (size_t i = 0; column->clear && i < column->count; i++)
		column->clear(column->context, cell_at(column, &column->keys[i]));
	free(column->keys);
	free(column->cells);
	column->keys = NULL;
	column->cells = NULL;
	column->count = 0;
}

/* Takes ownership of the keys. */
static void follow(struct nm_column *column, const struct nm_snapshot *snapshot,
		   struct nm_column_key *keys, size_t count)
{
	struct nm_column next = *column;
	if (keys)
		qsort(keys, count, sizeof(*keys), nm_compare_u32);
	/* As in most intervals. */
	if (column->count == count &&
	    (count == 0 || memcmp(column->keys, keys, count * sizeof(*keys)) == 0)) {
		free(keys);
		return;
	}
	next.keys = keys;
	next.cells = nm_must(calloc(count + 1, column->cell_bytes));
	next.count = count;
	for (size_t i = 0; next.init && i < next.count; i++)
		if (!find_same(column, &next.keys[i]))
			next.init(snapshot, cell_at(&next, &next.keys[i]));
	/* Move the cells of tasks that remain, and leave zeros in their place. */
	for (size_t i = 0; i < column->count; i++) {
		void *cell = cell_at(column, &column->keys[i]);
		const struct nm_column_key *same = find_same(&next, &column->keys[i]);
		if (!same)
			continue;
		memcpy(cell_at(&next, same), cell, column->cell_bytes);
		memset(cell, 0, column->cell_bytes);
	}
	nm_column_clear(column);
	*column = next;
}

void nm_column_follow_threads(struct nm_column *column, const struct nm_snapshot *snapshot)
{
	struct nm_column_key *keys = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*keys)));
	for (uint32_t i = 0; i < snapshot->nr_threads; i++)
		keys[i] = (struct nm_column_key){.id = snapshot->threads[i].tid,
						 .row = i,
						 .start_ticks = snapshot->threads[i].start_ticks,
						 .program_ns = snapshot->threads[i].adopted_ns};
	follow(column, snapshot, keys, snapshot->nr_threads);
}

static struct nm_column_key key_of(const struct nm_snapshot *snapshot, uint32_t process)
{
	const struct nm_snap_process *one = &snapshot->processes[process];
	return (struct nm_column_key){.id = one->pid,
				      .row = process,
				      .start_ticks = one->start_ticks,
				      .program_ns = one->program_ns};
}

void nm_column_follow_processes(struct nm_column *column, const struct nm_snapshot *snapshot)
{
	struct nm_column_key *keys = nm_must(calloc(snapshot->nr_processes + 1, sizeof(*keys)));
	for (uint32_t i = 0; i < snapshot->nr_processes; i++)
		keys[i] = key_of(snapshot, i);
	follow(column, snapshot, keys, snapshot->nr_processes);
}

void nm_column_add_process(struct nm_column *column, const struct nm_snapshot *snapshot,
			   uint32_t process)
{
	const struct nm_column_key key = key_of(snapshot, process);
	if (find_same(column, &key))
		return;
	struct nm_column_key *keys = nm_must(calloc(column->count + 1, sizeof(*keys)));
	size_t count = 0;
	for (size_t i = 0; i < column->count; i++)
		if (column->keys[i].id != key.id)
			keys[count++] = column->keys[i];
	keys[count++] = key;
	qsort(keys, count, sizeof(*keys), nm_compare_u32);
	for (uint32_t i = 0; i < count; i++)
		keys[i].row = i;
	follow(column, snapshot, keys, count);
}
