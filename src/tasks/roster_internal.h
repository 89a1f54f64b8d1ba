/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef NM_ROSTER_INTERNAL_H
#define NM_ROSTER_INTERNAL_H

#include "numa-migrd/cgroups.h"
#include "numa-migrd/roster.h"
#include "numa-migrd/tidmap.h"

#define NM_ROSTER_CHECK_NS (10 * NM_NSEC_PER_SEC)  /* how old what we know of a thread may get */
#define NM_ROSTER_LOOKS 2000U /* at threads, in one interval: it takes some 50 ms to read so much */
#define NM_ROSTER_FORGET_NS (60 * NM_NSEC_PER_SEC) /* how long a silent thread is remembered */

struct nm_roster_thread {
	struct nm_member member;
	hwloc_bitmap_t original; /* owns member.original */
	struct nm_process *process;
	enum nm_eligibility eligibility;
	uint64_t last_seen_ns;
	uint64_t checked_ns; /* 0: due */
};

struct nm_roster {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	const struct nm_config *config;
	struct nm_lease_lookup leases;
	struct nm_released_list *memory;
	struct nm_steer *steer; /* NULL: no attributes */
	struct nm_cgroups *cgroups;
	uint32_t own_pid;

	struct nm_roster_thread **threads; /* ascending tid, unless `unordered` */
	size_t nr_threads, threads_capacity;
	bool unordered;
	struct nm_tidmap *thread_of;
	uint64_t updated_ns; /* when nm_roster_update() was called last */
	uint32_t waiting; /* the first thread that has to be looked at in the next interval; 0: none */
	struct nm_process **processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;

	struct nm_member *members; /* what nm_roster_members() handed out */
	size_t members_capacity;
	struct nm_inject_target *targets;
	size_t targets_capacity;
	struct nm_roster_counts counts;
};

/* How long ago it was; records are read between ticks, so they may be newer than a tick. */
static inline uint64_t nm_roster_age(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/*
 * Reads what /proc says of a process and judges its standing. 0; -ESRCH: gone, or another one under
 * its number; other -errno: cannot be told now.
 */
int nm_roster_check_process(struct nm_roster *roster, struct nm_process *process, uint64_t now_ns);

/* The same for one thread of a managed process: scheduling policy, mask, restriction. */
int nm_roster_check_thread(struct nm_roster *roster, struct nm_roster_thread *thread,
			   uint64_t now_ns);

/* It is another program from now on, or gone. */
void nm_roster_forget_runtime(const struct nm_roster *roster, struct nm_process *process);

/* It may be another program by now: what counts its CPUs again is taken to, until it is asked anew. */
void nm_roster_doubt_runtime(const struct nm_roster *roster, struct nm_process *process);

/* ---- the two tables ---- */

/* NULL: not known. The roster owns what these return, until it is removed. */
struct nm_roster_thread *nm_roster_find_thread(const struct nm_roster *roster, uint32_t tid);
struct nm_process *nm_roster_find_process(const struct nm_roster *roster, uint32_t pid);

/* Its number must not be in the table yet. -ENOMEM, -ERANGE (a number no process can have). */
int nm_roster_add_process(struct nm_roster *roster, uint32_t pid, struct nm_process **ret);

/* Reads what there is to know of it, too. -ESRCH: gone; other -errno. */
int nm_roster_add_thread(struct nm_roster *roster, struct nm_process *process, uint32_t tid,
			 uint64_t now_ns);

/* Both free it, and may let another one take its place in the table; a process goes with its
 * threads. */
void nm_roster_remove_thread(struct nm_roster *roster, struct nm_roster_thread *thread);
void nm_roster_remove_process(struct nm_roster *roster, struct nm_process *process);

void nm_roster_remove_threads_of(struct nm_roster *roster, const struct nm_process *process);
void nm_roster_free_tables(struct nm_roster *roster);

/* ---- what outlives a process's record ---- */

bool nm_roster_remembers(const struct nm_released_list *memory, uint32_t id, uint64_t start_ticks,
			 enum nm_eligibility eligibility);
int nm_roster_remember(struct nm_released_list *memory, struct nm_platform *platform, uint32_t id,
		       uint64_t start_ticks, enum nm_eligibility eligibility,
		       const struct nm_tenant *tenant);

#endif
