/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "balance": its state of each thread and process, and the decisions of an
 * interval. The daemon provides the measurements and carries the decisions out. Pure.
 */
#ifndef NUMA_MIGRD_BALANCER_H
#define NUMA_MIGRD_BALANCER_H

#include "numa-migrd/balance.h"
#include "numa-migrd/balance_input.h"
#include "numa-migrd/column.h"
#include "numa-migrd/config.h"
#include "numa-migrd/dtas.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/policy.h"
#include "numa-migrd/residency.h"
#include "numa-migrd/roster.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/snapshot.h"

/* A reading of the first two numbers of /proc/PID/task/TID/schedstat. */
struct nm_balance_reading {
	uint64_t run_ns, delay_ns;
	uint64_t read_ns; /* time of the reading */
};

/* The state of a managed thread. */
struct nm_known_thread {
	uint64_t read_interval; /* interval of the last reading; 0: never */
	struct nm_balance_reading last;
	struct nm_dtas_behaviour behaviour;
	enum nm_dtas_type leased_as; /* type of the CPUs of its lease; EITHER: leased for a whole
				      * node */
};

#define NM_BALANCE_SLOTS 512U /* maximum number of pages of a process that are queried */

/* The location of a process's pages. */
struct nm_residence {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t rss_bytes;    /* in this interval */
	uint64_t tried_ns;     /* time of the last attempt to count its pages; 0: never */
	double *pages;	       /* referenced by the estimates, and scratch space */
	double *seen, samples; /* accesses by node; points into `pages` */
	uint64_t *addresses;   /* sample of its pages; NULL: none */
	struct nm_residency counted, sampled;
};

/* A query about the location of one process's pages. */
struct nm_balance_query {
	enum nm_residency_source source; /* NM_RESIDENCY_MAPS, or NM_RESIDENCY_QUERY with
					  * `addresses` */
	uint32_t pid;
	uint64_t start_ticks;
	unsigned count; /* number of addresses */
	uint64_t addresses[NM_BALANCE_SLOTS];
};

struct nm_balancer {
	struct nm_balance_state state;
	const struct nm_topology *topology; /* the caller's, which outlives this */
	double page_bytes;
	struct nm_column threads;    /* of struct nm_known_thread */
	struct nm_column residences; /* of the processes: struct nm_residence */

	bool split;		      /* CPUs have types: the next three fields are valid */
	enum nm_dtas_type *cpu_types; /* per CPU */
	hwloc_bitmap_t *leasable;     /* per node and type of thread */
	uint64_t split_ns;

	struct nm_balance_result result; /* of this interval */
	struct {
		uint64_t stopped_by_gain, unknown, stopped_by_leader, pages_counted;
	} tally;
};

/* ---- balancer.c: threads and rounds ---- */

/* Creates the state of the policy. page_bytes is the size of a base page. Returns 0 or -ENOMEM. */
int nm_balancer_new(const struct nm_topology *topology, double page_bytes,
		    struct nm_balancer **ret);
/* NULL is allowed. */
void nm_balancer_free(struct nm_balancer *balancer);
/* Returns the rules of a round that the configuration sets. */
struct nm_balance_rules nm_balancer_rules(const struct nm_config *config);

/* Returns the state of the thread with this index of the snapshot that balancer->threads follows.
 */
static inline struct nm_known_thread *nm_balancer_thread(const struct nm_balancer *balancer,
							 size_t thread)
{
	return (struct nm_known_thread *)balancer->threads.cells + thread;
}
/* Records a reading of the thread with this index of the snapshot. Returns the increase since the
 * reading of the last interval; all zero, which means not known, without one. */
struct nm_balance_times nm_balancer_take_reading(struct nm_balancer *balancer, uint32_t thread,
						 uint64_t interval,
						 const struct nm_balance_reading *reading);
/* Performs a round with the increases of the snapshot's threads: balancer->result has its moves.
 * Called after the threads, types and pages of this interval were updated. Returns 0, or -ENOMEM
 * with the last result unchanged. */
int nm_balancer_round(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		      const struct nm_config *config, const struct nm_balance_times *times);
/* Proposes the moves of the round of the same interval. The proposals refer to CPUs of the
 * balancer, which must outlive them. Returns 0 or -ENOMEM; the caller clears *ret. */
int nm_balancer_propose(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			const struct nm_config *config, struct nm_proposals *ret);
/* Notes that a decision of this interval was applied. */
void nm_balancer_applied(struct nm_balancer *balancer, const struct nm_decision *decision);

/* ---- pages.c: location of pages ---- */

/* Adds an access to the sample of its process's pages. This is the hot path. */
void nm_balancer_add(struct nm_balancer *balancer, const struct nm_sample *sample);
/* Updates the set of processes, and estimates the location of their pages from accesses. Returns 0
 * or -ENOMEM. */
int nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/* Returns the best current estimate, or NULL. */
const struct nm_residency *nm_balancer_residency(const struct nm_balancer *balancer, uint32_t pid,
						 uint64_t now_ns);
/* Selects the process whose pages are to be located next, and writes the query to *ret. Returns
 * false if no process is due, or the one that is due has too few sampled pages yet. */
bool nm_balancer_next_query(struct nm_balancer *balancer, const struct nm_config *config,
			    uint64_t now_ns, struct nm_balance_query *ret);
/* Makes the process of a query that could not be sent due again in one second. */
void nm_balancer_retry(struct nm_balancer *balancer, const struct nm_config *config,
		       const struct nm_balance_query *query, uint64_t now_ns);
/* Records the answer to a query by numa_maps: the number of pages on each node. An answer about a
 * process that has ended is ignored. */
void nm_balancer_take_counts(struct nm_balancer *balancer, const struct nm_balance_query *query,
			     const double *pages, uint64_t now_ns);
/* Records the answer to a query with addresses: the kernel's number of the node of each page,
 * negative if the page is not in memory. An answer about a process that has ended is ignored. */
void nm_balancer_take_nodes(struct nm_balancer *balancer, const struct nm_balance_query *query,
			    const int *nodes, uint64_t now_ns);
/* Frees what the entry of a process owns. */
void nm_residence_clear(void *residence);

/* ---- types.c: DTAS ---- */

/* Updates the types of threads, and divides the CPUs between them when due. Writes to ret_ended
 * (room for each thread) the indices of the threads whose leases no longer fit their types, and
 * their number to *ret_count. Returns 0 or -ENOMEM. */
int nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			     const struct nm_figures *figures, size_t nr_figures,
			     uint32_t *ret_ended, size_t *ret_count);
/* Makes all CPUs available to all threads again. */
void nm_balancer_clear_types(struct nm_balancer *balancer);
/* Returns the CPUs of the node that a thread of this type may be leased if it is to run on `cpu`;
 * NULL: all. */
hwloc_const_bitmap_t nm_balancer_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				       int node, int cpu);

#endif
