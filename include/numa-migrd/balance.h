/* SPDX-License-Identifier: MIT */
/*
 * Balancing between nodes (kMLB, section 3.2.1): when one node's CPUs are in much higher demand
 * than another's, threads that wait on its busiest CPUs go to the idlest. Who goes is selection.h's
 * choice; balance within a node is the kernel's. A round is a function of values. Pure.
 */
#ifndef NUMA_MIGRD_BALANCE_H
#define NUMA_MIGRD_BALANCE_H

#include "numa-migrd/dtas.h"
#include "numa-migrd/selection.h"
#include "numa-migrd/topology.h"

#define NM_WAIT_SHARE 0.1 /* of the interval, from which on a thread waits for a CPU */

/* Loads are in CPUs: 1 is a thread that ran or waited all the time. First guesses in brackets. */
struct nm_balance_rules {
	enum nm_selection selection;
	/*
	 * Hysteresis over the gap, which is the load per CPU of the fullest node less that of the
	 * emptiest: balancing begins when it exceeds `begin` [0.5] for `persist` [2] intervals, and
	 * ends below `end` [0.25]. A thread goes only where its node is still that far above the
	 * other with the thread counted there. (paper: −∞, 1, −∞)
	 */
	double begin, end;
	unsigned persist;
	double overload;   /* [1] load per CPU of a node below which its own CPUs suffice (paper: 0)
			    */
	double relief;	   /* [0.1] load by which a thread's new CPU, with it, must be below the
			      old one (paper: 0) */
	double min_gain;   /* [0] pages; see selection.h (paper: −∞) */
	size_t max_moves;  /* [64] of a round */
	double idle_max; /* [0.05] load below which a CPU takes threads of either type (paper: 0) */
};

struct nm_balance_thread {
	uint64_t start_ticks;
	uint32_t tid;
	uint32_t group;	 /* index */
	int cpu;	 /* home; -1: did not run */
	double load;	 /* nm_balance_load(); NaN: not known, counts as 1 */
	bool waiting;	 /* nm_balance_waits() */
	bool leader;	 /* of its group */
	bool movable;	 /* past warm-up, neither barred nor held */
	bool everywhere; /* `allowed` holds every usable CPU: it need not be asked */
	hwloc_const_bitmap_t allowed;
	enum nm_dtas_type type;
};

struct nm_balance_input {
	const struct nm_topology *topology;
	const struct nm_balance_thread *threads;
	size_t nr_threads;
	const struct nm_selection_group *groups;
	size_t nr_groups;
	const double *other_load; /* per CPU: what ran unmanaged; NULL: nothing. NaN: unknown, 1 */
	const double *factors;	  /* nm_selection_factors() */
	const enum nm_dtas_type *cpu_types; /* per CPU, nm_dtas_split(); NULL: not split */
};

/* What lasts from one round to the next; all zero at first. */
struct nm_balance_state {
	bool active;
	unsigned above; /* intervals in a row that the gap was above `begin` */
};

struct nm_balance_move {
	uint32_t thread; /* index */
	int cpu_from, cpu_to;
	int node_from, node_to;
	double load, load_from, load_to; /* of the thread, and of the CPUs before it moves */
	enum nm_selection_reason reason;
	double metric, gain; /* as struct nm_selection_answer has them */
	double cost_change;  /* predicted, nm_selection_cost_change(): negative is better */
};

struct nm_balance_result {
	struct nm_balance_move *moves; /* in order; no thread twice */
	size_t count;
	double gap;	    /* before the moves; 0 with fewer than two nodes that have CPUs */
	bool active;	    /* false: nothing was looked for */
	uint64_t waiting;   /* movable threads that wait for a CPU */
	uint64_t pairs;	    /* of CPUs looked at, */
	uint64_t evaluated; /* metrics worked out for them, */
	uint64_t stopped_by_gain, unknown, stopped_by_leader; /* and of selection.h, over them */
};
void nm_balance_result_clear(struct nm_balance_result *result);

/* What a thread asked of the CPUs: (Δrun + Δrun_delay)/T of schedstat, at most 1; NaN for T = 0. */
double nm_balance_load(uint64_t run_ns, uint64_t delay_ns, uint64_t length_ns);

/* Did it wait for a CPU: for at least `share` of T? */
bool nm_balance_waits(uint64_t delay_ns, uint64_t length_ns);

/* The gap of this interval into the hysteresis; true: balancing is on. Once per interval. */
bool nm_balance_update(struct nm_balance_state *state, const struct nm_balance_rules *rules,
		       double gap);

/*
 * One round: updates the state, and while balancing is on moves one thread after another, each from
 * the busiest CPU to the idlest on another node, among the waiting ones, as long as
 * load(to) + load(thread) < load(from), by rules->relief. Where nobody can go, the next busiest is tried, then the
 * next idlest. Loads and threads per node are those after the moves before. 0 or -ENOMEM, with
 * the state as it was. The caller clears *ret. Tick, policy stage.
 */
int nm_balance_round(const struct nm_balance_input *input, const struct nm_balance_rules *rules,
		     struct nm_balance_state *state, struct nm_balance_result *ret);

#endif
