/* SPDX-License-Identifier: MIT */
/* What a record consists of, told once: from it come writing, reading and the dump. Pure. */
#ifndef NM_RECORDING_FIELDS_H
#define NM_RECORDING_FIELDS_H

#include <stdio.h>

#include "bytes.h"
#include "numa-migrd/recording.h"

enum nm_field_kind {
	NM_FIELD_UINT, /* size: 1, 2, 4, 8; below `most` where that is not 0 */
	NM_FIELD_INT,  /* likewise, without it */
	NM_FIELD_REAL,
	NM_FIELD_BOOL,
	NM_FIELD_CHARS, /* size: of the array, with a NUL */
	NM_FIELD_TEXT,	/* const char *, may be NULL */
	NM_FIELD_BLOB,	/* const uint8_t *; `count` says how many */
	NM_FIELD_MASK,	/* hwloc_bitmap_t, may be NULL */
	NM_FIELD_SHAPE, /* an array in place, `count` of it in use, or all `most` */
	NM_FIELD_ITEMS, /* a pointer to `count` of the shape */
	NM_FIELD_REALS, /* a pointer to so many doubles as there are nodes, or `count` */
	NM_FIELD_UINTS, /* likewise to numbers of `size` */
};

struct nm_shape;

struct nm_field {
	const char *name;
	const struct nm_shape *shape;
	const char *const *words; /* UINT: `most` of them, for people; NULL: a number is one */
	size_t offset, size;
	size_t count; /* offset of the number, + 1; 0: see above */
	size_t count_size, most;
	enum nm_field_kind kind;
	bool secret; /* CHARS: a name, see hide.h */
};

struct nm_shape {
	const char *name;
	size_t size;
	const struct nm_field *fields;
	size_t count;
};

/* What reading has allocated for a record. */
struct nm_arena {
	void **items;
	hwloc_bitmap_t *masks;
	size_t nr_items, room_items, nr_masks, room_masks;
};
void nm_arena_clear(struct nm_arena *arena);
/* Zeroed; NULL: no memory. */
void *nm_arena_get(struct nm_arena *arena, size_t count, size_t size);
int nm_arena_keep(struct nm_arena *arena, hwloc_bitmap_t mask);

#define NM_RECORDING_NODES_MOST 4096U

/* Appends the value of that shape; nr_nodes: of arrays by node. */
void nm_shape_put(const struct nm_shape *shape, const void *value, unsigned nr_nodes,
		  struct nm_bytes *ret);
/* Fills it; texts point into the cursor's bytes. 0, -EBADMSG, -ENOMEM. */
int nm_shape_get(const struct nm_shape *shape, struct nm_cursor *cursor, unsigned nr_nodes,
		 struct nm_arena *arena, void *ret);
/* "name=value" after each other, items in brackets. */
void nm_shape_print(const struct nm_shape *shape, const void *value, unsigned nr_nodes, FILE *out);

/* struct nm_topology with counts for all that it has. */
struct nm_topology_parts {
	struct nm_node *nodes;
	struct nm_cpu *cpus;
	unsigned *distance;
	unsigned nr_nodes, nr_cpus;
	size_t nr_cells;
	hwloc_bitmap_t usable, online, possible;
	uint64_t llc_bytes;
};
const struct nm_shape *nm_shape_of_topology(void);

/* topology.c: also checks that every index in it is one. The value is the arena's. */
void nm_topology_put(const struct nm_topology *topology, struct nm_bytes *ret);
int nm_topology_get(struct nm_cursor *cursor, struct nm_arena *arena,
		    const struct nm_topology **ret);
void nm_topology_print(const struct nm_topology *topology, FILE *out);

/* samples.c */
void nm_samples_put(const struct nm_recorded_samples *samples, struct nm_bytes *ret);
/* Into arrays that are used again by the next. */
struct nm_sample_room {
	struct nm_sample *samples;
	struct nm_task_event *events;
	size_t room_samples, room_events;
};
int nm_samples_get(struct nm_cursor *cursor, struct nm_sample_room *room,
		   struct nm_recorded_samples *ret);
void nm_samples_print(const struct nm_recorded_samples *samples, FILE *out);

/* The shape of a kind and where its value is in struct nm_recorded; NULL: not told by fields. */
const struct nm_shape *nm_shape_of(enum nm_recorded_kind kind);
size_t nm_shape_place(enum nm_recorded_kind kind);

#endif
