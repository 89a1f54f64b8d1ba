/* SPDX-License-Identifier: MIT */
/* What the two halves of the search share: the index, and the rules of descent (kinship.c). */
#ifndef NM_ACTUATE_DESCENT_INTERNAL_H
#define NM_ACTUATE_DESCENT_INTERNAL_H

#include "descent.h"
#include "numa-migrd/tidmap.h"

/* Lines of one process with the same target, user, session and cgroup, in order of given_ticks. */
struct nm_family {
	uint32_t first, count; /* in nm_descent.lines */
	uint32_t next_of_pid;  /* NM_TIDMAP_NONE: none */
};

/* What was read of a process, once. */
struct nm_descent_process {
	uint32_t pid;
	bool gone;   /* or not ours to read */
	bool adopts; /* the init of some namespace, or a service manager */
	uint32_t ppid, session, uid;
	uint64_t start_ticks;
	char *cgroup; /* NULL where unknown */
};

struct nm_descent {
	struct nm_platform *platform;
	struct nm_ledger_entry *lines; /* masks and paths are not ours */
	uint32_t *latest;	       /* see fill_latest() */
	uint32_t *line_before;	       /* the next line of the same number */
	size_t nr_lines;
	struct nm_family *families;
	size_t nr_families;
	hwloc_const_bitmap_t *targets;
	size_t nr_targets;
	struct nm_tidmap *family_of, *line_of; /* by pid, tid */
	struct nm_descent_process *processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	hwloc_bitmap_t seen; /* the last affinity asked about, and what came of it */
	bool has_seen, seen_ours;
};

/* A thread whose affinity may be one that we set. */
struct nm_candidate {
	struct nm_platform *platform;
	uint32_t pid, tid;
	int directory;
	struct nm_proc_stat stat;
	hwloc_const_bitmap_t current;
};

/* Is its affinity the target, or what a cpuset leaves of it? */
bool nm_descent_carries(struct nm_candidate *candidate, const struct nm_ledger_entry *terms);

const struct nm_ledger_entry *nm_descent_pick(const struct nm_descent *descent,
					      const struct nm_family *family, uint64_t first_ticks,
					      uint64_t last_ticks);

/* Under whose terms was it born, or did it take over its leader's number? NULL: nobody's. */
const struct nm_ledger_entry *nm_descent_by_birth(struct nm_descent *descent,
						  struct nm_candidate *candidate);
const struct nm_ledger_entry *nm_descent_by_exec(struct nm_descent *descent,
						 struct nm_candidate *candidate);

#endif
