/* SPDX-License-Identifier: MIT */
/* Pages: their placement, and their accesses. */
#include <math.h>
#include <string.h>

#include "model.h"

#define SMALL_PAGE 4096U

static uint64_t small_pages(const struct nm_sim_process *process)
{
	return nm_sim_page_bytes(process) / SMALL_PAGE;
}

/* Memory that the kernel keeps free on a node filled by the page cache. */
#define KEPT_FREE_BYTES (UINT64_C(64) << 20)

uint64_t nm_sim_free_bytes(const struct nm_sim *sim, unsigned node)
{
	uint64_t used = sim->node_pages[node] * SMALL_PAGE + sim->cache_bytes[node];
	uint64_t total = sim->machine->topology->nodes[node].memory_bytes;
	return total > used ? total - used : 0;
}

bool nm_sim_make_room(struct nm_sim *sim, unsigned node, uint64_t bytes)
{
	uint64_t free_bytes = nm_sim_free_bytes(sim, node);
	if (free_bytes >= bytes)
		return true;
	if (free_bytes + sim->cache_bytes[node] < bytes)
		return false;
	sim->cache_bytes[node] -= bytes - free_bytes;
	return true;
}

bool nm_sim_may_balance_to(const struct nm_sim *sim, unsigned node, uint64_t bytes)
{
	return nm_sim_free_bytes(sim, node) >= bytes + KEPT_FREE_BYTES;
}

void nm_sim_settle_cache(struct nm_sim *sim, uint64_t most_bytes)
{
	for (unsigned k = 0; k < sim->nr_nodes && sim->workload->full_page_cache; k++) {
		uint64_t rest = nm_sim_free_bytes(sim, k) + sim->cache_bytes[k];
		uint64_t wanted = rest > KEPT_FREE_BYTES ? rest - KEPT_FREE_BYTES : 0;
		if (wanted > sim->cache_bytes[k] && wanted - sim->cache_bytes[k] > most_bytes)
			wanted = sim->cache_bytes[k] + most_bytes;
		sim->cache_bytes[k] = wanted;
	}
}

/* Returns the last block that begins at or before the page. */
unsigned nm_sim_block_of(const struct nm_sim_process *process, size_t page)
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
	process->block_on[(size_t)nm_sim_block_of(process, page) * sim->nr_nodes + node]++;
	sim->node_pages[node] += small_pages(process);
}

static void remove_page(struct nm_sim *sim, struct nm_sim_process *process, size_t page)
{
	unsigned node = process->home[page];
	process->on[node]--;
	process->block_on[(size_t)nm_sim_block_of(process, page) * sim->nr_nodes + node]--;
	sim->node_pages[node] -= small_pages(process);
}

void nm_sim_set_home(struct nm_sim *sim, struct nm_sim_process *process, size_t page, unsigned node)
{
	nm_sim_note_page(sim, process, page, node);
	remove_page(sim, process, page);
	put(sim, process, page, node);
}

/*
 * A first touch does not wait for page cache to be reclaimed while a node has free memory: it uses
 * the nearest such node. If there is none, page cache of the wanted node is reclaimed; without page
 * cache the page is allocated there anyway.
 */
static unsigned node_with_room(struct nm_sim *sim, unsigned wanted, uint64_t bytes)
{
	unsigned best = wanted;
	unsigned best_distance = UINT32_MAX;
	if (nm_sim_free_bytes(sim, wanted) >= bytes)
		return wanted;
	for (unsigned k = 0; k < sim->nr_nodes; k++) {
		unsigned distance =
			nm_topology_distance(sim->machine->topology, (int)wanted, (int)k);
		if (distance < best_distance && nm_sim_free_bytes(sim, k) >= bytes) {
			best = k;
			best_distance = distance;
		}
	}
	if (best == wanted)
		(void)nm_sim_make_room(sim, wanted, bytes);
	return best;
}

static unsigned wanted_node(const struct nm_sim *sim, const struct nm_sim_process *process,
			    size_t page)
{
	unsigned toucher = nm_sim_block_of(process, page);
	switch (process->user->placement) {
	case NM_SIM_PLACE_DIRECT:
		return (unsigned)process->user->node;
	case NM_SIM_PLACE_INTERLEAVE:
		return (unsigned)(page % sim->nr_nodes);
	case NM_SIM_PLACE_SYSTEM:
	case NM_SIM_PLACE_ORACLE:
		break;
	}
	bool by_first = process->user->placement == NM_SIM_PLACE_SYSTEM &&
			process->program->touch == NM_SIM_TOUCH_MASTER;
	if (by_first || process->tasks[toucher].ended || process->tasks[toucher].waits)
		toucher = 0;
	return (unsigned)nm_sim_node_of(sim, process->tasks[toucher].cpu);
}

/* Memory bound to its node waits for page cache to be reclaimed. */
static unsigned node_for(struct nm_sim *sim, const struct nm_sim_process *process, size_t page)
{
	unsigned wanted = wanted_node(sim, process, page);
	uint64_t bytes = nm_sim_page_bytes(process);
	if (process->user->placement != NM_SIM_PLACE_SYSTEM && nm_sim_make_room(sim, wanted, bytes))
		return wanted;
	return node_with_room(sim, wanted, bytes);
}

/* At least one, so that a thread always has a page to access. */
static size_t touched_of(const struct nm_sim_process *process, unsigned block, double share)
{
	size_t pages = nm_sim_block_begin(process, block + 1) - nm_sim_block_begin(process, block);
	return share > 0 ? (size_t)fmax(1, ceil(share * (double)pages)) : 0;
}

void nm_sim_touch_pages(struct nm_sim *sim, struct nm_sim_process *process, double share)
{
	share = fmax(share, process->touched);
	for (unsigned block = 0; block < process->program->threads; block++) {
		size_t begin = nm_sim_block_begin(process, block);
		size_t end = begin + touched_of(process, block, share);
		begin += touched_of(process, block, process->touched);
		process->nr_touched += end - begin;
		for (size_t page = begin; page < end; page++)
			put(sim, process, page, node_for(sim, process, page));
	}
	process->touched = share;
}

void nm_sim_release_pages(struct nm_sim *sim, struct nm_sim_process *process)
{
	for (size_t page = 0; page < process->nr_pages; page++)
		if (process->home[page] != NM_SIM_UNTOUCHED)
			remove_page(sim, process, page);
}

/* ---- accesses ---- */

static void add_block(const struct nm_sim *sim, const struct nm_sim_task *task, unsigned block,
		      double part)
{
	const struct nm_sim_process *process = task->process;
	double pages = (double)touched_of(process, block, process->touched);
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

static void add_neighbour(const struct nm_sim *sim, struct nm_sim_task *task, unsigned block,
			  double part, double capacity)
{
	if (nm_sim_is_passed(sim, task, block))
		nm_sim_pass_line(sim, task, block, part);
	else
		add_block(sim, task, block, capacity * part);
}

bool nm_sim_is_near_block(const struct nm_sim_task *task, size_t page)
{
	unsigned block = nm_sim_block_of(task->process, page);
	return nm_sim_phase_of(task)->neighbour_part > 0 &&
	       (block == next_block(task) || block == block_before(task));
}

unsigned nm_sim_source_of(const struct nm_sim *sim, const struct nm_sim_task *task, size_t page)
{
	unsigned block = nm_sim_block_of(task->process, page);
	if (nm_sim_is_near_block(task, page) && nm_sim_is_passed(sim, task, block))
		return (unsigned)nm_sim_node_of(sim, task->process->tasks[block].cpu);
	return task->process->home[page];
}

void nm_sim_mix(const struct nm_sim *sim, struct nm_sim_task *task)
{
	const struct nm_sim_process *process = task->process;
	const struct nm_sim_phase *phase = &process->program->phases[task->phase];
	double capacity = nm_sim_capacity_misses(sim, task);
	memset(task->mix, 0, sim->nr_nodes * sizeof(*task->mix));
	task->hits_per_kilo = 0;
	add_block(sim, task, task->block, capacity * phase->private_part);
	if (phase->neighbour_part > 0) {
		add_neighbour(sim, task, next_block(task), phase->neighbour_part / 2, capacity);
		add_neighbour(sim, task, block_before(task), phase->neighbour_part / 2, capacity);
	}
	for (unsigned k = 0; phase->shared_part > 0 && k < sim->nr_nodes; k++)
		task->mix[k] += capacity * phase->shared_part * (double)process->on[k] /
				(double)process->nr_touched;
	nm_sim_count_misses(sim, task);
}

static size_t draw_between(struct nm_rng *rng, size_t begin, size_t end)
{
	return begin + (size_t)nm_rng_below(rng, end - begin);
}

static size_t draw_of_block(struct nm_rng *rng, const struct nm_sim_task *task, unsigned block)
{
	const struct nm_sim_process *process = task->process;
	size_t begin = nm_sim_block_begin(process, block);
	return draw_between(rng, begin, begin + touched_of(process, block, process->touched));
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
	size_t page = draw_between(rng, 0, process->nr_pages);
	if (process->home[page] != NM_SIM_UNTOUCHED)
		return page;
	return draw_of_block(rng, task, nm_sim_block_of(process, page));
}

/* Selects the next thread to access a page at random. */
struct nm_sim_task *nm_sim_draw_accessor(struct nm_sim *sim, struct nm_sim_process *process,
					 size_t page)
{
	struct nm_sim_task *task = &process->tasks[nm_sim_block_of(process, page)];
	unsigned team = nm_sim_team(process, task->phase);
	const struct nm_sim_phase *phase = &process->program->phases[task->phase];
	double chance = nm_rng_unit(&sim->rng);
	if (chance >= 1 - phase->shared_part)
		return &process->tasks[nm_rng_below(&sim->rng, team)];
	if (chance >= phase->private_part)
		return &process->tasks[nm_rng_below(&sim->rng, 2) ? next_block(task)
								  : block_before(task)];
	return task;
}
