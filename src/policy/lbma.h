/* SPDX-License-Identifier: MIT */
/* LBMA's search for candidates, one θ at a time (lbma_scan.c), for its lottery (lbma.c). */
#ifndef NM_POLICY_LBMA_H
#define NM_POLICY_LBMA_H

#include "numa-migrd/lottery.h"
#include "numa-migrd/policy.h"

/* What the configuration says, in the algorithm's words. */
struct nm_lbma_rules {
	bool gated;	 /* gate = "benefit" */
	bool merged;	 /* free CPUs of one node are one candidate */
	bool zero_wins;	 /* a candidate with Q = 0 stands */
	bool any_thread; /* Θ̂ from all threads rather than from valid ones with a candidate */
	bool cross_owner_swap;
	bool fill_nodes; /* overcommit = "pages" */
	enum nm_preferred_ties ties;
	double q1, q1_sibling_busy, q2, margin, sigmas;
};

/* A thread as the other half of a swap; in the order of snapshot->home_threads. */
struct nm_lbma_partner {
	hwloc_const_bitmap_t allowed;
	uint32_t thread, uid;
	int preferred; /* node index; -1: none */
};

struct nm_lbma_scan {
	const struct nm_snapshot *snapshot;
	struct nm_lbma_rules rules;
	bool *refused; /* per thread: its preferred node has no room for it */
	struct nm_lbma_partner *partners;
	size_t nr_partners;
	/* Rows of nr_partners, one per destination node: read in order by the inner loop. */
	double *surplus; /* nm_gate_surplus() of the partner going there */
	uint8_t *wish;	 /* NM_WISH_* of the partner towards that node */
	/* Highest surplus over the partners of a node and of a CPU: from × nr_nodes + to. */
	double *best_of_node, *best_of_cpu;
	uint64_t looks; /* at pairs of threads */
	uint64_t stopped_by_gate, stopped_by_owner;
};

int nm_lbma_scan_init(struct nm_lbma_scan *scan, const struct nm_snapshot *snapshot,
		      const struct nm_lbma_rules *rules);
void nm_lbma_scan_clear(struct nm_lbma_scan *scan);

/* Puts the thread's candidates into the urn. The thread has a home node. Returns 0 or -ENOMEM. */
int nm_lbma_scan_thread(struct nm_lbma_scan *scan, struct nm_urn *urn, uint32_t thread);

/* q2 where the thread prefers the node, and q1 of a free CPU. */
double nm_lbma_q2(const struct nm_lbma_scan *scan, uint32_t thread, int node);
double nm_lbma_q1(const struct nm_lbma_scan *scan, int cpu);

#endif
