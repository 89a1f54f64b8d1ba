/* SPDX-License-Identifier: MIT */
/*
 * Which of the threads that wait for a CPU should leave for another node: the rules of kMLB
 * (section 3.2.3) and of the paper on thread-aware exclusivity (sections 2.3 and 3), as functions
 * of values. Pages and threads of a group (a process) are counted per node; nothing is weighed that
 * a rule does not ask for. Pure.
 */
#ifndef NUMA_MIGRD_SELECTION_H
#define NUMA_MIGRD_SELECTION_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/topology.h"

/* What the threads of one group have in common; nr_nodes values each. */
struct nm_selection_group {
	const double *resident;	 /* R(i): its pages on node i; NULL: not known */
	const uint32_t *members; /* n_i: its threads on node i, running or not */
	int leader_node;	 /* where its leader runs; -1: that has ended or is quiet */
};

struct nm_selection_candidate {
	uint32_t group; /* index */
	bool leader;	/* the first thread of its group */
};

struct nm_selection_question {
	enum nm_selection rule;
	unsigned nr_nodes;
	int from, to;	 /* node indices, not the same */
	double min_gain; /* least R(to) − R(from), in pages; −∞: the papers' */
	const struct nm_selection_group *groups;
	/* Those that could go, in the order in which they are met: (start time, tid). */
	const struct nm_selection_candidate *candidates;
	size_t nr_candidates;
	bool *judged; /* scratch: one per group, all false; so they are again afterwards */
};

enum nm_selection_reason {
	NM_SELECTED_NOBODY,
	NM_SELECTED_BY_RULE,
	NM_SELECTED_BY_LEADER, /* its leader is there: taken without a look at the others */
};

struct nm_selection_answer {
	enum nm_selection_reason reason;
	size_t chosen;	    /* index into the candidates; 0 for nobody */
	double metric;	    /* the rule's, as the papers write it; NaN where none was asked for */
	double gain;	    /* R(to) − R(from); NaN where R is not known */
	unsigned evaluated; /* times that the metric was worked out */
	/* Candidates passed over: for their gain, since their pages are not known, by leader rules.
	 */
	unsigned stopped_by_gain, unknown, stopped_by_leader;
};

/*
 * Chooses by the rule, of equals the first one. A thread with a gain below min_gain is not taken
 * by any rule; whose pages are not known, only by a rule that does not ask for them and with a
 * min_gain of −∞. "exclusivity" and "most_benefit_plus" put the enhanced procedure
 * (exclusivity, section 3.2) around the metrics of "exclusivity_base" and "most_benefit": leaders
 * stay, nobody leaves the leader's node, who can join the leader is taken at once, and of each
 * group only the first met is evaluated. Policy stage, for each pair of CPUs.
 */
struct nm_selection_answer nm_selection_choose(const struct nm_selection_question *question);

/*
 * Where the group's leader counts as being: on its own node, or where most of the group's pages are
 * (tie: the lowest node); -1: nothing of that is known.
 */
int nm_selection_leader_node(const struct nm_selection_group *group, unsigned nr_nodes);

/* Excl (equation 7): the largest n_i by their sum, from 1/nr_nodes to 1; NaN without threads. */
double nm_selection_exclusivity(const uint32_t *members, unsigned nr_nodes);

/*
 * f(i,j) into `ret` (nr_nodes × nr_nodes): an access from a CPU of node i to memory of node j costs
 * as much as f local ones. By the firmware's distances, f(i,i) = 1.
 */
void nm_selection_factors(const struct nm_topology *topology, double *ret);

/*
 * What an access costs in the mean, from a CPU of `node`, to memory that is accessed so often on
 * each node: in local ones, by the factors. NaN without accesses. It is what the cost of a group's
 * pages comes to where they are accessed alike.
 */
double nm_selection_access_cost(const struct nm_topology *topology, const double *accesses,
				int node);

/*
 * By how much the group's total memory access cost changes when one of its threads moves: Σ_j
 * R_j·(f(to,j) − f(from,j)), in local accesses to a page each; negative is better. With one f
 * between all nodes it is equation 6, (R_to − R_from)·(1 − f). NaN where R is not known.
 */
double nm_selection_cost_change(const double *resident, const double *factors, unsigned nr_nodes,
				int from, int to);

#endif
