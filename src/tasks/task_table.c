/* SPDX-License-Identifier: MIT */
/* The two tables: threads and processes, each found by number. */
#include "roster_internal.h"

static void free_thread(struct nm_roster_thread *thread)
{
	hwloc_bitmap_free(thread->original);
	free(thread);
}

static void free_process(const struct nm_roster *roster, struct nm_process *process)
{
	nm_roster_forget_program(roster, process);
	free(process->cgroup);
	free(process);
}

void nm_roster_free_tables(struct nm_roster *roster)
{
	for (size_t i = 0; i < roster->nr_threads; i++)
		free_thread(roster->threads[i]);
	for (size_t i = 0; i < roster->nr_processes; i++)
		free_process(roster, roster->processes[i]);
	free(roster->threads);
	free(roster->processes);
	nm_tidmap_free(roster->thread_of);
	nm_tidmap_free(roster->process_of);
}

struct nm_roster_thread *nm_roster_find_thread(const struct nm_roster *roster, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(roster->thread_of, tid);
	return index == NM_TIDMAP_NONE ? NULL : roster->threads[index];
}

struct nm_process *nm_roster_process(const struct nm_roster *roster, uint32_t pid)
{
	uint32_t index = nm_tidmap_get(roster->process_of, pid);
	return index == NM_TIDMAP_NONE ? NULL : roster->processes[index];
}

/* The last entry replaces the removed one. */
void nm_roster_remove_thread(struct nm_roster *roster, struct nm_roster_thread *thread)
{
	uint32_t index = nm_tidmap_get(roster->thread_of, thread->member.tid);
	struct nm_roster_thread *last = roster->threads[--roster->nr_threads];

	nm_tidmap_remove(roster->thread_of, thread->member.tid);
	if (last != thread) {
		roster->threads[index] = last;
		(void)nm_tidmap_set(roster->thread_of, last->member.tid, index);
	}
	thread->process->nr_threads--;
	free_thread(thread);
}

void nm_roster_remove_threads_of(struct nm_roster *roster, const struct nm_process *process)
{
	for (size_t i = roster->nr_threads; process->nr_threads > 0 && i-- > 0;)
		if (roster->threads[i]->process == process)
			nm_roster_remove_thread(roster, roster->threads[i]);
}

void nm_roster_remove_process(struct nm_roster *roster, struct nm_process *process)
{
	nm_roster_remove_threads_of(roster, process);
	uint32_t index = nm_tidmap_get(roster->process_of, process->pid);
	struct nm_process *last = roster->processes[--roster->nr_processes];

	nm_tidmap_remove(roster->process_of, process->pid);
	if (last != process) {
		roster->processes[index] = last;
		(void)nm_tidmap_set(roster->process_of, last->pid, index);
	}
	free_process(roster, process);
}

int nm_roster_add_process(struct nm_roster *roster, uint32_t pid, struct nm_process **ret)
{
	NM_RESERVE(roster->processes, roster->processes_capacity, roster->nr_processes);
	int r = nm_tidmap_set(roster->process_of, pid, (uint32_t)roster->nr_processes);
	if (r < 0)
		return r;
	struct nm_process *process = nm_must(calloc(1, sizeof(*process)));
	process->pid = pid;
	process->eligibility = NM_ELIGIBILITY_IDLE;
	roster->processes[roster->nr_processes++] = process;
	*ret = process;
	return 0;
}

int nm_roster_add_thread(struct nm_roster *roster, struct nm_process *process, uint32_t tid,
			 uint64_t now_ns)
{
	NM_RESERVE(roster->threads, roster->threads_capacity, roster->nr_threads);
	struct nm_roster_thread *thread = nm_must(calloc(1, sizeof(*thread)));
	thread->process = process;
	thread->member = (struct nm_member){
		.tid = tid, .pid = process->pid, .process = process, .adopted_ns = now_ns};
	thread->last_seen_ns = now_ns;

	int r = nm_roster_check_thread(roster, thread, now_ns);
	if (r == 0)
		r = nm_tidmap_set(roster->thread_of, tid, (uint32_t)roster->nr_threads);
	if (r < 0) {
		free_thread(thread);
		return r;
	}
	roster->threads[roster->nr_threads++] = thread;
	process->nr_threads++;
	return 0;
}
