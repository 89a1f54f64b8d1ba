/* SPDX-License-Identifier: MIT */
#include "tasks/tasks.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "task_table.h"

void nm_task_table_new(struct nm_platform *platform, const struct nm_topology *topology,
		       const struct nm_config *config, const struct nm_move_lookup *moves,
		       struct nm_released_list *memory, struct nm_task_table **ret)
{
	nm_auto(nm_task_table_freep) struct nm_task_table *tasks =
		nm_must(calloc(1, sizeof(*tasks)));
	tasks->platform = platform;
	tasks->topology = topology;
	tasks->config = config;
	tasks->memory = memory;
	if (moves)
		tasks->moves = *moves;
	tasks->own_pid = (uint32_t)getpid();
	tasks->thread_of = nm_tidmap_new();
	tasks->process_of = nm_tidmap_new();
	tasks->cgroups = nm_cgroups_new(platform);
	*ret = NM_TAKE(tasks);
}

void nm_task_table_free(struct nm_task_table *tasks)
{
	if (!tasks)
		return;
	nm_tasks_free_tables(tasks);
	nm_cgroups_free(tasks->cgroups);
	free(tasks->managed);
	free(tasks);
}

void nm_tasks_configure(struct nm_task_table *tasks, const struct nm_topology *topology,
			const struct nm_config *config)
{
	tasks->topology = topology;
	tasks->config = config;
	for (size_t i = 0; i < tasks->nr_threads; i++) {
		struct nm_task_thread *thread = tasks->threads[i];
		thread->checked_ns = 0;
		thread->managed.everywhere =
			hwloc_bitmap_isincluded(topology->usable, thread->original);
	}
	for (size_t i = 0; i < tasks->nr_processes; i++)
		if (tasks->processes[i]->checked_ns)
			tasks->processes[i]->checked_ns = 1; /* read before, and due */
}

/* ---- events ---- */

static void on_fork(struct nm_task_table *tasks, const struct nm_task_event *event)
{
	/* The number was reused: the data of its previous owner is dropped. */
	struct nm_task_thread *stale = nm_tasks_find_thread(tasks, event->tid);
	if (stale)
		nm_tasks_remove_thread(tasks, stale);
	struct nm_process *reused = nm_tasks_process(tasks, event->pid);
	if (reused && event->parent_pid != event->pid)
		nm_tasks_remove_process(tasks, reused);
}

/* A new program: its threads are new, and its eligibility is evaluated again. A release lasts for
 * the life of the process. */
static void on_exec(struct nm_task_table *tasks, const struct nm_task_event *event, uint64_t now_ns)
{
	struct nm_process *process = nm_tasks_process(tasks, event->pid);
	if (!process)
		return;
	nm_tasks_remove_threads_of(tasks, process);
	process->started_ns = now_ns;
	process->checked_ns = 0;
	process->cpu_share = 0;
	process->eligibility = NM_ELIGIBILITY_IDLE;
	process->program_state = NM_PROGRAM_AWAITED;
	process->program = 0;
	nm_tasks_forget_program(tasks, process);
	process->program_asked_ns = 0;
}

/* Thousands of processes may start and exit, so a record without threads is dropped with its
 * leader. A managed process may continue without its leader, and a release lasts for its life. */
static void on_exit_event(struct nm_task_table *tasks, const struct nm_task_event *event)
{
	struct nm_task_thread *thread = nm_tasks_find_thread(tasks, event->tid);
	struct nm_process *process = nm_tasks_process(tasks, event->pid);

	if (thread)
		nm_tasks_remove_thread(tasks, thread);
	bool managed = process && process->eligibility == NM_ELIGIBILITY_MANAGED;
	if (process && event->tid == event->pid && !managed)
		nm_tasks_remove_process(tasks, process);
	else if (managed && process->nr_threads == 0)
		process->checked_ns = 1; /* due: it may have ended */
}

void nm_tasks_task_event(struct nm_task_table *tasks, const struct nm_task_event *event,
			 uint64_t now_ns)
{
	struct nm_process *process;

	switch (event->kind) {
	case NM_TASK_FORK:
		on_fork(tasks, event);
		break;
	case NM_TASK_EXEC:
		on_exec(tasks, event, now_ns);
		break;
	case NM_TASK_EXIT:
		on_exit_event(tasks, event);
		break;
	case NM_TASK_COMM:
		/* A renamed thread may become or cease to be a target. */
		process = nm_tasks_process(tasks, event->pid);
		if (process && process->checked_ns)
			process->checked_ns = 1;
		break;
	}
}

/* ---- the interval ---- */

/* The mean of the old and the new value; the first interval counts fully. */
static void blend_share(struct nm_process *process, double share)
{
	if (process->cpu_share == 0 || isnan(process->cpu_share) || isnan(share))
		process->cpu_share = share;
	else
		process->cpu_share = (process->cpu_share + share) / 2;
}

static bool was_seen(const struct nm_sampled_thread *sampled)
{
	return sampled->stats.run_samples > 0 || sampled->stats.fresh_samples > 0;
}

/* Sums up the CPU shares of this interval per process, and creates records for new ones. */
static int count_processes(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			   size_t count, double *shares, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (!was_seen(&sampled[i]) || sampled[i].pid == 0)
			continue;
		struct nm_process *process = nm_tasks_process(tasks, sampled[i].pid);
		if (!process) {
			int r = nm_tasks_add_process(tasks, sampled[i].pid, &process);
			if (r == -ERANGE)
				continue;
			if (r < 0)
				return r;
		}
		process->last_seen_ns = now_ns;
		shares[nm_tidmap_get(tasks->process_of, process->pid)] +=
			sampled[i].stats.run_share;
	}
	return 0;
}

/* Returns whether the data of the process would become too old in an interval as long as the last
 * one. */
static bool is_outdated(const struct nm_task_table *tasks, const struct nm_process *process,
			uint64_t now_ns)
{
	uint64_t interval_ns = nm_tasks_age(now_ns, tasks->updated_ns);

	return nm_tasks_age(now_ns, process->checked_ns) + interval_ns > NM_TASKS_CHECK_NS;
}

/* A small process is checked in every interval while it is new, because its memory grows; other
 * running processes when their age has doubled. A managed process that sleeps may be moved. */
static bool is_due(const struct nm_task_table *tasks, const struct nm_process *process,
		   uint64_t now_ns)
{
	bool growing = (process->eligibility == NM_ELIGIBILITY_SMALL ||
			process->eligibility == NM_ELIGIBILITY_IDLE) &&
		       nm_tasks_age(now_ns, process->started_ns) < NM_TASKS_CHECK_NS;
	if (process->last_seen_ns != now_ns)
		return process->eligibility == NM_ELIGIBILITY_MANAGED &&
		       is_outdated(tasks, process, now_ns);
	if (!process->checked_ns)
		return isnan(process->cpu_share) ||
		       process->cpu_share >= tasks->config->targets.min_cpu_percent / 200;
	/* An administrator expects it to be managed from that age on. */
	bool grown_up = process->eligibility == NM_ELIGIBILITY_YOUNG &&
			!nm_tasks_is_young(tasks, process, now_ns);
	return growing || grown_up || is_outdated(tasks, process, now_ns) ||
	       nm_tasks_age(now_ns, process->checked_ns) >=
		       nm_tasks_age(process->checked_ns, process->started_ns);
}

/* Checks a process, and drops it if it has exited, or its threads if it is not managed. If reading
 * fails (no memory, no descriptor), the known data stays. */
static int check_process(struct nm_task_table *tasks, struct nm_process *process, uint64_t now_ns)
{
	int r = nm_tasks_check_process(tasks, process, now_ns);
	if (r == -ESRCH) {
		nm_tasks_remove_process(tasks, process);
		return r;
	}
	/* If its status is too long, each further look at it would take as long. */
	if (r == -EFBIG) {
		process->eligibility = NM_ELIGIBILITY_UNREADABLE;
		process->checked_ns = now_ns;
	}
	if (process->eligibility != NM_ELIGIBILITY_MANAGED)
		nm_tasks_remove_threads_of(tasks, process);
	return r;
}

static int update_processes(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			    size_t count, uint64_t now_ns)
{
	nm_autofree double *shares =
		nm_must(calloc(tasks->nr_processes + count + 1, sizeof(*shares)));
	int r = count_processes(tasks, sampled, count, shares, now_ns);
	if (r < 0)
		return r;
	for (size_t i = 0; i < tasks->nr_processes; i++)
		blend_share(tasks->processes[i], shares[i]);
	for (size_t i = tasks->nr_processes; i-- > 0;) {
		struct nm_process *process = tasks->processes[i];
		if (nm_tasks_age(now_ns, process->last_seen_ns) > NM_TASKS_FORGET_NS)
			nm_tasks_remove_process(tasks, process);
		else if (is_due(tasks, process, now_ns))
			(void)check_process(tasks, process, now_ns);
	}
	return 0;
}

/* Number of threads checked in one interval, and the first one that must wait for the next one; 0:
 * none. */
struct looks {
	unsigned count;
	uint32_t waiting;
};

static bool may_look(struct looks *looks, uint32_t tid)
{
	if (looks->count < NM_TASKS_LOOKS) {
		looks->count++;
		return true;
	}
	if (!looks->waiting)
		looks->waiting = tid;
	return false;
}

static void update_thread(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			  struct looks *looks, uint64_t now_ns)
{
	struct nm_process *process = nm_tasks_process(tasks, sampled->pid);
	if (!process || process->eligibility != NM_ELIGIBILITY_MANAGED)
		return;
	struct nm_task_thread *thread = nm_tasks_find_thread(tasks, sampled->tid);
	if (thread && thread->process == process) {
		thread->last_seen_ns = now_ns;
		if (nm_tasks_age(now_ns, thread->checked_ns) > NM_TASKS_CHECK_NS &&
		    may_look(looks, sampled->tid) &&
		    nm_tasks_check_thread(tasks, thread, now_ns) == -ESRCH)
			nm_tasks_remove_thread(tasks, thread);
		return;
	}
	if (thread) /* its number belonged to another process until now */
		nm_tasks_remove_thread(tasks, thread);
	if (may_look(looks, sampled->tid))
		(void)nm_tasks_add_thread(tasks, process, sampled->tid, now_ns);
}

/* Begins with threads that had to wait, so that each gets its turn. */
static void update_threads(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			   size_t count, uint64_t now_ns)
{
	struct looks looks = {0};
	size_t first = 0;
	while (first < count && sampled[first].tid < tasks->waiting)
		first++;
	for (size_t i = 0; i < count; i++) {
		const struct nm_sampled_thread *one = &sampled[(first + i) % count];
		if (was_seen(one))
			update_thread(tasks, one, &looks, now_ns);
	}
	tasks->waiting = looks.waiting;
}

static bool is_moving(const struct nm_task_table *tasks, const struct nm_task_thread *thread)
{
	return tasks->moves.is_moving &&
	       tasks->moves.is_moving(tasks->moves.context, thread->managed.tid,
				      thread->managed.start_ticks);
}

static void drop_silent_threads(struct nm_task_table *tasks, uint64_t now_ns)
{
	for (size_t i = tasks->nr_threads; i-- > 0;) {
		struct nm_task_thread *thread = tasks->threads[i];
		if (!is_moving(tasks, thread) &&
		    nm_tasks_age(now_ns, thread->last_seen_ns) > NM_TASKS_FORGET_NS)
			nm_tasks_remove_thread(tasks, thread);
	}
}

int nm_tasks_update(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
		    size_t count, uint64_t now_ns)
{
	tasks->costly.count = 0;
	int r = update_processes(tasks, sampled, count, now_ns);
	if (r == 0)
		update_threads(tasks, sampled, count, now_ns);
	drop_silent_threads(tasks, now_ns);
	nm_tasks_ask_programs(tasks, now_ns);
	tasks->updated_ns = now_ns;
	return r;
}

enum role { NOT_MANAGED, WATCHED, MOVED };

/*
 * Threads are watched that are never moved themselves: those of processes that are only observed,
 * by their owner or for the control group, and those beside threads of a process that policy "auto"
 * may place, whose CPUs and memory they use. Memory also follows a thread that its owner has
 * pinned.
 */
static enum role role_of(const struct nm_task_table *tasks, const struct nm_task_thread *thread)
{
	switch (thread->eligibility) {
	case NM_ELIGIBILITY_MANAGED:
		return nm_process_is_observed(thread->process) ? WATCHED : MOVED;
	case NM_ELIGIBILITY_PINNED:
		if (nm_config_follows_pages(tasks->config))
			return WATCHED;
		break;
	case NM_ELIGIBILITY_REALTIME:
	case NM_ELIGIBILITY_FOREIGN:
		break;
	default:
		return NOT_MANAGED;
	}
	return tasks->config->threads.policy == NM_POLICY_AUTO && thread->process->has_movable
		       ? WATCHED
		       : NOT_MANAGED;
}

/* Returns false if the thread is neither moved nor watched. */
static bool take_managed(const struct nm_task_table *tasks, struct nm_task_thread *thread,
			 struct nm_managed_thread *ret)
{
	enum role role = role_of(tasks, thread);
	if (role == NOT_MANAGED)
		return false;
	thread->managed.only_watched = role == WATCHED;
	thread->managed.left_alone =
		thread->eligibility == NM_ELIGIBILITY_MANAGED && thread->process->left_alone;
	*ret = thread->managed;
	if (role == WATCHED)
		ret->backoff_until = UINT64_MAX;
	return true;
}

size_t nm_tasks_managed(struct nm_task_table *tasks, const struct nm_managed_thread **ret)
{
	size_t count = 0;
	for (size_t i = 0; i < tasks->nr_processes; i++)
		tasks->processes[i]->has_movable = false;
	for (size_t i = 0; i < tasks->nr_threads; i++)
		tasks->threads[i]->process->has_movable |=
			tasks->threads[i]->eligibility == NM_ELIGIBILITY_MANAGED;
	for (uint32_t tid = 0; (tid = nm_tidmap_next(tasks->thread_of, tid)) != NM_TIDMAP_NONE;
	     tid++) {
		struct nm_task_thread *thread = nm_tasks_find_thread(tasks, tid);
		NM_RESERVE(tasks->managed, tasks->managed_capacity, count);
		count += take_managed(tasks, thread, &tasks->managed[count]);
	}
	*ret = tasks->managed;
	return count;
}

/* ---- one process between intervals ---- */

static int update_process(struct nm_task_table *tasks, uint32_t pid, double share, uint64_t now_ns,
			  struct nm_process **ret)
{
	struct nm_process *process = nm_tasks_process(tasks, pid);
	int r = process ? 0 : nm_tasks_add_process(tasks, pid, &process);
	if (r < 0)
		return r;
	process->last_seen_ns = now_ns;
	if (isnan(process->cpu_share) || process->cpu_share < share)
		process->cpu_share = share;
	r = check_process(tasks, process, now_ns);
	if (r == 0)
		*ret = process;
	return r;
}

int nm_tasks_update_process(struct nm_task_table *tasks, const struct nm_sampled_thread *sampled,
			    size_t count, uint64_t now_ns, struct nm_managed_thread *ret,
			    size_t *ret_count)
{
	struct nm_process *process;
	struct looks looks = {0};
	double share = 0;
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		share += sampled[i].stats.run_share;
	int r = count > 0 ? update_process(tasks, sampled[0].pid, share, now_ns, &process) : -ESRCH;
	for (size_t i = 0; r == 0 && i < count; i++) {
		update_thread(tasks, &sampled[i], &looks, now_ns);
		const struct nm_task_thread *thread = nm_tasks_find_thread(tasks, sampled[i].tid);
		if (thread && thread->process == process)
			process->has_movable |= thread->eligibility == NM_ELIGIBILITY_MANAGED;
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct nm_task_thread *thread = nm_tasks_find_thread(tasks, sampled[i].tid);
		if (thread && thread->process == process)
			found += take_managed(tasks, thread, &ret[found]);
	}
	if (r == 0)
		*ret_count = found;
	return r;
}

/* ---- updates by other stages ---- */

static struct nm_task_thread *find_same(const struct nm_task_table *tasks, uint32_t tid,
					uint64_t start_ticks)
{
	struct nm_task_thread *thread = nm_tasks_find_thread(tasks, tid);
	return thread && thread->managed.start_ticks == start_ticks ? thread : NULL;
}

void nm_tasks_back_off(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks,
		       uint64_t until_interval)
{
	struct nm_task_thread *thread = find_same(tasks, tid, start_ticks);
	if (thread && thread->managed.backoff_until < until_interval)
		thread->managed.backoff_until = until_interval;
}

void nm_tasks_delay(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks,
		    uint64_t until_interval)
{
	struct nm_task_thread *thread = find_same(tasks, tid, start_ticks);
	if (thread)
		thread->managed.delayed_until = until_interval;
}

void nm_tasks_recheck(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks)
{
	struct nm_task_thread *thread = find_same(tasks, tid, start_ticks);
	if (thread)
		thread->checked_ns = 0;
}

void nm_tasks_give_back(struct nm_task_table *tasks, uint32_t tid, uint64_t start_ticks)
{
	struct nm_task_thread *thread = find_same(tasks, tid, start_ticks);
	if (!thread)
		return;
	thread->eligibility = NM_ELIGIBILITY_FOREIGN;
	nm_tasks_remember(tasks->memory, tasks->platform, tid, start_ticks, NM_ELIGIBILITY_FOREIGN,
			  thread->process->domain);
}

int nm_tasks_release(struct nm_task_table *tasks, uint32_t pid)
{
	struct nm_process *process = nm_tasks_process(tasks, pid);
	if (!process)
		return -ESRCH;
	/* Its start may not be known yet, or its number may have been reused. */
	int r = nm_tasks_check_process(tasks, process, process->last_seen_ns);
	if (r < 0)
		return r;
	process->eligibility = NM_ELIGIBILITY_RELEASED;
	nm_tasks_remove_threads_of(tasks, process);
	nm_tasks_remember(tasks->memory, tasks->platform, pid, process->start_ticks,
			  NM_ELIGIBILITY_RELEASED, process->domain);
	return 0;
}

/* ---- display ---- */

size_t nm_tasks_processes(const struct nm_task_table *tasks, struct nm_process *const **ret)
{
	*ret = tasks->processes;
	return tasks->nr_processes;
}

uint64_t nm_tasks_domain(const struct nm_task_table *tasks, uint32_t pid)
{
	const struct nm_process *process = nm_tasks_process(tasks, pid);
	return process ? process->domain : nm_domain_of(0, NULL);
}

int nm_tasks_thread_eligibility(const struct nm_task_table *tasks, uint32_t tid,
				enum nm_eligibility *ret)
{
	const struct nm_task_thread *thread = nm_tasks_find_thread(tasks, tid);
	if (!thread)
		return -ESRCH;
	*ret = thread->eligibility;
	return 0;
}

enum nm_eligibility nm_tasks_refusal(const struct nm_task_table *tasks,
				     const struct nm_process *process)
{
	const struct nm_task_thread *thread = nm_tasks_find_thread(tasks, process->pid);
	if (process->eligibility != NM_ELIGIBILITY_MANAGED || process->nr_threads == 0)
		return process->eligibility;
	/* The first thread may have exited, or was dropped because it sleeps. */
	for (size_t i = 0; (!thread || thread->process != process) && i < tasks->nr_threads; i++)
		thread = tasks->threads[i];
	return thread && thread->process == process ? thread->eligibility : process->eligibility;
}

struct nm_tasks_counts nm_tasks_counts(const struct nm_task_table *tasks)
{
	struct nm_tasks_counts counts = {.processes_known = (unsigned)tasks->nr_processes,
					 .threads_known = (unsigned)tasks->nr_threads};
	for (size_t i = 0; i < tasks->nr_processes; i++) {
		const struct nm_process *process = tasks->processes[i];
		bool managed = process->eligibility == NM_ELIGIBILITY_MANAGED;
		counts.processes_managed += managed;
		counts.processes_observed += managed && process->steering.value == NM_STEER_OBSERVE;
		counts.processes_off += process->eligibility == NM_ELIGIBILITY_OFF;
	}
	for (size_t i = 0; i < tasks->nr_threads; i++)
		counts.threads_managed += tasks->threads[i]->eligibility == NM_ELIGIBILITY_MANAGED;
	return counts;
}
