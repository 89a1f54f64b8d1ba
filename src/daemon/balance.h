/* SPDX-License-Identifier: MIT */
/* Policy "balance" in the daemon: what it keeps from one interval to the next. */
#ifndef NM_DAEMON_BALANCE_H
#define NM_DAEMON_BALANCE_H

#include "daemon.h"
#include "numa-migrd/balance_input.h"
#include "numa-migrd/mappings.h"

/* Of a managed thread. */
struct nm_known_thread {
	uint32_t tid;
	uint64_t start_ticks;
	uint64_t read_interval; /* when schedstat was read last; 0: never */
	uint64_t read_ns, run_ns, delay_ns;
	struct nm_dtas_behaviour behaviour;
	enum nm_dtas_type leased_as; /* it was sent to CPUs of this type; EITHER: to a node */
};

#define NM_BALANCE_SLOTS 512U /* pages of a process whose place is asked for, at most */

/* Where a process's pages are. */
struct nm_residence {
	uint32_t pid;
	uint64_t start_ticks;
	const struct nm_process *process; /* the roster's, in this interval only */
	uint64_t tried_ns;		  /* when its pages were to be counted last; 0: never */
	double *pages;			  /* what the estimates refer to, and scratch */
	double *seen, samples;		  /* accesses by node: within `pages` */
	uint64_t *addresses;		  /* a choice of its pages; NULL: none is kept */
	struct nm_residency counted, sampled;
};

/* What is asked of the process whose turn it is, until the answer is there. */
struct nm_counting {
	uint64_t ticket; /* 0: nothing is */
	enum nm_memory_query_kind kind;
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t asked;	/* in which interval */
	unsigned count; /* of pages that are asked for */
	uint64_t addresses[NM_BALANCE_SLOTS];
};

struct nm_balancer {
	struct nm_balance_state state;
	const struct nm_topology *topology; /* the pipeline's, which this does not outlive */
	struct nm_known_thread *known;	    /* by index of the snapshot's threads */
	size_t nr_known;
	struct nm_residence *residences; /* ascending pid */
	size_t nr_residences;
	struct nm_counting counting;
	double page_bytes;
	bool silence_reported; /* logged: schedstat shows nothing */

	bool dtas_reported;	      /* that it is not available */
	bool split;		      /* CPUs have types: what follows is valid */
	enum nm_dtas_type *cpu_types; /* per CPU */
	hwloc_bitmap_t *leasable;     /* per node and type of thread */
	uint64_t split_ns;

	struct nm_balance_result result; /* of this interval */
	struct {
		uint64_t reads, stopped_by_gain, unknown, stopped_by_leader, pages_counted;
	} tally;
};

/* ---- balance_times.c: who waits ---- */

/* Takes over what is known of the snapshot's threads, and forgets others. -ENOMEM. */
int nm_balance_follow_threads(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/* Reads schedstat of suspects; ret_times: per thread. *ret_suspects: of how many. -ENOMEM.
 */
int nm_balance_read_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const struct nm_balance_rules *rules, struct nm_balance_times *ret_times,
			  size_t *ret_suspects);

/* ---- balance_pages.c: where their pages are ---- */

/* While `due`, estimates by accesses, and counts the pages of one process a tick. -ENOMEM. */
int nm_balance_follow_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot, bool due);
/* The estimate to go by now, or NULL. */
const struct nm_residency *nm_balance_residency(const struct nm_balancer *balancer, uint32_t pid,
						uint64_t now_ns);
/* NULL: it is not managed. */
struct nm_residence *nm_balance_residence(const struct nm_balancer *balancer, uint32_t pid);
/* Asks what is to be taken in a later tick. As nm_platform_ops.ask. */
int nm_balance_ask(struct nm_daemon *daemon, const struct nm_memory_query *question);
/* A count, or what stands for one; `seen`: per node, `samples`: see residency.h. */
void nm_balance_take_count(struct nm_balancer *balancer, struct nm_residence *residence,
			   const struct nm_residency_reading *reading);
void nm_balance_pages_clear(struct nm_daemon *daemon);

/* ---- balance_query.c: where some of their pages are ---- */

/* Asks for those that were sampled since the first call, at most NM_BALANCE_SLOTS. -EAGAIN: they
 * are too few yet; otherwise as nm_balance_ask(). */
int nm_balance_query(struct nm_daemon *daemon, struct nm_residence *residence);
/* Where they are. */
void nm_balance_take_homes(struct nm_balancer *balancer, struct nm_residence *residence,
			   const int *homes, uint64_t now_ns);

/* ---- balance_types.c: DTAS ---- */

/* Follows what threads are, and divides the CPUs when due. -ENOMEM. */
int nm_balance_follow_types(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const struct nm_figures *figures, size_t nr_figures);
/* What a thread of this type may be leased on the node for the sake of that CPU; NULL: all. */
hwloc_const_bitmap_t nm_balance_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				      int node, int cpu);
void nm_balance_types_clear(struct nm_balancer *balancer);

#endif
