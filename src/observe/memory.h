/* SPDX-License-Identifier: MIT */
/*
 * Fills the table of pages and the communication matrix from the samples of
 * managed processes, and finds the pages that should move. Its clock is that of the samples: the
 * latest time seen, because rings are drained one after another. Pure.
 */
#ifndef NUMA_MIGRD_MEMORY_H
#define NUMA_MIGRD_MEMORY_H

#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "sample/sample.h"
#include "numa-migrd/snapshot.h"
#include "numa-migrd/topology.h"

/* ---- evidence ---- */

/* With 1.5 a program with random accesses became slower in the model; with 2, one that is larger
 * than a node lost 20 % of its gain, because few accesses to a page are sampled. */
#define NM_EVIDENCE_SIGMAS 1.75

/*
 * Returns the number that the accesses from a node must exceed to outnumber `other` accesses by
 * more than chance: their difference must exceed NM_EVIDENCE_SIGMAS times the square root of their
 * sum, the standard deviation of the difference of two Poisson counts. Called for pages and ranges.
 * Pure.
 */
double nm_evidence_over(double other);

/* ---- exclusivity ---- */

/* The degree to which pages are used by a single node (kMAF, section 2.2.2, equations 3 and 4,
 * figure 2). Pure. */

#define NM_EXCLUSIVITY_STEPS 11U

/* Sums over pages; initially all zero. */
struct nm_exclusivity {
	uint64_t pages;
	uint64_t accesses;
	uint64_t most;				  /* accesses by the main node of each page */
	uint64_t histogram[NM_EXCLUSIVITY_STEPS]; /* pages by exclusivity, rounded to 0.1 */
};

/* Adds a page with `total` accesses, `most` of them from one node (equation 3: most / total).
 * Without accesses it has no effect. */
void nm_exclusivity_add(struct nm_exclusivity *sums, uint32_t most, uint32_t total);

/* Equation 4: returns the mean over the pages, weighted by their accesses; NaN without accesses. */
double nm_exclusivity_average(const struct nm_exclusivity *sums);

/* ---- table of pages ---- */

/*
 * The table of sampled pages (kMAF's affinity table, sections 3.2 and 3.3, for sampled pages
 * instead of every frame). For each page it records the nodes that accessed it, the threads that
 * shared its sub-blocks, its current node, and whether it should move. The size is bounded. A keyed
 * hash determines the slots, so that programs cannot choose addresses that collide. Pure: time and
 * keys are arguments.
 */

enum nm_page_size { NM_PAGE_4K, NM_PAGE_2M, NM_PAGE_1G };

static inline uint64_t nm_page_bytes(enum nm_page_size size)
{
	return 4096ULL << (9 * size);
}

/* Returns the largest size that is not above `bytes`; 0 is unknown, and counts as 4 KiB. */
static inline uint8_t nm_page_size_of(uint64_t bytes)
{
	if (bytes >= nm_page_bytes(NM_PAGE_1G))
		return NM_PAGE_1G;
	return bytes >= nm_page_bytes(NM_PAGE_2M) ? NM_PAGE_2M : NM_PAGE_4K;
}

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
	uint16_t node;	   /* index of the node whose CPU accessed it */
	int16_t page_node; /* index of the node that holds it; -1: not known */
	uint16_t thread;   /* id from nm_affinity_join(); 0: do not look for sharing */
	/* 0: not known. Identifies what threads share, also of several processes (kMAF, 3.1.1);
	 * otherwise the process and the virtual page do. */
	uint64_t physical_address;
	/* Its thread may leave the node soon, so that the page does not follow: it may run
	 * elsewhere, and has not stayed there for three intervals. Never with the rules of a paper.
	 */
	bool passing;
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
	bool pending, barred, left_alone;
};

struct nm_pages_counts {
	uint64_t tracked, limit; /* current number of pages, and the number at which the table
				  * grows */
	uint64_t bytes;		 /* size of the table */
	uint64_t evicted;	 /* replaced by other pages */
	uint64_t ping_pong;	 /* no longer moved, after moving back and forth */
};

struct nm_pages;

/*
 * Creates a table for nr_nodes nodes (at least 1) with the rules of config->pages. `key` is random
 * and secret. The table begins small; nm_pages_update() grows it up to max_tracked.
 */
void nm_pages_new(const struct nm_config *config, unsigned nr_nodes, const uint64_t key[4],
		  struct nm_pages **ret);
void nm_pages_free(struct nm_pages *pages);
NM_DEFINE_CLEANUP(struct nm_pages, nm_pages_free);

/*
 * Treats `node`, which has no CPUs, as represented by `with_cpus`: pages on it are near to the CPUs
 * of that node and are not moved to that node's own memory. By default each node represents itself.
 */
void nm_pages_stand_in(struct nm_pages *pages, unsigned node, unsigned with_cpus);

/* Sets new rules. A lower max_tracked takes effect at the next nm_pages_update(). */
void nm_pages_configure(struct nm_pages *pages, const struct nm_config *config);

/*
 * Opens and closes an owner when a process begins or ends; an exec does both. Closing makes its
 * pages invalid at once; they are removed later. The pages of a new owner are held back, so that
 * none is found to belong on another node, until nm_pages_hold(…, false): section 3.3, "delay any
 * page migration until we set the thread affinity for the first time". Returns 0; -ENOSPC if there
 * are 65,535 owners, including those whose pages are still in the table.
 */
int nm_pages_open(struct nm_pages *pages, uint16_t *ret);
void nm_pages_close(struct nm_pages *pages, uint16_t id);
void nm_pages_hold(struct nm_pages *pages, uint16_t owner, bool held);

/*
 * Counts accesses in order and returns one finding for each. now_s is the time in seconds of a
 * clock that never goes back. A finding with a target is reported once; the page is then pending
 * until nm_pages_end_check(). A huge page uses an additional entry for each of its 4 KiB that
 * threads may share. This is the hot path: it does not allocate, and a batch of about 64 accesses
 * hides the cache miss of each.
 */
void nm_pages_touch(struct nm_pages *pages, uint32_t now_s, const struct nm_page_touch *touches,
		    size_t count, struct nm_page_finding *ret_findings);

/*
 * Records the result for a pending page. Its counts halve if it moved (section 3.3), and it is
 * barred for cooldown_s if it moved or failed. `node` is read for NM_PAGE_MOVED, also for moves
 * that were rolled back. Returns 0, or -ENOENT if the page is no longer tracked.
 */
int nm_pages_end_check(struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		       enum nm_page_outcome outcome, unsigned node);

/*
 * Performs the housekeeping once per interval: grows or shrinks the table, scans a `share` (0–1) of
 * it for pages of closed owners and expired pages, and sums up the exclusivity. A complete scan
 * publishes the summaries.
 */
void nm_pages_update(struct nm_pages *pages, uint32_t now_s, double share);

/* Returns the exclusivity of the owner's pages as of the last complete scan (equations 3 and 4);
 * all zero before the first. */
struct nm_exclusivity nm_pages_exclusivity(const struct nm_pages *pages, uint16_t owner);

/* Counts the owner's pages on each node, as of the last complete scan, if their node is known.
 * `ret` has room for nr_nodes values. */
void nm_pages_homes(const struct nm_pages *pages, uint16_t owner, uint64_t *ret);

/* Looks up a page. Returns 0, or -ENOENT if it is not tracked. */
int nm_pages_look(const struct nm_pages *pages, uint32_t now_s, const struct nm_page_id *page,
		  struct nm_page_view *ret);
struct nm_pages_counts nm_pages_counts(const struct nm_pages *pages);

/* ---- communication ---- */

/*
 * The communication matrix: how much threads share memory (kMAF's affinity matrix, sections 3.2 and
 * 3.4.2). It is sparse and covers the threads of all processes, so that processes that share memory
 * are detected. Pure.
 */

struct nm_affinity;

/* The threads that are placed together: a symmetric graph in compressed rows, without loops. */
struct nm_affinity_graph {
	size_t nr_threads;
	uint32_t *first; /* nr_threads + 1 entries: start of each thread's row in the next two
			  * arrays */
	uint32_t *partner, *weight;
	/* Of each thread's row of the matrix, also of the pairs that are no edges: sums of its
	 * cells and of their squares, in shared accesses. */
	struct nm_affinity_row {
		double sum, squares;
	} *rows;
};

struct nm_affinity_counts {
	uint64_t threads, pairs;
	uint64_t bytes;
	uint64_t lost; /* communication of new pairs for which there was no room */
};

/* Amount by which one shared access raises the weight of a pair; above 1, so that aging by 25 %
 * loses little to rounding. */
#define NM_SHARING_STEP 16U

/* Creates a matrix; reads sharing_window_s. */
void nm_affinity_new(const struct nm_config *config, struct nm_affinity **ret);
void nm_affinity_free(struct nm_affinity *affinity);
NM_DEFINE_CLEANUP(struct nm_affinity, nm_affinity_free);

/* Sets new settings. */
void nm_affinity_configure(struct nm_affinity *affinity, const struct nm_config *config);

/*
 * Adds a thread and returns its id in the table of pages (from 1), or its existing id. An id is
 * reused only after every page has dropped it. Returns 0, -ENOSPC (65,535 threads) or
 * -ERANGE (tid too large).
 */
int nm_affinity_join(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s, uint16_t *ret);

/* Removes a thread that has exited, with its row and column. Unknown threads are ignored. */
void nm_affinity_leave(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s);

/* Returns the id of a thread that was added, or 0. This is the hot path. */
uint16_t nm_affinity_id(const struct nm_affinity *affinity, uint32_t tid);

/* Adds communication between two threads (ids) that shared a sub-block, from a finding with a
 * partner. This is the hot path and never allocates. */
void nm_affinity_share(struct nm_affinity *affinity, uint16_t a, uint16_t b);

/*
 * Ages the matrix after each thread placement: M − (M >> 2), rounded as in section 3.4.2. Also
 * removes the remains of exited threads and makes room for more pairs.
 */
void nm_affinity_age(struct nm_affinity *affinity);

/*
 * Returns the graph of these threads (tids, ascending; unknown ones have no edges). It contains the
 * `partners` strongest pairs of each thread, ties by tid; an edge exists if either end selects it.
 * Called before a thread placement.
 */
void nm_affinity_graph(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
		       unsigned partners, struct nm_affinity_graph **ret);
void nm_affinity_graph_free(struct nm_affinity_graph *graph);
NM_DEFINE_CLEANUP(struct nm_affinity_graph, nm_affinity_graph_free);

/* Calls `each` once for each pair of living threads (tids) with communication, in no particular
 * order. */
typedef void (*nm_affinity_fn)(void *context, uint32_t tid_a, uint32_t tid_b, uint32_t weight);
void nm_affinity_each(const struct nm_affinity *affinity, nm_affinity_fn each, void *context);

struct nm_affinity_counts nm_affinity_counts(const struct nm_affinity *affinity);

/* ---- both, fed by samples ---- */

/* Pages wait for the first placement of their threads for at most this number of periods. */
#define NM_MEMORY_QUIET_PERIODS 5U
#define NM_MEMORY_WANTED_MOST 4096U /* shared: first */

struct nm_memory_process {
	uint32_t pid;
	uint16_t owner; /* owner in the table of pages; 0: no room, or it has exited */
	bool held;	/* its pages wait for a thread placement */
	unsigned threads;
	unsigned live;	  /* number of threads that have not exited since */
	unsigned periods; /* placement periods for which its pages have waited */
};

/* A page that should move, found since the last nm_memory_update(). */
struct nm_memory_wanted {
	uint32_t pid;
	int16_t from, to; /* node indices */
	struct nm_page_id page;
	bool checked;
};

struct nm_memory;

/* Creates the object. The topology must outlive it. `key` is random, for nm_pages_new(). */
void nm_memory_new(const struct nm_topology *topology, const struct nm_config *config,
		   const uint64_t key[4], struct nm_memory **ret);
void nm_memory_free(struct nm_memory *memory);
NM_DEFINE_CLEANUP(struct nm_memory, nm_memory_free);

/* Sets a new topology with the same nodes. */
void nm_memory_retarget(struct nm_memory *memory, const struct nm_topology *topology);

/* Sets the settings after a reload. */
void nm_memory_configure(struct nm_memory *memory, const struct nm_config *config);

/*
 * Follows the threads and processes of the snapshot from now on, and others no longer. The pages of
 * processes that have exited or run another program are dropped.
 */
void nm_memory_follow(struct nm_memory *memory, const struct nm_snapshot *snapshot);

/* Processes task events between ticks. An EXIT ends a thread, and its process with the last thread.
 * An EXEC drops the pages of the process, which are counted again from the next interval on.
 * Returns whether the pages of event->pid were dropped. */
bool nm_memory_task_event(struct nm_memory *memory, const struct nm_task_event *event);

/* Called for each sample. This is the hot path: samples are collected in a small batch. Returns the
 * access until the next call; NULL if the sample is none of a followed process. */
const struct nm_page_touch *nm_memory_add(struct nm_memory *memory, const struct nm_sample *sample);

/* Counts the collected samples. Must be called after each drain, and before the functions below. */
void nm_memory_flush(struct nm_memory *memory);

/* Performs the housekeeping of the table of pages (nm_pages_update()), and clears the list of pages
 * that should move: those that were not tried can be found again. */
void nm_memory_update(struct nm_memory *memory);

/* Returns the processes of the last snapshot in its order. Valid until nm_memory_follow(). */
size_t nm_memory_processes(const struct nm_memory *memory, const struct nm_memory_process **ret);
/* Returns the process if its pages are counted, or NULL. memory may be NULL. */
const struct nm_memory_process *nm_memory_process(const struct nm_memory *memory, uint32_t pid);

/*
 * Ends a placement period of the process (section 3.3). Its pages may move from now on if a thread
 * placement was applied or is not needed: if `mapped` is true, or after NM_MEMORY_QUIET_PERIODS
 * periods with too little communication.
 */
void nm_memory_mapping_over(struct nm_memory *memory, uint32_t pid, bool mapped);

/* Returns the pages that should move, until nm_memory_update(). */
size_t nm_memory_wanted(const struct nm_memory *memory, const struct nm_memory_wanted **ret);

/* Marks a page that the caller will settle: it stays pending, and is not found again, until
 * nm_memory_end_check(). */
void nm_memory_take(struct nm_memory *memory, size_t index);

/* Records the result for a page that was taken, or that was moved as part of a range; of the
 * latter, only NM_PAGE_MOVED has an effect. Pages that are not tracked are ignored. */
void nm_memory_end_check(struct nm_memory *memory, const struct nm_page_id *page,
			 enum nm_page_outcome outcome, unsigned node);

/* Looks up a page like nm_pages_look(). Returns 0 or -ENOENT. */
int nm_memory_look(const struct nm_memory *memory, const struct nm_page_id *page,
		   struct nm_page_view *ret);

/* Return the parts of this object, for metrics, thread placement and rollback. The object owns
 * them. */
struct nm_pages *nm_memory_pages(struct nm_memory *memory);
struct nm_affinity *nm_memory_affinity(struct nm_memory *memory);

/* Returns the exclusivity over all processes (equation 4), as of the last complete scan of the
 * table. */
struct nm_exclusivity nm_memory_exclusivity(const struct nm_memory *memory);

#endif
