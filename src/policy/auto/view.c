/* SPDX-License-Identifier: MIT */
/* Policy "auto": the machine and its processes as input of decisions. */
#include <math.h>
#include <string.h>

#include "policy/homes.h"

/*
 * A process is assumed to have run as it does now before it was first seen, for at most this time.
 */
#define PAST_S 60.0

/* ---- the machine ---- */

static void fill_nodes(const struct nm_snapshot *snapshot, struct nm_place_node *nodes)
{
	const struct nm_topology *topology = snapshot->topology;
	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		nodes[k].cores = nm_core_capacity(snapshot, topology->nodes[k].cpus);
		nodes[k].memory_bytes = topology->nodes[k].memory_bytes;
		nodes[k].traffic = snapshot->traffic[k];
		nodes[k].is_device = topology->nodes[k].nearest_with_cpus != (int)k;
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *one = &snapshot->cpus[cpu];
		if (one->usable && one->busy_share > 0)
			nodes[one->node].busy_cpus += one->busy_share;
	}
}

void nm_placement_follow_nodes(struct nm_placement *placement, const struct nm_snapshot *snapshot,
			       double interval_s)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	double demand = 0;
	memset(placement->nodes, 0, nr_nodes * sizeof(*placement->nodes));
	fill_nodes(snapshot, placement->nodes);
	/*
	 * The load of tasks that exited in the interval, or ran briefly, must not keep others away.
	 */
	for (unsigned k = 0; k < nr_nodes; k++) {
		double *beside = &placement->other_cpus[k], ran = 0;
		placement->max_traffic = fmax(placement->max_traffic, placement->nodes[k].traffic);
		for (size_t i = 0; i < placement->processes.count; i++)
			ran += nm_home_state_at(placement, i)->input.ran_on[k];
		*beside += (fmax(placement->nodes[k].busy_cpus - ran, 0) - *beside) * interval_s /
			   (interval_s + NM_PLACE_OBSERVED_S);
		placement->nodes[k].busy_cpus = ran + *beside;
		demand += *beside;
	}
	for (size_t i = 0; i < placement->processes.count; i++)
		demand += nm_home_state_at(placement, i)->input.wanted_cpus;
	placement->recent_demand += (demand - placement->recent_demand) * interval_s /
				    (interval_s + NM_PLACE_OBSERVED_S);
}

/* ---- the processes ---- */

static double seconds_since(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? (double)(now_ns - since_ns) / (double)NM_NSEC_PER_SEC : 0;
}

void nm_placement_fill_group(const struct nm_home_state *state, uint64_t now_ns,
			     struct nm_place_group *ret)
{
	*ret = state->input;
	ret->pid = state->pid;
	ret->home = state->home;
	ret->home_reason = state->reason;
	ret->fixed_cpus = fmax(ret->demand_cpus - state->movable_cpus, 0);
	ret->age_s = seconds_since(now_ns, state->program_ns);
	ret->observed_s = state->observed_s;
	ret->anon_bytes = nm_home_state_bytes(state);
	ret->distance = state->recent.accesses >= NM_PLACE_MIN_ACCESSES ? state->recent.distance
									: (double)NAN;
	if (state->traffic_run_s > 0)
		ret->cpu_traffic = state->traffic_bytes / state->traffic_run_s;
	ret->memory_on = nm_home_state_shares(state);
	ret->stays_on = state->has_staying ? state->stays_on : NULL;
	ret->room = state->is_restricted ? state->room : NULL;
	ret->beyond = state->is_restricted ? state->beyond : NULL;
	ret->barred = state->left_alone;
	ret->awaits_query = nm_home_state_awaits_query(state, now_ns);
}

void nm_placement_view_build(const struct nm_placement *placement,
			     const struct nm_topology *topology, uint64_t now_ns,
			     struct nm_placement_view *view)
{
	view->nodes = nm_must(calloc(placement->nr_nodes, sizeof(*view->nodes)));
	view->groups = nm_must(calloc(placement->processes.count + 1, sizeof(*view->groups)));
	memcpy(view->nodes, placement->nodes, placement->nr_nodes * sizeof(*view->nodes));
	for (size_t i = 0; i < placement->processes.count; i++)
		nm_placement_fill_group(nm_home_state_at(placement, i), now_ns, &view->groups[i]);
	view->place = (struct nm_place_view){
		.topology = topology,
		.nodes = view->nodes,
		.groups = view->groups,
		.nr_groups = placement->processes.count,
		.page_ns = placement->page_cost.page_ns,
		.max_traffic = placement->max_traffic,
		.recent_demand = placement->recent_demand,
	};
}

void nm_placement_view_clear(struct nm_placement_view *view)
{
	free(view->nodes);
	free(view->groups);
}

/* Adds its loss without a home, including the time before it was first seen: an old process is
 * likely to live long. */
void nm_placement_add_loss(const struct nm_topology *topology, struct nm_home_state *state,
			   uint64_t now_ns, double since_s)
{
	const struct nm_place_view none = {.topology = topology};
	struct nm_place_group group;
	if (state->home >= 0)
		return;
	nm_placement_fill_group(state, now_ns, &group);
	double before_s = state->observed_s - since_s;
	bool met = group.age_s < NM_PLACE_YOUNG_S
			   ? before_s <= 0
			   : before_s < NM_PLACE_OBSERVED_S &&
				     state->observed_s >= NM_PLACE_OBSERVED_S;
	if (met)
		since_s = fmax(fmin(group.age_s, PAST_S), since_s);
	state->lost_s += since_s * nm_place_lost_cpus(state->input.demand_cpus,
						      nm_place_distance(&none, &group));
}
