/* SPDX-License-Identifier: MIT */
/*
 * Fills the table of pages (pages.h) and the communication matrix (affinity.h) from the samples of
 * managed processes, and finds the pages that should move. Its clock is that of the samples: the
 * latest time seen, because rings are drained one after another. Pure.
 */
#ifndef NUMA_MIGRD_MEMORY_H
#define NUMA_MIGRD_MEMORY_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/pages.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

/* Pages wait for the first placement of their threads for at most this number of periods. */
#define NM_MEMORY_QUIET_PERIODS 5U
#define NM_MEMORY_WANTED_MOST 4096U

struct nm_memory_thread {
	uint32_t tid, pid;
};

struct nm_memory_process {
	uint32_t pid;
	uint16_t owner;	      /* owner in the table of pages; 0: no room */
	const uint32_t *tids; /* ascending */
	size_t nr_threads;
	bool held; /* its pages wait for a thread placement */
};

/* A page that should move, found since the last nm_memory_clear_wanted(). */
struct nm_memory_wanted {
	uint32_t pid;
	int16_t from, to; /* node indices */
	struct nm_page_id page;
	bool settled;
};

struct nm_memory_losses {
	uint64_t no_room;	 /* processes and threads that could not be followed */
	uint64_t wanted_dropped; /* found while there were already NM_MEMORY_WANTED_MOST */
};

struct nm_memory;

/*
 * Creates the object. If physmap is NULL, only samples that contain the node locate pages. Topology
 * and physmap must outlive it. `key` is random, for nm_pages_new(). Returns 0 or -ENOMEM. Called by
 * the daemon at start.
 */
int nm_memory_new(const struct nm_topology *topology, const struct nm_physmap *physmap,
		  const struct nm_config *config, const uint64_t key[4], struct nm_memory **ret);
void nm_memory_free(struct nm_memory *memory);
NM_DEFINE_CLEANUP(struct nm_memory, nm_memory_free);

/* Sets the settings after a reload. */
void nm_memory_configure(struct nm_memory *memory, const struct nm_config *config);

/*
 * Sets the managed threads, in ascending tid order. New threads are followed from now on, others no
 * longer, and the pages of processes that have exited are dropped at once. Returns 0, or -ENOMEM,
 * in which case some new threads wait for the next call. Called by the tick.
 */
int nm_memory_follow(struct nm_memory *memory, const struct nm_memory_thread *threads,
		     size_t count);

/* Processes task events between ticks. An EXIT ends a thread, and its process with the last thread;
 * an EXEC replaces the pages of the process. */
void nm_memory_task_event(struct nm_memory *memory, const struct nm_task_event *event);

/* on_sample of a sink; the context is a struct nm_memory *. This is the hot path: samples are
 * collected in a small batch. */
void nm_memory_add(void *context, const struct nm_sample *sample);

/* Counts the collected samples. Must be called after each drain, and before the functions below. */
void nm_memory_flush(struct nm_memory *memory);

/* Performs the housekeeping of the table of pages (nm_pages_update()). Called by the tick. */
int nm_memory_update(struct nm_memory *memory);

/* Returns the processes that are followed, in ascending pid order. Valid until nm_memory_follow()
 * or nm_memory_task_event(). */
size_t nm_memory_processes(const struct nm_memory *memory, const struct nm_memory_process **ret);

/*
 * Ends a placement period of the process (section 3.3). Its pages may move from now on if a thread
 * placement was applied or is not needed: if `mapped` is true, or after NM_MEMORY_QUIET_PERIODS
 * periods with too little communication.
 */
void nm_memory_mapping_over(struct nm_memory *memory, uint32_t pid, bool mapped);

/* Returns the pages that should move. The caller settles those that it tried to move, and clears
 * the list, so that the others can be found again. */
size_t nm_memory_wanted(const struct nm_memory *memory, const struct nm_memory_wanted **ret);
void nm_memory_settle(struct nm_memory *memory, size_t index, enum nm_page_outcome outcome,
		      unsigned node);
void nm_memory_clear_wanted(struct nm_memory *memory);

/* Marks a page as handed over to the mover: it stays pending, and is not found again, until
 * nm_memory_settle_page(). */
void nm_memory_take(struct nm_memory *memory, size_t index);

/* Records the result for a page that was taken, or that was moved as part of a range; of the
 * latter, only NM_PAGE_MOVED has an effect. Pages that are not tracked are ignored. */
void nm_memory_settle_page(struct nm_memory *memory, const struct nm_page_id *page,
			   enum nm_page_outcome outcome, unsigned node);

/* Looks up a page like nm_pages_look(). Returns 0 or -ENOENT. */
int nm_memory_look(const struct nm_memory *memory, const struct nm_page_id *page,
		   struct nm_page_view *ret);

/* nm_memory_counts() returns whether a sample is an access to memory; nm_memory_home() returns the
 * index of the node of that memory, or -1 if it is not known. */
bool nm_memory_counts(const struct nm_sample *sample);
int nm_memory_home(const struct nm_memory *memory, const struct nm_sample *sample);

/* Return the parts of this object, for metrics, thread placement and rollback. The object owns
 * them. */
struct nm_pages *nm_memory_pages(struct nm_memory *memory);
struct nm_affinity *nm_memory_affinity(struct nm_memory *memory);

/* Returns the exclusivity over all processes (equation 4), as of the last complete scan of the
 * table. */
struct nm_exclusivity nm_memory_exclusivity(const struct nm_memory *memory);
struct nm_memory_losses nm_memory_losses(const struct nm_memory *memory);

#endif
