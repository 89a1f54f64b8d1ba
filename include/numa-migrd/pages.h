/* SPDX-License-Identifier: MIT */
/*
 * The table of sampled pages (kMAF's affinity table, sections 3.2 and 3.3, of the pages that were
 * seen rather than of every frame): per page from which nodes it was accessed, which threads shared
 * its sub-blocks, where it lives, and when it belongs elsewhere. Bounded; a keyed hash places
 * pages, so that nobody can choose addresses that collide. Pure: time and keys are arguments.
 */
#ifndef NUMA_MIGRD_PAGES_H
#define NUMA_MIGRD_PAGES_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/exclusivity.h"

enum nm_page_size { NM_PAGE_4K, NM_PAGE_2M, NM_PAGE_1G };

#define NM_PAGE_SUBBLOCKS 4U
#define NM_PAGE_SUBBLOCK_BYTES 1024U
/* A page not seen for so long is forgotten by nm_pages_update(), which must be called more often.
 */
#define NM_PAGE_FORGET_S 3600U

/* Whose page: an owner is a process until its exit or exec (0: nobody). */
struct nm_page_id {
	uint64_t address; /* any within the page */
	uint16_t owner;
	uint8_t size; /* enum nm_page_size */
};

/* One sampled access. */
struct nm_page_touch {
	struct nm_page_id page;
	uint16_t node;	 /* index of the node whose CPU accessed it */
	int16_t page_node; /* index of the node that it lives on; -1: not known now */
	uint16_t thread; /* id from nm_affinity_join(); 0: do not look for sharing */
};

/* What an access led to. */
struct nm_page_finding {
	uint16_t partner; /* thread that shares the sub-block with this one; 0: none (new) */
	int16_t target;	  /* node that the page should move to; -1: it should stay */
};

enum nm_page_outcome {
	NM_PAGE_MOVED,	/* it lives on `node` now */
	NM_PAGE_FAILED, /* it could not be moved */
	NM_PAGE_DROPPED /* it was not tried */
};

struct nm_page_view {
	const uint8_t *accesses; /* by node, decayed up to the last access; until the next call */
	int page_node;		 /* -1: not known */
	unsigned idle_s;
	bool pending, barred, left_alone;
};

struct nm_pages_counts {
	uint64_t tracked, limit; /* pages now, and how many there may be before the table grows */
	uint64_t bytes;		 /* of the table */
	uint64_t evicted;	 /* made room for others */
	uint64_t refused;	 /* no room: only pages of processes with fewer were near */
	uint64_t forgotten;	 /* not seen for NM_PAGE_FORGET_S */
	uint64_t ping_pong;	 /* left alone, having gone back and forth */
};

struct nm_pages;

/*
 * A table for nr_nodes (at least 1) with the rules of config->pages; key: random, kept from others.
 * It begins small: nm_pages_update() lets it grow to max_tracked. -ENOMEM. Daemon, start.
 */
int nm_pages_new(const struct nm_config *config, unsigned nr_nodes, const uint64_t key[4],
		 struct nm_pages **ret);
void nm_pages_free(struct nm_pages *pages);
NM_DEFINE_CLEANUP(struct nm_pages, nm_pages_free);

/*
 * The CPUs of one node stand for another, which has none: a page there is beside them, and is not
 * wanted on their node's own memory. Before, each node stands for itself. nm_memory_new().
 */
void nm_pages_stand_in(struct nm_pages *pages, unsigned node, unsigned with_cpus);

/* New rules; a lower max_tracked holds from the next nm_pages_update() on. Daemon, reload. */
void nm_pages_configure(struct nm_pages *pages, const struct nm_config *config);

/*
 * A process begins or ends; an exec is both. Its pages are gone at once on closing. A new owner's
 * pages are held back (never found to belong elsewhere) until nm_pages_hold(…, false): section 3.3,
 * "delay any page migration until we set the thread affinity for the first time". -ENOSPC: 65,535
 * owners, with those whose pages are still in the table; -ENOMEM.
 */
int nm_pages_open(struct nm_pages *pages, uint16_t *ret);
void nm_pages_close(struct nm_pages *pages, uint16_t id);
void nm_pages_hold(struct nm_pages *pages, uint16_t owner, bool held);

/*
 * Counts the accesses in order, finding one for each. now_s: seconds of a clock that never goes
 * back. A finding with a target is told once; the page is pending until nm_pages_settle(). A huge
 * page takes a second entry for each 4 KiB of it that threads may share. The hot path: it does not
 * allocate, and a batch (some 64 at a time) hides the cache miss that each access is.
 */
void nm_pages_touch(struct nm_pages *pages, uint32_t now_s, const struct nm_page_touch *touches,
		    size_t count, struct nm_page_finding *ret_findings);

/*
 * What became of a pending page: its counts halve where it moved (section 3.3), and it is barred
 * for cooldown_s where it moved or failed. `node` is read for NM_PAGE_MOVED, also of moves taken
 * back. -ENOENT: it is no longer tracked.
 */
int nm_pages_settle(struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		    enum nm_page_outcome outcome, unsigned node);

/*
 * Housekeeping, once per interval: grows or shrinks the table, looks at a `share` (0–1) of it to
 * drop pages of the dead and the forgotten, and sums up exclusivity; a whole round publishes the
 * summaries. -ENOMEM: it stayed as large as it was.
 */
int nm_pages_update(struct nm_pages *pages, uint32_t now_s, double share);

/* The owner's pages as of the last whole round (equations 3 and 4); all zero before the first. */
struct nm_exclusivity nm_pages_exclusivity(const struct nm_pages *pages, uint16_t owner);

/* The owner's pages that were left alone so far, having gone back and forth. */
uint64_t nm_pages_ping_pong(const struct nm_pages *pages, uint16_t owner);

/* Of the owner's pages, as above, those that are known to live on each node (nr_nodes values). */
void nm_pages_homes(const struct nm_pages *pages, uint16_t owner, uint64_t *ret);

/* -ENOENT: not tracked. */
int nm_pages_look(const struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		  struct nm_page_view *ret);
struct nm_pages_counts nm_pages_counts(const struct nm_pages *pages);

#endif
