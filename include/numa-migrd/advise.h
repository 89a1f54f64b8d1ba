/* SPDX-License-Identifier: MIT */
/*
 * What the owner of a program can change in it, from what was measured of its threads and memory
 * (numa-migrctl advise). Rules over values, each with its evidence; pure. The uneven waiting of
 * threads that all got the same share of work, and that the kernel's balancing can be in the way,
 * are from the stencil paper (Metzger et al. 2018, sections 6.2 to 6.4).
 */
#ifndef NUMA_MIGRD_ADVISE_H
#define NUMA_MIGRD_ADVISE_H

#include "numa-migrd/findings.h"

/* Nodes are indices, -1 where unknown; figures are NaN where unavailable. */
struct nm_advise_thread {
	uint32_t tid;
	int node;      /* where it runs */
	int preferred; /* where most of what it accesses is */
	int bound;     /* the only node that its owner's CPU mask leaves it; -1: it has a choice */
	bool leased;   /* its mask is numa-migrd's */
	double run_share;      /* of one CPU, 0–1 */
	double local_share;    /* of its accesses, 0–1 */
	double accesses;       /* that were sampled */
	double latency_cycles; /* mean of its accesses */
};

enum nm_advise_kind { NM_ADVISE_EXCLUSIVE, NM_ADVISE_MIXED, NM_ADVISE_SHARED };

struct nm_advise_region {
	uint64_t start, end; /* 0, 0: not for the one who asks */
	uint64_t bytes;
	double samples;	    /* accesses that were counted in it */
	double exclusivity; /* share of the node that uses it most, 0–1 */
	enum nm_advise_kind kind;
};

struct nm_advise_node {
	unsigned os_id; /* the kernel's number */
	unsigned cpus;
	uint64_t memory_bytes;
	uint64_t pages; /* of the process, that accesses were counted of */
};

enum nm_advise_thp {
	NM_ADVISE_THP_UNKNOWN,
	NM_ADVISE_THP_NEVER,
	NM_ADVISE_THP_MADVISE,
	NM_ADVISE_THP_ALWAYS
};

struct nm_advise_input {
	uint32_t pid;
	double local_share;	  /* of the process's accesses */
	double exclusivity;	  /* mean of its pages' */
	double shared_page_share; /* of its pages, that more than one node accesses */
	uint64_t rss_bytes, huge_bytes;
	uint64_t ping_pong; /* pages that went back and forth */
	const struct nm_advise_thread *threads;
	size_t nr_threads;
	const struct nm_advise_region *regions;
	size_t nr_regions;
	const struct nm_advise_node *nodes;
	const unsigned *distance; /* nr_nodes × nr_nodes, 10 = local */
	unsigned nr_nodes;
	/* Settings, and how the kernel's balancing fares on the whole machine. */
	int balancing; /* kernel.numa_balancing; -1: not offered or not seen */
	enum nm_advise_thp thp;
	double hint_faults_per_s, hint_local_share, migrated_per_s;
};

/* One thing that is looked for; it gives a finding where it is there. */
struct nm_advise_rule {
	const char *name;  /* the findings' `check` */
	const char *about; /* what it looks for, as half a sentence */
};
const struct nm_advise_rule *nm_advise_rules(size_t *ret_count);

/*
 * Adds what was found to *ret: at least one finding, and where there is nothing to change, one that
 * says so. 0 or -ENOMEM. numa-migrctl.
 */
int nm_advise(const struct nm_advise_input *input, struct nm_findings *ret);

#endif
