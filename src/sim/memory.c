/* SPDX-License-Identifier: MIT */
/* Pages: where they are put, who accesses them, and the kernel's own balancing. */
#include <string.h>

#include "model.h"

#define SMALL_PAGE 4096U
#define SCAN_MB_PER_S 256.0 /* numa_balancing_scan_size_mb in a scan period of a second */

static uint64_t small_pages(const struct nm_sim_process *process)
{
	return nm_sim_page_bytes(process) / SMALL_PAGE;
}

bool nm_sim_has_room(const struct nm_sim *sim, unsigned node, uint64_t bytes)
{
	return sim->node_pages[node] * SMALL_PAGE + bytes <=
	       sim->machine->topology->nodes[node].memory_bytes;
}

/* The last of them whose block begins no later. */
static unsigned block_of(const struct nm_sim_process *process, size_t page)
{
	unsigned threads = process->program->threads;
	unsigned block = (unsigned)(page * threads / process->nr_pages);
	while (block + 1 < threads && nm_sim_block_begin(process, block + 1) <= page)
		block++;
	return block;
}

static void put(struct nm_sim *sim, struct nm_sim_process *process, size_t page, unsigned node)
{
	process->home[page] = (uint8_t)node;
	process->on[node]++;
	process->block_on[(size_t)block_of(process, page) * sim->nr_nodes + node]++;
	sim->node_pages[node] += small_pages(process);
}

static void take(struct nm_sim *sim, struct nm_sim_process *process, size_t page)
{
	unsigned node = process->home[page];
	process->on[node]--;
	process->block_on[(size_t)block_of(process, page) * sim->nr_nodes + node]--;
	sim->node_pages[node] -= small_pages(process);
}

void nm_sim_set_home(struct nm_sim *sim, struct nm_sim_process *process, size_t page, unsigned node)
{
	take(sim, process, page);
	put(sim, process, page, node);
}

/* A full node's pages go to the nearest that has room, and where none has, there all the same. */
static unsigned with_room(const struct nm_sim *sim, unsigned wanted, uint64_t bytes)
{
	unsigned best = wanted;
	unsigned best_distance = UINT32_MAX;
	if (nm_sim_has_room(sim, wanted, bytes))
		return wanted;
	for (unsigned k = 0; k < sim->nr_nodes; k++) {
		unsigned distance =
			nm_topology_distance(sim->machine->topology, (int)wanted, (int)k);
		if (distance < best_distance && nm_sim_has_room(sim, k, bytes)) {
			best = k;
			best_distance = distance;
		}
	}
	return best;
}

static unsigned wanted_node(const struct nm_sim *sim, const struct nm_sim_process *process,
			    size_t page)
{
	unsigned toucher = block_of(process, page);
	switch (process->user->placement) {
	case NM_SIM_PLACE_DIRECT:
		return (unsigned)process->user->node;
	case NM_SIM_PLACE_INTERLEAVE:
		return (unsigned)(page % sim->nr_nodes);
	case NM_SIM_PLACE_SYSTEM:
		if (process->program->touch == NM_SIM_TOUCH_MASTER)
			toucher = 0;
		break;
	case NM_SIM_PLACE_ORACLE:
		break;
	}
	return (unsigned)nm_sim_node_of(sim, process->tasks[toucher].cpu);
}

void nm_sim_touch_pages(struct nm_sim *sim, struct nm_sim_process *process)
{
	for (size_t page = 0; page < process->nr_pages; page++)
		put(sim, process, page,
		    with_room(sim, wanted_node(sim, process, page), nm_sim_page_bytes(process)));
}

void nm_sim_release_pages(struct nm_sim *sim, struct nm_sim_process *process)
{
	for (size_t page = 0; page < process->nr_pages; page++)
		take(sim, process, page);
}

/* ---- who accesses what ---- */

static void add_block(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block,
		      double part)
{
	const struct nm_sim_process *process = task->process;
	double pages = (double)(nm_sim_block_begin(process, block + 1) -
				nm_sim_block_begin(process, block));
	const uint32_t *on = &process->block_on[(size_t)block * sim->nr_nodes];
	for (unsigned k = 0; k < sim->nr_nodes; k++)
		task->mix[k] += part * on[k] / pages;
}

static unsigned next_block(const struct nm_sim_task *task)
{
	return (task->block + 1) % task->process->program->threads;
}

static unsigned block_before(const struct nm_sim_task *task)
{
	unsigned threads = task->process->program->threads;
	return (task->block + threads - 1) % threads;
}

void nm_sim_mix(const struct nm_sim *sim, struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	const struct nm_sim_phase *phase = &process->program->phases[task->phase];
	memset(task->mix, 0, sim->nr_nodes * sizeof(*task->mix));
	add_block(sim, task, task->block, phase->private_part);
	if (phase->neighbour_part > 0) {
		add_block(sim, task, next_block(task), phase->neighbour_part / 2);
		add_block(sim, task, block_before(task), phase->neighbour_part / 2);
	}
	for (unsigned k = 0; phase->shared_part > 0 && k < sim->nr_nodes; k++)
		task->mix[k] +=
			phase->shared_part * (double)process->on[k] / (double)process->nr_pages;
}

static size_t draw_between(struct nm_rng *rng, size_t begin, size_t end)
{
	return begin + (size_t)nm_rng_below(rng, end - begin);
}

static size_t draw_of_block(struct nm_rng *rng, const struct nm_sim_task *task, unsigned block)
{
	return draw_between(rng, nm_sim_block_begin(task->process, block),
			    nm_sim_block_begin(task->process, block + 1));
}

size_t nm_sim_draw_page(struct nm_rng *rng, const struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	const struct nm_sim_phase *phase = &process->program->phases[task->phase];
	double chance = nm_rng_unit(rng);
	if (chance < phase->private_part)
		return draw_of_block(rng, task, task->block);
	if (chance < phase->private_part + phase->neighbour_part)
		return draw_of_block(rng, task,
				     nm_rng_below(rng, 2) ? next_block(task) : block_before(task));
	return draw_between(rng, 0, process->nr_pages);
}

/* ---- kernel.numa_balancing ---- */

static unsigned accessor_node(struct nm_sim *sim, const struct nm_sim_process *process, size_t page)
{
	unsigned threads = process->program->threads;
	unsigned block = block_of(process, page);
	const struct nm_sim_task *task = &process->tasks[block];
	const struct nm_sim_phase *phase = &process->program->phases[task->phase];
	double chance = nm_rng_unit(&sim->rng);
	if (chance >= 1 - phase->shared_part)
		task = &process->tasks[nm_rng_below(&sim->rng, threads)];
	else if (chance >= phase->private_part)
		task = &process->tasks[nm_rng_below(&sim->rng, 2) ? next_block(task)
								  : block_before(task)];
	return (unsigned)nm_sim_node_of(sim, task->cpu);
}

/* Two faults in a row from one node bring a page there. */
static void scan(struct nm_sim *sim, struct nm_sim_process *process, double step_s)
{
	double bytes = SCAN_MB_PER_S * 1048576 * step_s;
	size_t pages = (size_t)(bytes / (double)nm_sim_page_bytes(process)) + 1;
	for (size_t i = 0; i < pages && i < process->nr_pages; i++) {
		size_t page = process->scanned++ % process->nr_pages;
		unsigned node = accessor_node(sim, process, page);
		if (node == accessor_node(sim, process, page) && node != process->home[page] &&
		    nm_sim_has_room(sim, node, nm_sim_page_bytes(process)))
			nm_sim_set_home(sim, process, page, node);
	}
}

void nm_sim_balance_memory(struct nm_sim *sim, double step_s)
{
	for (size_t i = 0; i < sim->nr_processes; i++) {
		enum nm_sim_placement placement = sim->processes[i]->user->placement;
		/* Memory with a policy of its owner's is left alone. */
		if (placement == NM_SIM_PLACE_SYSTEM)
			scan(sim, sim->processes[i], step_s);
	}
}
