/* SPDX-License-Identifier: MIT */
/* Policy "auto": its state of each process. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/homes.h"

/* Time limit of the answer; after it, the home follows the CPUs used. */
#define AWAITED_NS (NM_NSEC_PER_SEC / 2)

#define AWAY_LEAST 0.2 /* share of the memory that is worth another migration */
#define GREW_BY 1.5    /* growth factor after which its location is uncertain again */
#define GREW_LEAST (UINT64_C(1) << 20) /* bytes; the same for a process with a home */

/* ---- creation and destruction ---- */

int nm_placement_new(uint64_t own_ns, struct nm_placement **ret)
{
	struct nm_placement *placement = calloc(1, sizeof(*placement));
	if (!placement)
		return -ENOMEM;
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
	for (size_t i = 0; i < placement->count; i++)
		nm_placed_clear(&placement->items[i]);
	free(placement->items);
	free(placement->times);
	free(placement->nodes);
	free(placement->beside_cpus);
	free(placement->available_bytes);
	free(placement);
}

int nm_placed_init(const struct nm_snap_process *process, unsigned nr_nodes, struct nm_placed *ret)
{
	double *arrays = calloc(1, nr_nodes * (4 * sizeof(double) + sizeof(bool)));
	if (!arrays)
		return -ENOMEM;
	*ret = (struct nm_placed){
		.pid = process->pid,
		.start_ticks = process->start_ticks,
		.program_ns = process->program_ns,
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

void nm_placed_clear(struct nm_placed *placed)
{
	nm_placed_forget_memory(placed);
	free(placed->ran_on);
	placed->ran_on = NULL;
}

void nm_placed_take(const struct nm_snapshot *snapshot, size_t process, struct nm_placed *placed)
{
	const struct nm_snap_process *one = &snapshot->processes[process];
	placed->process = process;
	placed->anon_bytes = one->anon_bytes;
}

/* ---- the list of processes ---- */

struct nm_placed *nm_placed_find(const struct nm_placement *placement, uint32_t pid)
{
	const struct nm_placed key = {.pid = pid};
	if (placement->count == 0)
		return NULL;
	return bsearch(&key, placement->items, placement->count, sizeof(key), nm_compare_u32);
}

struct nm_placed *nm_placed_find_same(const struct nm_placement *placement,
				      const struct nm_snap_process *process)
{
	struct nm_placed *before = nm_placed_find(placement, process->pid);
	bool same = before && before->start_ticks == process->start_ticks &&
		    before->program_ns == process->program_ns;
	return same ? before : NULL;
}

size_t nm_placement_homes(const struct nm_placement *placement)
{
	size_t count = 0;
	for (size_t i = 0; placement && i < placement->count; i++)
		count += placement->items[i].home >= 0;
	return count;
}

/* Two lists have an entry with the same arrays: this one gives up ownership. */
static void disown(struct nm_placed *placed)
{
	placed->ran_on = NULL;
	placed->memory = (struct nm_bring_memory){0};
	placed->count = (struct nm_place_count){0};
}

/* The entries of the previous interval are not modified: the new ones share their arrays. Returns 0
 * or -ENOMEM. */
static int build_items(const struct nm_placement *placement, const struct nm_snapshot *snapshot,
		       struct nm_placed *items, size_t *ret_count)
{
	size_t count = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < snapshot->nr_processes; i++) {
		const struct nm_snap_process *process = &snapshot->processes[i];
		const struct nm_placed *before = nm_placed_find_same(placement, process);
		if (before)
			items[count] = *before;
		else
			r = nm_placed_init(process, snapshot->topology->nr_nodes, &items[count]);
		nm_placed_take(snapshot, i, &items[count]);
		count += r == 0;
	}
	*ret_count = count;
	return r;
}

int nm_placement_list(struct nm_placement *placement, const struct nm_snapshot *snapshot,
		      struct nm_placed **ret_items, size_t *ret_count)
{
	struct nm_placed *items = calloc(snapshot->nr_processes + 1, sizeof(*items));
	size_t count = 0;
	int r = items ? build_items(placement, snapshot, items, &count) : -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct nm_placed *before =
			nm_placed_find_same(placement, &snapshot->processes[items[i].process]);
		if (before)
			disown(r < 0 ? &items[i] : before);
	}
	if (r < 0) {
		for (size_t i = 0; i < count; i++)
			nm_placed_clear(&items[i]);
		free(items);
		return r;
	}
	if (count > 0)
		qsort(items, count, sizeof(*items), nm_compare_u32);
	*ret_items = items;
	*ret_count = count;
	return 0;
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
	return placed->count.ticket && now_ns - placed->count.asked_ns < AWAITED_NS;
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
	       !placed->count.ticket &&
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
