/* SPDX-License-Identifier: MIT */
/* Policy "auto": the machine and its processes, as decisions see them. */
#include <math.h>
#include <string.h>

#include "daemon.h"
#include "placement_stage.h"

#define PAST_S 60.0 /* who is met has run so far as it does, and this is what of that counts */
#define BESIDE_S 0.25 /* of what runs beside the processes: where a thread was is known to some ten milliseconds only */
#define KNOWN_S 2.0 /* after which an older one has shown where its memory is */

static int fill_nodes(const struct nm_snapshot *snapshot, struct nm_place_node *nodes)
{
	const struct nm_topology *topology = snapshot->topology;
	double sibling_worth;
	int r = nm_sibling_worth(snapshot, &sibling_worth);
	for (unsigned k = 0; r == 0 && k < topology->nr_nodes; k++)
		r = nm_core_capacity(snapshot, topology->nodes[k].cpus, sibling_worth,
				     &nodes[k].cores);
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		const struct nm_snap_cpu *one = &snapshot->cpus[cpu];
		if (one->usable && one->busy_share > 0)
			nodes[one->node].busy_cpus += one->busy_share;
	}
	return r;
}

/* A moment of theirs that was taken for somebody else's is no reason to keep anybody away. */
static int smooth_nodes(struct nm_placement *placement, double interval_s, struct nm_place_node *nodes,
			unsigned nr_nodes)
{
	if (placement->nr_nodes != nr_nodes) {
		double *fresh = calloc(nr_nodes, sizeof(*fresh));
		if (!fresh)
			return -ENOMEM;
		free(placement->beside_cpus);
		placement->beside_cpus = fresh;
		placement->nr_nodes = nr_nodes;
	}
	for (unsigned k = 0; k < nr_nodes; k++) {
		double *beside = &placement->beside_cpus[k], ran = 0;
		for (size_t i = 0; i < placement->count; i++)
			ran += placement->items[i].ran_on[k];
		*beside += (fmax(nodes[k].busy_cpus - ran, 0) - *beside) * interval_s /
			   (interval_s + BESIDE_S);
		nodes[k].busy_cpus = ran + *beside;
	}
	return 0;
}

void nm_placement_view_clear(struct nm_placement_view *view)
{
	free(view->nodes);
	free(view->groups);
}

void nm_placement_fill_group(const struct nm_snapshot *snapshot, const struct nm_placed *placed,
		       struct nm_place_group *ret)
{
	const struct nm_snap_process *process = &snapshot->processes[placed->process];
	*ret = (struct nm_place_group){
		.pid = placed->pid,
		.demand_cpus = placed->demand_cpus,
		.running = placed->running,
		.ran_most = placed->ran_most,
		.age_s = process->age_s,
		.quiet_s = process->quiet_s,
		.watched_s = placed->setbacks > 0 ? INFINITY : placed->watched_s,
		.anon_bytes = process->anon_bytes,
		.ran_on = placed->ran_on,
		.memory_on = placed->accesses > 0 ? placed->memory_on : NULL,
		.has_run_on = placed->has_run_on,
		.allowed = placed->allowed,
		.home = placed->home,
		.home_reason = placed->reason,
		.home_ran_most = placed->home_ran_most,
		.barred = snapshot->time_ns < placed->barred_until_ns,
		.awaits_count = nm_placement_awaits_count(placed, snapshot->time_ns),
	};
}

/* What it has lost while it had no home, also before it was met: who has lived for long goes on for long. */
static void add_loss(const struct nm_place_group *group, struct nm_placed *placed, double distance,
		     double interval_s)
{
	double before_s = placed->watched_s - interval_s;
	bool met = group->age_s < NM_HURRY_S ? before_s <= 0
					  : before_s < KNOWN_S && placed->watched_s >= KNOWN_S;
	if (met)
		interval_s = fmax(fmin(group->age_s, PAST_S), interval_s);
	placed->lost_s += interval_s * nm_place_lost_cpus(group->demand_cpus, distance);
}

int nm_placement_view_build(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      double interval_s, struct nm_placement_view *view)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	view->nodes = calloc(nr_nodes, sizeof(*view->nodes));
	view->groups = calloc(placement->count + 1, sizeof(*view->groups));
	if (!view->nodes || !view->groups)
		return -ENOMEM;
	int r = fill_nodes(snapshot, view->nodes);
	if (r == 0)
		r = smooth_nodes(daemon->pipeline.placement, interval_s, view->nodes, nr_nodes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < placement->count; i++) {
		struct nm_placed *placed = &placement->items[i];
		for (unsigned k = 0; placed->accesses > 0 && k < nr_nodes; k++)
			placed->memory_on[k] /= placed->accesses;
		nm_placement_fill_group(snapshot, placed, &view->groups[i]);
	}
	view->place = (struct nm_place_view){
		.topology = snapshot->topology,
		.nodes = view->nodes,
		.groups = view->groups,
		.nr_groups = placement->count,
		.cost = placement->page_cost,
	};
	for (size_t i = 0; i < placement->count; i++) {
		if (placement->items[i].home >= 0)
			continue;
		add_loss(&view->groups[i], &placement->items[i],
			 nm_place_distance(&view->place, &view->groups[i]), interval_s);
		view->groups[i].lost_s = placement->items[i].lost_s;
	}
	return 0;
}
