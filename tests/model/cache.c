/* SPDX-License-Identifier: MIT */
/*
 * Shared last-level caches, of machines that have them in the model; on the others a program's
 * misses are constants.
 *
 * Capacity: threads under one cache compete for it, and occupy it in proportion to the lines that
 * they load. A program's misses are those with an equal share for each CPU, and follow the square
 * root of the share: the empirical rule of Hartstein, Srinivasan, Puzak and Emma, "Cache miss
 * behavior: is it √2?" (Computing Frontiers 2006). It is applied up to a factor of four in size, in
 * both directions; a thread whose own block fits has the fewest misses.
 *
 * Coherence: lines of a neighbour's block are in its cache. Under the same cache the access
 * hits. Otherwise the line comes from the neighbour's node, as late as from the memory there, as
 * Molka, Hackenberg, Schöne and Müller found it for modified lines of Nehalem ("Memory
 * performance and cache coherency effects", PACT 2009). The share of accesses that write waits for
 * the invalidation, too: another way there and back.
 */
#include <math.h>
#include <string.h>

#include "model.h"

#define SIZE_FACTOR_MOST 4.0
#define HIT_CYCLES 60.0 /* with a look into the neighbour's own caches: an estimate */

static int cache_of(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	return sim->machine->topology->cpus[task->cpu].cache;
}

static double lines_loaded(const struct nm_sim_task *task)
{
	return task->cpu_share * nm_sim_phase_of(task)->misses_per_kilo;
}

double nm_sim_hit_ns(const struct nm_sim *sim)
{
	return HIT_CYCLES / sim->machine->ghz;
}

void nm_sim_find_pressure(struct nm_sim *sim)
{
	if (sim->machine->nr_caches == 0)
		return;
	memset(sim->cache_load, 0, sim->machine->nr_caches * sizeof(*sim->cache_load));
	for (size_t i = 0; i < sim->nr_live; i++)
		sim->cache_load[cache_of(sim, sim->live[i])] += lines_loaded(sim->live[i]);
}

double nm_sim_capacity_misses(const struct nm_sim *sim, const struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	double load = lines_loaded(task);
	if (sim->machine->nr_caches == 0 || !(load > 0))
		return 1;
	double llc_bytes = (double)sim->machine->topology->llc_bytes;
	double equal = llc_bytes * sim->machine->nr_caches / sim->nr_cpus;
	double share = llc_bytes * load / sim->cache_load[cache_of(sim, task)];
	double block = (double)(process->nr_pages * nm_sim_page_bytes(process)) /
		       process->program->threads;
	double factor = share >= block ? 1 / SIZE_FACTOR_MOST : equal / share;
	return sqrt(fmin(fmax(factor, 1 / SIZE_FACTOR_MOST), SIZE_FACTOR_MOST));
}

bool nm_sim_is_passed(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block)
{
	const struct nm_sim_task *owner = &task->process->tasks[block];
	return sim->machine->nr_caches > 0 && owner != task && !owner->ended && !owner->waits;
}

bool nm_sim_is_hit(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block)
{
	return nm_sim_is_passed(sim, task, block) &&
	       cache_of(sim, task) == cache_of(sim, &task->process->tasks[block]);
}

void nm_sim_pass_line(const struct nm_sim *sim, struct nm_sim_task *task, unsigned block,
		      double part)
{
	if (nm_sim_is_hit(sim, task, block)) {
		task->hits_per_kilo += part * nm_sim_phase_of(task)->misses_per_kilo;
		return;
	}
	int node = nm_sim_node_of(sim, task->process->tasks[block].cpu);
	task->mix[node] += part * (1 + NM_SIM_WRITE_BACK);
}

void nm_sim_count_misses(const struct nm_sim *sim, struct nm_sim_task *task)
{
	double sum = 0;
	task->misses_per_kilo = nm_sim_phase_of(task)->misses_per_kilo;
	if (sim->machine->nr_caches == 0)
		return;
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		sum += task->mix[k];
	for (unsigned k = 0; k < sim->nr_nodes && sum > 0; k++)
		task->mix[k] /= sum;
	task->misses_per_kilo *= sum;
}
