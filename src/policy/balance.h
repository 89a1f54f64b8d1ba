/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "balance": its state of each thread and process, and the decisions of an
 * interval. The daemon provides the measurements and carries the decisions out. Pure.
 */
#ifndef NUMA_MIGRD_BALANCE_H
#define NUMA_MIGRD_BALANCE_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "tasks/metrics.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "numa-migrd/proc.h"
#include "observe/regions.h"
#include "sample/sample.h"
#include "numa-migrd/snapshot.h"
#include "tasks/tasks.h"
#include "numa-migrd/topology.h"

/* ---- DTAS: types of threads and CPUs ---- */

/*
 * Dynamic task-aware scheduling (kMLB, section 2.4): threads that wait for memory and threads that
 * compute run on CPUs of their own type, so that CPUs that share a cache or a core run both. The
 * paper describes the idea; metric, thresholds and split were designed here. Pure.
 */

/*
 * The type of a thread, EITHER until it is known; or the type of threads for which a CPU is used.
 */
enum nm_dtas_type { NM_DTAS_EITHER, NM_DTAS_COMPUTE, NM_DTAS_MEMORY };

/* State of one thread; initially zero. */
struct nm_dtas_behaviour {
	enum nm_dtas_type type;
	enum nm_dtas_type leaning; /* type indicated by the last running intervals, and their
				    * number */
	unsigned intervals;
};

/* Computes misses per 1000 instructions from rates of one interval (struct nm_thread_stats: traffic
 * by line size, instructions). NaN if either is not known or no instruction was retired. */
double nm_dtas_mpki(double misses_per_s, double instructions_per_s);

/* Updates the state with an interval. NaN means that the thread did not run, and changes nothing. */
void nm_dtas_classify(struct nm_dtas_behaviour *behaviour, double mpki);

/*
 * Returns how many of the CPUs to use for memory-bound threads, given the numbers of memory-bound
 * and compute-bound threads: by their ratio, rounded, and at least one for each type that exists.
 */
unsigned nm_dtas_memory_cpus(unsigned cpus, uint64_t memory, uint64_t compute);

/*
 * Assigns each CPU a type in `ret` (topology->nr_cpus entries). Unusable CPUs are EITHER; all are
 * EITHER if no thread has a type or one CPU would have to serve both. Memory-bound CPUs are spread
 * first over caches, then over alternate cores, then over SMT siblings. A small change of the ratio
 * changes few CPUs.
 */
void nm_dtas_split(const struct nm_topology *topology, uint64_t memory, uint64_t compute,
		   enum nm_dtas_type *ret);

/* Returns whether a thread may run on a CPU of this type. `idle` is true if no other thread demands
 * the CPU now (false: the paper's rule). */
bool nm_dtas_fits(enum nm_dtas_type cpu, enum nm_dtas_type thread, bool idle);

/* Returns the usable CPUs of the node to which a thread of this type may move; empty if the split
 * has none on that node. */
void nm_dtas_cpus(const struct nm_topology *topology, const enum nm_dtas_type *types, int node,
		  enum nm_dtas_type thread, hwloc_bitmap_t ret);

/* ---- one round ---- */

/*
 * Balancing between nodes (kMLB, section 3.2.1): if the CPUs of one node are in much higher demand
 * than those of another, threads that wait on its busiest CPUs move to the idlest ones. policy.h
 * chooses the threads; the kernel balances within a node. Loads are in CPUs: 1 is a thread that ran
 * or waited all the time.
 */

#define NM_WAIT_SHARE                                                                              \
	0.1 /* share of the interval from which on a thread counts as waiting for a                \
	     * CPU */

/* The gap is the load per CPU of the fullest node minus that of the emptiest. */
struct nm_balance_state {
	bool active;
	unsigned above; /* consecutive intervals with the gap above balance_begin */
	double gap;	/* before the moves of this interval; 0 with fewer than two nodes that have
			 * CPUs */
	uint64_t waiting; /* movable threads that wait for a CPU */
};

/* Updates the hysteresis with the gap of this interval: balancing begins when the gap exceeds
 * balance_begin for balance_persist intervals, and ends below balance_end. */
void nm_balance_update(struct nm_balance_state *state, const struct nm_config *config, double gap);

/* ---- state of the policy ---- */

/* The state of a managed thread. */
struct nm_balancer_thread_state {
	uint64_t read_interval; /* interval of the last reading; 0: never */
	struct nm_proc_schedstat last;
	/* Of that interval: its demand for a CPU, (Δrun + Δrun_delay)/T, at most 1, or NaN if not
	 * known; and whether it waited for NM_WAIT_SHARE of T, or at all in the paper. */
	double load;
	bool waiting;
	struct nm_dtas_behaviour behaviour;
};

/* The location of a process's pages. */
struct nm_residence {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t rss_bytes;    /* in this interval */
	bool known;	       /* the next three fields are valid */
	double *pages;	       /* R_p(i): on each node with CPUs, which represents others */
	double resident;       /* their sum */
	uint64_t age_ns;       /* of the count that they follow; 0: accesses of this
				* interval */
	double *seen, samples; /* these accesses by node, and the number of samples */
	double *counted;       /* pages found on each node at counted_ns, in any unit */
	uint64_t counted_ns;   /* 0: never */
	uint64_t due_ns;       /* time of the next query */
};

struct nm_balancer_tally {
	uint64_t stopped_by_gain, unknown, stopped_by_leader, pages_counted;
	uint64_t reads; /* of schedstat */
	uint64_t returned; /* moves of nm_balancer_confine() */
	/* CPU time of threads with a type while CPUs had types, in intervals, and the part on CPUs
	 * of the other type. */
	double typed, elsewhere;
};

/* The pending query about the location of a process's pages. */
struct nm_balancer_query {
	uint64_t query_id; /* 0: none */
	uint32_t pid;
	uint64_t start_ticks, interval;
};

struct nm_balancer {
	struct nm_balance_state state;
	const struct nm_topology *topology; /* the caller's, which outlives this */
	double page_bytes;
	bool paper;		     /* rules.paper in this interval */
	struct nm_column threads;    /* of struct nm_balancer_thread_state */
	struct nm_column residences; /* of the processes: struct nm_residence */
	struct nm_balancer_query query;
	bool times_missing;    /* schedstat has no values */
	bool dtas_unavailable; /* its events are not sampled */

	bool split;		      /* CPUs have types: the next three fields are valid */
	enum nm_dtas_type *cpu_types; /* per CPU */
	hwloc_bitmap_t *cpus_of_type; /* per node and type of thread */
	uint64_t split_ns;

	struct nm_proposals proposals; /* of this interval */
	struct nm_balancer_tally tally;
};

/* ---- balance_loads.c: threads and rounds ---- */

/* Creates the state of the policy. page_bytes is the size of a base page. */
void nm_balancer_new(const struct nm_topology *topology, double page_bytes,
		     struct nm_balancer **ret);
/* NULL is allowed. */
void nm_balancer_free(struct nm_balancer *balancer);

/* Returns the state of the thread with this index of the snapshot that balancer->threads follows.
 */
static inline struct nm_balancer_thread_state *
nm_balancer_thread(const struct nm_balancer *balancer, size_t thread)
{
	return (struct nm_balancer_thread_state *)balancer->threads.cells + thread;
}
#define NM_BALANCER_READINGS_MOST 512U /* shared: first; files read per interval */

/*
 * Selects the threads that may have waited in this interval: those whose main CPU was busy for all
 * but NM_WAIT_SHARE of it (with the rules of the paper: busy at all), beginning with those on the
 * fullest CPUs, at most `most`. Selects none if the gap between the nodes cannot exceed
 * balance_end, however long threads waited; therefore nothing is read on a machine that is not
 * overloaded. Writes them to `ret` (room for `most`) and their number to *ret_count.
 */
void nm_balancer_select_threads(const struct nm_snapshot *snapshot, const struct nm_config *config,
				size_t most, struct nm_times_reading *ret, size_t *ret_count);
/* Records a reading. The load of the thread is known if it was also read in the last interval. */
void nm_balancer_add_reading(struct nm_balancer *balancer, uint64_t interval,
			     const struct nm_times_reading *reading);
/* Returns the load of the thread with this index of the snapshot. Without a reading it is the time
 * that the thread ran or, if its main CPU was saturated, NaN, which counts as 1. */
double nm_balancer_load(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			uint32_t thread);
/*
 * Performs a round, in balance.c: updates balancer->state and, while balancing is active, proposes
 * moves of threads one after another, each from the busiest CPU with waiting threads to the idlest
 * CPU on another node, as long as load(to) + load(thread) < load(from) by a minimum. If no thread
 * can move, it tries the next busiest CPU, then the next idlest. Loads and threads per node include
 * the moves proposed before.
 */
void nm_balancer_round(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		       const struct nm_config *config);

/* ---- selection.c: location of pages ---- */

/* Updates the set of processes and the location of their pages. */
void nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/* Returns the location of the pages of a process, or NULL if it is not known. */
const struct nm_residence *nm_balancer_residence(const struct nm_balancer *balancer, uint32_t pid);
/* Selects the process whose pages are to be counted next: the one that is due longest of those with
 * few sampled accesses; NULL: none. */
struct nm_residence *nm_balancer_next_query(const struct nm_balancer *balancer, uint64_t now_ns);
/* Notes the query about the process; error: 0, or -EAGAIN if it could not be sent. */
void nm_balancer_note_query(struct nm_balancer *balancer, struct nm_residence *residence,
			    uint64_t query_id, int error, const struct nm_snapshot *snapshot);
/* Takes the answer: the pages found on each node, in any unit. One about a process that has ended
 * is ignored. */
void nm_balancer_set_pages(struct nm_balancer *balancer, uint32_t pid, uint64_t start_ticks,
			   const double *pages, uint64_t now_ns);
/* Returns an empty column of residences. */
struct nm_column nm_residence_column(void);

/* ---- dtas.c: types of threads and CPUs ---- */

/* Updates the types of threads, and divides the CPUs between them when due. */
void nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/*
 * Confines threads to CPUs of their type (kMLB, section 2.4): proposes to move each thread with a
 * type that ran on a CPU of the other type, to a CPU of its own on the same node, unless its CPU
 * would then be idle (balance_idle_max). Affinities do not stay narrowed, so this is done in each
 * interval, after the round, to whose proposals it adds.
 */
void nm_balancer_confine(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 const struct nm_config *config);
/* Makes all CPUs available to all threads again. */
void nm_balancer_clear_types(struct nm_balancer *balancer);
/* Returns the CPUs of the node to which a thread of this type moves if it is to run on `cpu`; NULL:
 * all. */
hwloc_const_bitmap_t nm_balancer_within(const struct nm_balancer *balancer, enum nm_dtas_type type,
					int node, int cpu);

#endif
