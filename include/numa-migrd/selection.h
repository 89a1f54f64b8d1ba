/* SPDX-License-Identifier: MIT */
/*
 * Selects which of the threads that wait for a CPU should move to another node: the rules of kMLB
 * (section 3.2.3) and of the paper on thread-aware exclusivity (sections 2.3 and 3), as functions
 * of values. Pages and threads of a group (a process) are counted per node; only the values that a
 * rule needs are used. Pure.
 */
#ifndef NUMA_MIGRD_SELECTION_H
#define NUMA_MIGRD_SELECTION_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/topology.h"

/* Properties of one group; nr_nodes values each. */
struct nm_selection_group {
	const double *resident;	 /* R(i): number of its pages on node i; NULL: not known */
	const uint32_t *members; /* n_i: number of its threads on node i, running or not */
	int leader_node; /* node on which its leader runs; -1: the leader has exited or is idle */
};

struct nm_selection_candidate {
	uint32_t group; /* index */
	bool leader;	/* the first thread of its group */
};

struct nm_selection_question {
	enum nm_selection rule;
	unsigned nr_nodes;
	int from, to;	 /* node indices; must differ */
	double min_gain; /* minimum R(to) − R(from), in pages; −∞ as in the papers */
	const struct nm_selection_group *groups;
	/* The threads that may move, in the order of (start time, tid). */
	const struct nm_selection_candidate *candidates;
	size_t nr_candidates;
	bool *judged; /* scratch space: one per group, all false before and after the call */
};

enum nm_selection_reason {
	NM_SELECTED_NOBODY,
	NM_SELECTED_BY_RULE,
	NM_SELECTED_BY_LEADER, /* its leader is on that node: selected without examining the
				* others */
};

struct nm_selection_answer {
	enum nm_selection_reason reason;
	size_t chosen;	    /* index into the candidates; 0 for NM_SELECTED_NOBODY */
	double metric;	    /* value of the rule's metric, as in the papers; NaN: none was needed */
	double gain;	    /* R(to) − R(from); NaN: R is not known */
	unsigned evaluated; /* number of times that the metric was computed */
	/* Candidates rejected because of their gain, because their pages are not known, and by the
	 * rules for leaders. */
	unsigned stopped_by_gain, unknown, stopped_by_leader;
};

/*
 * Selects a thread by the rule; the first of equal ones. A thread with a gain below min_gain is
 * never selected. A thread whose pages are not known is selected only by a rule that does not use
 * them, and with a min_gain of −∞. "exclusivity" and "most_benefit_plus" combine the enhanced
 * procedure (exclusivity, section 3.2) with the metrics of "exclusivity_base" and "most_benefit":
 * leaders stay, no thread leaves the node of its leader, a thread that can join its leader is
 * selected at once, and only the first candidate of each group is evaluated. Called by the policy
 * stage for each pair of CPUs.
 */
struct nm_selection_answer nm_selection_choose(const struct nm_selection_question *question);

/* Returns the node that counts as that of the group's leader: its own node or, if not known, the
 * node with most of the group's pages (tie: the lowest node); -1 if neither is known. */
int nm_selection_leader_node(const struct nm_selection_group *group, unsigned nr_nodes);

/* Excl (equation 7): returns the largest n_i divided by their sum, from 1/nr_nodes to 1; NaN
 * without threads. */
double nm_selection_exclusivity(const uint32_t *members, unsigned nr_nodes);

/* Computes f(i,j) into `ret` (nr_nodes × nr_nodes): an access from a CPU of node i to memory of
 * node j costs as much as f local ones, by the firmware's distances; f(i,i) = 1. */
void nm_selection_factors(const struct nm_topology *topology, double *ret);

/*
 * Returns the mean cost of an access from a CPU of `node`, relative to a local one, if each node's
 * memory is accessed this often; NaN without accesses. It equals the mean cost of a group's pages
 * if all are accessed equally.
 */
double nm_selection_access_cost(const struct nm_topology *topology, const double *accesses,
				int node);

/*
 * Returns by how much the total memory access cost of the group changes when one of its threads
 * moves: Σ_j R_j·(f(to,j) − f(from,j)), in local accesses to a page each; negative is better. If f
 * is the same between all nodes, this is equation 6, (R_to − R_from)·(1 − f). NaN if R is not
 * known.
 */
double nm_selection_cost_change(const double *resident, const double *factors, unsigned nr_nodes,
				int from, int to);

#endif
