/* SPDX-License-Identifier: MIT */
/* What was given back to its owner for life: outlives the roster, which is built anew at every
 * resume. */
#include <string.h>

#include "roster_internal.h"

/* Beyond so many the oldest goes: by then its number has most likely gone to somebody else. */
#define MOST 4096U

struct given {
	uint32_t id; /* tid of a FOREIGN thread, pid of a RELEASED process */
	uint64_t start_ticks;
	enum nm_standing standing;
};

struct nm_roster_memory {
	struct given *items;
	size_t count, capacity;
};

int nm_roster_memory_new(struct nm_roster_memory **ret)
{
	struct nm_roster_memory *memory = calloc(1, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	*ret = memory;
	return 0;
}

void nm_roster_memory_free(struct nm_roster_memory *memory)
{
	if (!memory)
		return;
	free(memory->items);
	free(memory);
}

bool nm_roster_remembers(const struct nm_roster_memory *memory, uint32_t id, uint64_t start_ticks,
			 enum nm_standing standing)
{
	for (size_t i = 0; i < memory->count; i++) {
		const struct given *given = &memory->items[i];
		if (given->id == id && given->start_ticks == start_ticks &&
		    given->standing == standing)
			return true;
	}
	return false;
}

int nm_roster_remember(struct nm_roster_memory *memory, uint32_t id, uint64_t start_ticks,
		       enum nm_standing standing)
{
	if (nm_roster_remembers(memory, id, start_ticks, standing))
		return 0;
	if (memory->count == MOST) {
		memory->count--;
		memmove(memory->items, memory->items + 1, memory->count * sizeof(*memory->items));
	}
	int r = nm_reserve((void **)&memory->items, &memory->capacity, memory->count,
			   sizeof(*memory->items));
	if (r < 0)
		return r;
	memory->items[memory->count++] =
		(struct given){.id = id, .start_ticks = start_ticks, .standing = standing};
	return 0;
}
