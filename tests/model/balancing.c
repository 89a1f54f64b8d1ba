/* SPDX-License-Identifier: MIT */
/*
 * kernel.numa_balancing, as in kernel/sched/fair.c of Linux 6.1: hinting faults by scans with
 * back-off, pages that move after two faults from one node, preferred nodes, and tasks that move or
 * swap to them. Its cost is charged, like that of pages_move(), to the thread that faults. Not
 * modelled: the weighting of group faults by the activity of nodes, and the traffic of the copies.
 */
#include <math.h>
#include <string.h>

#include "model.h"

/* numa_balancing_scan_delay_ms, _period_min_ms, _period_max_ms; MAX_SCAN_WINDOW: MB per second. */
#define SCAN_DELAY_S 1.0
#define PASS_MIN_S 1.0
#define PASS_MAX_S 60.0
#define SCAN_MAX_BYTES_PER_S (2560.0 * 1048576)
/* NUMA_PERIOD_SLOTS, NUMA_PERIOD_THRESHOLD */
#define SLOTS 10.0
#define THRESHOLD 7.0
#define EARLY_PASSES 4	    /* number of passes in which a thread's own pages follow at once */
#define RETRY_S 1.0	    /* numa_migrate_retry: at most one second */
#define SMALL_GAIN 0.03	    /* SMALLIMP, 30 of 1000 */
#define SWAP_WITHIN 15 / 16 /* of a gain, between threads of one group: hysteresis */
#define IMBALANCE 0.25 /* share of a node's CPUs that may be busy before others must be
			* (imb_numa_nr) */
#define FAULT_S 1e-6   /* cost of a minor fault: an estimate */

/* ---- faults ---- */

static bool is_misplaced(const struct nm_sim_process *process, const struct nm_sim_task *task,
			 size_t page, int node)
{
	unsigned last = process->last_block[page];
	if (process->home[page] == node)
		return false;
	if (last == 0 || (process->passes < EARLY_PASSES && last == task->block + 1))
		return true;
	return process->last_node[page] == node;
}

static int fault(struct nm_sim *sim, struct nm_sim_process *process, size_t page)
{
	struct nm_sim_task *task = nm_sim_draw_accessor(sim, process, page);
	uint64_t bytes = nm_sim_page_bytes(process);
	if (process->home[page] == NM_SIM_UNTOUCHED || !nm_sim_is_awake(sim, task))
		return 0;
	int node = nm_sim_node_of(sim, task->cpu);
	int r = nm_sim_sample_fault(sim, task, page);
	if (r < 0)
		return r;
	process->faults[process->last_block[page] == task->block + 1]++;
	process->places[process->home[page] == node]++;
	task->lost_s += FAULT_S;
	if (is_misplaced(process, task, page, node) &&
	    nm_sim_may_balance_to(sim, (unsigned)node, bytes)) {
		nm_sim_set_home(sim, process, page, (unsigned)node);
		task->lost_s += (double)bytes / NM_SIM_MOVE_BYTES_PER_S;
		sim->figures.pages_balanced++;
	}
	process->last_block[page] = task->block + 1;
	process->last_node[page] = (uint8_t)node;
	task->found[process->home[page]]++;
	return 0;
}

/* ---- scans ---- */

static double shortest_pass(const struct nm_sim_process *process)
{
	double bytes = (double)process->nr_pages * (double)nm_sim_page_bytes(process);
	return fmax(PASS_MIN_S, bytes / SCAN_MAX_BYTES_PER_S);
}

/* update_task_scan_period(), with the faults of all threads together. */
static void adapt_pass(struct nm_sim_process *process)
{
	double other = process->faults[0], own = process->faults[1];
	double remote = process->places[0], local = process->places[1];
	double least = shortest_pass(process), slot = process->pass_s / SLOTS, diff;
	if (local + other > 0) {
		double near = floor(SLOTS * local / (local + remote));
		double private = floor(SLOTS * own / (own + other));
		double chosen = private >= THRESHOLD ? private : near;
		if (chosen >= THRESHOLD)
			diff = fmax(chosen - THRESHOLD, 1) * slot;
		else
			diff = -(THRESHOLD - fmax(near, private)) * slot;
	} else {
		diff = process->pass_s;
	}
	process->pass_s = fmin(fmax(process->pass_s + diff, least), fmax(least, PASS_MAX_S));
	memset(process->faults, 0, sizeof(process->faults));
	memset(process->places, 0, sizeof(process->places));
}

static bool shares_memory(const struct nm_sim_process *process)
{
	const struct nm_sim_phase *phase = &process->program->phases[process->tasks[0].phase];
	return process->program->threads > 1 && phase->private_part < 1;
}

static double faults_on(const struct nm_sim_process *process, const struct nm_sim_task *task,
			unsigned node, bool group)
{
	double sum = 0;
	for (unsigned i = 0; group && i < process->program->threads; i++)
		sum += process->tasks[i].faults[node];
	return group ? sum : task->faults[node];
}

static int preferred_of(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	bool group = shares_memory(task->process);
	double most = 0;
	int preferred = -1;
	for (unsigned k = 0; k < sim->nr_nodes; k++) {
		double faults = faults_on(task->process, task, k, group);
		if (faults > most) {
			most = faults;
			preferred = (int)k;
		}
	}
	return preferred;
}

/* task_numa_placement(): after each pass the counts are halved. */
static void end_pass(struct nm_sim *sim, struct nm_sim_process *process)
{
	process->passes++;
	adapt_pass(process);
	for (unsigned i = 0; i < process->program->threads; i++) {
		struct nm_sim_task *task = &process->tasks[i];
		for (unsigned k = 0; k < sim->nr_nodes; k++) {
			task->faults[k] = task->faults[k] / 2 + task->found[k];
			task->found[k] = 0;
		}
	}
	for (unsigned i = 0; i < process->program->threads; i++)
		process->tasks[i].preferred = preferred_of(sim, &process->tasks[i]);
}

static int scan(struct nm_sim *sim, struct nm_sim_process *process, double step_s)
{
	if (!(process->pass_s > 0))
		process->pass_s = shortest_pass(process);
	process->scan_due += (double)process->nr_pages * step_s / process->pass_s;
	int r = 0;
	while (process->scan_due >= 1 && r == 0) {
		process->scan_due--;
		r = fault(sim, process, process->scanned);
		if (++process->scanned < process->nr_pages)
			continue;
		process->scanned = 0;
		end_pass(sim, process);
	}
	return r;
}

/* ---- tasks ---- */

/* Returns the share of the accesses of a task, or of its group, to the node. */
static double weight(const struct nm_sim *sim, const struct nm_sim_task *task, int node, bool group)
{
	double sum = 0;
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		sum += faults_on(task->process, task, k, group);
	return sum > 0 ? faults_on(task->process, task, (unsigned)node, group) / sum : 0;
}

static double gain(const struct nm_sim *sim, const struct nm_sim_task *task, int from, int to,
		   bool group)
{
	return weight(sim, task, to, group) - weight(sim, task, from, group);
}

static unsigned running_on(const struct nm_sim *sim, int node)
{
	hwloc_const_bitmap_t cpus = sim->machine->topology->nodes[node].cpus;
	unsigned count = 0;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		count += sim->nr_runnable[cpu];
	return count;
}

static bool may_unbalance(const struct nm_sim *sim, int from, int to)
{
	unsigned there = running_on(sim, to) + 1, here = running_on(sim, from) - 1;
	double cpus = hwloc_bitmap_weight(sim->machine->topology->nodes[to].cpus);
	return there <= here || there <= IMBALANCE * cpus;
}

struct choice {
	int cpu;		   /* -1: none */
	struct nm_sim_task *other; /* swap partner; NULL: the CPU is idle */
	double gain;
};

/* task_numa_compare(): a swap counts the gains of both. */
static void consider_swap(const struct nm_sim *sim, struct nm_sim_task *task,
			  struct nm_sim_task *other, struct choice *best)
{
	int from = nm_sim_node_of(sim, task->cpu), to = nm_sim_node_of(sim, other->cpu);
	bool within = other->process == task->process;
	if (other->preferred == to && task->preferred != to)
		return;
	double both = gain(sim, task, from, to, !within && shares_memory(task->process)) +
		      gain(sim, other, to, from, !within && shares_memory(other->process));
	if (within)
		both = both * SWAP_WITHIN;
	if (both > fmax(best->gain, SMALL_GAIN) && nm_sim_may_run(sim, task, other->cpu) &&
	    nm_sim_may_run(sim, other, task->cpu))
		*best = (struct choice){other->cpu, other, both};
}

static struct choice find_place(const struct nm_sim *sim, struct nm_sim_task *task, int to)
{
	struct choice best = {.cpu = -1};
	int from = nm_sim_node_of(sim, task->cpu);
	double alone = gain(sim, task, from, to, shares_memory(task->process));
	int idle = nm_sim_idle_in(sim, task, to);
	if (idle >= 0 && alone > 0 && may_unbalance(sim, from, to))
		return (struct choice){idle, NULL, alone};
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *other = sim->live[i];
		if (nm_sim_node_of(sim, other->cpu) == to && nm_sim_is_awake(sim, other) &&
		    sim->nr_runnable[other->cpu] == 1)
			consider_swap(sim, task, other, &best);
	}
	return best;
}

/* task_numa_migrate(): the preferred node first, then any node with a gain. */
static void migrate(struct nm_sim *sim, struct nm_sim_task *task)
{
	int here = nm_sim_node_of(sim, task->cpu), cpu = task->cpu;
	struct choice best = find_place(sim, task, task->preferred);
	bool group = shares_memory(task->process);
	for (unsigned k = 0; k < sim->nr_nodes && best.cpu < 0; k++)
		if ((int)k != here && (int)k != task->preferred &&
		    gain(sim, task, here, (int)k, group) > 0)
			best = find_place(sim, task, (int)k);
	if (best.cpu < 0)
		return;
	nm_sim_move(sim, task, best.cpu);
	if (best.other)
		nm_sim_move(sim, best.other, cpu);
}

static void migrate_tasks(struct nm_sim *sim, struct nm_sim_process *process)
{
	for (unsigned i = 0; i < process->program->threads; i++) {
		struct nm_sim_task *task = &process->tasks[i];
		if (nm_sim_is_awake(sim, task) && task->preferred >= 0 &&
		    task->preferred != nm_sim_node_of(sim, task->cpu))
			migrate(sim, task);
	}
	process->retry_s = sim->now_s + RETRY_S;
}

int nm_sim_balance_memory(struct nm_sim *sim, double step_s)
{
	int r = 0;
	for (size_t i = 0; i < sim->nr_processes && r == 0; i++) {
		struct nm_sim_process *process = sim->processes[i];
		/* Memory with a policy set by its owner is not moved. */
		if (process->user->placement != NM_SIM_PLACE_SYSTEM ||
		    sim->now_s < process->started_s + SCAN_DELAY_S)
			continue;
		r = scan(sim, process, step_s);
		if (sim->now_s >= process->retry_s)
			migrate_tasks(sim, process);
	}
	return r;
}
