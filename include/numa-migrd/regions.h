/* SPDX-License-Identifier: MIT */
/*
 * Ranges of a process's memory, for what samples are too few to tell page by page (algorithms.md,
 * section 6): they split where no node uses most of them, merge where neighbours are alike, and are
 * decided on as wholes, with pages never seen. Pure.
 */
#ifndef NUMA_MIGRD_REGIONS_H
#define NUMA_MIGRD_REGIONS_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"

#define NM_REGION_LEAST_BYTES ((uint64_t)2 << 20) /* below this no decision is made */
#define NM_REGION_LEAST_SAMPLES 16 /* likewise, of its accesses */
/* A shared range: no node has more of the accesses than its equal part and this. */
#define NM_REGION_EVEN_BAND 0.1
#define NM_REGION_NOWHERE (-1)			  /* not placed by us */
#define NM_REGION_EVERYWHERE (-2)		  /* interleaved over the nodes */

/* A mapping of the process. */
struct nm_range {
	uint64_t start, end;
	uint64_t page_bytes; /* of its largest pages; less than 2 MiB: that, as pages may be huge */
};

struct nm_region {
	uint64_t start, end;
	uint64_t page_bytes; /* where it is split is a multiple of this: never within a page */
	double samples;	     /* accesses, faded */
	double exclusivity;  /* share of the foremost node; NaN without accesses */
	int node;	     /* the foremost; -1 without accesses */
	int second;	     /* the one with the next most; -1: nobody else */
	int placed;	     /* where it was put: a node index, NOWHERE or EVERYWHERE */
	uint64_t placed_at;  /* in which interval */
	bool whole;	     /* it is too small to be split */
	double by_halves;    /* share of each half's own foremost node; NaN: not told apart yet */
};

struct nm_regions;

/* No regions yet, of at most `most` (at least 1). -ENOMEM. When a process is managed. */
int nm_regions_new(unsigned nr_nodes, size_t most, struct nm_regions **ret);
void nm_regions_free(struct nm_regions *regions);
NM_DEFINE_CLEANUP(struct nm_regions, nm_regions_free);

/*
 * The process's mappings, ascending and apart from each other: what is known of memory that is
 * still mapped is kept. Those that are too small to be decided on are left out, and the smallest
 * where there are more than regions there may be. -ENOMEM: all is as it was. When the mappings have
 * been read anew.
 */
int nm_regions_set_ranges(struct nm_regions *regions, const struct nm_range *ranges, size_t count);

/* An access from a node; outside the regions it does not count. Hot path, without allocation. */
void nm_regions_touch(struct nm_regions *regions, uint64_t address, unsigned node);

/* All counts are worth `keep` (0–1) of what they were. Once per interval. */
void nm_regions_fade(struct nm_regions *regions, double keep);

/* Merges neighbours that are alike and splits what is not of a kind. -ENOMEM: all is as it was.
 * Once per interval. */
int nm_regions_adapt(struct nm_regions *regions, const struct nm_config *config);

/* The region that an address is in; false: none. */
bool nm_regions_find(const struct nm_regions *regions, uint64_t address, size_t *ret_index);

size_t nm_regions_count(const struct nm_regions *regions);
struct nm_region nm_regions_at(const struct nm_regions *regions, size_t index);

/*
 * Where a region of so many nodes should be: a node, NM_REGION_EVERYWHERE, or NM_REGION_NOWHERE for
 * no opinion. Everywhere is only what cannot be split, and whose halves are everyone's as well:
 * what looks mixed from afar may be several nodes' own. imbalance: of the nodes' memory traffic,
 * from nm_imbalance(); NaN: not known.
 */
int nm_region_target(const struct nm_region *region, unsigned nr_nodes, double imbalance,
		     const struct nm_config *config);

/* The region was put there, all of it, in that interval. */
void nm_regions_set_placed(struct nm_regions *regions, size_t index, int placed, uint64_t interval);

/* Standard deviation of the nodes' traffic relative to its mean; NaN without traffic. */
double nm_imbalance(const double *traffic, unsigned nr_nodes);

#endif
