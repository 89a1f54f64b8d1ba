/* SPDX-License-Identifier: MIT */
/*
 * Who is managed: the processes and threads that samples brought up, what /proc says of them, and
 * why each may or may not be touched. /proc is read when a thread is adopted or must be checked
 * again, never as a walk over all threads.
 */
#ifndef NUMA_MIGRD_ROSTER_H
#define NUMA_MIGRD_ROSTER_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "numa-migrd/metrics.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/runtime.h"
#include "numa-migrd/steer.h"
#include "numa-migrd/tenant.h"
#include "numa-migrd/topology.h"

#define NM_COMM_BYTES 72 /* 16 raw bytes, each escaped to at most 4, and a NUL */

enum nm_eligibility {
	NM_ELIGIBILITY_MANAGED,
	NM_ELIGIBILITY_NOT_TARGET, /* no include pattern matches */
	NM_ELIGIBILITY_EXCLUDED,   /* an exclude pattern matches */
	NM_ELIGIBILITY_SMALL,	   /* below targets.min_cpu_percent or min_rss_mb */
	NM_ELIGIBILITY_KERNEL,	   /* a kernel thread */
	NM_ELIGIBILITY_REALTIME,   /* SCHED_FIFO, SCHED_RR or SCHED_DEADLINE (per thread) */
	NM_ELIGIBILITY_SELF,	   /* numa-migrd and its helper */
	NM_ELIGIBILITY_PINNED,	   /* its mask leaves no choice of node */
	NM_ELIGIBILITY_FOREIGN,	   /* another program changed an affinity that we had set */
	NM_ELIGIBILITY_RELEASED,   /* by `numa-migrctl release` */
	NM_ELIGIBILITY_OFF,	   /* an attribute of its cgroups is "off" (steer.h) */
};

struct nm_process {
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat */
	uint32_t uid;
	struct nm_tenant tenant;
	char comm[NM_COMM_BYTES]; /* escaped */
	char *cgroup;		  /* path in the unified hierarchy, raw; NULL where unknown */
	char raw_comm[16];
	uint64_t rss_bytes, anon_bytes;	   /* as struct nm_proc_status has them */
	double cpu_share;		   /* decayed, of one CPU, over its threads */
	uint64_t started_ns;		   /* its program: CLOCK_MONOTONIC, estimated */
	uint64_t last_spawn_ns;		   /* last new thread or child seen; 0 = none seen */
	uint64_t last_seen_ns, checked_ns; /* 0: /proc was not read yet */
	enum nm_runtime runtime;	   /* of its program */
	bool runtime_doubted;		   /* it has another name by now */
	uint64_t runtime_ticket, runtime_asked_ns; /* the question for it; 0: none is open, never */
	unsigned runtime_unanswered; /* questions for it in a row that were not answered in time */
	bool named; /* an include pattern names it: may be write-protected for sampling */
	struct nm_steering steering; /* by its cgroups */
	enum nm_eligibility eligibility;
	unsigned nr_threads; /* of it that the roster knows */
};

/* A thread, as the next stages see it. */
struct nm_member {
	uint32_t tid, pid;
	uint64_t start_ticks;
	const struct nm_process *process;
	hwloc_const_bitmap_t original; /* the mask it had when adopted (or its ancestor's, if
					  leased): the outer bound */
	bool everywhere; /* original holds every usable CPU: nobody need ask it; false: ask */
	bool leased;	 /* holds a mask of ours */
	bool only_watched; /* measured and never moved: pinned, or "observe" */
	bool unrestricted; /* original equalled the cpuset's effective CPUs: restore to all possible
			      CPUs */
	bool forked; /* it has started a process: a lease on it would be inherited */
	uint64_t adopted_ns;
	/* Interval numbers before which it is not moved again: cool-down, and while a move of it is
	 * under judgement. */
	uint64_t barred_until, held_until;
};

struct nm_roster;

/*
 * What the roster asks the lease keeper about a newcomer: a thread created by a leased one carries
 * our mask, and its original is the ancestor's. Returns true and the ancestor's original when
 * `current` is a lease it inherited.
 */
struct nm_lease_lookup {
	void *context;
	bool (*inherited)(void *context, uint32_t pid, uint32_t tid, uint64_t start_ticks,
			  hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			  bool *ret_unrestricted);
	/* Does a lease on this very thread stand? Its affinity is ours then. */
	bool (*holds)(void *context, uint32_t tid, uint64_t start_ticks);
};

/*
 * Threads and processes that are not managed again until they end. Outlives rosters:
 * pausing or reloading does not forget a release. Owned by the daemon.
 */
#define NM_ROSTER_MEMORY_NAME "given-back" /* its file in the runtime directory */
struct nm_released_list;
int nm_released_list_new(struct nm_released_list **ret);
void nm_released_list_free(struct nm_released_list *memory);
NM_DEFINE_CLEANUP(struct nm_released_list, nm_released_list_free);

/*
 * Releases a process that no roster knows: one that has not been sampled yet, or while everything is paused.
 * -ESRCH: there is none of that number; -errno. Between intervals.
 */
int nm_released_list_release(struct nm_released_list *memory, struct nm_platform *platform,
			     uint32_t pid);

/*
 * Takes up what an earlier run of this boot has saved, but for threads and processes that are gone.
 * 0 also without a file; -EBADMSG where lines were damaged and skipped; -errno. Daemon, start.
 */
int nm_released_list_load(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id);

/* The same from the file's text, which is taken apart. Replay. */
int nm_released_list_take(struct nm_released_list *memory, struct nm_platform *platform, char *text,
			  const char *boot_id);

/*
 * Saves what has changed since it was saved last; the file is replaced at once. 0 or -errno, and then
 * the next call tries again. Daemon, after each tick and command.
 */
int nm_released_list_save(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id);

/* Everything given must outlive the roster; leases may be NULL. -ENOMEM. Daemon, start and resume. */
int nm_roster_new(struct nm_platform *platform, const struct nm_topology *topology,
		  const struct nm_config *config, const struct nm_lease_lookup *leases,
		  struct nm_released_list *memory, struct nm_roster **ret);
void nm_roster_free(struct nm_roster *roster);
NM_DEFINE_CLEANUP(struct nm_roster, nm_roster_free);

/* Which process is the daemon itself; at first this one. Replay. */
void nm_roster_set_self(struct nm_roster *roster, uint32_t pid);

/* A new configuration or topology: every standing is judged again at the next update. */
void nm_roster_configure(struct nm_roster *roster, const struct nm_topology *topology,
			 const struct nm_config *config);

/* Reads the attributes of cgroups from the next update on (NULL, as at first: no attributes).
 * `steer` must outlive the roster. Daemon, start and resume. */
void nm_roster_steer(struct nm_roster *roster, struct nm_steer *steer);

/* Keeps identities current from the side-band records. Drain, every record. */
void nm_roster_task_event(struct nm_roster *roster, const struct nm_task_event *event,
			  uint64_t now_ns);

/*
 * Takes up the threads in `figures` (ascending tid) that are not known, checks known ones again
 * when due, and updates CPU shares. Threads that vanished in between are skipped, and those beyond
 * two thousand wait for the next interval, so that no program can keep us busy with its threads.
 * What is known of a managed process, attributes of its cgroups included, gets at most ten seconds
 * old, or one interval if that is longer, also while it sleeps. Also has the platform asked which
 * runtime each managed program has, once, a few at a time. Tick, once per interval. Returns 0 or
 * -ENOMEM.
 */
int nm_roster_update(struct nm_roster *roster, const struct nm_figures *figures, size_t count,
		     uint64_t now_ns);

/* Takes what was answered of programs' runtimes, and asks about others. Tick, and policy "auto"
 * between ticks. */
void nm_roster_ask_runtimes(struct nm_roster *roster, uint64_t now_ns);

/* The managed threads in ascending tid order. Those of observed processes are barred for ever, and
 * so are pinned ones, which are included if pages.policy is not "none". An observed thread that
 * still holds a lease is left out once, which ends the lease. Valid until the next call on the
 * roster. */
size_t nm_roster_members(struct nm_roster *roster, const struct nm_member **ret);

/*
 * The same for one process between intervals: reads its files of /proc, takes up the threads in
 * `figures`, which are its own in ascending tid order, and gives those that are members; `ret` has
 * room for `count` of them. Other processes are neither read nor changed. -ESRCH: it is gone; other
 * -errno. Examination of a young process.
 */
int nm_roster_meet(struct nm_roster *roster, const struct nm_figures *figures, size_t count,
		   uint64_t now_ns, struct nm_member *ret, size_t *ret_count);

/* The following name a thread by number and start time (field 22 of stat): another thread that has
 * its number by now is not meant. */

/* Bars a thread from moves until the given interval; a bar that lasts longer stays. */
void nm_roster_bar(struct nm_roster *roster, uint32_t tid, uint64_t start_ticks,
		   uint64_t until_interval);

/* Holds a thread where it is while a move of it is under judgement; a past interval lets it go. */
void nm_roster_hold(struct nm_roster *roster, uint32_t tid, uint64_t start_ticks,
		    uint64_t until_interval);

/* Reads a thread's mask and policy again at the next update (its mask was not the one we knew). */
void nm_roster_recheck(struct nm_roster *roster, uint32_t tid, uint64_t start_ticks);

/* Gives a thread (FOREIGN) or a whole process (RELEASED) back to its owner for as long as it lives.
 */
void nm_roster_give_back(struct nm_roster *roster, uint32_t tid, uint64_t start_ticks);
int nm_roster_release(struct nm_roster *roster, uint32_t pid);

/* Soft-dirty targets: managed processes that an include pattern names, ascending pid; valid until
 * the next call on the roster. */
size_t nm_roster_inject_targets(struct nm_roster *roster, const struct nm_inject_target **ret);

/* All processes that are known, in no order: for showing. Valid until the next call on the roster. */
size_t nm_roster_processes(const struct nm_roster *roster, struct nm_process *const **ret);
/* The thread's standing, for showing: why it is not managed. -ESRCH: not known. */
/* Whose share its work is charged to; of one that is not known, of root outside any cgroup. */
struct nm_tenant nm_roster_tenant(const struct nm_roster *roster, uint32_t pid);

int nm_roster_thread_eligibility(const struct nm_roster *roster, uint32_t tid,
				 enum nm_eligibility *ret);

struct nm_roster_counts {
	unsigned processes_known, processes_managed, threads_known, threads_managed;
	unsigned processes_observed, processes_off; /* observed ones are managed, too */
	unsigned adopted, forgotten, vanished; /* since the start */
};
struct nm_roster_counts nm_roster_counts(const struct nm_roster *roster);

#endif
