/* SPDX-License-Identifier: MIT */
/* The life of users, programs and threads. */
#include <math.h>
#include <string.h>

#include "model.h"

void nm_sim_process_free(struct nm_sim_process *process)
{
	if (!process)
		return;
	for (unsigned i = 0; process->tasks && i < process->program->threads; i++)
		hwloc_bitmap_free(process->tasks[i].mask);
	free(process->tasks);
	free(process->mixes);
	free(process->home);
	free(process->came_from);
	free(process->came_s);
	free(process->block_on);
	free(process->on);
	free(process->last_block);
	free(process->last_node);
	free(process);
}
NM_DEFINE_CLEANUP(struct nm_sim_process, nm_sim_process_free);

/* Every block has at least one page. */
static size_t pages_of(const struct nm_sim_program *program)
{
	size_t pages = (size_t)(program->footprint_mb * 1024 / program->page_kb);
	return pages < program->threads ? program->threads : pages;
}

static int process_new(const struct nm_sim *sim, const struct nm_sim_program *program,
		       struct nm_sim_process **ret)
{
	nm_auto(nm_sim_process_freep) struct nm_sim_process *process = calloc(1, sizeof(*process));
	unsigned threads = program->threads;
	if (!process)
		return -ENOMEM;
	process->program = program;
	process->cache = -1;
	process->nr_pages = pages_of(program);
	process->tasks = calloc(threads, sizeof(*process->tasks));
	process->mixes = calloc((size_t)threads * sim->nr_nodes, 3 * sizeof(*process->mixes));
	process->home = malloc(process->nr_pages * sizeof(*process->home));
	process->came_from = malloc(process->nr_pages * sizeof(*process->came_from));
	process->came_s = calloc(process->nr_pages, sizeof(*process->came_s));
	process->block_on = calloc((size_t)threads * sim->nr_nodes, sizeof(*process->block_on));
	process->on = calloc(sim->nr_nodes, sizeof(*process->on));
	process->last_block = calloc(process->nr_pages, sizeof(*process->last_block));
	process->last_node = calloc(process->nr_pages, sizeof(*process->last_node));
	if (!process->tasks || !process->mixes || !process->home || !process->block_on ||
	    !process->on || !process->last_block || !process->last_node || !process->came_from ||
	    !process->came_s)
		return -ENOMEM;
	memset(process->home, NM_SIM_UNTOUCHED, process->nr_pages * sizeof(*process->home));
	memset(process->came_from, NM_SIM_UNTOUCHED, process->nr_pages);
	*ret = NM_TAKE(process);
	return 0;
}

/* The affinities of numactl and of the oracle are set from the start, as by their owner. */
static int bind_task(const struct nm_sim *sim, struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	int node = process->user->node;
	unsigned nodes = sim->nr_run_nodes;
	unsigned width = process->user->width ? process->user->width : nodes;
	unsigned part = (unsigned)((uint64_t)task->block * width / process->program->threads);
	/* If the blocks of a user do not divide evenly, those of the next user begin at the next
	 * node. */
	size_t first = node >= 0 ? (size_t)node : process->user_index;
	if (process->user->placement == NM_SIM_PLACE_ORACLE && nodes > 0)
		node = (int)sim->run_nodes[(part + first) % nodes];
	else if (process->user->placement != NM_SIM_PLACE_DIRECT)
		return 0;
	task->mask = hwloc_bitmap_dup(sim->machine->topology->nodes[node].cpus);
	return task->mask ? 0 : -ENOMEM;
}

static void prepare_threads(const struct nm_sim *sim, struct nm_sim_process *process)
{
	for (unsigned i = 0; i < process->program->threads; i++) {
		double *by_node = &process->mixes[3 * (size_t)i * sim->nr_nodes];
		process->tasks[i] =
			(struct nm_sim_task){.process = process,
					     .tid = process->pid + i,
					     .block = i,
					     .ended = true,
					     .duty = 1,
					     .preferred = -1,
					     .mix = by_node,
					     .faults = by_node + sim->nr_nodes,
					     .found = by_node + 2 * (size_t)sim->nr_nodes};
	}
}

static void insert_live(struct nm_sim *sim, struct nm_sim_task *task)
{
	size_t at = sim->nr_live++;
	for (; at > 0 && sim->live[at - 1]->tid > task->tid; at--)
		sim->live[at] = sim->live[at - 1];
	sim->live[at] = task;
}

static int start_thread(struct nm_sim *sim, struct nm_sim_task *task)
{
	NM_RESERVE(sim->live, sim->live_capacity, sim->nr_live);
	if (bind_task(sim, task) < 0)
		return -ENOMEM;
	task->ended = false;
	task->lost_s = 0;
	nm_sim_place(sim, task);
	insert_live(sim, task);
	return nm_sim_note_event(sim, NM_TASK_FORK, task);
}

/* All threads of the team continue from one count, when the last of them has woken up. */
static void wake_team(struct nm_sim_process *process, size_t phase)
{
	double most_total = 0, wake_s = 0;
	for (unsigned i = 0; i < process->program->threads; i++) {
		most_total = fmax(most_total, process->tasks[i].total);
		wake_s = fmax(wake_s, process->tasks[i].wake_s);
	}
	for (unsigned i = 0; i < process->program->threads; i++) {
		struct nm_sim_task *task = &process->tasks[i];
		task->phase = phase;
		task->waits = i >= nm_sim_team(process, phase);
		task->total = most_total;
		task->wake_s = wake_s;
	}
}

/* Begins a phase when no thread executes the previous one any more. */
static int begin_phase(struct nm_sim *sim, struct nm_sim_process *process, size_t phase)
{
	double touched = process->program->phases[phase].touched;
	int r = 0;
	wake_team(process, phase);
	nm_sim_count_runnable(sim);
	for (unsigned i = 0; i < nm_sim_team(process, phase) && r == 0; i++)
		if (process->tasks[i].ended)
			r = start_thread(sim, &process->tasks[i]);
	if (r == 0)
		nm_sim_touch_pages(sim, process, touched > 0 ? touched : 1);
	return r;
}

static bool is_between_phases(const struct nm_sim_process *process)
{
	for (unsigned i = 0; i < process->program->threads; i++)
		if (!process->tasks[i].ended && !process->tasks[i].waits)
			return false;
	return true;
}

static int advance_phases(struct nm_sim *sim)
{
	int r = 0;
	for (size_t i = 0; i < sim->nr_processes && r == 0; i++)
		if (is_between_phases(sim->processes[i]))
			r = begin_phase(sim, sim->processes[i],
					sim->processes[i]->tasks[0].phase + 1);
	return r;
}

static int start_program(struct nm_sim *sim, size_t user)
{
	struct nm_sim_user_state *state = &sim->users[user];
	struct nm_sim_process *process = NULL;
	if (NM_SIM_LAST_PID - sim->next_pid <
	    sim->workload->users[user].programs[state->next].threads)
		return -EAGAIN;
	NM_RESERVE(sim->processes, sim->processes_capacity, sim->nr_processes);
	if (process_new(sim, &sim->workload->users[user].programs[state->next], &process) < 0)
		return -ENOMEM;
	process->user = &sim->workload->users[user];
	process->user_index = user;
	process->pid = sim->next_pid;
	process->started_s = sim->now_s;
	sim->next_pid += process->program->threads;
	sim->processes[sim->nr_processes++] = process;
	state->running = process;
	prepare_threads(sim, process);
	return begin_phase(sim, process, 0);
}

int nm_sim_begin_programs(struct nm_sim *sim)
{
	int began = advance_phases(sim);
	if (began < 0)
		return began;
	for (size_t u = 0; u < sim->workload->nr_users; u++) {
		struct nm_sim_user_state *state = &sim->users[u];
		if (state->done || state->running || state->due_s > sim->now_s)
			continue;
		int r = start_program(sim, u);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- ends ---- */

static void drop_threads(struct nm_sim *sim, const struct nm_sim_process *process)
{
	size_t kept = 0;
	for (size_t i = 0; i < sim->nr_live; i++)
		if (sim->live[i]->process != process)
			sim->live[kept++] = sim->live[i];
	sim->nr_live = kept;
	for (unsigned i = 0; i < process->program->threads; i++)
		(void)nm_sim_note_event(sim, NM_TASK_EXIT, &process->tasks[i]);
}

static void end_program(struct nm_sim *sim, struct nm_sim_process *process)
{
	struct nm_sim_user_state *state = &sim->users[process->user_index];
	double took_s = sim->now_s - process->started_s;
	state->computing_s += took_s;
	state->running = NULL;
	state->due_s = sim->now_s + process->user->idle_s;
	if (++state->next == process->user->nr_programs && process->user->for_ever)
		state->next = 0;
	state->done = state->next == process->user->nr_programs;
	if (!process->user->for_ever)
		sim->figures.computing_s += took_s;
	sim->figures.programs_ended++;
	sim->figures.watched_ended |= process->pid == sim->options.watched_pid;
	sim->figures.users_ended += state->done;
	if (!process->user->for_ever && state->computing_s > sim->figures.slowest_user_s)
		sim->figures.slowest_user_s = state->computing_s;
	nm_sim_release_pages(sim, process);
	drop_threads(sim, process);
	nm_sim_process_free(process);
}

/*
 * The first thread executes each phase; threads that do not take part in the last one end with it.
 */
static bool all_ended(const struct nm_sim_process *process)
{
	return process->tasks[0].ended && is_between_phases(process);
}

void nm_sim_end_programs(struct nm_sim *sim)
{
	size_t kept = 0;
	for (size_t i = 0; i < sim->nr_processes; i++) {
		if (all_ended(sim->processes[i]))
			end_program(sim, sim->processes[i]);
		else
			sim->processes[kept++] = sim->processes[i];
	}
	sim->nr_processes = kept;
}

/* ---- lookups ---- */

/* Numbers are ascending, and a process has the numbers of its threads: returns the last process
 * that is not above. */
static struct nm_sim_process *process_with(const struct nm_sim *sim, uint32_t tid)
{
	size_t low = 0, high = sim->nr_processes;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (sim->processes[middle]->pid <= tid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	struct nm_sim_process *process = sim->processes[low - 1];
	return tid - process->pid < process->program->threads ? process : NULL;
}

struct nm_sim_process *nm_sim_find_process(const struct nm_sim *sim, uint32_t pid)
{
	struct nm_sim_process *process = process_with(sim, pid);
	return process && process->pid == pid ? process : NULL;
}

struct nm_sim_task *nm_sim_find_task(const struct nm_sim *sim, uint32_t tid)
{
	struct nm_sim_process *process = process_with(sim, tid);
	struct nm_sim_task *task = process ? &process->tasks[tid - process->pid] : NULL;
	return task && (!task->ended || tid == process->pid) ? task : NULL;
}
