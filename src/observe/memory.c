/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "numa-migrd/base.h"
#include "observe/memory.h"

#define BATCH 64U
#define TEND_SHARE 0.1 /* share of the table scanned in each interval */
#define SETTLED_INTERVALS 3

struct thread {
	uint32_t tid;	    /* 0: it has exited */
	int node;	    /* on which it ran last; -1: several */
	unsigned intervals; /* for which it has stayed there */
	bool held;	    /* it runs nowhere else */
};

struct nm_memory {
	const struct nm_topology *topology;
	struct nm_pages *pages;
	struct nm_affinity *affinity;
	uint32_t now_s;
	bool follows_all; /* pages follow threads that may leave their node, too */
	/* Policy "kmaf" alone reads the communication matrix, and its pages wait for the placement
	 * of their threads (section 3.3). Others place threads individually at any time. */
	bool maps_threads;

	struct nm_column threads;   /* of struct thread */
	struct nm_column processes; /* of struct nm_memory_process */

	struct nm_page_touch touches[BATCH];
	uint32_t touch_pids[BATCH];
	size_t nr_touches;
	struct nm_memory_wanted *wanted;
	size_t nr_wanted;
};

/* Its pages become invalid. */
static void close_process(void *context, void *cell)
{
	struct nm_memory *memory = context;
	struct nm_memory_process *process = cell;

	if (!process->owner)
		return;
	nm_pages_close(memory->pages, process->owner);
	process->owner = 0;
}

static void leave(void *context, void *cell)
{
	struct nm_memory *memory = context;
	const struct thread *thread = cell;

	if (thread->tid)
		nm_affinity_leave(memory->affinity, thread->tid, memory->now_s);
}

static void set_rules(struct nm_memory *memory, const struct nm_config *config)
{
	memory->follows_all = config->rules.paper;
	memory->maps_threads = config->threads.policy == NM_POLICY_KMAF;
}

void nm_memory_new(const struct nm_topology *topology, const struct nm_config *config,
		   const uint64_t key[4], struct nm_memory **ret)
{
	nm_auto(nm_memory_freep) struct nm_memory *memory = nm_must(calloc(1, sizeof(*memory)));

	memory->topology = topology;
	set_rules(memory, config);
	memory->threads = (struct nm_column){
		.cell_bytes = sizeof(struct thread), .clear = leave, .context = memory};
	memory->processes = (struct nm_column){.cell_bytes = sizeof(struct nm_memory_process),
					       .clear = close_process,
					       .context = memory};
	memory->wanted = nm_must(calloc(NM_MEMORY_WANTED_MOST, sizeof(*memory->wanted)));
	nm_pages_new(config, topology->nr_nodes, key, &memory->pages);
	nm_affinity_new(config, &memory->affinity);
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		nm_pages_stand_in(memory->pages, k, (unsigned)topology->nodes[k].nearest_with_cpus);
	*ret = NM_TAKE(memory);
}

void nm_memory_free(struct nm_memory *memory)
{
	if (!memory)
		return;
	nm_column_clear(&memory->threads);
	nm_column_clear(&memory->processes);
	nm_pages_free(memory->pages);
	nm_affinity_free(memory->affinity);
	free(memory->wanted);
	free(memory);
}

void nm_memory_retarget(struct nm_memory *memory, const struct nm_topology *topology)
{
	memory->topology = topology;
}

void nm_memory_configure(struct nm_memory *memory, const struct nm_config *config)
{
	set_rules(memory, config);
	nm_pages_configure(memory->pages, config);
	nm_affinity_configure(memory->affinity, config);
}

/* ---- followed threads and processes ---- */

/* Its affinity, or the daemon's, leaves it no other node. */
static bool is_held(const struct nm_memory *memory, const struct nm_snap_thread *thread, int node)
{
	return thread->assigned == node ||
	       (!thread->everywhere && thread->allowed &&
		hwloc_bitmap_isincluded(thread->allowed, memory->topology->nodes[node].cpus));
}

static bool has_settled(const struct nm_memory *memory, uint32_t tid, unsigned node)
{
	const struct thread *thread =
		memory->follows_all ? NULL : nm_column_find(&memory->threads, tid);

	if (memory->follows_all)
		return true;
	return thread && thread->node == (int)node &&
	       (thread->held || thread->intervals >= SETTLED_INTERVALS);
}

/* Its pages may move from now on. */
static void release(struct nm_memory *memory, struct nm_memory_process *process)
{
	process->held = false;
	nm_pages_hold(memory->pages, process->owner, false);
}

void nm_memory_follow(struct nm_memory *memory, const struct nm_snapshot *snapshot)
{
	nm_memory_flush(memory);
	nm_column_follow_threads(&memory->threads, snapshot);
	nm_column_follow_processes(&memory->processes, snapshot);
	struct thread *threads = memory->threads.cells;
	uint16_t id;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *now = &snapshot->threads[i];
		struct thread *thread = &threads[i];
		if (memory->maps_threads)
			(void)nm_affinity_join(memory->affinity, now->tid, memory->now_s, &id);
		else
			nm_affinity_leave(memory->affinity, now->tid, memory->now_s);
		thread->tid = now->tid;
		if (now->stats.main_cpu < 0) /* it did not run */
			continue;
		thread->intervals =
			thread->node == now->stats.main_node ? thread->intervals + 1 : 1;
		thread->node = now->stats.main_node;
		thread->held =
			now->stats.main_node >= 0 && is_held(memory, now, now->stats.main_node);
	}
	struct nm_memory_process *processes = memory->processes.cells;
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		struct nm_memory_process *process = &processes[i];
		process->pid = snapshot->processes[i].pid;
		process->threads = process->live = snapshot->processes[i].threads;
		if (!process->owner) {
			process->periods = 0;
			process->held = nm_pages_open(memory->pages, &process->owner) == 0;
		}
		if (process->held && !memory->maps_threads)
			release(memory, process);
	}
}

bool nm_memory_task_event(struct nm_memory *memory, const struct nm_task_event *event)
{
	struct nm_memory_process *process = nm_column_find(&memory->processes, event->pid);

	if (!process || (event->kind != NM_TASK_EXIT && event->kind != NM_TASK_EXEC))
		return false;
	nm_memory_flush(memory);
	if (event->kind == NM_TASK_EXIT) {
		struct thread *thread = nm_column_find(&memory->threads, event->tid);
		if (!thread || !thread->tid)
			return false;
		thread->tid = 0;
		nm_affinity_leave(memory->affinity, event->tid, memory->now_s);
		if (process->live == 0 || --process->live > 0)
			return false;
	}
	close_process(memory, process);
	return true;
}

/* ---- samples ---- */

static bool is_access(const struct nm_sample *sample)
{
	return sample->address &&
	       (sample->kind == NM_EVENT_FAULT_MIN || sample->kind == NM_EVENT_FAULT_MAJ ||
		sample->kind == NM_EVENT_MEMORY || sample->kind == NM_EVENT_STORE);
}

const struct nm_page_touch *nm_memory_add(struct nm_memory *memory, const struct nm_sample *sample)
{
	if (!is_access(sample) || sample->cpu >= memory->topology->nr_cpus)
		return NULL;
	const struct nm_memory_process *process = nm_memory_process(memory, sample->pid);
	int node = memory->topology->cpus[sample->cpu].node;
	if (!process || node < 0)
		return NULL;
	uint32_t now_s = (uint32_t)(sample->time_ns / NM_NSEC_PER_SEC);
	memory->now_s = now_s > memory->now_s ? now_s : memory->now_s;
	struct nm_page_touch *touch = &memory->touches[memory->nr_touches];
	memory->touch_pids[memory->nr_touches++] = sample->pid;
	*touch = (struct nm_page_touch){
		.page = {.address = sample->address,
			 .owner = process->owner,
			 .size = nm_page_size_of(sample->page_bytes)},
		.node = (uint16_t)node,
		.page_node = (int16_t)nm_sample_node(sample, memory->topology->nr_nodes),
		.thread = nm_affinity_id(memory->affinity, sample->tid),
		.physical_address = sample->physical_address,
		.passing = !has_settled(memory, sample->tid, (unsigned)node),
	};
	if (memory->nr_touches == BATCH)
		nm_memory_flush(memory);
	return touch;
}

static void want(struct nm_memory *memory, size_t index, int16_t target)
{
	const struct nm_page_touch *touch = &memory->touches[index];
	struct nm_page_view view;

	if (memory->nr_wanted == NM_MEMORY_WANTED_MOST ||
	    nm_pages_look(memory->pages, memory->now_s, &touch->page, &view) < 0) {
		(void)nm_pages_end_check(memory->pages, memory->now_s, &touch->page,
					 NM_PAGE_DROPPED, 0);
		return;
	}
	memory->wanted[memory->nr_wanted++] =
		(struct nm_memory_wanted){.pid = memory->touch_pids[index],
					  .from = (int16_t)view.page_node,
					  .to = target,
					  .page = touch->page};
}

void nm_memory_flush(struct nm_memory *memory)
{
	struct nm_page_finding findings[BATCH];

	if (memory->nr_touches == 0)
		return;
	nm_pages_touch(memory->pages, memory->now_s, memory->touches, memory->nr_touches, findings);
	for (size_t i = 0; i < memory->nr_touches; i++) {
		if (findings[i].partner)
			nm_affinity_share(memory->affinity, memory->touches[i].thread,
					  findings[i].partner);
		if (findings[i].target >= 0)
			want(memory, i, findings[i].target);
	}
	memory->nr_touches = 0;
}

/* ---- queries ---- */

size_t nm_memory_processes(const struct nm_memory *memory, const struct nm_memory_process **ret)
{
	*ret = memory->processes.cells;
	return memory->processes.count;
}

const struct nm_memory_process *nm_memory_process(const struct nm_memory *memory, uint32_t pid)
{
	const struct nm_memory_process *process =
		memory ? nm_column_find(&memory->processes, pid) : NULL;
	return process && process->owner ? process : NULL;
}

void nm_memory_mapping_over(struct nm_memory *memory, uint32_t pid, bool mapped)
{
	struct nm_memory_process *process = nm_column_find(&memory->processes, pid);

	if (!process || !process->held)
		return;
	process->periods++;
	if (!mapped && process->threads > 1 && process->periods < NM_MEMORY_QUIET_PERIODS)
		return;
	release(memory, process);
}

size_t nm_memory_wanted(const struct nm_memory *memory, const struct nm_memory_wanted **ret)
{
	*ret = memory->wanted;
	return memory->nr_wanted;
}

void nm_memory_take(struct nm_memory *memory, size_t index)
{
	memory->wanted[index].checked = true;
}

void nm_memory_end_check(struct nm_memory *memory, const struct nm_page_id *page,
			 enum nm_page_outcome outcome, unsigned node)
{
	/* The page may have been evicted, or its process may have exited. */
	(void)nm_pages_end_check(memory->pages, memory->now_s, page, outcome, node);
}

void nm_memory_update(struct nm_memory *memory)
{
	nm_memory_flush(memory);
	nm_pages_update(memory->pages, memory->now_s, TEND_SHARE);
	for (size_t i = 0; i < memory->nr_wanted; i++)
		if (!memory->wanted[i].checked)
			nm_memory_end_check(memory, &memory->wanted[i].page, NM_PAGE_DROPPED, 0);
	memory->nr_wanted = 0;
}

int nm_memory_look(const struct nm_memory *memory, const struct nm_page_id *page,
		   struct nm_page_view *ret)
{
	return nm_pages_look(memory->pages, memory->now_s, page, ret);
}

struct nm_pages *nm_memory_pages(struct nm_memory *memory)
{
	return memory->pages;
}

struct nm_affinity *nm_memory_affinity(struct nm_memory *memory)
{
	return memory->affinity;
}

struct nm_exclusivity nm_memory_exclusivity(const struct nm_memory *memory)
{
	const struct nm_memory_process *processes = memory->processes.cells;
	struct nm_exclusivity sums = {0};

	for (size_t i = 0; i < memory->processes.count; i++) {
		struct nm_exclusivity one = nm_pages_exclusivity(memory->pages, processes[i].owner);
		sums.pages += one.pages;
		sums.accesses += one.accesses;
		sums.most += one.most;
		for (unsigned step = 0; step < NM_EXCLUSIVITY_STEPS; step++)
			sums.histogram[step] += one.histogram[step];
	}
	return sums;
}
