/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "step.h"

NM_DEFINE_CLEANUP(struct hwloc_bitmap_s, hwloc_bitmap_free);

static int build_target(const struct nm_snapshot *snapshot, const struct nm_config *config,
			const struct nm_snap_thread *thread, const struct nm_step_route *route,
			hwloc_bitmap_t *ret)
{
	nm_auto(hwloc_bitmap_freep) struct hwloc_bitmap_s *target =
		nm_must(hwloc_bitmap_dup(snapshot->topology->nodes[route->node_to].cpus));
	nm_must_do(hwloc_bitmap_and(target, target, thread->allowed));
	if (route->within)
		nm_must_do(hwloc_bitmap_and(target, target, route->within));
	/* The papers move a thread to one CPU. */
	if (config->rules.paper && !route->whole_node && route->cpu_to >= 0) {
		unsigned cpu = (unsigned)route->cpu_to;
		if (!hwloc_bitmap_isset(target, cpu))
			return -ENOENT;
		nm_must_do(hwloc_bitmap_only(target, cpu));
	}
	if (hwloc_bitmap_iszero(target))
		return -ENOENT;
	*ret = NM_TAKE(target);
	return 0;
}

static double cost_where_it_was(const struct nm_snapshot *snapshot,
				const struct nm_snap_thread *thread, int node)
{
	if (node < 0)
		return NAN;
	return nm_selection_access_cost(snapshot->topology, thread->accesses, node);
}

int nm_step_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  const struct nm_snap_thread *thread, const struct nm_step_route *route,
		  struct nm_step *ret)
{
	const struct nm_snap_process *process = &snapshot->processes[thread->process];
	hwloc_bitmap_t target;
	int r = build_target(snapshot, config, thread, route, &target);
	if (r < 0)
		return r;
	*ret = (struct nm_step){
		.tid = thread->tid,
		.pid = thread->pid,
		.start_ticks = thread->start_ticks,
		.adopted_ns = thread->adopted_ns,
		.cpu_from = route->cpu_from,
		.cpu_to = route->cpu_to,
		.node_from = route->node_from,
		.node_to = route->node_to,
		.target = target,
		.original = thread->allowed,
		.unrestricted = thread->unrestricted,
		.local_before = thread->local_share,
		.samples_before = thread->access_samples,
		.latency_before = thread->latency,
		.latency_samples_before = thread->latency_samples,
		.performance_before = thread->performance,
		.relative_before = thread->relative,
		.record = NAN,
		.shared = NAN,
		.access_cost_before = cost_where_it_was(snapshot, thread, route->node_from),
	};
	memcpy(ret->comm, process->comm, sizeof(ret->comm));
	return 0;
}

void nm_decision_clear(struct nm_decision *decision)
{
	for (unsigned i = 0; i < decision->nr_steps; i++)
		hwloc_bitmap_free(decision->steps[i].target);
	decision->nr_steps = 0;
}
