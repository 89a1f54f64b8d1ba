/* SPDX-License-Identifier: MIT */
/*
 * The state of the daemon as one JSON document in a sealed memfd (memfd_create(2)), for Dump of
 * org.numamigrd1(5). Rows are written as they are added, so that the memory does not hold the
 * document twice.
 */
#ifndef NUMA_MIGRD_DUMP_H
#define NUMA_MIGRD_DUMP_H

#include <jansson.h>
#include <stdio.h>

#include "numa-migrd/base.h"
#include "numa-migrd/fields.h"

/* Rows of all arrays of a document together. */
#define NM_DUMP_ROWS_MAX 25000U

/* A document under construction; initially {0}. Errors are reported by nm_dump_finish(). */
struct nm_dump {
	FILE *out;
	size_t sections;	 /* written so far */
	unsigned rows, left_out; /* in all arrays */
	bool has_rows;		 /* the open array */
	int error;
};

/* Returns the row as an object, without the values that are unavailable. Text that is not UTF-8 is
 * escaped. */
json_t *nm_row_json(const struct nm_table *table, const void *row);

/* Creates the memfd. Returns 0 or a negative errno. */
int nm_dump_open(struct nm_dump *dump);
/* Adds a value, and takes it over. */
void nm_dump_value(struct nm_dump *dump, const char *name, json_t *value);
/* Adds an array, whose rows follow until nm_dump_end(). */
void nm_dump_begin(struct nm_dump *dump, const char *name);
/* Returns whether there is room for another row, which is then counted; otherwise it counts as left
 * out. Called before a row is composed. */
bool nm_dump_admit(struct nm_dump *dump);
/* Adds a row that was admitted, as above. */
void nm_dump_row(struct nm_dump *dump, json_t *row);
void nm_dump_end(struct nm_dump *dump);
/* Adds "rows_left_out", seals the memfd and returns it, to be read from its beginning; the caller
 * closes it. Otherwise returns a negative errno. */
int nm_dump_finish(struct nm_dump *dump);
/* Discards a document that was not finished. */
void nm_dump_clear(struct nm_dump *dump);

#endif
