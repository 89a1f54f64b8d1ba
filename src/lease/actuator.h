/* SPDX-License-Identifier: MIT */
/* The state of the actuator, shared by the files of this folder. */
#ifndef NM_ACTUATE_ACTUATOR_H
#define NM_ACTUATE_ACTUATOR_H

#include "descent.h"
#include "mask.h"
#include "numa-migrd/base.h"
#include "numa-migrd/lease.h"
#include "numa-migrd/ledger.h"
#include "settled.h"

/*
 * One affinity that we narrowed, or that a task inherited from such a thread. After it has ended
 * (terms.ended_ticks != 0), it is kept until two more rounds of nm_actuator_update() are over,
 * because FORK records from its time may still be in the rings. A thread whose lease was replaced
 * by another one has several.
 */
struct nm_lease {
	struct nm_ledger_entry terms;
	enum nm_step_pin pin;
	bool inherited; /* one for each thread and target; its ancestor has the ledger line */
	bool settled;	/* restored, or changed by its owner: the present affinity is the owner's
			   choice */
	bool foreign;	/* inherited, but the task did not carry the target */
	bool refused;	/* inherited, and restoring it failed; tried again in each round */
	bool written;	/* has a ledger line of its own, which outlives that of its ancestor */
	bool exited;	/* according to an EXIT record. The number of a leader may now be that of a
			   thread which has called exec, and may have got this lease afterwards */
	bool reused;	/* its number belongs to a thread that was created later */
	bool awaited;	/* its thread is gone, and its leader has the target, as after an exec; an
			   EXEC record is awaited */
	uint64_t ended_round; /* round of nm_actuator_update() in which it ended */
	uint64_t renewed_ns;
	uint64_t cpuset_id; /* nm_mask_cpuset_id() when it was given */
	uint64_t nudge_end_ns; /* NUDGE: the affinity is restored at this time at the latest */
	uint32_t next_of_tid, next_of_pid; /* index of the next older one, or NM_LEASE_NONE */
};


#define NM_LEASE_NONE NM_TIDMAP_NONE
#define NM_LEASE_MEMORY_ROUNDS 2
/* Limit for keeping an ended lease during a walk, whose length depends on the threads of all users.
 * With 64 new leases in each interval (moves_per_interval), the ended ones use half of
 * NM_LEASE_MOST. */
#define NM_LEASE_MOST_ROUNDS 512
/* Limits on the tasks with inherited affinity that are kept as leases: in total, and for one domain.
 * Tasks beyond the limits are only known by number (settled.h), and a walk of /proc finds their
 * children. */
#define NM_LEASE_MOST_INHERITED 8192U
#define NM_LEASE_SHARE_INHERITED (NM_LEASE_MOST_INHERITED / 2)
#define NM_LEASE_MOST 65536U	    /* limit on the leases in the ledger, including ended ones */
#define NM_LEASE_TURN_STEPS 524288U /* budget of a walk in one interval: about 10 ms */
#define NM_NUDGE_NS (200 * NM_NSEC_PER_MSEC)

/* A walk over all threads of the machine, which extends over several intervals. */
struct nm_lease_walk {
	bool under_way;
	bool unread; /* some process or thread could not be read */
	bool failed; /* some thread still has to be restored */
	uint64_t began_ticks;
	struct nm_descent_walk course;
};

struct nm_actuator {
	struct nm_platform *platform;
	struct nm_masks masks; /* uses the same platform */
	int runtime_directory;
	struct nm_ledger *ledger; /* NULL: nothing may be changed */
	struct nm_progress progress;
	struct nm_lease *leases;
	size_t count, capacity;
	size_t inherited;     /* number of inherited ones among them */
	uint32_t most_leases; /* NM_LEASE_MOST by default */
	struct nm_shares lease_shares;
	struct nm_shares inherited_shares;
	struct nm_settled *settled;	   /* threads without an entry in `leases` */
	struct nm_tidmap *by_tid, *by_pid; /* map to the index of the newest lease */
	struct nm_descent *descent;

	uint64_t round; /* of nm_actuator_update() */
	/* Every thread created before reported_ticks was reported by a FORK record or examined by a
	 * walk. */
	uint64_t reported_ticks, tended_ticks;
	bool missed; /* tasks with inherited affinity may have been missed since the last walk
			began, because records were lost or entries could not be kept */
	bool ends;   /* all leases are being restored, and no later walk will search for tasks */
	struct nm_lease_walk walk;
	uint64_t turn_steps; /* budget of a walk in one interval; NM_LEASE_TURN_STEPS by default */
	uint64_t clock_ns, clock_ticks; /* one point in time in both units, for nm_lease_ticks() */
};

static inline bool nm_lease_active(const struct nm_lease *lease)
{
	return !lease->inherited && lease->terms.ended_ticks == 0;
}

/* Returns whether there may be tasks with inherited affinity that no record reported. */
static inline bool nm_lease_may_be_missed(const struct nm_actuator *actuator)
{
	return actuator->missed || actuator->walk.under_way;
}

void nm_lease_report(struct nm_actuator *actuator, const struct nm_lease *lease,
		     enum nm_lease_event_kind kind, int error);

/* Returns the approximate present time in clock ticks; reads /proc/uptime at most once per second.
 * Returns UINT64_MAX if it cannot be read. */
uint64_t nm_lease_ticks(struct nm_actuator *actuator);

/* Returns the index of the newest lease with this number, or NM_LEASE_NONE. The older ones follow
 * by next_of_tid or next_of_pid. */
uint32_t nm_lease_first_of_tid(const struct nm_actuator *actuator, uint32_t tid);
uint32_t nm_lease_first_of_pid(const struct nm_actuator *actuator, uint32_t pid);

/* Returns the active lease of the thread with this number and start time, or NULL. */
struct nm_lease *nm_lease_active_of(const struct nm_actuator *actuator, uint32_t tid,
				    uint64_t start_ticks);

/* Returns whether the present affinity of this thread is known to be its lease or its owner's
 * choice. If records are lost, the lease of its parent is not certain: a task that did not carry
 * another target may have inherited that of `terms` (NULL: none). */
bool nm_lease_is_settled(const struct nm_actuator *actuator, uint32_t tid, uint64_t start_ticks,
			 const struct nm_ledger_entry *terms);

/* Stores all leases that are not inherited, including ended ones, and, if `written`, the inherited
 * ones with a line of their own: all entries that belong in the ledger. `ret` has space for
 * actuator->count pointers. Returns the number stored. */
size_t nm_lease_collect(const struct nm_actuator *actuator, bool written,
			const struct nm_ledger_entry **ret);

/* nm_lease_reserve() allocates space, so that `more` calls of nm_lease_put() cannot fail. Each of
 * them also needs nm_lease_reserve_place() for its thread; nm_lease_release_place() releases that
 * place if it was not used. It returns 0 or a negative errno. */
void nm_lease_reserve(struct nm_actuator *actuator, size_t more);
int nm_lease_reserve_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid);
void nm_lease_release_place(struct nm_actuator *actuator, uint32_t pid, uint32_t tid);

/* Adds a lease, and takes over the contents of `terms`. An active lease of the same thread ends.
 * The caller has reserved the space, so this cannot fail. */
struct nm_lease *nm_lease_put(struct nm_actuator *actuator, struct nm_ledger_entry *terms);

/* Adds an inherited affinity in the same way; no lease ends. */
struct nm_lease *nm_lease_put_inherited(struct nm_actuator *actuator,
					struct nm_ledger_entry *terms);

/* Ends a lease without changing the affinity, which is no longer ours. */
void nm_lease_end(struct nm_actuator *actuator, struct nm_lease *lease);

/* Rewrites the ledger if most of its lines are obsolete. */
void nm_lease_compact_ledger(struct nm_actuator *actuator);

/* Drops the leases that ended long enough ago. */
void nm_lease_forget_past(struct nm_actuator *actuator);

/* Restores the original affinity, reports `kind` (or FOREIGN, GONE, FAILED), and ends the lease
 * unless restoring was refused. May extend actuator->leases, so that pointers into it become
 * invalid. Returns 0 or a negative errno. */
int nm_lease_give_back(struct nm_actuator *actuator, size_t index, enum nm_lease_event_kind kind);

/* ---- inherited affinity ---- */

/* Tries again to restore the affinities that could not be restored. */
void nm_lease_retry_inherited(struct nm_actuator *actuator);

/*
 * Handles a leased thread whose number no longer exists. If a thread other than the leader has
 * called exec, it continues under the leader's number with our affinity, which is restored. Called
 * if no record reports this. Returns whether the thread was found there.
 */
bool nm_lease_follow_exec(struct nm_actuator *actuator, size_t index);

/* Searches all threads of the machine at once for tasks with inherited affinity that were missed.
 * Returns the number of refusals, or a negative errno. */
int nm_lease_search(struct nm_actuator *actuator);

/* nm_lease_walk_on() continues the walk within the budget of one interval, and begins one if
 * records were lost. */
void nm_lease_walk_on(struct nm_actuator *actuator);
void nm_lease_walk_stop(struct nm_actuator *actuator);

#endif
