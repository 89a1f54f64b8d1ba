/* SPDX-License-Identifier: MIT */
/*
 * The table of sampled pages (kMAF's affinity table, sections 3.2 and 3.3, for sampled pages
 * instead of every frame). For each page it records the nodes that accessed it, the threads that
 * shared its sub-blocks, its current node, and whether it should move. The size is bounded. A keyed
 * hash determines the slots, so that programs cannot choose addresses that collide. Pure: time and
 * keys are arguments.
 */
#ifndef NUMA_MIGRD_PAGES_H
#define NUMA_MIGRD_PAGES_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/exclusivity.h"

enum nm_page_size { NM_PAGE_4K, NM_PAGE_2M, NM_PAGE_1G };

#define NM_PAGE_SUBBLOCKS 4U
#define NM_PAGE_SUBBLOCK_BYTES 1024U
/* nm_pages_update() drops a page that was not seen for this time; it must be called more often. */
#define NM_PAGE_FORGET_S 3600U

/* Identifies a page. An owner is a process until its exit or exec; 0: none. */
struct nm_page_id {
	uint64_t address; /* any address within the page */
	uint16_t owner;
	uint8_t size; /* enum nm_page_size */
};

/* One sampled access. */
struct nm_page_touch {
	struct nm_page_id page;
	uint16_t node;	 /* index of the node whose CPU accessed it */
	int16_t page_node; /* index of the node that holds it; -1: not known */
	uint16_t thread; /* id from nm_affinity_join(); 0: do not look for sharing */
};

/* The result of counting an access. */
struct nm_page_finding {
	uint16_t partner; /* thread that shares the sub-block with this one; 0: none */
	int16_t target;	  /* node to which the page should move; -1: it should stay */
};

enum nm_page_outcome {
	NM_PAGE_MOVED,	/* it is now on `node` */
	NM_PAGE_FAILED, /* it could not be moved */
	NM_PAGE_DROPPED /* no move was attempted */
};

struct nm_page_view {
	const uint8_t *accesses; /* by node, decayed up to the last access; valid until the next
				  * call */
	int page_node;		 /* -1: not known */
	unsigned idle_s;
	bool pending, barred, left_alone;
};

struct nm_pages_counts {
	uint64_t tracked, limit; /* current number of pages, and the number at which the table
				  * grows */
	uint64_t bytes;		 /* size of the table */
	uint64_t evicted;	 /* replaced by other pages */
	uint64_t refused;	 /* not added: all candidates for replacement belonged to processes
				  * with fewer pages */
	uint64_t forgotten;	 /* not seen for NM_PAGE_FORGET_S */
	uint64_t ping_pong;	 /* no longer moved, after moving back and forth */
};

struct nm_pages;

/*
 * Creates a table for nr_nodes nodes (at least 1) with the rules of config->pages. `key` is random
 * and secret. The table begins small; nm_pages_update() grows it up to max_tracked. Returns 0 or
 * -ENOMEM. Called by the daemon at start.
 */
int nm_pages_new(const struct nm_config *config, unsigned nr_nodes, const uint64_t key[4],
		 struct nm_pages **ret);
void nm_pages_free(struct nm_pages *pages);
NM_DEFINE_CLEANUP(struct nm_pages, nm_pages_free);

/*
 * Treats `node`, which has no CPUs, as represented by `with_cpus`: pages on it are near to the CPUs
 * of that node and are not moved to that node's own memory. By default each node represents itself.
 * Called by nm_memory_new().
 */
void nm_pages_stand_in(struct nm_pages *pages, unsigned node, unsigned with_cpus);

/* Sets new rules. A lower max_tracked takes effect at the next nm_pages_update(). Called by the
 * daemon on reload. */
void nm_pages_configure(struct nm_pages *pages, const struct nm_config *config);

/*
 * Opens and closes an owner when a process begins or ends; an exec does both. Closing makes its
 * pages invalid at once; they are removed later. The pages of a new owner are held back, so that
 * none is found to belong on another node, until nm_pages_hold(…, false): section 3.3, "delay any
 * page migration until we set the thread affinity for the first time". Returns 0; -ENOSPC if there
 * are 65,535 owners, including those whose pages are still in the table; or -ENOMEM.
 */
int nm_pages_open(struct nm_pages *pages, uint16_t *ret);
void nm_pages_close(struct nm_pages *pages, uint16_t id);
void nm_pages_hold(struct nm_pages *pages, uint16_t owner, bool held);

/*
 * Counts accesses in order and returns one finding for each. now_s is the time in seconds of a
 * clock that never goes back. A finding with a target is reported once; the page is then pending
 * until nm_pages_settle(). A huge page uses an additional entry for each of its 4 KiB that threads
 * may share. This is the hot path: it does not allocate, and a batch of about 64 accesses hides the
 * cache miss of each.
 */
void nm_pages_touch(struct nm_pages *pages, uint32_t now_s, const struct nm_page_touch *touches,
		    size_t count, struct nm_page_finding *ret_findings);

/*
 * Records the result for a pending page. Its counts halve if it moved (section 3.3), and it is
 * barred for cooldown_s if it moved or failed. `node` is read for NM_PAGE_MOVED, also for moves
 * that were rolled back. Returns 0, or -ENOENT if the page is no longer tracked.
 */
int nm_pages_settle(struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		    enum nm_page_outcome outcome, unsigned node);

/*
 * Performs the housekeeping once per interval: grows or shrinks the table, scans a `share` (0–1) of
 * it for pages of closed owners and expired pages, and sums up the exclusivity. A complete scan
 * publishes the summaries. Returns 0, or -ENOMEM, in which case the table keeps its size.
 */
int nm_pages_update(struct nm_pages *pages, uint32_t now_s, double share);

/* Returns the exclusivity of the owner's pages as of the last complete scan (equations 3 and 4);
 * all zero before the first. */
struct nm_exclusivity nm_pages_exclusivity(const struct nm_pages *pages, uint16_t owner);

/* Returns the number of the owner's pages that are no longer moved because they moved back and
 * forth. */
uint64_t nm_pages_ping_pong(const struct nm_pages *pages, uint16_t owner);

/* Counts the owner's pages on each node, as of the last complete scan, if their node is known.
 * `ret` has room for nr_nodes values. */
void nm_pages_homes(const struct nm_pages *pages, uint16_t owner, uint64_t *ret);

/* Looks up a page. Returns 0, or -ENOENT if it is not tracked. */
int nm_pages_look(const struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		  struct nm_page_view *ret);
struct nm_pages_counts nm_pages_counts(const struct nm_pages *pages);

#endif
