/* SPDX-License-Identifier: MIT */
/*
 * numa-migrctl advise: derives advice for the owner of a program from measurements of its threads
 * and memory. Rules over values, each with its evidence. Pure. One rule follows the
 * stencil paper (Metzger et al. 2018, section 6.2): harm by the kernel's balancing.
 */
#ifndef NM_CTL_ADVISE_ADVISE_H
#define NM_CTL_ADVISE_ADVISE_H

#include "../findings.h"

/* Nodes are indices, -1 if not known. Values are NaN if not available. */
struct nm_advise_thread {
	uint32_t tid;
	int node;	    /* node on which it runs */
	int preferred;	    /* node with most of its accesses */
	int bound;	    /* the only node that the owner's CPU affinity allows; -1: several */
	bool leased;	    /* its affinity was set by numa-migrd */
	double run_share;   /* share of one CPU, 0–1 */
	double local_share; /* share of its accesses, 0–1 */
	double accesses;    /* number of sampled accesses */
};

enum nm_advise_kind { NM_ADVISE_EXCLUSIVE, NM_ADVISE_MIXED, NM_ADVISE_SHARED };

struct nm_advise_region {
	uint64_t start, end; /* 0, 0: not shown to this user */
	uint64_t bytes;
	double samples;	    /* number of sampled accesses */
	double exclusivity; /* share of the node with most accesses, 0–1 */
	enum nm_advise_kind kind;
};

struct nm_advise_node {
	unsigned os_id; /* the kernel's number */
	unsigned cpus;
	uint64_t memory_bytes;
	uint64_t pages; /* pages of the process with sampled accesses */
};

struct nm_advise_input {
	uint32_t pid;
	double local_share;	  /* of the accesses of the process */
	double exclusivity;	  /* mean over its pages */
	double shared_page_share; /* share of its pages that several nodes access */
	uint64_t rss_bytes;
	uint64_t ping_pong; /* pages that moved back and forth */
	struct nm_advise_thread *threads;
	size_t nr_threads;
	struct nm_advise_region *regions;
	size_t nr_regions;
	struct nm_advise_node *nodes;
	unsigned nr_nodes;
	/* Settings, and metrics of the kernel's balancing on the whole machine. */
	int balancing; /* kernel.numa_balancing; -1: not available or not readable */
	double hint_faults_per_s, hint_local_share, migrated_per_s;
};

/* Adds the findings to *ret: at least one; if nothing should change, the finding states this.
 * Returns 0 or -ENOMEM. Called by numa-migrctl. */
int nm_advise(const struct nm_advise_input *input, struct nm_findings *ret);

#endif
