/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "step.h"

NM_DEFINE_CLEANUP(struct hwloc_bitmap_s, hwloc_bitmap_free);

/* A program that has created threads has chosen their number. */
static bool may_size_itself(const struct nm_snap_process *process, bool drawn)
{
	if (drawn && process->threads > 1 && process->age_s >= NM_SIZED_AFTER_S &&
	    process->quiet_s >= NM_SIZED_AFTER_S)
		return false;
	return process->young || process->spawning;
}

static enum nm_step_pin pin_of(const struct nm_snapshot *snapshot, const struct nm_config *config,
			       const struct nm_snap_process *process, bool drawn)
{
	switch (config->threads.affinity) {
	case NM_AFFINITY_NODE:
	case NM_AFFINITY_CORE:
		return NM_STEP_LEASE;
	case NM_AFFINITY_TRANSIENT:
		return NM_STEP_NUDGE;
	case NM_AFFINITY_MOVE:
		return NM_STEP_MOVE;
	case NM_AFFINITY_AUTO:
		break;
	}
	/* The kernel moves threads to their memory, too, and a lease would prevent that. */
	if (drawn && snapshot->kernel_balances)
		return NM_STEP_NUDGE;
	/* New tasks would inherit a lease, and a program that sizes itself by its affinity, at its
	 * start or while it runs, would observe it. */
	return may_size_itself(process, drawn) || nm_runtime_may_count_again(process->runtime)
		       ? NM_STEP_NUDGE
		       : NM_STEP_LEASE;
}

static int build_target(const struct nm_snapshot *snapshot, const struct nm_config *config,
			const struct nm_snap_thread *thread, const struct nm_step_route *route,
			hwloc_bitmap_t *ret)
{
	nm_auto(hwloc_bitmap_freep) struct hwloc_bitmap_s *target =
		nm_must(hwloc_bitmap_dup(snapshot->topology->nodes[route->node_to].cpus));
	nm_must_do(hwloc_bitmap_and(target, target, thread->allowed));
	if (route->within)
		nm_must_do(hwloc_bitmap_and(target, target, route->within));
	if (config->threads.affinity == NM_AFFINITY_CORE && !route->whole_node &&
	    route->cpu_to >= 0) {
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
		.pin = pin_of(snapshot, config, process, route->drawn),
		.runtime = process->runtime,
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
