/* SPDX-License-Identifier: MIT */
/* The two tables: threads and processes, each found by number. */
#include "task_table.h"

static void free_thread(struct nm_task_thread *thread)
{
	hwloc_bitmap_free(thread->original);
	free(thread);
}

static void free_process(const struct nm_task_table *tasks, struct nm_process *process)
{
	nm_tasks_forget_program(tasks, process);
	free(process->cgroup);
	free(process);
}

void nm_tasks_free_tables(struct nm_task_table *tasks)
{
	for (size_t i = 0; i < tasks->nr_threads; i++)
		free_thread(tasks->threads[i]);
	for (size_t i = 0; i < tasks->nr_processes; i++)
		free_process(tasks, tasks->processes[i]);
	free(tasks->threads);
	free(tasks->processes);
	nm_tidmap_free(tasks->thread_of);
	nm_tidmap_free(tasks->process_of);
}

struct nm_task_thread *nm_tasks_find_thread(const struct nm_task_table *tasks, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(tasks->thread_of, tid);
	return index == NM_TIDMAP_NONE ? NULL : tasks->threads[index];
}

struct nm_process *nm_tasks_process(const struct nm_task_table *tasks, uint32_t pid)
{
	uint32_t index = nm_tidmap_get(tasks->process_of, pid);
	return index == NM_TIDMAP_NONE ? NULL : tasks->processes[index];
}

/* The last entry replaces the removed one. */
void nm_tasks_remove_thread(struct nm_task_table *tasks, struct nm_task_thread *thread)
{
	uint32_t index = nm_tidmap_get(tasks->thread_of, thread->managed.tid);
	struct nm_task_thread *last = tasks->threads[--tasks->nr_threads];

	nm_tidmap_remove(tasks->thread_of, thread->managed.tid);
	if (last != thread) {
		tasks->threads[index] = last;
		(void)nm_tidmap_set(tasks->thread_of, last->managed.tid, index);
	}
	thread->process->nr_threads--;
	free_thread(thread);
}

void nm_tasks_remove_threads_of(struct nm_task_table *tasks, const struct nm_process *process)
{
	for (size_t i = tasks->nr_threads; process->nr_threads > 0 && i-- > 0;)
		if (tasks->threads[i]->process == process)
			nm_tasks_remove_thread(tasks, tasks->threads[i]);
}

void nm_tasks_remove_process(struct nm_task_table *tasks, struct nm_process *process)
{
	nm_tasks_remove_threads_of(tasks, process);
	uint32_t index = nm_tidmap_get(tasks->process_of, process->pid);
	struct nm_process *last = tasks->processes[--tasks->nr_processes];

	nm_tidmap_remove(tasks->process_of, process->pid);
	if (last != process) {
		tasks->processes[index] = last;
		(void)nm_tidmap_set(tasks->process_of, last->pid, index);
	}
	free_process(tasks, process);
}

int nm_tasks_add_process(struct nm_task_table *tasks, uint32_t pid, struct nm_process **ret)
{
	NM_RESERVE(tasks->processes, tasks->processes_capacity, tasks->nr_processes);
	int r = nm_tidmap_set(tasks->process_of, pid, (uint32_t)tasks->nr_processes);
	if (r < 0)
		return r;
	struct nm_process *process = nm_must(calloc(1, sizeof(*process)));
	process->pid = pid;
	process->eligibility = NM_ELIGIBILITY_IDLE;
	tasks->processes[tasks->nr_processes++] = process;
	*ret = process;
	return 0;
}

int nm_tasks_add_thread(struct nm_task_table *tasks, struct nm_process *process, uint32_t tid,
			uint64_t now_ns)
{
	NM_RESERVE(tasks->threads, tasks->threads_capacity, tasks->nr_threads);
	struct nm_task_thread *thread = nm_must(calloc(1, sizeof(*thread)));
	thread->process = process;
	thread->managed = (struct nm_managed_thread){
		.tid = tid, .pid = process->pid, .process = process, .adopted_ns = now_ns};
	thread->last_seen_ns = now_ns;

	int r = nm_tasks_check_thread(tasks, thread, now_ns);
	if (r == 0)
		r = nm_tidmap_set(tasks->thread_of, tid, (uint32_t)tasks->nr_threads);
	if (r < 0) {
		free_thread(thread);
		return r;
	}
	tasks->threads[tasks->nr_threads++] = thread;
	process->nr_threads++;
	return 0;
}
