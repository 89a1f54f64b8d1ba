/* SPDX-License-Identifier: MIT */
/*
 * threads.policy = "balance": its state of each thread and process, and the decisions of an
 * interval. The daemon provides the measurements and carries the decisions out. Pure.
 */
#ifndef NUMA_MIGRD_BALANCE_H
#define NUMA_MIGRD_BALANCE_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/plan.h"
#include "numa-migrd/policy.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/regions.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/tasks.h"
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

/* Computes misses per 1000 instructions from rates of one interval (struct nm_figures: traffic by
 * line size, instructions). NaN if either is not known or no instruction was retired. */
double nm_dtas_mpki(double misses_per_s, double instructions_per_s);

/* Updates the state with an interval. NaN means that the thread did not run, and changes nothing.
 * Called by the tick for each managed thread. */
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
 * changes few CPUs. Called every 10 s with the numbers of running threads.
 */
void nm_dtas_split(const struct nm_topology *topology, uint64_t memory, uint64_t compute,
		   enum nm_dtas_type *ret);

/* Returns whether a thread may run on a CPU of this type. `idle` is true if no other thread demands
 * the CPU now (false: the paper's rule). */
bool nm_dtas_fits(enum nm_dtas_type cpu, enum nm_dtas_type thread, bool idle);

/* Returns the usable CPUs of the node on which a thread of this type may get a lease; empty if the
 * split has none on that node. Called when a lease is created. */
void nm_dtas_cpus(const struct nm_topology *topology, const enum nm_dtas_type *types, int node,
		  enum nm_dtas_type thread, hwloc_bitmap_t ret);

/* ---- one round ---- */

/*
 * Balancing between nodes (kMLB, section 3.2.1): if the CPUs of one node are in much higher demand
 * than those of another, threads that wait on its busiest CPUs move to the idlest ones. policy.h
 * chooses the threads; the kernel balances within a node. A round is a function of values. Pure.
 */

#define NM_WAIT_SHARE 0.1 /* share of the interval from which on a thread counts as waiting for a
			   * CPU */

/* Loads are in CPUs: 1 is a thread that ran or waited all the time. Initial estimates are in
 * brackets. */
struct nm_balance_rules {
	enum nm_selection selection;
	/*
	 * Hysteresis of the gap, which is the load per CPU of the fullest node minus that of the
	 * emptiest: balancing begins when it exceeds `begin` [0.5] for `persist` [2] intervals, and
	 * ends below `end` [0.25]. A thread moves only if the gap between its node and the
	 * destination still exceeds `end` after the move. (paper: −∞, 1, −∞)
	 */
	double begin, end;
	unsigned persist;
	double overload;   /* [1] load per CPU below which the node's own CPUs suffice (paper: 0) */
	double relief;	   /* [0.1] minimum difference between the loads of the old CPU, and of the
			    * new CPU with the thread (paper: 0) */
	double min_gain;   /* [0] pages; see policy.h (paper: −∞) */
	size_t max_moves;  /* [64] maximum moves per round */
	double idle_max; /* [0.05] load below which a CPU accepts threads of either type (paper:
			  * 0) */
};

struct nm_balance_thread {
	uint64_t start_ticks;
	uint32_t tid;
	uint32_t group;	 /* index */
	int cpu;	 /* main CPU; -1: did not run */
	double load;	 /* nm_balance_load(); NaN: not known, counts as 1 */
	bool waiting;	 /* nm_balance_waits() */
	bool leader;	 /* leader of its group */
	bool movable;	 /* past its warm-up, not barred, and no verdict pending */
	bool everywhere; /* `allowed` includes every usable CPU, so it need not be tested */
	hwloc_const_bitmap_t allowed;
	enum nm_dtas_type type;
};

struct nm_balance_input {
	const struct nm_topology *topology;
	const struct nm_balance_thread *threads;
	size_t nr_threads;
	const struct nm_selection_group *groups;
	size_t nr_groups;
	const double *other_load; /* per CPU: load of unmanaged tasks; NULL: none; NaN: not known,
				   * counts as 1 */
	const double *factors;	  /* nm_selection_factors() */
	const enum nm_dtas_type *cpu_types; /* per CPU, nm_dtas_split(); NULL: no split */
};

/* State kept between rounds; initially zero. */
struct nm_balance_state {
	bool active;
	unsigned above; /* consecutive intervals with the gap above `begin` */
};

struct nm_balance_move {
	uint32_t thread; /* index */
	int cpu_from, cpu_to;
	int node_from, node_to;
	double load, load_from, load_to; /* of the thread, and of the two CPUs before the move */
	enum nm_selection_reason reason;
	double metric, gain; /* as in struct nm_selection_result */
	double cost_change;  /* predicted, nm_selection_cost_change(); negative is better */
};

struct nm_balance_result {
	struct nm_balance_move *moves; /* in order; each thread at most once */
	size_t count;
	double gap;	    /* before the moves; 0 with fewer than two nodes that have CPUs */
	bool active;	    /* false: no search was made */
	uint64_t waiting;   /* movable threads that wait for a CPU */
	/* as in struct nm_selection_result, summed over the pairs of CPUs examined */
	uint64_t stopped_by_gain, unknown, stopped_by_leader;
};
void nm_balance_result_clear(struct nm_balance_result *result);

/* Returns the CPU demand of a thread: (Δrun + Δrun_delay)/T from schedstat, at most 1; NaN for T =
 * 0. */
double nm_balance_load(uint64_t run_ns, uint64_t delay_ns, uint64_t length_ns);

/* Returns whether the thread waited for a CPU for at least NM_WAIT_SHARE of T. */
bool nm_balance_waits(uint64_t delay_ns, uint64_t length_ns);

/* Updates the hysteresis with the gap of this interval. Returns whether balancing is active. Called
 * once per interval. */
bool nm_balance_update(struct nm_balance_state *state, const struct nm_balance_rules *rules,
		       double gap);

/*
 * Performs one round: updates the state and, while balancing is active, moves threads one after
 * another, each from the busiest CPU with waiting threads to the idlest CPU on another node, as
 * long as load(to) + load(thread) < load(from) by rules->relief. If no thread can move, it tries
 * the next busiest CPU, then the next idlest. Loads and threads per node include the moves made
 * before. The caller clears *ret. Called by the policy stage of the tick.
 */
void nm_balance_round(const struct nm_balance_input *input, const struct nm_balance_rules *rules,
		      struct nm_balance_state *state, struct nm_balance_result *ret);

/* ---- input of a round ---- */

/* Derives the input of a balancing round (balance.h) from a snapshot: the threads whose schedstat
 * must be read and, with the results, loads, groups and unmanaged load. Pure. */

/*
 * Selects the threads that may have waited in this interval: those whose main CPU was busy for all
 * but NM_WAIT_SHARE of it, beginning with those on the fullest CPUs, at most `most`. Selects none
 * if the gap between the nodes cannot exceed rules->end, however long threads waited; therefore
 * nothing is read on a machine that is not overloaded. Writes their indices to ret_threads (room
 * for `most`) and their number to *ret_count. Called by the tick after the snapshot.
 */
void nm_balance_select_threads(const struct nm_snapshot *snapshot,
			       const struct nm_balance_rules *rules, size_t most,
			       uint32_t *ret_threads, size_t *ret_count);

/* Increase of the first two numbers of /proc/PID/task/TID/schedstat since an earlier reading. */
struct nm_balance_times {
	uint64_t run_ns, delay_ns;
	uint64_t length_ns; /* between the readings; 0: not known */
};

struct nm_balance_measurements {
	const struct nm_snapshot *snapshot;
	const struct nm_balance_times *times; /* per thread of the snapshot; NULL: none known */
	/* Per process of the snapshot: its pages by node (regions.h), or NULL if not known. NULL:
	 * not known for all. */
	const double *const *resident;
	const enum nm_dtas_type *types;	    /* per thread; NULL: EITHER */
	const enum nm_dtas_type *cpu_types; /* nm_dtas_split(), or NULL; must live as long as
					     * `input` */
	double min_run; /* min_run: a leader that ran or waited less counts as idle */
};

struct nm_balance_input_arrays {
	struct nm_balance_input input; /* threads and groups have the indices of the snapshot's
					* threads and processes */
	struct nm_balance_thread *threads;
	struct nm_selection_group *groups;
	double *resident, *other_load, *factors;
	uint32_t *members;
};

/*
 * Computes the input of a round. The demand of a thread without times is a whole CPU if its main
 * CPU was saturated, otherwise the time that it ran; it does not count as waiting. Pages of a
 * memory-only node count at the node that represents it. The snapshot must outlive *ret. The
 * caller clears *ret. Called by the policy stage of the tick.
 */
void nm_balance_input_build(const struct nm_balance_measurements *facts,
			    struct nm_balance_input_arrays *ret);
void nm_balance_input_clear(struct nm_balance_input_arrays *arrays);

/* ---- state of the policy ---- */

/* The state of a managed thread. */
struct nm_balancer_thread_state {
	uint64_t read_interval; /* interval of the last reading; 0: never */
	struct nm_proc_schedstat last;
	struct nm_dtas_behaviour behaviour;
	enum nm_dtas_type leased_as; /* type of the CPUs of its lease; EITHER: leased for a whole
				      * node */
};

/* The location of a process's pages. */
struct nm_residence {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t rss_bytes;		 /* in this interval */
	bool known;			 /* the next three fields are valid */
	double *pages;			 /* R_p(i): on each node */
	double resident;		 /* their sum */
	uint64_t age_ns;		 /* of the count that they follow; 0: accesses of this
					  * interval */
	double *seen, samples;		 /* these accesses by node, and the number of samples */
	double *counted;		 /* pages found on each node at counted_ns, in any unit */
	uint64_t counted_ns;		 /* 0: never */
	uint64_t due_ns;		 /* time of the next query */
};

struct nm_balancer_tally {
	uint64_t stopped_by_gain, unknown, stopped_by_leader, pages_counted;
};

struct nm_balancer {
	struct nm_balance_state state;
	const struct nm_topology *topology; /* the caller's, which outlives this */
	double page_bytes;
	struct nm_column threads;    /* of struct nm_balancer_thread_state */
	struct nm_column residences; /* of the processes: struct nm_residence */

	bool split;		      /* CPUs have types: the next three fields are valid */
	enum nm_dtas_type *cpu_types; /* per CPU */
	hwloc_bitmap_t *leasable;     /* per node and type of thread */
	uint64_t split_ns;

	struct nm_balance_result result; /* of this interval */
	struct nm_balancer_tally tally;
};

/* ---- balancer.c: threads and rounds ---- */

/* Creates the state of the policy. page_bytes is the size of a base page. */
void nm_balancer_new(const struct nm_topology *topology, double page_bytes,
		     struct nm_balancer **ret);
/* NULL is allowed. */
void nm_balancer_free(struct nm_balancer *balancer);
/* Returns the rules of a round that the configuration sets. */
struct nm_balance_rules nm_balancer_rules(const struct nm_config *config);

/* Returns the state of the thread with this index of the snapshot that balancer->threads follows.
 */
static inline struct nm_balancer_thread_state *
nm_balancer_thread(const struct nm_balancer *balancer, size_t thread)
{
	return (struct nm_balancer_thread_state *)balancer->threads.cells + thread;
}
/* Records a reading of the thread with this index of the snapshot. Returns the increase since the
 * reading of the last interval; all zero, which means not known, without one. */
struct nm_balance_times nm_balancer_add_reading(struct nm_balancer *balancer, uint32_t thread,
						uint64_t interval,
						const struct nm_proc_schedstat *reading);
/* Performs a round with the increases of the snapshot's threads: balancer->result has its moves.
 * Called after the threads, types and pages of this interval were updated. */
void nm_balancer_round(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, const struct nm_balance_times *times);
/* Proposes the moves of the round of the same interval. The proposals refer to CPUs of the
 * balancer, which must outlive them. The caller clears *ret. */
void nm_balancer_propose(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, struct nm_proposals *ret);
/* Notes that a decision of this interval was applied. */
void nm_balancer_applied(struct nm_balancer *balancer, const struct nm_decision *decision);

/* ---- pages.c: location of pages ---- */

/* Updates the set of processes and the location of their pages. */
void nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot);
/* Returns the location of the pages of a process, or NULL if it is not known. */
const struct nm_residence *nm_balancer_residence(const struct nm_balancer *balancer, uint32_t pid);
/* Selects the process whose pages are to be counted next: the one that is due longest of those with
 * few sampled accesses; NULL: none. */
const struct nm_residence *nm_balancer_next_query(const struct nm_balancer *balancer,
						  uint64_t now_ns);
/* Notes that a query about the process was sent, or could not be sent. */
void nm_balancer_note_query(struct nm_balancer *balancer, uint32_t pid, uint64_t start_ticks,
			    bool sent, uint64_t now_ns);
/* Takes the answer: the pages found on each node, in any unit. One about a process that has ended is
 * ignored. */
void nm_balancer_set_pages(struct nm_balancer *balancer, uint32_t pid, uint64_t start_ticks,
			   const double *pages, uint64_t now_ns);
/* Returns an empty column of residences. */
struct nm_column nm_residence_column(void);

/* ---- types.c: DTAS ---- */

/* Updates the types of threads, and divides the CPUs between them when due. Writes to ret_ended
 * (room for each thread) the indices of the threads whose leases no longer fit their types, and
 * their number to *ret_count. */
void nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			      const struct nm_figures *figures, size_t nr_figures,
			      uint32_t *ret_ended, size_t *ret_count);
/* Makes all CPUs available to all threads again. */
void nm_balancer_clear_types(struct nm_balancer *balancer);
/* Returns the CPUs of the node that a thread of this type may be leased if it is to run on `cpu`;
 * NULL: all. */
hwloc_const_bitmap_t nm_balancer_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				       int node, int cpu);

#endif
