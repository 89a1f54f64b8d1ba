/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the task table. */
#ifndef NM_TASKS_INTERNAL_H
#define NM_TASKS_INTERNAL_H

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"
#include "tasks/tasks.h"

#define NM_TASKS_CHECK_NS (10 * NM_NSEC_PER_SEC) /* maximum age of a thread's data */
#define NM_TASKS_LOOKS 2000U /* threads read per interval, which takes about 50 ms */
#define NM_TASKS_FORGET_NS                                                                         \
	(60 * NM_NSEC_PER_SEC) /* time after which a silent thread is dropped                      \
				*/

struct nm_task_thread {
	struct nm_managed_thread managed;
	hwloc_bitmap_t original; /* owns member.original */
	struct nm_process *process;
	enum nm_eligibility eligibility;
	uint64_t last_seen_ns;
	uint64_t checked_ns; /* 0: due */
};

struct nm_task_table {
	struct nm_platform *platform;
	const struct nm_topology *topology;
	const struct nm_config *config;
	struct nm_move_lookup moves;
	struct nm_released_list *memory;
	struct nm_cgroups *cgroups;
	struct nm_costly costly; /* in this interval */
	bool has_hugetlb;	 /* the machine has a pool of huge pages, as of hugetlb_read_ns */
	uint64_t hugetlb_read_ns;
	uint32_t own_pid;

	struct nm_task_thread **threads; /* in no particular order */
	size_t nr_threads, threads_capacity;
	struct nm_tidmap *thread_of;
	uint64_t updated_ns; /* time of the last nm_tasks_update() */
	uint32_t waiting; /* the first thread that must be checked in the next interval; 0: none */
	struct nm_process **processes;
	size_t nr_processes, processes_capacity;
	struct nm_tidmap *process_of;

	struct nm_managed_thread *managed; /* returned by nm_tasks_managed() */
	size_t managed_capacity;
};

/* Returns the time since then. Records are read between ticks, so they may be newer than a tick. */
static inline uint64_t nm_tasks_age(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/*
 * Reads the data of a process from /proc and determines its eligibility. Returns 0; -ESRCH if it
 * has exited or its number was reused; or another negative errno if that cannot be determined now.
 */
int nm_tasks_check_process(struct nm_task_table *tasks, struct nm_process *process,
			   uint64_t now_ns);

/* Returns the resident memory from which on a process is managed. */
uint64_t nm_tasks_min_rss_bytes(const struct nm_task_table *tasks);

/* Returns whether its program is younger than targets.min_age_s. */
bool nm_tasks_is_young(const struct nm_task_table *tasks, const struct nm_process *process,
		       uint64_t now_ns);

/* Returns the properties to which the patterns of targets apply. */
static inline struct nm_target_subject nm_tasks_subject(const struct nm_process *process)
{
	return (struct nm_target_subject){
		.command = process->raw_comm, .cgroup = process->cgroup, .uid = process->uid};
}

/*
 * Sets the default exclusion of the process, whose `stat` was just read, and whether its program
 * must be known first. wanted: it uses enough CPU and memory to be managed, so that its program is
 * worth a query; otherwise its name decides.
 */
void nm_tasks_find_exclusion(const struct nm_task_table *tasks, struct nm_process *process,
			     const struct nm_proc_stat *stat, bool wanted);

/* Returns the first pattern of targets.exclude that matches the process, or NULL. */
const struct nm_target *nm_tasks_excluded_by(const struct nm_task_table *tasks,
					     const struct nm_process *process);

/* The same for one thread of a managed process: scheduling policy, affinity, restriction. */
int nm_tasks_check_thread(struct nm_task_table *tasks, struct nm_task_thread *thread,
			  uint64_t now_ns);

/* Discards the query about a process that runs another program or has exited. */
void nm_tasks_forget_program(const struct nm_task_table *tasks, struct nm_process *process);

/* Marks the program of a process that may run another one. The known program is assumed until it
 * is queried again. */
void nm_tasks_doubt_program(const struct nm_task_table *tasks, struct nm_process *process);

/* ---- the two tables ---- */

/* Returns NULL if not known, as nm_tasks_process(). The task table owns the result until it is
 * removed. */
struct nm_task_thread *nm_tasks_find_thread(const struct nm_task_table *tasks, uint32_t tid);

/* Adds a process whose number is not in the table. Returns 0 or -ERANGE (an impossible number). */
int nm_tasks_add_process(struct nm_task_table *tasks, uint32_t pid, struct nm_process **ret);

/*
 * Adds a thread and reads its data. Returns 0, -ESRCH if it has exited, or another negative errno.
 */
int nm_tasks_add_thread(struct nm_task_table *tasks, struct nm_process *process, uint32_t tid,
			uint64_t now_ns);

/* Free the record, and may move another one to its place in the table. A process is removed
 * together with its threads. */
void nm_tasks_remove_thread(struct nm_task_table *tasks, struct nm_task_thread *thread);
void nm_tasks_remove_process(struct nm_task_table *tasks, struct nm_process *process);

void nm_tasks_remove_threads_of(struct nm_task_table *tasks, const struct nm_process *process);
void nm_tasks_free_tables(struct nm_task_table *tasks);

/* ---- data that outlives the record of a process ---- */

bool nm_tasks_remembers(const struct nm_released_list *memory, uint32_t id, uint64_t start_ticks,
			enum nm_eligibility eligibility);
void nm_tasks_remember(struct nm_released_list *memory, struct nm_platform *platform, uint32_t id,
		       uint64_t start_ticks, enum nm_eligibility eligibility, uint64_t domain);
#endif
