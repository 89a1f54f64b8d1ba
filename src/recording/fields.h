/* SPDX-License-Identifier: MIT */
/* The fields of each record, defined once for writing, reading and the dump. Pure. */
#ifndef NM_RECORDING_FIELDS_H
#define NM_RECORDING_FIELDS_H

#include <stdio.h>

#include "bytes.h"
#include "numa-migrd/recording.h"

enum nm_field_kind {
	NM_FIELD_UINT, /* size: 1, 2, 4, 8; below `most` unless that is 0 */
	NM_FIELD_INT,  /* size: 1, 2, 4, 8 */
	NM_FIELD_REAL,
	NM_FIELD_BOOL,
	NM_FIELD_CHARS, /* size: of the array, including a NUL */
	NM_FIELD_TEXT,	/* const char *, may be NULL */
	NM_FIELD_BLOB,	/* const uint8_t *; `count` is its length */
	NM_FIELD_MASK,	/* hwloc_bitmap_t, may be NULL */
	NM_FIELD_SHAPE, /* an embedded array, with `count` entries in use, or all `most` */
	NM_FIELD_ITEMS, /* a pointer to `count` values of the shape */
};

struct nm_shape;

struct nm_field {
	const char *name; /* NULL: none, for items that are numbers */
	const struct nm_shape *shape;
	const char *const *words; /* UINT: `most` words for display; NULL: display the number */
	size_t offset, size;
	size_t count; /* offset of the number + 1; 0: all `most` */
	size_t count_size, most;
	enum nm_field_kind kind;
};

struct nm_shape {
	size_t size;
	const struct nm_field *fields;
	size_t count;
};

/* Memory allocated while reading a record. */
struct nm_arena {
	void **items;
	hwloc_bitmap_t *masks;
	size_t nr_items, room_items, nr_masks, room_masks;
};
void nm_arena_clear(struct nm_arena *arena);
/* Returns zeroed memory, or NULL if memory is short. */
void *nm_arena_get(struct nm_arena *arena, size_t count, size_t size);

#define NM_RECORDING_NODES_MOST 4096U

/* Appends a value of that shape. */
void nm_shape_put(const struct nm_shape *shape, const void *value, struct nm_bytes *ret);
/* Reads a value; its texts point into the bytes of the cursor. Returns 0, -EBADMSG or -ENOMEM. */
int nm_shape_get(const struct nm_shape *shape, struct nm_cursor *cursor, struct nm_arena *arena,
		 void *ret);
/* Prints the fields as "name=value", with items in brackets. */
void nm_shape_print(const struct nm_shape *shape, const void *value, FILE *out);

/* A topology with the number of its distances. */
struct nm_topology_parts {
	struct nm_topology topology; /* first, because the fields use offsets in it */
	size_t nr_cells;
};
const struct nm_shape *nm_shape_of_topology(void);

/* In topology.c. Reading also checks all indices; the arena owns the value. */
void nm_topology_put(const struct nm_topology *topology, struct nm_bytes *ret);
int nm_topology_get(struct nm_cursor *cursor, struct nm_arena *arena,
		    const struct nm_topology **ret);
void nm_topology_print(const struct nm_topology *topology, FILE *out);

/* Return the shape of a kind and the offset of its value in struct nm_recorded; NULL: not described
 * by fields. */
const struct nm_shape *nm_shape_of(enum nm_recorded_kind kind);
size_t nm_shape_place(enum nm_recorded_kind kind);

#endif
