/* SPDX-License-Identifier: MIT */
/*
 * Assignments: which node a thread belongs to, after it was moved. An assignment changes no
 * affinity. A computing thread that the scheduler has taken away is moved again; others are moved
 * once, because their next wake-up by a remote CPU would undo it. Pure.
 */
#ifndef NUMA_MIGRD_ASSIGN_H
#define NUMA_MIGRD_ASSIGN_H

#include "policy/plan.h"
#include "numa-migrd/snapshot.h"

struct nm_assignment {
	uint32_t tid, pid;
	uint64_t start_ticks, adopted_ns;
	int node;	   /* index; -1: none, it was only moved */
	uint64_t decision; /* for which it was moved; 0: it was not moved */
	bool by_home;	   /* policy "auto" decides whether it is moved again */
	bool elsewhere;	   /* in the last interval */
	/* How often it was taken away since it last stayed for 3 s, and how often it was left alone
	 * for that since its start. */
	unsigned taken, rests;
	uint64_t returned_ns, rest_until_ns;
};

struct nm_assignments {
	struct nm_assignment *items;
	size_t count, capacity;
	struct nm_tidmap *of_tid; /* index in items */
	uint32_t *on;		  /* per node: assigned threads */
	uint32_t *wanting;	  /* per node: threads that want a CPU, in the last interval */
	uint32_t *sharing;	  /* the same per CPU, of nr_cpus */
	unsigned nr_cpus;
	double crowding; /* such threads for each CPU of the machine, at least 1 */
	unsigned nr_nodes;
};

struct nm_assignments *nm_assignments_new(void);
/* Ends all. */
void nm_assignments_clear(struct nm_assignments *assignments);
/* Returns the number of threads that are assigned to a node. */
size_t nm_assignments_count(const struct nm_assignments *assignments);
void nm_assignments_free(struct nm_assignments *assignments);
NM_DEFINE_CLEANUP(struct nm_assignments, nm_assignments_free);

/*
 * Follows the threads of an interval: forgets those that are gone, determines which ones ran mostly
 * elsewhere, and ends the surplus on nodes where more threads want a CPU than there are. Of a
 * machine where more threads want a CPU than it has, each node has its share of them. A thread that
 * was taken away sixty times without staying is left alone for 1, 2, 4 … 30 minutes. Sets the
 * snapshot's `assigned` and `rests`.
 */
void nm_assignments_follow(struct nm_assignments *assignments, struct nm_snapshot *snapshot,
			   const struct nm_config *config);

/* A note about a thread. */
struct nm_assigning {
	int node;
	uint64_t decision; /* for which it is moved; 0: it is there already */
	bool by_home;
	bool computes;	   /* as far as the caller knows */
	bool memory_there; /* most of the process's memory is on the node, or is being moved there
			    */
};

/*
 * Notes that a thread is moved to a node or belongs to it. It is assigned to the node if it
 * computes, if the node has a CPU for it, and, beside automatic NUMA balancing, if most of its
 * accesses go there: otherwise the kernel would bring it back each second.
 */
void nm_assignments_note(struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, const struct nm_snap_thread *thread,
			 const struct nm_assigning *assigning);

/* The move was refused, or the thread did not run in its window: it has not been moved. */
void nm_assignments_missed(struct nm_assignments *assignments, uint32_t tid, uint64_t start_ticks);

/* Returns what is known about a thread, or NULL. */
const struct nm_assignment *nm_assignments_of(const struct nm_assignments *assignments,
					      uint32_t tid, uint64_t start_ticks);
/* Returns whether the thread is assigned to a node. */
bool nm_assignments_has(const struct nm_assignments *assignments, uint32_t tid,
			uint64_t start_ticks);
/* Returns whether an assigned thread is elsewhere, and is not left alone. */
bool nm_assignment_is_due(const struct nm_assignment *assignment, uint64_t now_ns);
/* It is moved again. */
void nm_assignments_return(struct nm_assignments *assignments, uint32_t tid, uint64_t now_ns);

void nm_assignments_end_thread(struct nm_assignments *assignments, uint32_t tid,
			       uint64_t start_ticks);
void nm_assignments_end_process(struct nm_assignments *assignments, uint32_t pid);

/* Plans to move threads again that no home has assigned, up to `most`. */
void nm_assignments_plan(struct nm_assignments *assignments, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, size_t most, struct nm_plan *plan);

#endif
