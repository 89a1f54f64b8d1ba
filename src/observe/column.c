/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "numa-migrd/snapshot.h"

static void *cell_at(const struct nm_column *column, const struct nm_column_key *key)
{
	return (uint8_t *)column->cells + key->row * column->cell_bytes;
}

void nm_column_clear(struct nm_column *column)
{
	for (size_t i = 0; column->clear && i < column->count; i++)
		column->clear(cell_at(column, &column->keys[i]));
	free(column->keys);
	free(column->cells);
	column->keys = NULL;
	column->cells = NULL;
	column->count = 0;
}

void *nm_column_find(const struct nm_column *column, uint32_t id)
{
	const struct nm_column_key *key =
		column->count > 0
			? bsearch(&id, column->keys, column->count, sizeof(*key), nm_compare_u32)
			: NULL;
	return key ? cell_at(column, key) : NULL;
}

static bool is_same(const struct nm_column_key *a, const struct nm_column_key *b)
{
	return a->id == b->id && a->start_ticks == b->start_ticks && a->program_ns == b->program_ns;
}

/* Moves the cells of tasks that remain, and leaves zeros in their place. */
static void move_cells(struct nm_column *from, struct nm_column *to)
{
	size_t at = 0;
	for (size_t i = 0; i < from->count; i++) {
		const struct nm_column_key *key = &from->keys[i];
		while (at < to->count && to->keys[at].id < key->id)
			at++;
		if (at == to->count)
			break;
		if (!is_same(key, &to->keys[at]))
			continue;
		memcpy(cell_at(to, &to->keys[at]), cell_at(from, key), from->cell_bytes);
		memset(cell_at(from, key), 0, from->cell_bytes);
	}
}

/* Takes ownership of the keys, which may be NULL: out of memory. */
static int follow(struct nm_column *column, struct nm_column_key *keys, size_t count)
{
	struct nm_column next = {column->cell_bytes, column->clear, .keys = keys, .count = count};
	next.cells = calloc(count + 1, column->cell_bytes);
	if (!keys || !next.cells) {
		free(keys);
		free(next.cells);
		return -ENOMEM;
	}
	if (count > 0)
		qsort(keys, count, sizeof(*keys), nm_compare_u32);
	move_cells(column, &next);
	nm_column_clear(column);
	*column = next;
	return 0;
}

int nm_column_follow_threads(struct nm_column *column, const struct nm_snapshot *snapshot)
{
	struct nm_column_key *keys = calloc(snapshot->nr_threads + 1, sizeof(*keys));
	for (uint32_t i = 0; keys && i < snapshot->nr_threads; i++)
		keys[i] = (struct nm_column_key){.id = snapshot->threads[i].tid,
						 .row = i,
						 .start_ticks = snapshot->threads[i].start_ticks,
						 .program_ns = snapshot->threads[i].adopted_ns};
	return follow(column, keys, snapshot->nr_threads);
}

int nm_column_follow_processes(struct nm_column *column, const struct nm_snapshot *snapshot)
{
	struct nm_column_key *keys = calloc(snapshot->nr_processes + 1, sizeof(*keys));
	for (uint32_t i = 0; keys && i < snapshot->nr_processes; i++)
		keys[i] = (struct nm_column_key){.id = snapshot->processes[i].pid,
						 .row = i,
						 .start_ticks = snapshot->processes[i].start_ticks,
						 .program_ns = snapshot->processes[i].program_ns};
	return follow(column, keys, snapshot->nr_processes);
}
