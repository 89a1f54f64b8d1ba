/* SPDX-License-Identifier: MIT */
/* The last decisions and their results as they were logged, for the bus. A ring buffer; initially
 * all zero. */
#ifndef NUMA_MIGRD_HISTORY_H
#define NUMA_MIGRD_HISTORY_H

#include "report/dump.h"
#include "report/journal.h"

#define NM_HISTORY_MAX 1024U /* shared: newest */

/* A decision as it was reported. */
struct nm_history_item {
	uint64_t time_usec; /* CLOCK_REALTIME */
	const char *result; /* static, as in the journal */
	/* With the kernel's numbers of nodes, and without affinities; id 0: none. */
	struct nm_decision decision;
	const char *figure; /* name of the metric in the next two fields; NULL: not known */
	double before, after;
	bool judged;
	enum nm_verdict_kind verdict;
	/* From the journal; the history owns it. */
	char *message, *fields, *verdict_message; /* the last is NULL until the verdict */
};

struct nm_history {
	struct nm_history_item *items; /* by id modulo NM_HISTORY_MAX; NULL: none yet */
	uint64_t first, next;	       /* ids are in [first, next) */
};

void nm_history_clear(struct nm_history *history);

/* Returns the decision with this id, or NULL if it does not exist or has been overwritten. */
struct nm_history_item *nm_history_find(const struct nm_history *history, uint64_t id);

/* Adds a copy of added->decision, with its result and time, and the text of its journal entry. */
void nm_history_add(struct nm_history *history, const struct nm_topology *topology,
		    const struct nm_history_item *added, const struct nm_entry *entry);

/* Adds the verdict to its decision, unless that has been overwritten. */
void nm_history_judge(struct nm_history *history, const struct nm_verdict *verdict,
		      const struct nm_entry *entry);

/* Adds the decisions to the document, oldest first, with their reasons and verdicts. */
void nm_history_show(const struct nm_history *history, struct nm_dump *dump);

#endif
