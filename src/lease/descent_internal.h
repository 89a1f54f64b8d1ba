/* SPDX-License-Identifier: MIT */
/* What the search (descent.c) and the rules of descent (kinship.c) share. */
#ifndef NM_ACTUATE_DESCENT_INTERNAL_H
#define NM_ACTUATE_DESCENT_INTERNAL_H

#include "descent.h"
#include "numa-migrd/tidmap.h"

/* By what a line is found: its process, or what its process has in common with orphans. */
enum nm_candidate_class_by { NM_KIN_PROCESS, NM_KIN_SESSION, NM_KIN_CGROUP, NM_KIN_KINDS };

struct nm_candidate_class_key {
	enum nm_candidate_class_by by;
	uint32_t uid; /* PROCESS: 0 */
	uint64_t id;  /* number of the process or session, hash of the cgroup's path; 0: none */
	uint32_t target; /* in nm_descent.targets */
};

struct nm_candidate_class {
	struct nm_candidate_class_key key;
	const struct nm_ledger_entry *terms;
	/* Of this line and those of the same key before it: the one with the latest possible
	 * inheritor. */
	const struct nm_ledger_entry *furthest;
};

/* What was read of a process, once. */
struct nm_descent_process {
	uint32_t pid;
	bool gone;   /* or not ours to read */
	bool adopts; /* the init of some namespace, or a service manager */
	uint32_t ppid, session, uid;
	uint64_t start_ticks, cgroup;
	uint64_t oldest_sibling_ticks; /* of the threads beside its leader; 0: not asked for yet */
};

/* What the descent of one process offers to its threads with one target, each for longer than those before. */
struct nm_offers {
	uint32_t pid, target; /* pid 0: of none */
	const struct nm_ledger_entry **terms;
	size_t count, capacity;
};

struct nm_descent {
	const struct nm_masks *masks;
	struct nm_platform *platform;
	struct nm_ledger_entry *lines; /* by thread; the affinities are borrowed */
	size_t nr_lines;
	struct nm_candidate_class *kin; /* in order of their keys, and then of given_ticks */
	size_t nr_candidate_classes;
	hwloc_const_bitmap_t *targets; /* each once, in order */
	size_t nr_targets;

	struct nm_descent_process *processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	struct nm_offers offers;

	hwloc_bitmap_t seen; /* the last affinity asked about, and what came of it */
	bool has_seen, seen_ours;
	uint32_t seen_target;	      /* NM_NO_TARGET: it is none, but may be part of one */
	hwloc_bitmap_t allowed, left; /* of the candidate's cpuset; of that, in a target */
	uint64_t steps;
};

#define NM_NO_TARGET UINT32_MAX
#define NM_STEPS_CALL 64
#define NM_STEPS_LOOKUP 16

/* A thread whose affinity may be one that we set. */
struct nm_candidate {
	uint32_t pid, tid;
	int directory;
	struct nm_proc_stat stat;
	hwloc_const_bitmap_t current;
	uint32_t target; /* what `current` is; NM_NO_TARGET: none */
	bool knows_allowed;
};

/* Puts the lines, of which there are nr_lines, in order for the rules. */
void nm_kinship_index(struct nm_descent *descent);

/* Has this very thread a line of its own? */
bool nm_kinship_has_line(const struct nm_descent *descent, uint32_t tid, uint64_t start_ticks);

/* The lease under which it was created with this target, or NULL. 0 or -ENOMEM. */
int nm_kinship_by_birth(struct nm_descent *descent, const struct nm_candidate *candidate,
			uint32_t target, const struct nm_ledger_entry **ret);

/* Is the leader the thread of this line, which took over its number by exec? */
bool nm_kinship_took_over(struct nm_descent *descent, const struct nm_ledger_entry *terms,
			  const struct nm_candidate *leader);

#endif
