/* SPDX-License-Identifier: MIT */
/* The state of moves, shared by the files of this folder. */
#ifndef NM_MOVE_MOVES_H
#define NM_MOVE_MOVES_H

#include "descent.h"
#include "affinity/move.h"
#include "slots.h"

#define NM_MOVE_MOST_FOLLOWED 64U  /* tasks of one move */
#define NM_MOVE_KEPT_ROUNDS 10U	   /* time in which a fork that began in the window has ended */
#define NM_MOVE_TURN_STEPS 524288U /* budget of a walk in one interval: about 10 ms */
#define NM_MOVE_REST_DOMAINS 64U   /* shared: newest */
#define NM_MOVE_TURN_NS (10 * NM_NSEC_PER_MSEC)
/* In turns of that length: after it has created a task, and after a call that took long. */
#define NM_MOVE_FORKED_TURNS 25U
#define NM_MOVE_SLOW_TURNS ((uint32_t)(NM_MOVE_REST_NS / NM_MOVE_TURN_NS))

/*
 * A task whose children may have inherited the narrowed affinity: the moved thread, or a task that
 * has itself inherited it. Of the children created after its affinity was restored, only the first
 * one can have: its creation may have begun before.
 */
struct nm_follow {
	uint32_t tid, pid;
	uint64_t start_ticks;
	uint64_t end_ticks; /* when its affinity was restored; 0: not yet */
	bool done;
	bool refused; /* restoring it failed; tried again in each round */
};

/* One narrowed affinity. terms.tid is 0 if the slot is free. */
struct nm_slot {
	struct nm_narrowing terms;
	bool narrow;	 /* the thread still has it */
	bool failed;	 /* restoring it failed; tried again in each round */
	bool lost;	 /* a walk has to find the tasks that inherited it */
	uint64_t end_ns; /* of the window */
	uint64_t restored_round, restored_ticks;
	struct nm_follow *follows;
	size_t nr_follows, capacity;
};

struct nm_moves {
	struct nm_platform *platform;
	struct nm_masks masks; /* uses the same platform */
	int runtime_directory;
	struct nm_slots *file; /* NULL: nothing may be moved */
	struct nm_progress progress;
	struct nm_slot *slots; /* NM_MOVE_SLOTS */
	size_t used, open;     /* slots in use, and with an open window */
	struct nm_descent *descent;
	struct nm_tidmap *followed; /* number of struct nm_follow of a thread that are not done */
	struct nm_tidmap *resting;  /* until when a thread is not moved, in NM_MOVE_TURN_NS */
	hwloc_bitmap_t given, given_cores; /* to threads moved in this interval */
	bool lost;			   /* records of this interval */
	const char *bar;		   /* why the kernel lets nothing be moved; NULL: it does */
	uint64_t round;
	uint64_t drained_ticks; /* nm_moves_known() when the last interval ended */
	struct {
		uint64_t domain, until_ns;
	} rests[NM_MOVE_REST_DOMAINS];
	size_t next_rest;
	bool walking;
	uint64_t walk_round, walk_ticks; /* when the walk began */
	struct nm_descent_walk walk;
	uint64_t turn_steps;
	uint64_t clock_ns, clock_ticks; /* one point in time in both units */
	struct nm_move_counts counts;
};

void nm_moves_report(const struct nm_moves *moves, const struct nm_narrowing *terms, uint32_t pid,
		     uint32_t tid, uint64_t start_ticks, enum nm_move_event_kind kind, int error);

/* Returns the approximate present time in clock ticks, never later than it is; 0: unknown. */
uint64_t nm_moves_ticks(struct nm_moves *moves);

/* Returns the time before which a task started whose record has been drained by now; 0: unknown. */
uint64_t nm_moves_known(struct nm_moves *moves);

/* Bars a thread from moves for some turns. */
void nm_moves_rest_thread(struct nm_moves *moves, uint32_t tid, uint32_t turns);

/* Bars all threads of the domain from moves for NM_MOVE_REST_NS. */
void nm_moves_rest(struct nm_moves *moves, uint64_t domain);
bool nm_moves_rests(const struct nm_moves *moves, uint64_t domain, uint64_t now_ns);

/* Restores the thread of a slot. The slot stays until its children have been found. */
void nm_slot_restore(struct nm_moves *moves, struct nm_slot *slot);
void nm_slot_free(struct nm_moves *moves, struct nm_slot *slot);

/* ---- children.c ---- */

/* Adds a task to follow; beyond NM_MOVE_MOST_FOLLOWED the move is given up. */
struct nm_follow *nm_follow_add(struct nm_moves *moves, struct nm_slot *slot, uint32_t pid,
				uint32_t tid, uint64_t start_ticks);
void nm_follow_end(struct nm_moves *moves, struct nm_follow *follow);
/* The thread of the slot is gone. If it has executed a program, that one is restored. Returns the
 * result of nm_mask_restore_inherited(). */
int nm_children_follow_exec(struct nm_moves *moves, struct nm_slot *slot);
/* Returns whether a task may still appear whose creation began before the restoration. */
bool nm_children_may_appear(struct nm_moves *moves, struct nm_slot *slot);
void nm_children_retry(struct nm_moves *moves, struct nm_slot *slot);
/* Continues the walk for slots that are lost. Returns the number of refusals, or a negative errno.
 */
int nm_children_walk(struct nm_moves *moves, uint64_t budget);

#endif
