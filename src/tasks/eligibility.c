/* SPDX-License-Identifier: MIT */
/* Reads processes and threads from /proc, and determines their eligibility. */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"
#include "task_table.h"

#define UNKNOWN_LLC_BYTES (16ULL << 20) /* a small last-level cache */

/*
 * A process whose memory fits into its part of the cache gains nothing. It shares the cache with
 * others, and may be young, so that its memory still grows; samples show whether it uses memory.
 */
uint64_t nm_tasks_min_rss_bytes(const struct nm_task_table *tasks)
{
	if (tasks->config->targets.min_rss_mb)
		return tasks->config->targets.min_rss_mb << 20;
	uint64_t llc_bytes = tasks->topology->llc_bytes;
	return (llc_bytes ? llc_bytes : UNKNOWN_LLC_BYTES) / 4;
}

/* Returns whether it is certainly small. A program that runs uses memory, so that a size of 0 is
 * that of a counter which has not been added up. */
static bool is_small(const struct nm_task_table *tasks, const struct nm_process *process)
{
	uint64_t error_bytes =
		nm_proc_rss_error_bytes(tasks->topology->nr_cpus, (uint64_t)sysconf(_SC_PAGESIZE));

	return process->rss_bytes > 0 &&
	       process->rss_bytes + error_bytes < nm_tasks_min_rss_bytes(tasks);
}

/* A managed process stays managed down to half the threshold, to avoid frequent changes, and while
 * it sleeps. */
static bool has_enough_cpu(const struct nm_task_table *tasks, const struct nm_process *process,
			   uint64_t now_ns)
{
	bool managed = process->eligibility == NM_ELIGIBILITY_MANAGED;
	double least = tasks->config->targets.min_cpu_percent / (managed ? 200 : 100);

	return isnan(process->cpu_share) || process->cpu_share >= least ||
	       (managed && process->last_seen_ns != now_ns);
}

bool nm_tasks_is_young(const struct nm_task_table *tasks, const struct nm_process *process,
		       uint64_t now_ns)
{
	return (double)nm_tasks_age(now_ns, process->started_ns) <
	       tasks->config->targets.min_age_s * (double)NM_NSEC_PER_SEC;
}

static const struct nm_target *find_match(const struct nm_target_list *list,
					  const struct nm_process *process)
{
	const struct nm_target_subject subject = nm_tasks_subject(process);
	return nm_config_find(list, &subject);
}

const struct nm_target *nm_tasks_excluded_by(const struct nm_task_table *tasks,
					     const struct nm_process *process)
{
	return find_match(&tasks->config->targets.exclude, process);
}

static enum nm_eligibility judge(const struct nm_task_table *tasks, struct nm_process *process,
				 const struct nm_proc_stat *stat, enum nm_eligibility size)
{
	const struct nm_config *config = tasks->config;

	if (nm_tasks_remembers(tasks->memory, process->pid, process->start_ticks,
			       NM_ELIGIBILITY_RELEASED))
		return NM_ELIGIBILITY_RELEASED;
	if (stat->flags & NM_PROC_KTHREAD)
		return NM_ELIGIBILITY_KERNEL;
	nm_tasks_find_exclusion(tasks, process, stat, size == NM_ELIGIBILITY_MANAGED);
	if (process->exclusion != NM_EXCLUSION_NONE)
		return process->exclusion == NM_EXCLUSION_OWN ? NM_ELIGIBILITY_SELF
							      : NM_ELIGIBILITY_DEFAULT;
	if (process->steering.value == NM_STEER_OFF)
		return NM_ELIGIBILITY_OFF;
	if (nm_tasks_excluded_by(tasks, process))
		return NM_ELIGIBILITY_EXCLUDED;
	if (!nm_steer_asks(&process->steering) &&
	    (config->targets.cgroup_attribute == NM_ATTRIBUTE_ONLY ||
	     (config->targets.include.count > 0 && !find_match(&config->targets.include, process))))
		return NM_ELIGIBILITY_NOT_TARGET;
	return size;
}

static uint64_t started_ns(struct nm_task_table *tasks, uint64_t start_ticks, uint64_t now_ns)
{
	uint64_t now_ticks = nm_proc_ticks_now(tasks->platform);
	uint64_t age_ticks = now_ticks > start_ticks ? now_ticks - start_ticks : 0;
	uint64_t age_ns = age_ticks * (NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	return now_ns > age_ns ? now_ns - age_ns : 0;
}

/* Returns whether the machine has a pool of huge pages. Read once a second. */
static bool has_hugetlb(struct nm_task_table *tasks)
{
	uint64_t now_ns = tasks->platform->ops->now_ns(tasks->platform);
	if (!tasks->hugetlb_read_ns || now_ns - tasks->hugetlb_read_ns >= NM_NSEC_PER_SEC) {
		tasks->has_hugetlb = nm_hugetlb_read(tasks->platform) > 0;
		tasks->hugetlb_read_ns = now_ns;
	}
	return tasks->has_hugetlb;
}

/*
 * Reads what only status contains: huge pages, without which a process may seem small; once,
 * whether it is PID 1 of a container; and, for policy "auto", which of its memory cannot move, and
 * which nodes its cpuset excludes. Memory that is not known counts as movable: the kernel refuses
 * what is not.
 */
static void read_limits(struct nm_task_table *tasks, struct nm_process *process, int directory,
			const struct nm_proc_stat *stat)
{
	struct nm_proc_status status;
	bool small = process->rss_bytes < nm_tasks_min_rss_bytes(tasks);
	bool wanted = small ? !(stat->flags & NM_PROC_KTHREAD) && has_hugetlb(tasks)
			    : !process->ns_pid || tasks->config->threads.policy == NM_POLICY_AUTO;

	if (!wanted || nm_proc_read_status_in(tasks->platform, directory, process->domain,
					      &tasks->costly, &status) < 0)
		return;
	process->ns_pid = status.ns_pid;
	process->rss_bytes += status.hugetlb_bytes;
	process->hugetlb_bytes = status.hugetlb_bytes;
	if (status.shared_bytes != UINT64_MAX)
		process->shared_bytes = status.shared_bytes;
	process->pinned_bytes = status.pinned_bytes;
	process->excluded_mems = status.excluded_mems;
}

static int read_files(struct nm_task_table *tasks, struct nm_process *process, int directory,
		      const struct nm_proc_stat *stat)
{
	struct nm_proc_memory memory;
	char name[sizeof(process->raw_comm)] = "";
	nm_autofree char *cgroup = NULL;
	uint32_t uid;

	if (!stat->is_leader) /* the number of a thread, which can be opened, too */
		return -ESRCH;
	if (process->start_ticks && process->start_ticks != stat->start_ticks)
		return -ESRCH;
	int r = nm_proc_read_cgroup(tasks->platform, directory, &cgroup);
	if (r == 0 || r == -ENODATA)
		r = nm_proc_read_owner(tasks->platform, directory, &uid);
	if (r == 0)
		r = nm_proc_read_memory(tasks->platform, directory, &memory);
	if (r < 0)
		return r;

	process->start_ticks = stat->start_ticks;
	process->uid = uid;
	process->rss_bytes = memory.rss_bytes;
	process->anon_bytes = memory.anon_bytes;
	process->shared_bytes = nm_proc_data_bytes(memory.rss_bytes - memory.anon_bytes);
	free(process->cgroup);
	process->cgroup = NM_TAKE(cgroup);
	process->domain = nm_proc_domain(tasks->platform, process->uid, process->cgroup);
	read_limits(tasks, process, directory, stat);
	memcpy(name, stat->comm, strnlen(stat->comm, sizeof(name) - 1));
	/* With a changed name it may run another program whose start was not reported. */
	if (memcmp(name, process->raw_comm, sizeof(name)) != 0)
		nm_tasks_doubt_program(tasks, process);
	memcpy(process->raw_comm, name, sizeof(name));
	(void)nm_escape(process->comm, sizeof(process->comm), process->raw_comm,
			strlen(process->raw_comm));
	return 0;
}

static int read_process(struct nm_task_table *tasks, struct nm_process *process,
			struct nm_proc_stat *ret)
{
	struct nm_proc_stat stat, survivor;
	char path[32];
	int directory = nm_proc_open_stat(tasks->platform, 0, process->pid, &stat);
	if (directory < 0)
		return directory;
	/* The memory, user and cgroup of a process whose first thread has exited are those of
	 * another thread. */
	if (nm_proc_has_exited(&stat)) {
		tasks->platform->ops->close(tasks->platform, directory);
		(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", process->pid);
		directory = nm_proc_open_survivor(tasks->platform, NM_ROOT, path, &survivor);
	}
	if (directory < 0)
		return directory;
	int r = read_files(tasks, process, directory, &stat);
	tasks->platform->ops->close(tasks->platform, directory);
	if (r == 0)
		*ret = stat;
	return r;
}

/* Only policy "auto" compares the demand of processes with the CPUs of nodes. */
static void read_cpu_limits(struct nm_task_table *tasks, struct nm_process *process,
			    uint64_t now_ns)
{
	double cpus;
	process->cpu_limit = 0;
	process->yields = false;
	if (tasks->config->threads.policy != NM_POLICY_AUTO || !process->cgroup)
		return;
	nm_cgroups_begin(tasks->cgroups, now_ns);
	if (nm_cgroups_cpu_limit(tasks->cgroups, process->cgroup, &cpus) == 0 && isfinite(cpus))
		process->cpu_limit = cpus;
	(void)nm_cgroups_yields(tasks->cgroups, process->cgroup, &process->yields);
}

int nm_tasks_check_process(struct nm_task_table *tasks, struct nm_process *process, uint64_t now_ns)
{
	struct nm_proc_stat stat;
	int r = read_process(tasks, process, &stat);
	if (r < 0)
		return r;
	/* Estimated once, because each estimate differs. Only an exec, which is reported, changes
	 * the start. */
	if (!process->started_ns)
		process->started_ns = started_ns(tasks, process->start_ticks, now_ns);
	enum nm_eligibility size = NM_ELIGIBILITY_MANAGED;
	if (nm_tasks_is_young(tasks, process, now_ns))
		size = NM_ELIGIBILITY_YOUNG;
	else if (is_small(tasks, process))
		size = NM_ELIGIBILITY_SMALL;
	else if (!has_enough_cpu(tasks, process, now_ns))
		size = NM_ELIGIBILITY_IDLE;
	/* Young and small processes are not managed, regardless of attributes. On errors the last
	 * known value stays. */
	if (size == NM_ELIGIBILITY_MANAGED &&
	    tasks->config->targets.cgroup_attribute != NM_ATTRIBUTE_IGNORE)
		r = nm_steer_read(tasks->platform, process->cgroup, &process->steering);
	else
		process->steering = (struct nm_steering){0};
	if (r < 0)
		return r;
	if (size == NM_ELIGIBILITY_MANAGED)
		read_cpu_limits(tasks, process, now_ns);

	process->checked_ns = now_ns;
	process->eligibility = judge(tasks, process, &stat, size);
	return 0;
}

/* ---- threads ---- */

static bool leaves_a_choice(const struct nm_topology *topology, hwloc_const_bitmap_t mask)
{
	unsigned nodes = 0;
	for (unsigned node = 0; node < topology->nr_nodes; node++)
		if (hwloc_bitmap_intersects(mask, topology->nodes[node].cpus))
			nodes++;
	return nodes > 1;
}

/*
 * Returns whether the affinity equals the CPUs of the thread's cpuset, so that it was never
 * narrowed. With threaded cgroups (cgroups(7)) it is not that of the process. In the root cpuset an
 * unrestricted thread may also use offline CPUs (`whole`); a thread that selected exactly the
 * online CPUs may not.
 */
static bool is_unrestricted(struct nm_task_table *tasks, int directory, hwloc_const_bitmap_t mask,
			    hwloc_const_bitmap_t whole)
{
	nm_autobitmap effective = nm_must(hwloc_bitmap_alloc());
	bool root = false;
	if (nm_cgroups_cpuset_of(tasks->cgroups, directory, effective, &root, NULL) < 0)
		hwloc_bitmap_copy(effective, tasks->topology->online);
	return hwloc_bitmap_isincluded(effective, mask) &&
	       (!root || hwloc_bitmap_isincluded(tasks->topology->possible, whole));
}

/* Determines the original affinity: `current`, unless the thread is being moved. */
static void take_original(struct nm_task_table *tasks, struct nm_task_thread *thread, int directory,
			  hwloc_const_bitmap_t current)
{
	struct nm_managed_thread *managed = &thread->managed;
	nm_autobitmap whole = nm_must(hwloc_bitmap_alloc());
	hwloc_const_bitmap_t original = current;
	bool unrestricted;

	/* Includes the CPUs that are offline now: sched_getaffinity(2) omits them, and a restored
	 * affinity must include them again. */
	if (nm_proc_read_affinity_in(tasks->platform, directory, thread->process->domain,
				     &tasks->costly, whole) < 0 ||
	    !hwloc_bitmap_isincluded(current, whole))
		hwloc_bitmap_copy(whole, current);
	if (!tasks->moves.original ||
	    !tasks->moves.original(tasks->moves.context, managed->tid, managed->start_ticks,
				   current, &original, &unrestricted)) {
		unrestricted = is_unrestricted(tasks, directory, current, whole);
		original = unrestricted ? current : whole;
	}
	hwloc_bitmap_t copy = nm_must(hwloc_bitmap_dup(original));
	hwloc_bitmap_free(thread->original);
	thread->original = copy;
	managed->original = copy;
	managed->everywhere = hwloc_bitmap_isincluded(tasks->topology->usable, copy);
	managed->unrestricted = unrestricted;
}

static int check_mask(struct nm_task_table *tasks, struct nm_task_thread *thread, int directory)
{
	struct nm_platform *platform = tasks->platform;
	uint32_t tid = thread->managed.tid;
	if (thread->original && tasks->moves.is_moving &&
	    tasks->moves.is_moving(tasks->moves.context, tid, thread->managed.start_ticks))
		return 0;

	nm_autobitmap current = nm_must(hwloc_bitmap_alloc());
	int r = platform->ops->affinity_get(platform, (pid_t)tid, current);
	if (r < 0)
		return r;
	/* The original affinity may contain offline CPUs. */
	if (thread->original && (hwloc_bitmap_isequal(current, thread->original) ||
				 nm_is_part(current, thread->original, tasks->topology->online)))
		return 0;
	take_original(tasks, thread, directory, current);
	return 0;
}

static enum nm_eligibility judge_thread(const struct nm_task_table *tasks,
					const struct nm_task_thread *thread,
					const struct nm_proc_stat *stat)
{
	if (nm_tasks_remembers(tasks->memory, thread->managed.tid, thread->managed.start_ticks,
			       NM_ELIGIBILITY_FOREIGN))
		return NM_ELIGIBILITY_FOREIGN;
	if (stat->flags & NM_PROC_KTHREAD)
		return NM_ELIGIBILITY_KERNEL;
	if (stat->policy == SCHED_FIFO || stat->policy == SCHED_RR ||
	    stat->policy == SCHED_DEADLINE)
		return NM_ELIGIBILITY_REALTIME;
	bool pinned = stat->flags & NM_PROC_NO_AFFINITY ||
		      !leaves_a_choice(tasks->topology, thread->original);
	return pinned ? NM_ELIGIBILITY_PINNED : NM_ELIGIBILITY_MANAGED;
}

int nm_tasks_check_thread(struct nm_task_table *tasks, struct nm_task_thread *thread,
			  uint64_t now_ns)
{
	struct nm_platform *platform = tasks->platform;
	struct nm_proc_stat stat;
	int directory =
		nm_proc_open_stat(platform, thread->managed.pid, thread->managed.tid, &stat);
	if (directory < 0)
		return directory;

	nm_cgroups_begin(tasks->cgroups, now_ns);
	bool same = !thread->managed.start_ticks || thread->managed.start_ticks == stat.start_ticks;
	/* A first thread that has exited stays in /proc until all others have. */
	int r = same && !nm_proc_has_exited(&stat) ? 0 : -ESRCH;
	if (r == 0) {
		thread->managed.start_ticks = stat.start_ticks;
		r = check_mask(tasks, thread, directory);
	}
	/* The affinity was read by number, and is that of this thread only if the directory is
	 * still valid. */
	if (r == 0)
		r = nm_proc_read_stat(platform, directory, &stat);
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	thread->checked_ns = now_ns;
	thread->managed.yields = nm_proc_yields(&stat);
	thread->eligibility = judge_thread(tasks, thread, &stat);
	return 0;
}

int nm_process_read_usage(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
			  struct nm_process_usage *ret)
{
	struct nm_proc_stat stat;
	int directory = nm_proc_open_same(platform, 0, pid, start_ticks, &stat);
	if (directory < 0)
		return directory;
	platform->ops->close(platform, directory);
	*ret = (struct nm_process_usage){
		.parent = stat.ppid,
		.cpu_ns = stat.ran_ticks * (NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK)),
		.has_ended = nm_proc_has_exited(&stat) && stat.nr_threads <= 1,
	};
	return 0;
}
