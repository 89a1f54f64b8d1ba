/* SPDX-License-Identifier: MIT */
/*
 * The last decisions and what came of them, for the bus: as the journal was told them. A ring; all
 * zero is a beginning.
 */
#ifndef NM_DAEMON_HISTORY_H
#define NM_DAEMON_HISTORY_H

#include "numa-migrd/journal.h"
#include "numa-migrd/show.h"

#define NM_HISTORY_MOST 1024U

struct nm_past_thread {
	uint32_t pid, tid; /* tid 0: the process's pages */
	uint64_t start_ticks;
	int cpu_from, cpu_to, node_from, node_to; /* the kernel's numbers; -1: none, or not known */
	char comm[NM_COMM_BYTES];
};

struct nm_past {
	uint64_t id, time_usec; /* realtime */
	unsigned nr_threads;
	struct nm_past_thread threads[2];
	uint64_t pages, bytes; /* of a decision about pages */
	const char *figure;    /* what the next two are of; NULL: not known */
	double before, after;
	double tickets, draw;			/* NaN: no lottery */
	struct nm_alternative
		alternatives[NM_ALTERNATIVES_MOST]; /* with the kernel's node numbers */
	size_t nr_alternatives, nr_candidates;
	size_t reason; /* where in the message it begins */
	/* As the journal has them; owned. NULL: out of memory, or not there (yet). */
	char *kind, *policy, *result, *tickets_parts, *message, *fields;
	char *verdict, *verdict_message;
};

struct nm_history {
	struct nm_past *items; /* by id, modulo NM_HISTORY_MOST, where used; NULL: none yet */
	uint64_t first, next;  /* ids told are in [first, next) */
};

void nm_history_clear(struct nm_history *history);

/* The decision with this id, or NULL: it was not made, or is forgotten. */
struct nm_past *nm_history_find(const struct nm_history *history, uint64_t id);

/* Takes the decision as it was told. Its threads are filled in by the caller. NULL: out of memory.
 */
struct nm_past *nm_history_add(struct nm_history *history, uint64_t id, uint64_t time_usec,
			       const struct nm_entry *entry);

/* What came of it. NULL: it is forgotten. */
struct nm_past *nm_history_judge(struct nm_history *history, uint64_t id,
				 const struct nm_entry *entry);

/* Of the decisions after this one the newest `most` (0: all), oldest first. */
void nm_history_list(const struct nm_history *history, uint64_t after, uint32_t most,
		     const struct nm_show *show);

/* One decision with its reasons, into an open dictionary. */
void nm_past_explain(const struct nm_past *past, const struct nm_show *show);

/* The last decision about each thread, for many look-ups. */
struct nm_last_decision {
	uint32_t tid;
	uint64_t start_ticks, id;
};
/* Ascending tid; allocated. -ENOMEM. */
int nm_history_last(const struct nm_history *history, struct nm_last_decision **ret,
		    size_t *ret_count);
/* 0: none that is remembered. */
uint64_t nm_last_decision_of(const struct nm_last_decision *last, size_t count, uint32_t tid,
			     uint64_t start_ticks);

#endif
