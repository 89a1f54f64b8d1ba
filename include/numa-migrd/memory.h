/* SPDX-License-Identifier: MIT */
/*
 * Samples of managed processes → table of pages, affinity matrix, and the pages that should move:
 * what pages.h and affinity.h keep apart is filled together here. Its clock is the samples': the
 * latest time seen, as rings are emptied one after another. Pure.
 */
#ifndef NUMA_MIGRD_MEMORY_H
#define NUMA_MIGRD_MEMORY_H

#include "numa-migrd/affinity.h"
#include "numa-migrd/pages.h"
#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

/* Pages wait for the first mapping of their threads for at most so many periods. */
#define NM_MEMORY_QUIET_PERIODS 5U
#define NM_MEMORY_WANTED_MOST 4096U

struct nm_memory_thread {
	uint32_t tid, pid;
};

struct nm_memory_process {
	uint32_t pid;
	uint16_t owner;	      /* in the table of pages; 0: there was no room for it */
	const uint32_t *tids; /* ascending */
	size_t nr_threads;
	bool held; /* its pages wait for a mapping */
};

/* A page that should move: found since the last nm_memory_clear_wanted(). */
struct nm_memory_wanted {
	uint32_t pid;
	int16_t from, to; /* node indices */
	struct nm_page_id page;
	bool settled;
};

struct nm_memory_losses {
	uint64_t no_room;	 /* processes and threads that could not be followed */
	uint64_t wanted_dropped; /* found when there were NM_MEMORY_WANTED_MOST already */
};

struct nm_memory;

/* physmap may be NULL: then only samples that name their home tell where pages are. Both must
 * outlive it. key: random, for nm_pages_new(). -ENOMEM. Daemon, start. */
int nm_memory_new(const struct nm_topology *topology, const struct nm_physmap *physmap,
		  const struct nm_config *config, const uint64_t key[4], struct nm_memory **ret);
void nm_memory_free(struct nm_memory *memory);
NM_DEFINE_CLEANUP(struct nm_memory, nm_memory_free);

/* The settings of a reload. */
void nm_memory_configure(struct nm_memory *memory, const struct nm_config *config);

/*
 * The managed threads, ascending tid: those not followed yet begin to be, others no longer are, and
 * the pages of processes that are gone go at once. -ENOMEM: some newcomers have to wait for the
 * next time. Tick.
 */
int nm_memory_follow(struct nm_memory *memory, const struct nm_memory_thread *threads,
		     size_t count);

/* Between ticks: an EXIT ends a thread, and with the last one the process; after an EXEC the
 * process's pages are others. */
void nm_memory_task_event(struct nm_memory *memory, const struct nm_task_event *event);

/* A sink's on_sample (context: struct nm_memory *). The hot path: samples wait in a small batch. */
void nm_memory_add(void *context, const struct nm_sample *sample);

/* Counts what waits. After each drain, and before anything below. */
void nm_memory_flush(struct nm_memory *memory);

/* Housekeeping of the table of pages (nm_pages_update()). Tick. */
int nm_memory_update(struct nm_memory *memory);

/* The processes that are followed, ascending pid; valid until nm_memory_follow() or _task_event().
 */
size_t nm_memory_processes(const struct nm_memory *memory, const struct nm_memory_process **ret);

/*
 * A mapping period of the process is over (section 3.3): its pages may move from now on if its
 * threads were mapped, or need not be: there is one, or it shared too little
 * NM_MEMORY_QUIET_PERIODS times.
 */
void nm_memory_mapping_over(struct nm_memory *memory, uint32_t pid, bool mapped);

/* The pages that should move; the caller settles those that it tried, and clears the list, which
 * gives the others another chance. */
size_t nm_memory_wanted(const struct nm_memory *memory, const struct nm_memory_wanted **ret);
void nm_memory_settle(struct nm_memory *memory, size_t index, enum nm_page_outcome outcome,
		      unsigned node);
void nm_memory_clear_wanted(struct nm_memory *memory);

/* The caller has it moved by somebody else: it stays pending, and is not found again, until
 * nm_memory_settle_page(). */
void nm_memory_take(struct nm_memory *memory, size_t index);

/* What became of a page that was taken, or moved as a part of a range: of the latter only
 * NM_PAGE_MOVED is news. Of pages that are not tracked (any more) nothing is noted. */
void nm_memory_settle_page(struct nm_memory *memory, const struct nm_page_id *page,
			   enum nm_page_outcome outcome, unsigned node);

/* What is known of a page, as nm_pages_look() has it. -ENOENT. */
int nm_memory_look(const struct nm_memory *memory, const struct nm_page_id *page,
		   struct nm_page_view *ret);

/* Is it an access to memory? And to that of which node (index; -1: not known)? */
bool nm_memory_counts(const struct nm_sample *sample);
int nm_memory_home(const struct nm_memory *memory, const struct nm_sample *sample);

/* For figures, mapping and rollback. Owned by the memory. */
struct nm_pages *nm_memory_pages(struct nm_memory *memory);
struct nm_affinity *nm_memory_affinity(struct nm_memory *memory);

/* Over all processes (equation 4), as of the last whole round of housekeeping. */
struct nm_exclusivity nm_memory_exclusivity(const struct nm_memory *memory);
struct nm_memory_losses nm_memory_losses(const struct nm_memory *memory);

#endif
