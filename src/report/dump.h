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
#include "report/fields.h"

/* Rows of all arrays of a document together. */
#define NM_DUMP_ROWS_MAX 25000U /* shared: quota */

/* The rows of a domain. */
struct nm_dump_share {
	uint64_t domain;
	unsigned rows;
};

/* A document under construction; initially {0}. Errors are reported by nm_dump_finish(). */
struct nm_dump {
	FILE *out;
	size_t sections;	 /* written so far */
	unsigned rows, left_out; /* in all arrays */
	bool has_rows;		 /* the open array */
	bool is_scarce;		 /* there is not room for all rows of domains */
	struct nm_dump_share *shares;
	size_t nr_shares, shares_capacity;
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
/* Announces the number of rows that belong to domains in this array and the next ones. */
void nm_dump_expect(struct nm_dump *dump, size_t rows);
/* The same as nm_dump_admit() for a row of a domain, which, if there is not room for all, gets one
 * more if it has fewer than are left. */
bool nm_dump_admit_of(struct nm_dump *dump, uint64_t domain);
/* Adds a row that was admitted, as above. */
void nm_dump_row(struct nm_dump *dump, json_t *row);
void nm_dump_end(struct nm_dump *dump);
/* Adds "rows_left_out", seals the memfd and returns it, to be read from its beginning; the caller
 * closes it. It can only be emptied. Otherwise returns a negative errno. */
int nm_dump_finish(struct nm_dump *dump);
/* Discards a document that was not finished. */
void nm_dump_clear(struct nm_dump *dump);

/* ---- documents.c: those that were handed out ---- */

/* So many documents have contents. A reader that keeps more of them open has empty files. */
#define NM_DOCUMENTS_MOST 4U
/* Within this time everyone gets the same document. */
#define NM_DOCUMENT_NS NM_NSEC_PER_SEC

struct nm_documents { /* initially {0} */
	int fds[NM_DOCUMENTS_MOST];
	unsigned handed_out; /* number of documents that were composed */
	uint64_t composed_ns;
	bool is_current; /* the last one may be handed out again */
};

/*
 * Returns a descriptor for reading, which the caller closes, of the last document, or of one that
 * `compose` returns if the last one is older than a second or expired. The oldest one is emptied
 * then. Otherwise returns a negative errno.
 */
int nm_documents_get(struct nm_documents *documents, uint64_t now_ns, int (*compose)(void *),
		     void *context);
/* The state has been changed by a command: the next document is a new one. */
void nm_documents_expire(struct nm_documents *documents);
/* Closes all; readers keep what they have open. */
void nm_documents_clear(struct nm_documents *documents);

#endif
