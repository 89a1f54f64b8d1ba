/* SPDX-License-Identifier: MIT */
/* Policy "balance" in the daemon: its state between intervals. */
#ifndef NM_DAEMON_BALANCE_H
#define NM_DAEMON_BALANCE_H

#include "daemon.h"
#include "numa-migrd/balance_input.h"
#include "numa-migrd/mappings.h"

/* The state of a managed thread. */
struct nm_known_thread {
	uint32_t tid;
	uint64_t start_ticks;
	uint64_t read_interval; /* interval of the last reading of schedstat; 0: never */
	uint64_t read_ns, run_ns, delay_ns;
	struct nm_dtas_behaviour behaviour;
	enum nm_dtas_type leased_as; /* type of the CPUs of its lease; EITHER: leased for a whole
				      * node */
};

#define NM_BALANCE_SLOTS 512U /* maximum number of pages of a process that are queried */

/* The location of a process's pages. */
struct nm_residence {
	uint32_t pid;
	uint64_t start_ticks;
	const struct nm_process *process; /* in the task table; valid in this interval only */
	uint64_t tried_ns; /* time of the last attempt to count its pages; 0: never */
	double *pages;			  /* referenced by the estimates, and scratch space */
	double *seen, samples;		  /* accesses by node; points into `pages` */
	uint64_t *addresses;		  /* sample of its pages; NULL: none */
	struct nm_residency counted, sampled;
};

/* The pending query about one process, which they take in turns. */
struct nm_counting {
	uint64_t ticket; /* 0: no query */
	enum nm_memory_query_kind kind;
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t asked;	/* interval of the query */
	unsigned count; /* number of pages queried */
	uint64_t addresses[NM_BALANCE_SLOTS];
};

struct nm_balancer {
	struct nm_balance_state state;
	const struct nm_topology *topology; /* of the pipeline, which outlives this */
	struct nm_known_thread *known;	    /* by index of the snapshot's threads */
	size_t nr_known;
	struct nm_residence *residences; /* ascending pid */
	size_t nr_residences;
	struct nm_counting counting;
	double page_bytes;
	bool silence_reported; /* logged that schedstat has no values */

	bool dtas_reported;	      /* logged that it is not available */
	bool split;		      /* CPUs have types: the next three fields are valid */
	enum nm_dtas_type *cpu_types; /* per CPU */
	hwloc_bitmap_t *leasable;     /* per node and type of thread */
	uint64_t split_ns;

	struct nm_balance_result result; /* of this interval */
	struct {
		uint64_t reads, stopped_by_gain, unknown, stopped_by_leader, pages_counted;
	} tally;
};

/* ---- balance_times.c: waiting threads ---- */

/* Keeps the state of the snapshot's threads and drops that of others. Returns 0 or -ENOMEM. */
int nm_balance_follow_threads(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/* Reads schedstat of the threads that may wait. ret_times has an entry per thread; *ret_suspects is
 * the number of threads that may wait. Returns 0 or -ENOMEM. */
int nm_balance_read_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_balance_rules *rules, struct nm_balance_times *ret_times,
			  size_t *ret_suspects);

/* ---- balance_pages.c: location of pages ---- */

/* While `due`, computes estimates from accesses, and counts the pages of one process per tick.
 * Returns 0 or -ENOMEM. */
int nm_balance_follow_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool due);
/* Returns the best current estimate, or NULL. */
const struct nm_residency *nm_balance_residency(const struct nm_balancer *balancer, uint32_t pid,
						uint64_t now_ns);
/* Returns the entry of a process, or NULL if it is not managed. */
struct nm_residence *nm_balance_residence(const struct nm_balancer *balancer, uint32_t pid);
/* Submits a query whose answer is collected in a later tick. Errors as for
 * nm_platform_ops.memory_query. */
int nm_balance_ask(struct nm_daemon *daemon, const struct nm_memory_query *question);
/* Records a count or an estimate; see residency.h for the fields of `reading`. */
void nm_balance_take_count(struct nm_balancer *balancer, struct nm_residence *residence,
			   const struct nm_residency_reading *reading);
void nm_balance_pages_clear(struct nm_daemon *daemon);

/* ---- balance_query.c: location of a sample of pages ---- */

/* Queries the pages that were sampled since the first call, at most NM_BALANCE_SLOTS. Returns
 * -EAGAIN if there are too few yet, otherwise as nm_balance_ask(). */
int nm_balance_query(struct nm_daemon *daemon, struct nm_residence *residence);
/* Records the answer to the query. */
void nm_balance_take_homes(struct nm_balancer *balancer, struct nm_residence *residence,
			   const int *homes, uint64_t now_ns);

/* ---- balance_types.c: DTAS ---- */

/* Updates the types of threads, and splits the CPUs when due. Returns 0 or -ENOMEM. */
int nm_balance_follow_types(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const struct nm_figures *figures, size_t nr_figures);
/* Returns the CPUs of the node that a thread of this type may be leased if it is to run on `cpu`;
 * NULL: all. */
hwloc_const_bitmap_t nm_balance_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				      int node, int cpu);
void nm_balance_types_clear(struct nm_balancer *balancer);

#endif
