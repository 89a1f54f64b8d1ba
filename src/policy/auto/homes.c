/* SPDX-License-Identifier: MIT */
/* Policy "auto": its state of each process. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/homes.h"
#include "numa-migrd/proc.h"

/* Time limit of the answer; after it, the home follows the CPUs used. */
#define AWAITED_NS (NM_NSEC_PER_SEC / 2)

#define AWAY_LEAST 0.2 /* share of the memory that is worth another migration */
#define GREW_BY 1.5    /* growth factor after which its location is uncertain again */
#define GREW_LEAST (UINT64_C(1) << 20) /* bytes; the same for a process with a home */

/* ---- creation and destruction ---- */

/* The state of a process that has no home. */
static int init_placed(const struct nm_snapshot *snapshot, void *cell)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double *arrays = calloc(1, nr_nodes * (4 * sizeof(double) + sizeof(bool)));
	if (!arrays)
		return -ENOMEM;
	*(struct nm_placed *)cell = (struct nm_placed){
		.home = -1,
		.reason = NM_PLACE_YOUNG,
		.before = {.distance = NAN, .performance = NAN},
		.recent = {.distance = NAN, .performance = NAN},
		.ran_on = arrays,
		.memory_on = arrays + nr_nodes,
		.has_run_on = arrays + 2 * (size_t)nr_nodes,
		.located_on = arrays + 3 * (size_t)nr_nodes,
		.allowed = (bool *)(arrays + 4 * (size_t)nr_nodes),
	};
	return 0;
}

int nm_placement_new(uint64_t own_ns, void (*clear)(void *context, void *placed), void *context,
		     struct nm_placement **ret)
{
	struct nm_placement *placement = calloc(1, sizeof(*placement));
	if (!placement)
		return -ENOMEM;
	placement->processes = (struct nm_column){.cell_bytes = sizeof(struct nm_placed),
						  .init = init_placed,
						  .clear = clear,
						  .context = context};
	placement->times.cell_bytes = sizeof(struct nm_proc_schedstat);
	placement->saved_s = NM_SAVED_MOST_S;
	placement->trend = (struct nm_place_trend){.performance = 1, .distance = 1};
	placement->spent_ns = own_ns;
	*ret = placement;
	return 0;
}

void nm_placement_free(struct nm_placement *placement)
{
	if (!placement)
		return;
	nm_column_clear(&placement->processes);
	nm_column_clear(&placement->times);
	free(placement->nodes);
	free(placement->beside_cpus);
	free(placement->available_bytes);
	free(placement);
}

void nm_placed_clear(struct nm_placed *placed)
{
	nm_placed_forget_memory(placed);
	free(placed->ran_on);
	placed->ran_on = NULL;
}

void nm_placed_take(const struct nm_snapshot *snapshot, size_t process, struct nm_placed *placed)
{
	const struct nm_snap_process *one = &snapshot->processes[process];
	placed->pid = one->pid;
	placed->start_ticks = one->start_ticks;
	placed->program_ns = one->program_ns;
	placed->process = process;
	placed->anon_bytes = one->anon_bytes;
	placed->cpu_limit = one->cpu_limit;
}

size_t nm_placement_homes(const struct nm_placement *placement)
{
	size_t count = 0;
	for (size_t i = 0; placement && i < placement->processes.count; i++)
		count += nm_placed_at(placement, i)->home >= 0;
	return count;
}

/* ---- its memory ---- */

void nm_placed_forget_memory(struct nm_placed *placed)
{
	free(placed->memory.was);
	placed->memory = (struct nm_bring_memory){0};
}

void nm_placed_locate(struct nm_placed *placed, const double *pages, unsigned nr_nodes)
{
	double all = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		all += pages[k];
	placed->located = all > 0;
	for (unsigned k = 0; k < nr_nodes && all > 0; k++)
		placed->located_on[k] = pages[k] / all;
}

uint64_t nm_placed_bytes(const struct nm_placed *placed)
{
	return placed->anon_bytes + placed->count.huge_bytes;
}

const double *nm_placed_shares(const struct nm_placed *placed)
{
	if (placed->accesses >= NM_PLACE_LEAST_ACCESSES)
		return placed->memory_on;
	return placed->located ? placed->located_on : NULL;
}

bool nm_placed_awaits_count(const struct nm_placed *placed, uint64_t now_ns)
{
	return placed->count.query.ticket && now_ns - placed->count.asked_ns < AWAITED_NS;
}

static bool has_grown(const struct nm_placed *placed, uint64_t before_bytes)
{
	return (double)placed->anon_bytes > GREW_BY * (double)before_bytes;
}

/*
 * Returns whether the memory of a process with a home may be elsewhere: it did not move, which is
 * checked once, or it was allocated since.
 */
static bool is_uncertain(const struct nm_placed *placed, bool kernel_moves, uint64_t now_ns)
{
	const struct nm_bring_memory *memory = &placed->memory;
	if (memory->state != NM_BRING_DONE)
		return false;
	if (has_grown(placed, placed->count.anon_bytes) &&
	    placed->anon_bytes >= placed->count.anon_bytes + GREW_LEAST)
		return !kernel_moves;
	return !memory->checked && memory->away_bytes >= GREW_LEAST &&
	       (double)(now_ns - memory->settled_ns) > NM_PLACE_WATCHED_S * (double)NM_NSEC_PER_SEC;
}

bool nm_placed_wants_query(const struct nm_placed *placed, bool kernel_moves, uint64_t now_ns)
{
	bool unknown = (placed->home < 0 || !placed->located) &&
		       has_grown(placed, placed->count.anon_bytes);
	return (unknown || is_uncertain(placed, kernel_moves, now_ns)) && placed->running > 0 &&
	       !placed->count.query.ticket &&
	       placed->accesses < NM_PLACE_LEAST_ACCESSES; /* otherwise these show the location */
}

void nm_placed_reconsider_memory(struct nm_placed *placed, const struct nm_topology *topology)
{
	double away = 0, distance = 0;
	for (unsigned k = 0; placed->located && k < topology->nr_nodes; k++) {
		double share = placed->located_on[k];
		away += (int)k == placed->home ? 0 : share;
		distance += share * nm_topology_distance(topology, placed->home, (int)k);
	}
	if (away < AWAY_LEAST)
		return;
	if (!has_grown(placed, placed->memory.settled_bytes)) {
		placed->immovable = true;
		return;
	}
	placed->memory.state = NM_BRING_LATER;
	placed->memory.away_bytes = (uint64_t)(away * (double)placed->anon_bytes);
	placed->memory.away_distance = distance;
	placed->lost_s = 0; /* the earlier loss has been paid for */
}
