/* SPDX-License-Identifier: MIT */
/* A scheduler that resembles Linux in the relevant aspects: it balances CPUs, respects affinities,
 * and ignores memory. */
#include <string.h>

#include "model.h"

/* Probability per step that an idle CPU of another node pulls a waiting thread. */
#define FAR_PULL 0.5
#define TRIES 2	     /* CPUs with which a queueing thread is compared per step */
#define COLD_S 0.003 /* time lost by a thread that leaves its caches on another node */

bool nm_sim_may_run(const struct nm_sim *sim, const struct nm_sim_task *task, int cpu)
{
	if (!task->mask)
		return sim->open_cpus[cpu];
	return hwloc_bitmap_isset(task->mask, (unsigned)cpu) &&
	       hwloc_bitmap_isset(sim->machine->topology->online, (unsigned)cpu);
}

void nm_sim_count_runnable(struct nm_sim *sim)
{
	memset(sim->nr_runnable, 0, sim->nr_cpus * sizeof(*sim->nr_runnable));
	memset(sim->nr_core_runnable, 0, sim->nr_cores * sizeof(*sim->nr_core_runnable));
	for (size_t i = 0; i < sim->nr_live; i++) {
		if (!nm_sim_is_awake(sim, sim->live[i]))
			continue;
		sim->nr_runnable[sim->live[i]->cpu]++;
		sim->nr_core_runnable[sim->machine->topology->cpus[sim->live[i]->cpu].core]++;
	}
}

static unsigned *core_runnable_of(struct nm_sim *sim, int cpu)
{
	return &sim->nr_core_runnable[sim->machine->topology->cpus[cpu].core];
}

/* Prefers the fewest threads on the CPU, then the fewest on its core; random among equal ones. */
static int find_emptiest_cpu(struct nm_sim *sim, const struct nm_sim_task *task)
{
	uint64_t best_key = UINT64_MAX;
	unsigned ties = 0;
	int best = -1;
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++) {
		if (!nm_sim_may_run(sim, task, (int)cpu))
			continue;
		uint64_t key =
			(uint64_t)sim->nr_runnable[cpu] << 32 | *core_runnable_of(sim, (int)cpu);
		if (key > best_key)
			continue;
		ties = key == best_key ? ties + 1 : 1;
		best_key = key;
		if (nm_rng_below(&sim->rng, ties) == 0)
			best = (int)cpu;
	}
	return best;
}

void nm_sim_place(struct nm_sim *sim, struct nm_sim_task *task)
{
	int cpu = find_emptiest_cpu(sim, task);
	task->cpu = cpu < 0 ? hwloc_bitmap_first(sim->machine->topology->online) : cpu;
	sim->nr_runnable[task->cpu]++;
	++*core_runnable_of(sim, task->cpu);
}

void nm_sim_move(struct nm_sim *sim, struct nm_sim_task *task, int cpu)
{
	if (cpu == task->cpu)
		return;
	if (nm_sim_is_awake(sim, task)) {
		sim->nr_runnable[task->cpu]--;
		--*core_runnable_of(sim, task->cpu);
		sim->nr_runnable[cpu]++;
		++*core_runnable_of(sim, cpu);
	}
	if (nm_sim_node_of(sim, cpu) != nm_sim_node_of(sim, task->cpu)) {
		sim->figures.moves++;
		task->lost_s += COLD_S;
	}
	task->cpu = cpu;
}

int nm_sim_idle_in(const struct nm_sim *sim, const struct nm_sim_task *task, int node)
{
	hwloc_const_bitmap_t cpus = sim->machine->topology->nodes[node].cpus;
	int found = -1;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		if (sim->nr_runnable[cpu] > 0 || !nm_sim_may_run(sim, task, cpu))
			continue;
		found = cpu;
		if (sim->nr_core_runnable[sim->machine->topology->cpus[cpu].core] == 0)
			break;
	}
	return found;
}

/* Compares the CPU with some others, as the domains of the load balancer do in turn. */
static void balance_with_others(struct nm_sim *sim, struct nm_sim_task *task)
{
	for (unsigned i = 0; i < TRIES; i++) {
		int cpu = (int)nm_rng_below(&sim->rng, sim->nr_cpus);
		if (sim->nr_runnable[cpu] + 1 < sim->nr_runnable[task->cpu] &&
		    nm_sim_may_run(sim, task, cpu)) {
			nm_sim_move(sim, nm_sim_choose(sim, task, cpu), cpu);
			return;
		}
	}
}

static int idle_anywhere(struct nm_sim *sim, const struct nm_sim_task *task)
{
	unsigned first = (unsigned)nm_rng_below(&sim->rng, sim->nr_nodes);
	int cpu = -1;
	for (unsigned i = 0; cpu < 0 && i < sim->nr_nodes; i++)
		cpu = nm_sim_idle_in(sim, task, (int)((first + i) % sim->nr_nodes));
	return cpu;
}

/* If affinities prevent a queueing thread from moving, another thread that may leave makes room:
 * Linux calls this an imbalanced group. */
static int free_cpu_for(struct nm_sim *sim, const struct nm_sim_task *task)
{
	int home = nm_sim_node_of(sim, task->cpu);
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *other = sim->live[i];
		int cpu = other->cpu;
		if (nm_sim_node_of(sim, cpu) != home || sim->nr_runnable[cpu] != 1 ||
		    !nm_sim_is_awake(sim, other) || !nm_sim_may_run(sim, task, cpu))
			continue;
		int idle = idle_anywhere(sim, other);
		if (idle < 0)
			continue;
		nm_sim_move(sim, other, idle);
		return cpu;
	}
	return -1;
}

static void stop_queueing(struct nm_sim *sim, struct nm_sim_task *task, bool some_idle)
{
	int home = nm_sim_node_of(sim, task->cpu);
	int cpu = some_idle ? nm_sim_idle_in(sim, task, home) : -1;
	if (cpu < 0 && some_idle && nm_rng_unit(&sim->rng) < FAR_PULL) {
		cpu = idle_anywhere(sim, task);
		if (cpu < 0 && task->mask)
			cpu = free_cpu_for(sim, task);
	}
	if (cpu >= 0)
		nm_sim_move(sim, nm_sim_choose(sim, task, cpu), cpu);
	else
		balance_with_others(sim, task);
}

/* The kernel's balancing keeps tasks on their preferred node while no task waits
 * (migrate_degrades_locality()), and its cache-aware scheduling under their preferred cache. */
static bool is_kept(const struct nm_sim *sim, const struct nm_sim_task *task, int cpu)
{
	int here = nm_sim_node_of(sim, task->cpu);
	bool keeps = (sim->options.numa_balancing && task->preferred == here) ||
		     nm_sim_is_gathered(sim, task);
	return keeps && nm_sim_node_of(sim, cpu) != here;
}

/*
 * A thread is moved although its CPU is its own: other activity (kernel threads, interrupts, exits
 * of other programs) makes it wait, and another CPU pulls it; either to a less loaded CPU, or in a
 * swap with another thread.
 */
static void move_at_random(struct nm_sim *sim, struct nm_sim_task *task)
{
	int cpu = (int)nm_rng_below(&sim->rng, sim->nr_cpus);
	struct nm_sim_task *other = sim->live[nm_rng_below(&sim->rng, sim->nr_live)];
	if (nm_sim_may_run(sim, task, cpu) && sim->nr_runnable[cpu] < sim->nr_runnable[task->cpu]) {
		if (!is_kept(sim, task, cpu))
			nm_sim_move(sim, task, cpu);
		return;
	}
	cpu = task->cpu;
	if (is_kept(sim, task, other->cpu) || is_kept(sim, other, cpu) ||
	    !nm_sim_may_run(sim, task, other->cpu) || !nm_sim_may_run(sim, other, cpu))
		return;
	nm_sim_move(sim, task, other->cpu);
	nm_sim_move(sim, other, cpu);
}

static bool any_idle(const struct nm_sim *sim)
{
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++)
		if (sim->nr_runnable[cpu] == 0 &&
		    hwloc_bitmap_isset(sim->machine->topology->usable, cpu))
			return true;
	return false;
}

void nm_sim_follow_mask(struct nm_sim *sim, struct nm_sim_task *task)
{
	if (!nm_sim_is_awake(sim, task) || nm_sim_may_run(sim, task, task->cpu))
		return;
	int cpu = find_emptiest_cpu(sim, task);
	nm_sim_move(sim, task, cpu < 0 ? task->cpu : cpu);
}

void nm_sim_schedule(struct nm_sim *sim)
{
	bool some_idle = any_idle(sim);
	double chance = sim->options.wander_per_s * sim->options.step_s;
	for (size_t i = 0; i < sim->nr_live; i++) {
		struct nm_sim_task *task = sim->live[i];
		if (!nm_sim_is_awake(sim, task))
			continue;
		nm_sim_follow_mask(sim, task);
		if (sim->nr_runnable[task->cpu] > 1)
			stop_queueing(sim, task, some_idle);
		if (nm_rng_unit(&sim->rng) < chance)
			move_at_random(sim, task);
	}
}
