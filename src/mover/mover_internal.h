/* SPDX-License-Identifier: MIT */
/* What the mover's files share. */
#ifndef NM_MOVER_INTERNAL_H
#define NM_MOVER_INTERNAL_H

#include <pthread.h>

#include "known.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/worker.h"
#include "pace.h"
#include "room.h"

#define NM_SMALL_PAGE 4096U
#define NM_HUGE_PAGE ((uint64_t)2 << 20)

/* rules.c: copies of what the batches go by; replaced between calls. */
struct nm_mover_rules {
	bool move_bound, move_shared, barred;
	double keep_free;
	struct nm_known_limits maps;
	unsigned nr_nodes;
	unsigned *node_ids;    /* the kernel's numbers, by index */
	int16_t *stand_ins;    /* the node whose CPUs it is beside, likewise */
	struct nm_node_free *rooms; /* likewise */
};

/* One page of a call. */
struct nm_unit {
	uint64_t address;
	const struct nm_mapped *mapped; /* that it is in; of a bulk batch */
	size_t step;
	int to;	   /* the kernel's number */
	int was;   /* where it was found, likewise, or a negative errno */
	int state; /* where it is now likewise, or NM_UNIT_UNTOLD */
	bool pool; /* of the pool of huge pages */
};
#define NM_UNIT_UNTOLD INT32_MIN

/* The batch in hand, and how far it is. */
struct nm_work {
	struct nm_page_batch *batch; /* NULL: none */
	bool dropped;		     /* under the lock */
	size_t next;
	/* Of a bulk batch: what was found last, and how many of these have been dealt with. */
	struct nm_worker_found found;
	unsigned found_next;
	struct nm_known_entry *known; /* kept from being given away; under the lock */
	hwloc_bitmap_t mems;	      /* that the process's cpuset allows; the kernel's numbers */
	bool has_mems;
	uint32_t tid; /* a thread of the process that has not exited: the first, if it has not */
	uint64_t tid_ticks; /* its own start */
	uint64_t checked_ns;		  /* when it was this very process */
	uint64_t held_ns; /* that its mappings were being read, in this step */
	size_t base_pages[NM_PACE_PAGES_MOST]; /* steps whose small pages are still to go, one by
						  one */
	size_t loose_count;
	uint64_t loose_offset; /* within the last of them */
	/* Of the small pages of the last of them that moved: where they were; NM_LOOSE_STAYS. */
	int16_t loose_was[NM_HUGE_PAGE / NM_SMALL_PAGE];
};
#define NM_LOOSE_STAYS (-2)

/* What a call takes as arguments. */
struct nm_call {
	struct nm_unit units[NM_PACE_PAGES_MOST];
	uint64_t addresses[NM_PACE_PAGES_MOST];
	int nodes[NM_PACE_PAGES_MOST], statuses[NM_PACE_PAGES_MOST];
	unsigned count;
	uint64_t now_ns; /* when the process was looked at */
};

struct nm_mover {
	struct nm_platform *platform; /* a reference */
	pthread_t thread;
	bool threadless; /* nm_mover_work() does its work; no lock is contended */

	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake, turned; /* for the worker; for nm_mover_free(), when it has ended */
	bool stopping, ended;
	bool busy;	/* it has let go of the lock */
	bool abandoned; /* nm_mover_free() has returned: the thread frees the mover when it ends */
	bool has_next;
	struct nm_mover_rules next; /* adopted when it is not busy */
	struct nm_page_batch *queue[NM_BATCHES_MOST], *done[NM_BATCHES_MOST];
	size_t queue_count, done_count;
	uint64_t queued_pages, queued_bytes; /* not tried yet, of the one under way too */
	struct nm_pace pace;
	struct nm_known known;
	struct nm_mover_counts counts;
	uint64_t splits_before, splits_ns;

	/* The worker's while busy, else under the lock. */
	struct nm_mover_rules rules;
	struct nm_work work;

	struct nm_call call; /* the worker's, as is the next */
	struct nm_reclaim_watch reclaim;
};

/* -ENOMEM: without nodes. To be cleared in any case. */
int nm_rules_init(struct nm_mover_rules *rules, const struct nm_topology *topology,
		  const struct nm_config *config);
void nm_rules_clear(struct nm_mover_rules *rules);
bool nm_rules_same_nodes(const struct nm_mover_rules *a, const struct nm_mover_rules *b);

/* mover.c */

/* The rules that wait, if any, are those from now on. Under the lock, not busy. */
void nm_mover_adopt(struct nm_mover *mover);
/* The thread has ended, never began, or calls it last and is abandoned. */
void nm_mover_destroy(struct nm_mover *mover);

/* worker.c: what the thread runs. */
void *nm_mover_run(void *argument);
/* One turn; under the lock. True: there may be more to do at once; else how long to wait. */
bool nm_mover_turn(struct nm_mover *mover, uint64_t *ret_wait_ns);

/*
 * batch.c: the next call of the batch in hand, and what must be known before. -EAGAIN: there is
 * more to do; 0: done; else why it ended. Without the lock, `busy`.
 */
int nm_batch_step(struct nm_mover *mover);

/* step.c */

/* Why a step is not asked for, as a place in the counts; NULL: it may go. Fills in the unit. */
uint64_t *nm_step_refusal(const struct nm_mover_rules *rules, const struct nm_work *work,
			  const struct nm_page_step *step, struct nm_mover_counts *counts,
			  struct nm_unit *ret_unit);
/* Likewise, whatever page of the mapping it is about. */
uint64_t *nm_mapped_refusal(const struct nm_mover_rules *rules, const struct nm_mapped *mapped,
			    struct nm_mover_counts *counts);
/* Of the kernel's number of a node, or of a negative errno; -1: none that we know. */
int16_t nm_node_index(const struct nm_mover_rules *rules, int node);
/* The page is where the step says, and not where it is to go. */
bool nm_step_is_where_seen(const struct nm_page_step *step, const struct nm_unit *unit,
			   int16_t found_on);
void nm_step_moved(struct nm_page_step *step, struct nm_mover_counts *counts);
void nm_step_refused(struct nm_page_step *step, struct nm_mover_counts *counts, uint64_t *why);
void nm_step_elsewhere(struct nm_page_step *step, struct nm_mover_counts *counts);
void nm_step_failed(struct nm_page_step *step, struct nm_mover_counts *counts, int error);
/* Of one page, by the kernel: a negative errno. */
void nm_count_failure(struct nm_mover_counts *counts, int error);
/* All of its small pages have been looked at: its fate, unless it has one, by what was found of them. */
void nm_step_end(struct nm_page_step *step, struct nm_mover_counts *counts);

/* room.c's, as the mover's own. */
static inline bool nm_mover_take_room(struct nm_mover *mover, int16_t node, uint64_t bytes,
				      bool pool)
{
	const struct nm_node_free_page page = {
		.now_ns = mover->call.now_ns, .bytes = bytes, .pool = pool};

	return nm_node_free_take(mover->platform, &mover->reclaim, &mover->rules.rooms[node],
				 mover->rules.node_ids[node], mover->rules.keep_free, page);
}

#endif
