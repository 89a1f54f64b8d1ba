/* SPDX-License-Identifier: MIT */
/*
 * The task table: the processes and threads that samples have discovered, their properties from
 * /proc, and their eligibility. /proc is read when a thread is adopted or must be checked again;
 * the daemon never scans all threads.
 */
#ifndef NUMA_MIGRD_TASKS_H
#define NUMA_MIGRD_TASKS_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"
#include "config/exclusions.h"
#include "tasks/metrics.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/topology.h"

/* ---- attributes of cgroups ---- */

/*
 * Control of the processes of a cgroup: the extended attribute user.numa-migrd of its directory
 * (numa-migrd-steering(7)) has the value off, observe or on; an unknown value is treated as
 * "observe".
 *
 * From the root of the tree down to the process's own cgroup the last value takes effect, but "off"
 * anywhere overrides it.
 */

#define NM_STEER_ATTRIBUTE "user.numa-migrd"

enum nm_steer_value {
	NM_STEER_NONE,	  /* no attribute */
	NM_STEER_OFF,	  /* not managed */
	NM_STEER_OBSERVE, /* measured, never moved */
	NM_STEER_ON,	  /* managed */
};

struct nm_steering {
	enum nm_steer_value value;
	bool asked; /* root set "observe" or "on" here or above: the process is a target */
};

/* ---- rules (pure) ---- */

/* Parses the bytes of the attribute; trailing spaces, newlines and NULs are ignored. Returns 0, or
 * -EINVAL for an unknown value. */
int nm_steer_parse(const char *text, size_t length, enum nm_steer_value *ret);

/* Returns the spelling of the attribute's value; "" for NM_STEER_NONE. */
const char *nm_steer_name(enum nm_steer_value value);

/* Returns what the value counts for a process whose cgroup belongs to `uid`, if this user owns the
 * directory with the attribute: users other than root can only restrict. */
struct nm_steering nm_steer_counted(enum nm_steer_value value, const struct nm_owner *owner,
				    uint32_t uid);

/* Returns the effective control of a directory with value `said`, whose ancestors result in
 * `above`. Associative. */
struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said);

/* Returns whether the threads and pages of such a process must not be moved. */
static inline bool nm_steer_holds(const struct nm_steering *steering)
{
	return steering->value == NM_STEER_OFF || steering->value == NM_STEER_OBSERVE;
}

/* Returns whether the process is a target regardless of targets.include. */
static inline bool nm_steer_asks(const struct nm_steering *steering)
{
	return steering->asked && steering->value != NM_STEER_OFF;
}

/*
 * Determines the effective control of a process in this cgroup (NULL: not known). Reads at most 32
 * levels below the root; a process in a deeper cgroup is observed. Returns 0, or a negative errno
 * if it cannot be read now.
 */
int nm_steer_read(struct nm_platform *platform, const char *cgroup, struct nm_steering *ret);

/* ---- task table ---- */

#define NM_COMM_BYTES 72 /* 16 raw bytes, each escaped to at most 4 bytes, and a NUL */

enum nm_eligibility {
	NM_ELIGIBILITY_MANAGED,
	NM_ELIGIBILITY_NOT_TARGET, /* no include pattern matches */
	NM_ELIGIBILITY_EXCLUDED,   /* an exclude pattern matches */
	NM_ELIGIBILITY_SMALL,	   /* resident memory below targets.min_rss_mb */
	NM_ELIGIBILITY_YOUNG,	   /* its program is younger than targets.min_age_s */
	NM_ELIGIBILITY_IDLE,	   /* CPU use below targets.min_cpu_percent, or not seen yet */
	NM_ELIGIBILITY_UNREADABLE, /* its status in /proc is too long to be read again and again */
	NM_ELIGIBILITY_KERNEL,	   /* a kernel thread */
	NM_ELIGIBILITY_REALTIME,   /* SCHED_FIFO, SCHED_RR or SCHED_DEADLINE (per thread) */
	NM_ELIGIBILITY_SELF,	   /* a program of numa-migrd */
	NM_ELIGIBILITY_DEFAULT,	   /* another default exclusion (exclusions.h) */
	NM_ELIGIBILITY_PINNED,	   /* its CPU affinity allows only one node, or cannot be set */
	NM_ELIGIBILITY_FOREIGN,	   /* another program changed an affinity that the daemon had set */
	NM_ELIGIBILITY_RELEASED,   /* released by `numa-migrctl release` */
	NM_ELIGIBILITY_OFF,	   /* an attribute of its cgroups has the value "off" */
	NM_ELIGIBILITY_ONE_NODE,   /* fewer than two nodes have CPUs; only as an explanation */
	NM_ELIGIBILITY_MAX
};

/* The reasons as users see them: on the bus, in `numa-migrctl explain process`, and in the manual
 * page org.numamigrd1(5), which a test compares with this table. */
struct nm_eligibility_reason {
	const char *name, *text;
	bool listed; /* refused: numa-migrctl lists such a process although it is not managed */
};
const struct nm_eligibility_reason *nm_eligibility_reason(enum nm_eligibility eligibility);

/* Whether the program of a process is known. It is read if the exclusion depends on it, once after
 * each exec. */
enum nm_program_state { NM_PROGRAM_AWAITED, NM_PROGRAM_UNREADABLE, NM_PROGRAM_READ };

struct nm_process {
	uint32_t pid;
	uint64_t start_ticks; /* field 22 of stat */
	uint32_t uid;
	uint64_t domain;
	char comm[NM_COMM_BYTES]; /* escaped */
	char *cgroup;		  /* raw path in the unified hierarchy; NULL: not known */
	char raw_comm[16];
	uint64_t rss_bytes, anon_bytes;
	/* As in struct nm_proc_status. */
	uint64_t pinned_bytes, shared_bytes, hugetlb_bytes, excluded_mems;
	double cpu_limit; /* CPUs that cpu.max of its cgroups allows; 0: no limit, or not known */
	bool yields;	  /* its cgroups leave the CPUs to others (nm_cgroups_yields()) */
	double cpu_share; /* decayed share of one CPU, summed over its threads */
	uint64_t started_ns;		   /* start of its program, CLOCK_MONOTONIC, estimated */
	uint64_t last_seen_ns, checked_ns; /* checked_ns is 0 before /proc was first read */
	enum nm_program_state program_state;
	unsigned program;     /* if READ: its number in nm_excluded_programs; 0: another one */
	bool program_wanted;  /* its exclusion depends on its program */
	bool program_awaited; /* it is not managed before its program is known */
	bool program_doubted; /* its name has changed since the program was read */
	uint32_t ns_pid;      /* in its own PID namespace; 0: not known */
	enum nm_exclusion exclusion;
	uint64_t program_query, program_asked_ns; /* the pending query for it; 0: no query is
						   * pending, or none was sent */
	unsigned program_unanswered; /* consecutive queries for it without an answer in time */
	struct nm_steering steering; /* from the attributes of its cgroups */
	bool left_alone;	     /* by the control group (trial.h): measured, never moved */
	enum nm_eligibility eligibility;
	unsigned nr_threads; /* number of its threads in the table */
	bool has_movable;    /* one of them is managed; as of nm_tasks_managed() */
};

/* The CPU time of a process, also of threads that have exited. */
struct nm_process_usage {
	uint32_t parent;
	uint64_t cpu_ns;
	bool has_ended; /* no thread is left but the first one, which has exited */
};
/* Returns 0; -ESRCH if the process is gone, or its number was reused; or another negative errno.
 * Called for the control group. */
int nm_process_read_usage(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
			  struct nm_process_usage *ret);

/* Returns whether the threads and pages of the process must not be moved. */
static inline bool nm_process_is_observed(const struct nm_process *process)
{
	return nm_steer_holds(&process->steering) || process->left_alone;
}

/* A managed thread as the later stages use it. */
struct nm_managed_thread {
	uint32_t tid, pid;
	uint64_t start_ticks;
	const struct nm_process *process;
	/* Its CPU affinity when adopted, or before it was moved. A new affinity is always a subset
	 * of it. */
	hwloc_const_bitmap_t original;
	bool everywhere;   /* `original` includes every usable CPU, so it need not be tested */
	bool only_watched; /* measured but never moved: pinned, excluded, or observed */
	bool left_alone;   /* only for this reason: it may run anywhere, and will */
	/* `original` was equal to the effective CPUs of the cpuset; restoring it allows all
	 * possible CPUs. */
	bool unrestricted;
	bool yields; /* it leaves its CPU to any other thread (nm_proc_yields()) */
	uint64_t adopted_ns;
	/* Interval numbers before which it must not be moved again: the cool-down after a move, and
	 * the pending verdict of a move. */
	uint64_t backoff_until, delayed_until;
};

struct nm_task_table;

/*
 * A lookup of threads that are being moved. `original` returns true and the affinity that the
 * thread had before, if `current` is the affinity of its move.
 */
struct nm_move_lookup {
	void *context;
	bool (*original)(void *context, uint32_t tid, uint64_t start_ticks,
			 hwloc_const_bitmap_t current, hwloc_const_bitmap_t *ret_original,
			 bool *ret_unrestricted);
	bool (*is_moving)(void *context, uint32_t tid, uint64_t start_ticks);
};

/* Threads and processes that must not be managed again until they end. The list outlives the task
 * table: pausing or reloading preserves it. The daemon owns it. */
#define NM_RELEASED_NAME "given-back" /* name of its file in the runtime directory */
struct nm_released_list;
void nm_released_list_new(struct nm_released_list **ret);
void nm_released_list_free(struct nm_released_list *memory);
NM_DEFINE_CLEANUP(struct nm_released_list, nm_released_list_free);

/*
 * Releases a process that no task table contains, because it has not been sampled yet or because
 * the daemon is paused. Returns 0, -ESRCH if there is no process with this PID, or another negative
 * errno. Called between intervals.
 */
int nm_released_list_release(struct nm_released_list *memory, struct nm_platform *platform,
			     uint32_t pid);

/* Ends the release of a process. Returns -ENOENT if it was not released. The task table finds out
 * when it checks the process again. */
int nm_released_list_manage(struct nm_released_list *memory, struct nm_platform *platform,
			    uint32_t pid);

/*
 * Loads the entries saved by an earlier run since boot, except those of threads and processes that
 * have ended. Returns 0, also if there is no file; -EBADMSG if damaged lines were skipped; or
 * another negative errno.
 */
int nm_released_list_load(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id);

/*
 * Saves the list if it has changed since the last save, by atomically replacing the file. Returns 0
 * or a negative errno; after a failure the next call tries again.
 */
int nm_released_list_save(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id);

/* Creates a task table. All arguments must outlive it; `moves` may be NULL. */
void nm_task_table_new(struct nm_platform *platform, const struct nm_topology *topology,
		       const struct nm_config *config, const struct nm_move_lookup *moves,
		       struct nm_released_list *memory, struct nm_task_table **ret);
void nm_task_table_free(struct nm_task_table *tasks);
NM_DEFINE_CLEANUP(struct nm_task_table, nm_task_table_free);

/* Sets a new configuration or topology; the next update evaluates the eligibility of all tasks
 * again. */
void nm_tasks_configure(struct nm_task_table *tasks, const struct nm_topology *topology,
			const struct nm_config *config);

/* Updates the table from a side-band record. */
void nm_tasks_task_event(struct nm_task_table *tasks, const struct nm_task_event *event,
			 uint64_t now_ns);

/*
 * Adopts the threads in `sampled` (ascending tid) that are not in the table, checks known ones
 * again when due, and updates CPU shares. Threads that have exited meanwhile are skipped. At most
 * two thousand threads are handled per interval and the others wait, so that no program can
 * overload the daemon with threads. The data of a managed process, including the attributes of its
 * cgroups, is at most ten seconds old, or one interval if that is longer, even while the process
 * sleeps. Also queries the programs of processes whose exclusion depends on them, a few at a time.
 * Returns 0.
 */
int nm_tasks_update(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
		    size_t count, uint64_t now_ns);

/* Collects answers to queries about programs, and sends further queries. */
void nm_tasks_ask_programs(struct nm_task_table *tasks, uint64_t now_ns);

/*
 * Returns the managed threads in ascending tid order. Threads of observed processes are included
 * but permanently barred from moves; so are pinned threads, if pages.policy is not "none", and with
 * policy "auto" the pinned, realtime and foreign threads of a process of which some are managed.
 * Valid until the next call on the table.
 */
size_t nm_tasks_managed(struct nm_task_table *tasks, const struct nm_managed_thread **ret);

/*
 * Updates one process between intervals: reads its files in /proc, adopts the threads in `sampled`,
 * which must belong to it and be in ascending tid order, and returns those that are managed; `ret`
 * has room for `count`. Does not read or change other processes. Returns 0, -ESRCH if the process
 * has exited, or another negative errno.
 */
int nm_tasks_update_process(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			    size_t count, uint64_t now_ns, struct nm_managed_thread *ret,
			    size_t *ret_count);

/* The following functions identify a thread by its number and start time (field 22 of stat), so
 * that they do not affect another thread that has reused the number. */

/* Bars a thread from moves until the given interval. A bar that lasts longer remains. */
void nm_tasks_back_off(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks,
		       uint64_t until_interval);

/* Keeps a thread in place while the verdict on its move is pending. An interval in the past ends
 * this. */
void nm_tasks_delay(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks,
		    uint64_t until_interval);

/* Makes the next update read the affinity and scheduling policy of a thread again, because its
 * affinity was not the expected one. */
void nm_tasks_recheck(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks);

/* Stops managing a thread (FOREIGN) or a whole process (RELEASED) until it ends. */
void nm_tasks_give_back(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks);
int nm_tasks_release(struct nm_task_table *tasks, uint32_t pid);

/* Returns all processes in the table, in no particular order, for display. Valid until the next
 * call on the table. */
size_t nm_tasks_processes(const struct nm_task_table *tasks, struct nm_process *const **ret);
/* Returns the process, or NULL. Valid until the next call on the table. */
struct nm_process *nm_tasks_process(const struct nm_task_table *tasks, uint32_t pid);
/* Returns the domain to which the cost of a process is charged. A process that is not in the table
 * is charged to root, outside any cgroup. */
uint64_t nm_tasks_domain(const struct nm_task_table *tasks, uint32_t pid);

/* Reports why a thread is or is not managed, for display. Returns 0, or -ESRCH if it is not in the
 * table. */
int nm_tasks_thread_eligibility(const struct nm_task_table *tasks, uint32_t tid,
				enum nm_eligibility *ret);

/* Returns the reason of the process, or, if it has none, that of its first thread in the table. */
enum nm_eligibility nm_tasks_refusal(const struct nm_task_table *tasks,
				     const struct nm_process *process);

#define NM_EXPLANATION_BYTES 512
/* Writes a sentence about a reason that is not NM_ELIGIBILITY_MANAGED, with the values of the
 * process, escaped. For display. */
void nm_tasks_explain(const struct nm_task_table *tasks, const struct nm_process *process,
		      enum nm_eligibility reason, char ret[static NM_EXPLANATION_BYTES]);

struct nm_tasks_counts {
	unsigned processes_known, processes_managed, threads_known, threads_managed;
	unsigned processes_observed, processes_off; /* observed processes are managed, too */
};
struct nm_tasks_counts nm_tasks_counts(const struct nm_task_table *tasks);

/* ---- times.c: how long threads ran and waited for CPUs ---- */

/* The activity of a thread in a period. */
struct nm_thread_times {
	uint64_t run_ns, delay_ns; /* it ran; it was runnable, and waited for a CPU */
	uint64_t runs;		   /* how often it was put on a CPU */
	uint64_t length_ns;	   /* of the period; 0: nothing is known */
};

/* Returns what a thread did between two readings, or, if `before` is {0}, since it was created,
 * age_ns before the second one; {0} if they are not of the same thread. */
struct nm_thread_times nm_times_since(const struct nm_proc_schedstat *before,
				      const struct nm_proc_schedstat *now, uint64_t age_ns);

/* A thread whose times are read. */
struct nm_times_reading {
	uint32_t thread; /* the caller's index */
	uint32_t pid, tid;
	uint64_t start_ticks;
	/* Set by nm_times_read(): */
	int error; /* 0, or the negative errno of nm_proc_read_schedstat() */
	struct nm_proc_schedstat now;
	uint64_t age_ns; /* since the thread was created */
};

/* Reads the times of these threads. */
void nm_times_read(struct nm_platform *platform, struct nm_times_reading *readings, size_t count);

/* A process with more threads is left to samples. */
#define NM_PROCESS_TIMES_MOST 64U

/* The threads of a process in ascending order, and what they did since they were created. */
struct nm_process_times {
	uint32_t pid;
	size_t count;
	struct nm_sampled_thread sampled[NM_PROCESS_TIMES_MOST];
	struct nm_thread_times times[NM_PROCESS_TIMES_MOST];
};

/* Reads them. leader: nm_proc_stat_of() its first thread. Returns 0; -ESRCH if it has exited;
 * -E2BIG if it has too many threads; or another negative errno. */
int nm_process_times_read(struct nm_platform *platform, const struct nm_topology *topology,
			  uint32_t pid, const struct nm_proc_stat *leader,
			  struct nm_process_times *ret);

#endif
