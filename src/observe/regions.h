/* SPDX-License-Identifier: MIT */
/*
 * Ranges of the memory of a process, for programs with too few samples to decide page by page. A
 * range is split if no node makes most of its accesses, merged with similar neighbours, and decided
 * on as a whole, including pages without samples. Pure.
 */
#ifndef NUMA_MIGRD_REGIONS_H
#define NUMA_MIGRD_REGIONS_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "platform/maps.h"
#include "numa-migrd/topology.h"

#define NM_REGION_EXCLUSIVITY 0.8 /* share of the accesses from one node to move a range there */

#define NM_REGION_LEAST_BYTES ((uint64_t)2 << 20) /* minimum size for a decision */
#define NM_REGION_LEAST_SAMPLES 16		  /* minimum number of accesses for a decision */
/* In a shared range, no node exceeds its equal share of the accesses by more than this. */
#define NM_REGION_EVEN_BAND 0.1
#define NM_REGION_NOWHERE (-1)	  /* not placed by the daemon */
#define NM_REGION_EVERYWHERE (-2) /* interleaved over the nodes */

/* Returns the index of the first of `count` structures of `size` bytes whose uint64_t at `offset`,
 * by which they ascend, is above `value`; count: none. */
static inline size_t nm_first_above(const void *items, size_t count, size_t size, size_t offset,
				    uint64_t value)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *item = (const char *)items + middle * size;
		if (*(const uint64_t *)(const void *)(item + offset) <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
/* The member is a uint64_t. */
#define NM_FIRST_ABOVE(items, count, member, value)                                                \
	nm_first_above(items, count, sizeof(*(items)), offsetof(__typeof__(*(items)), member),     \
		       value)

struct nm_region {
	uint64_t start, end;
	uint64_t page_bytes; /* it is split only at multiples of this, never within a page */
	double samples;	     /* accesses, decayed */
	double exclusivity;  /* share of the main node; NaN without accesses */
	int node;	     /* main node; -1 without accesses */
	int second;	     /* node with the second most accesses; -1: none */
	int placed; /* its placement: a node index, NM_REGION_NOWHERE or NM_REGION_EVERYWHERE */
	uint64_t placed_at; /* interval of the placement */
	bool whole;	    /* too small to be split */
	bool uniform;	    /* both halves were sampled, with the same main node */
	double by_halves;   /* share of the accesses by each half's own main node; NaN: not known
			     * yet */
};

struct nm_regions;

/* Creates an empty set of at most `most` regions (at least 1). Called when a
 * process becomes managed. */
void nm_regions_new(unsigned nr_nodes, size_t most, struct nm_regions **ret);
void nm_regions_free(struct nm_regions *regions);
NM_DEFINE_CLEANUP(struct nm_regions, nm_regions_free);

/*
 * Sets the mappings of the process, ascending and disjoint. Data about memory that is still mapped
 * is kept. Mappings too small for a decision are omitted, and the smallest ones if they exceed the
 * limit of regions. Returns 0. Called when the mappings have been read again.
 */
int nm_regions_set_ranges(struct nm_regions *regions, const struct nm_range *ranges, size_t count);

/* Counts an access from a node; accesses outside the regions are ignored. This is the hot path and
 * does not allocate. */
void nm_regions_touch(struct nm_regions *regions, uint64_t address, unsigned node);

/* Multiplies all counts by `keep` (0–1). */
void nm_regions_fade(struct nm_regions *regions, double keep);

/* Merges similar neighbours and splits mixed regions. */
void nm_regions_adapt(struct nm_regions *regions);

/* Finds the region of an address. Returns false if there is none. */
bool nm_regions_find(const struct nm_regions *regions, uint64_t address, size_t *ret_index);

size_t nm_regions_count(const struct nm_regions *regions);
struct nm_region nm_regions_at(const struct nm_regions *regions, size_t index);

/*
 * Returns the place for a region: a node, NM_REGION_EVERYWHERE, or NM_REGION_NOWHERE for no
 * preference. Only a region that cannot be split and whose halves are also shared is interleaved; a
 * mixed region may consist of parts that single nodes use. `imbalance` is that of the nodes' memory
 * traffic, from nm_imbalance(); NaN: not known.
 */
int nm_region_target(const struct nm_region *region, unsigned nr_nodes, double imbalance,
		     const struct nm_config *config);

/* Records that the whole region was placed there in that interval. */
void nm_regions_set_placed(struct nm_regions *regions, size_t index, int placed, uint64_t interval);

/*
 * Returns the standard deviation of the nodes' traffic relative to its mean; NaN without traffic.
 */
double nm_imbalance(const double *traffic, unsigned nr_nodes);

/* ---- contention ---- */

/* Detects when spreading is better than locality: one memory controller serves most accesses of the
 * machine while others are idle (as observed for Carrefour). Pure. */

/* Deviation of the nodes' traffic, relative to its mean, above which shared ranges are interleaved.
 */
#define NM_REGION_IMBALANCE 0.35
/* Minimum number of accesses in an interval for an assessment. */
#define NM_CONTENTION_LEAST 100.0

struct nm_contention {
	double imbalance; /* of the nodes' traffic; NaN: not known */
	int busiest;	  /* the node that serves too much of it; -1: none */
};

/* Evaluates the accesses served by each node with NM_REGION_IMBALANCE. */
struct nm_contention nm_contention_of(const double *traffic, unsigned nr_nodes);

/*
 * Returns the node on which a region should be, as nm_region_target() does. In addition, a region
 * that several nodes use, with the overloaded node as its main user, moves to its second most
 * frequent user, once it is too small to be split. A region that only one node uses stays on that
 * node, because no other place is nearer for it.
 */
int nm_contention_target(const struct nm_region *region, unsigned nr_nodes,
			 const struct nm_contention *contention, const struct nm_config *config);

#endif
