/* SPDX-License-Identifier: MIT */
/* What the parts of the search share: the index of lines (descent_index.c), the rules of descent
 * (kinship.c), and the cost of it all. */
#ifndef NM_ACTUATE_DESCENT_INTERNAL_H
#define NM_ACTUATE_DESCENT_INTERNAL_H

#include "descent.h"
#include "mask.h"
#include "numa-migrd/tidmap.h"

/* ---- the index ---- */

/* Lines of one group with the same target, in order of given_ticks. */
struct nm_family {
	const struct nm_ledger_entry **lines;
	const struct nm_ledger_entry **latest; /* see fill_latest() */
	size_t count;
	uint32_t target; /* in nm_descent.targets */
};

/* Families in order of their targets: of one process, or of one user's session or cgroup. */
struct nm_group {
	struct nm_family *families;
	size_t count;
	uint64_t visit; /* the last lineage that was looked for here */
};

enum nm_grouping_kind { NM_BY_PID, NM_BY_SESSION, NM_BY_CGROUP, NM_GROUPINGS };

/* All lines, by one of these. */
struct nm_grouping {
	const struct nm_ledger_entry **lines, **latest;
	struct nm_family *families;
	struct nm_group *groups;
	size_t nr_families, nr_groups;
};

/* ---- processes ---- */

/* Where a process's lines are, those of its company, and those whose user is not known. */
enum nm_company { NM_SESSION, NM_SESSION_OF_ANY, NM_CGROUP, NM_CGROUP_OF_ANY, NM_COMPANIES };

/* What was read of a process, once. */
struct nm_descent_process {
	uint32_t pid;
	bool gone;   /* or not ours to read */
	bool adopts; /* the init of some namespace, or a service manager */
	uint32_t ppid, session, uid;
	uint64_t start_ticks;
	struct nm_group *own, *company[NM_COMPANIES]; /* NULL: no lines */
};

/* Whoever of a process was born until then may have inherited the target under these terms. */
struct nm_offer {
	uint32_t target;
	uint64_t until_ticks;
	const struct nm_ledger_entry *terms;
};

/* What a process's descent offers to all of its threads: by target, and then by time. */
struct nm_lineage {
	uint32_t pid; /* 0: none */
	bool lives;
	struct nm_descent_process process;
	struct nm_offer *offers;
	size_t count, capacity;
};

/* The offer of a target in the lineage under way that goes furthest. */
struct nm_best_offer {
	uint64_t visit, until_ticks;
};

struct nm_descent {
	struct nm_platform *platform;
	struct nm_masks masks;
	struct nm_ledger_entry *lines; /* masks and paths are not ours */
	uint32_t *line_before;	       /* the next line of the same number */
	size_t nr_lines;
	struct nm_tidmap *line_of; /* by tid */
	hwloc_const_bitmap_t *targets; /* each once, in order */
	size_t nr_targets;
	struct nm_grouping groupings[NM_GROUPINGS];
	struct nm_descent_process *processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;
	struct nm_lineage lineage; /* of the process looked at last */
	struct nm_best_offer *best; /* for each target */
	uint64_t visits;	    /* lineages made */
	hwloc_bitmap_t seen;	    /* the last affinity asked about, and what came of it */
	bool has_seen, seen_ours;
	uint32_t seen_target; /* NM_NO_TARGET: it is none, but may be part of one */
	hwloc_bitmap_t allowed, left; /* of the candidate's cpuset; of that, in a target */
	uint64_t steps;
};

#define NM_NO_TARGET UINT32_MAX
#define NM_STEPS_CALL                                                                              \
	UINT64_C(64) /* what one call to the machine costs; what is looked at in memory: 1 */

/* The one with these ids and this cgroup; NULL: there are no lines of it. */
struct nm_group *nm_descent_group(struct nm_descent *descent, enum nm_grouping_kind kind,
				  const struct nm_ledger_entry *key);

/* Of the family's lines given until then, the newest that stands, or else the one that ended last;
 * NULL: none. */
const struct nm_ledger_entry *nm_descent_latest(struct nm_descent *descent,
						const struct nm_family *family,
						uint64_t until_ticks);

/* The family of the group with this target, or NULL. */
const struct nm_family *nm_descent_family(struct nm_descent *descent, const struct nm_group *group,
					  uint32_t target);

/* ---- one thread ---- */

/* A thread whose affinity may be one that we set. */
struct nm_candidate {
	struct nm_platform *platform;
	uint32_t pid, tid;
	int directory;
	struct nm_proc_stat stat;
	hwloc_const_bitmap_t current;
	uint32_t target; /* what `current` is; NM_NO_TARGET: none */
	bool knows_allowed;
};

/* Is its affinity this target, or what a cpuset leaves of it? */
bool nm_descent_carries(struct nm_descent *descent, struct nm_candidate *candidate,
			uint32_t target);

/* Under whose terms was it born? NULL: nobody's. 0 or -ENOMEM. */
int nm_descent_by_birth(struct nm_descent *descent, struct nm_candidate *candidate,
			const struct nm_ledger_entry **ret);

/* As whom did it take over its leader's number? NULL: nobody. */
const struct nm_ledger_entry *nm_descent_by_exec(struct nm_descent *descent,
						 struct nm_candidate *candidate);

#endif
