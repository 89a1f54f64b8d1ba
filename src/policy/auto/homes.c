/* SPDX-License-Identifier: MIT */
/* Policy "auto": its state of each process. */
#include <math.h>
#include <stdlib.h>

#include "policy/homes.h"
#include "policy/policy.h"
#include "numa-migrd/proc.h"

/* Time limit of the answer; after it, the home follows the CPUs used. Systemd starts the first
 * worker for it, which takes seconds on a slow machine, and a process that is no longer young can
 * wait. */
#define AWAITED_NS (10 * NM_NSEC_PER_SEC)

/* Time after which a location that no answer has shown is queried again. */
#define ASKED_AGAIN_NS (30 * NM_NSEC_PER_SEC)

#define AWAY_MIN 0.2 /* share of the memory that is worth another migration */
#define GREW_BY 1.5  /* growth factor after which its location is uncertain again */
#define PAGE_BYTES 4096U
#define GREW_MIN (UINT64_C(1) << 20) /* bytes; the same for a process with a home */

/* ---- creation and destruction ---- */

/* The state of a process that has no home. */
static void init_home_state(const struct nm_snapshot *snapshot, void *cell)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double *arrays = nm_must(calloc(1, nr_nodes * (9 * sizeof(double) + 3 * sizeof(bool))));
	bool *flags = (bool *)(arrays + 9 * (size_t)nr_nodes);
	*(struct nm_home_state *)cell = (struct nm_home_state){
		.home = -1,
		.reason = NM_PLACE_YOUNG,
		.before = {.distance = NAN, .performance = NAN},
		.recent = {.distance = NAN, .performance = NAN},
		.input = {.traffic = NAN,
			  .ran_on = arrays,
			  .has_run_on = arrays + nr_nodes,
			  .fixed_on = arrays + 2 * (size_t)nr_nodes,
			  .fixed_has_run_on = arrays + 3 * (size_t)nr_nodes,
			  .allowed = flags,
			  .may_hold = flags + nr_nodes},
		.memory_on = arrays + 4 * (size_t)nr_nodes,
		.located_on = arrays + 5 * (size_t)nr_nodes,
		.room = arrays + 6 * (size_t)nr_nodes,
		.beyond = arrays + 7 * (size_t)nr_nodes,
		.stays_on = arrays + 8 * (size_t)nr_nodes,
		.has_fixed = flags + 2 * (size_t)nr_nodes,
	};
}

/* Unless the daemon ends processes. */
static void clear_home_state(void *context, void *cell)
{
	struct nm_home_state *state = cell;
	(void)context;
	free(state->input.ran_on);
	state->input.ran_on = NULL;
}

static void *open_placement(const struct nm_topology *topology, double page_bytes)
{
	struct nm_placement *placement = nm_must(calloc(1, sizeof(*placement)));
	(void)page_bytes;
	placement->nr_nodes = topology->nr_nodes;
	placement->nodes = nm_must(calloc(topology->nr_nodes, sizeof(*placement->nodes)));
	placement->other_cpus = nm_must(calloc(topology->nr_nodes, sizeof(double)));
	placement->available_bytes = nm_must(calloc(topology->nr_nodes, sizeof(uint64_t)));
	placement->processes = (struct nm_column){.cell_bytes = sizeof(struct nm_home_state),
						  .init = init_home_state,
						  .clear = clear_home_state};
	placement->times.cell_bytes = sizeof(struct nm_proc_schedstat);
	placement->budget_s = NM_BUDGET_MAX_S;
	placement->quota.limit = INFINITY;
	placement->trend = (struct nm_place_trend){.performance = 1, .distance = 1};
	return placement;
}

static void close_placement(void *state)
{
	struct nm_placement *placement = state;
	nm_column_clear(&placement->processes);
	nm_column_clear(&placement->times);
	free(placement->nodes);
	free(placement->other_cpus);
	free(placement->available_bytes);
	free(placement);
}

void nm_placement_forget(struct nm_placement *placement, struct nm_home_state *state)
{
	for (unsigned k = 0; state->input.ran_on && k < placement->nr_nodes; k++)
		placement->nodes[k].busy_cpus -= state->input.ran_on[k];
	clear_home_state(NULL, state);
}

void nm_placement_retarget(struct nm_placement *placement, const struct nm_topology *before,
			   const struct nm_topology *now)
{
	for (size_t i = 0; i < placement->processes.count; i++) {
		const struct nm_home_state *state = nm_home_state_at(placement, i);
		if (state->home >= 0 && !nm_topology_keeps_node(before, now, state->home))
			nm_column_renew(&placement->processes, state->pid);
	}
}

/* A node without memory is one of a machine that has memory elsewhere. */
static void update_movability(const struct nm_snapshot *snapshot, const struct nm_snap_process *one,
			      struct nm_home_state *state)
{
	const struct nm_topology *topology = snapshot->topology;
	uint64_t memory_bytes = 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		memory_bytes += topology->nodes[k].memory_bytes;
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		const struct nm_node *node = &topology->nodes[k];
		bool barred = node->os_id < 64 && (one->excluded_mems >> node->os_id & 1);
		state->input.may_hold[k] = !barred && (memory_bytes == 0 || node->memory_bytes > 0);
	}
	if (state->excluded_mems != one->excluded_mems)
		state->input.memory_stays = false; /* what was refused may be possible now */
	state->excluded_mems = one->excluded_mems;
	state->input.pinned_share =
		one->keeps_memory     ? 1
		: one->anon_bytes > 0 ? fmin((double)one->pinned_bytes / (double)one->anon_bytes, 1)
				      : 0;
}

/* Returns the part of all of its memory that stays where it is. */
static double staying_part(const struct nm_home_state *state)
{
	double stays = (double)nm_home_state_staying_bytes(state);
	double all = stays + (double)nm_home_state_bytes(state);

	return all > 0 ? stays / all : 0;
}

/* Until the kernel has shown where that part is, it is assumed to be distributed like the rest. */
static void assume_staying(struct nm_home_state *state, unsigned nr_nodes)
{
	double part = staying_part(state);

	state->has_staying = part > 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		state->stays_on[k] = part;
}

void nm_home_state_update(const struct nm_snapshot *snapshot, size_t process,
			  struct nm_home_state *state)
{
	const struct nm_snap_process *one = &snapshot->processes[process];
	state->pid = one->pid;
	state->start_ticks = one->start_ticks;
	state->program_ns = one->program_ns;
	state->domain = one->domain;
	state->process = process;
	state->anon_bytes = one->anon_bytes;
	state->anon_error_bytes = nm_proc_rss_error_bytes(snapshot->topology->nr_cpus, PAGE_BYTES);
	state->shared_bytes = one->shared_bytes;
	state->hugetlb_bytes = one->hugetlb_bytes;
	if (!state->located)
		assume_staying(state, snapshot->topology->nr_nodes);
	update_movability(snapshot, one, state);
	state->input.cpu_limit = one->cpu_limit;
	state->left_alone = one->left_alone;
}

size_t nm_placement_homes(const struct nm_placement *placement)
{
	size_t count = 0;
	for (size_t i = 0; placement && i < placement->processes.count; i++)
		count += nm_home_state_at(placement, i)->home >= 0;
	return count;
}

bool nm_placement_has_home(const struct nm_placement *placement, uint32_t pid)
{
	const struct nm_home_state *state = placement ? nm_home_state_find(placement, pid) : NULL;
	return state && state->home >= 0;
}

static int by_size(const void *one, const void *other)
{
	const double *a = one, *b = other;
	return NM_COMPARE(*a, *b);
}

double nm_placement_prediction_error(const struct nm_placement *placement)
{
	struct nm_prediction_errors errors;
	if (!placement || placement->errors.count == 0)
		return NAN;
	errors = placement->errors;
	qsort(errors.values, errors.count, sizeof(errors.values[0]), by_size);
	return errors.values[errors.count / 2];
}

void nm_placement_mark_homes(const struct nm_placement *placement, struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		snapshot->processes[i].at_home =
			nm_placement_has_home(placement, snapshot->processes[i].pid);
}

bool nm_home_state_is_suspended(const struct nm_home_state *state)
{
	const uint64_t min_age_ns = (uint64_t)(NM_PLACE_MIN_AGE_S * (double)NM_NSEC_PER_SEC);
	return state->home >= 0 && state->forked_ns &&
	       state->measured_ns < state->forked_ns + min_age_ns;
}

/* ---- its memory ---- */

static double sum_of(const double *values, unsigned count)
{
	double sum = 0;
	for (unsigned k = 0; values && k < count; k++)
		sum += values[k];
	return sum;
}

/* Samples of the two kinds of memory are weighted by their amounts. */
void nm_home_state_locate(struct nm_home_state *state, const struct nm_location *location,
			  unsigned nr_nodes)
{
	/* Shared memory may move (pages.also): both are counted as one kind. */
	const double *staying_on = location->staying == location->pages ? NULL : location->staying;
	double own = sum_of(location->pages, nr_nodes), stays = sum_of(staying_on, nr_nodes);
	double part = location->whole ? stays / (own + stays) : staying_part(state);
	state->located = own + stays > 0;
	assume_staying(state, nr_nodes);
	if (own == 0)
		part = 1;
	state->has_staying = part > 0;
	for (unsigned k = 0; k < nr_nodes && state->located; k++) {
		double follows = own > 0 ? (1 - part) * location->pages[k] / own : 0;
		double staying = stays > 0 ? part * staying_on[k] / stays : 0;
		double all = stays > 0 ? 1 : 1 - part;
		state->located_on[k] = all > 0 ? (follows + staying) / all : 0;
		if (stays > 0 && follows + staying > 0)
			state->stays_on[k] = staying / (follows + staying);
		else if (location->whole)
			state->stays_on[k] = part;
	}
}

uint64_t nm_home_state_bytes(const struct nm_home_state *state)
{
	uint64_t own = state->anon_bytes, counted = state->location.own_bytes;
	if (own < state->anon_error_bytes && own < counted)
		own = counted;
	return own + state->location.huge_bytes;
}

uint64_t nm_home_state_staying_bytes(const struct nm_home_state *state)
{
	uint64_t own = state->location.huge_bytes, pool = state->hugetlb_bytes;
	return state->shared_bytes + (pool > own ? pool - own : 0);
}

const double *nm_home_state_shares(const struct nm_home_state *state)
{
	if (state->accesses >= NM_PLACE_MIN_ACCESSES)
		return state->memory_on;
	return state->located ? state->located_on : NULL;
}

bool nm_home_state_awaits_query(const struct nm_home_state *state, uint64_t now_ns)
{
	return state->location.query_id && now_ns - state->location.asked_ns < AWAITED_NS;
}

static bool has_grown(const struct nm_home_state *state, uint64_t before_bytes)
{
	return (double)state->anon_bytes > GREW_BY * (double)before_bytes;
}

/*
 * Returns whether the memory of a process with a home may be elsewhere: it did not move, which is
 * checked once, or it was allocated since.
 */
static bool is_uncertain(const struct nm_home_state *state, bool kernel_moves, uint64_t now_ns)
{
	const struct nm_memory_migration *migration = &state->migration;
	if (migration->state != NM_MIGRATION_DONE)
		return false;
	if (has_grown(state, state->location.anon_bytes) &&
	    state->anon_bytes >= state->location.anon_bytes + GREW_MIN)
		return !kernel_moves;
	return !migration->checked && migration->away_bytes >= GREW_MIN &&
	       (double)(now_ns - migration->ended_ns) >
		       NM_PLACE_OBSERVED_S * (double)NM_NSEC_PER_SEC;
}

bool nm_home_state_must_query(struct nm_home_state *state, bool kernel_moves, uint64_t now_ns)
{
	bool never = state->location.asked_ns == 0 && state->anon_bytes < state->anon_error_bytes;
	bool again = !state->located && now_ns - state->location.asked_ns >= ASKED_AGAIN_NS;
	bool unknown = (state->home < 0 || !state->located) &&
		       (never || again || has_grown(state, state->location.anon_bytes));
	if (!(unknown || is_uncertain(state, kernel_moves, now_ns)) || state->input.running == 0 ||
	    state->location.query_id)
		return false;
	/* Accesses show the location, but not which of the memory stays. */
	if (state->accesses >= NM_PLACE_MIN_ACCESSES && staying_part(state) < AWAY_MIN)
		return false;
	state->location.anon_bytes = state->anon_bytes; /* also if the query fails */
	state->location.asked_ns = now_ns;
	state->migration.checked = true;
	return true;
}

/*
 * Schedules another migration if much of the memory of a process with a home is elsewhere, because
 * it was allocated after the last one. That starts once the new remote accesses are expected to
 * cost as much as it does. If the memory has not grown, it cannot be moved.
 */
static void schedule_migration(struct nm_home_state *state, const struct nm_topology *topology)
{
	double away = 0, all = 0, distance = 0;
	for (unsigned k = 0; state->located && k < topology->nr_nodes; k++) {
		double share = state->located_on[k] * (1 - state->stays_on[k]);
		bool is_device = topology->nodes[k].nearest_with_cpus != (int)k;
		away += (int)k == state->home || is_device ? 0 : share;
		all += share;
		distance += share * nm_topology_distance(topology, state->home, (int)k);
	}
	if (!(away > 0 && away >= AWAY_MIN * all) || !state->input.may_hold[state->home])
		return;
	if (!has_grown(state, state->migration.ended_bytes)) {
		state->input.memory_stays = true; /* it has not moved */
		return;
	}
	state->migration.state = NM_MIGRATION_DEFERRED;
	state->migration.away_bytes = (uint64_t)(away / all * (double)state->anon_bytes);
	state->migration.away_distance = distance / all;
	state->lost_s = 0; /* the earlier loss has been paid for */
}

void nm_home_state_answer(struct nm_home_state *state, const struct nm_topology *topology,
			  const struct nm_location *location)
{
	bool again = state->home >= 0 && state->migration.state == NM_MIGRATION_DONE;
	if (state->home >= 0 && state->located && !again)
		return;
	state->location.huge_bytes = location->huge_bytes;
	state->location.own_bytes = location->own_bytes;
	nm_home_state_locate(state, location, topology->nr_nodes);
	if (again)
		schedule_migration(state, topology);
}

const struct nm_policy_ops nm_auto_policy = {
	.open = open_placement,
	.close = close_placement,
	.judged_by = {{NM_BY_DELAY, NM_CRITERION_VETOES},
		      {.by = NM_BY_PERFORMANCE},
		      {.by = NM_BY_DISTANCE}},
};
