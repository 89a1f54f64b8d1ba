/* SPDX-License-Identifier: MIT */
/*
 * Balancing between nodes (kMLB, section 3.2.1): if the CPUs of one node are in much higher demand
 * than those of another, threads that wait on its busiest CPUs move to the idlest ones. selection.h
 * chooses the threads; the kernel balances within a node. A round is a function of values. Pure.
 */
#ifndef NUMA_MIGRD_BALANCE_H
#define NUMA_MIGRD_BALANCE_H

#include "numa-migrd/dtas.h"
#include "numa-migrd/selection.h"
#include "numa-migrd/topology.h"

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
	double min_gain;   /* [0] pages; see selection.h (paper: −∞) */
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
	double metric, gain; /* as in struct nm_selection_answer */
	double cost_change;  /* predicted, nm_selection_cost_change(); negative is better */
};

struct nm_balance_result {
	struct nm_balance_move *moves; /* in order; each thread at most once */
	size_t count;
	double gap;	    /* before the moves; 0 with fewer than two nodes that have CPUs */
	bool active;	    /* false: no search was made */
	uint64_t waiting;   /* movable threads that wait for a CPU */
	uint64_t pairs;	    /* pairs of CPUs examined */
	uint64_t evaluated; /* metrics computed for these pairs */
	/* as in struct nm_selection_answer, summed over the pairs */
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
 * before. Returns 0, or -ENOMEM with the state unchanged. The caller clears *ret. Called by the
 * policy stage of the tick.
 */
int nm_balance_round(const struct nm_balance_input *input, const struct nm_balance_rules *rules,
		     struct nm_balance_state *state, struct nm_balance_result *ret);

#endif
