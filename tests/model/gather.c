/* SPDX-License-Identifier: MIT */
/*
 * Cache-aware scheduling as proposed for Linux (version 4, April 2026), without its limit on the
 * resident set (llc_balancing/aggr_tolerance at its highest value): threads of a process gather
 * under the last-level cache where most of them run, if it has a core for each and is less than 50
 * % busy.
 */
#include <string.h>

#include "model.h"

#define CLEARLY 2U    /* factor of threads by which another cache must exceed the preferred one */
#define BUSY_MAX                                                                                   \
	0.5 /* share of the cache's CPUs that may be busy to accept one more thread:               \
	     * llc_balancing/overaggr_pct */

static int cache_of(const struct nm_sim *sim, int cpu)
{
	return sim->machine->topology->cpus[cpu].cache;
}

static unsigned count_running_under(const struct nm_sim *sim, const struct nm_sim_process *process,
				    int cache)
{
	unsigned count = 0;
	for (unsigned i = 0; i < process->program->threads; i++)
		count += nm_sim_is_awake(sim, &process->tasks[i]) &&
			 cache_of(sim, process->tasks[i].cpu) == cache;
	return count;
}

static int preferred_cache(const struct nm_sim *sim, const struct nm_sim_process *process)
{
	int best = process->cache;
	unsigned most = best >= 0 ? CLEARLY * count_running_under(sim, process, best) : 0;
	for (unsigned i = 0; i < process->program->threads; i++) {
		int cache = cache_of(sim, process->tasks[i].cpu);
		unsigned count = count_running_under(sim, process, cache);
		if (count > most) {
			most = count;
			best = cache;
		}
	}
	return best;
}

/* Returns an idle CPU under the cache; -1: none, or the cache is too busy. */
static int idle_cpu_under(const struct nm_sim *sim, const struct nm_sim_task *task, int cache)
{
	unsigned cpus = 0, busy = 0;
	int idle = -1;
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++) {
		if (cache_of(sim, (int)cpu) != cache)
			continue;
		cpus++;
		busy += sim->nr_runnable[cpu] > 0;
		if (sim->nr_runnable[cpu] == 0 && nm_sim_may_run(sim, task, (int)cpu))
			idle = (int)cpu;
	}
	return busy < BUSY_MAX * cpus ? idle : -1;
}

static unsigned count_cpus_under(const struct nm_sim *sim, int cache)
{
	unsigned count = 0;
	for (unsigned cpu = 0; cpu < sim->nr_cpus; cpu++)
		count += cache_of(sim, (int)cpu) == cache;
	return count;
}

static void assign_caches(struct nm_sim *sim, struct nm_sim_process *process)
{
	unsigned awake = 0;
	for (unsigned i = 0; i < process->program->threads; i++)
		awake += nm_sim_is_awake(sim, &process->tasks[i]);
	process->cache = preferred_cache(sim, process);
	if (process->cache < 0 || awake > count_cpus_under(sim, process->cache)) {
		process->cache = -1;
		return;
	}
	for (unsigned i = 0; i < process->program->threads; i++) {
		struct nm_sim_task *task = &process->tasks[i];
		if (!nm_sim_is_awake(sim, task) || cache_of(sim, task->cpu) == process->cache)
			continue;
		int cpu = idle_cpu_under(sim, task, process->cache);
		if (cpu >= 0)
			nm_sim_move(sim, task, cpu);
		return; /* one at a time, like the load balancer */
	}
}

void nm_sim_gather(struct nm_sim *sim)
{
	for (size_t i = 0; i < sim->nr_processes && sim->options.cache_aware; i++)
		if (sim->processes[i]->program->threads > 1)
			assign_caches(sim, sim->processes[i]);
}

bool nm_sim_is_gathered(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	return sim->options.cache_aware && task->process->cache >= 0 &&
	       cache_of(sim, task->cpu) == task->process->cache;
}
