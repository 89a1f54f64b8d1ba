/* SPDX-License-Identifier: MIT */
/* Follows the processes whose pages may move, and their accesses. */
#include <math.h>
#include <stdio.h>

#include "mover_internal.h"
#include "mover/page_stage.h"

/* Factor by which the nodes' traffic decays per interval, so that a single burst does not count as
 * contention. */
#define TRAFFIC_KEEP 0.5
#define MAP_INTERVALS 10 /* between two readings of a process's mappings */
#define REGIONS_MAX 256U /* per process */

/* ---- creation and destruction ---- */

static void clear_process(void *context, void *cell)
{
	struct nm_page_stage *stage = context;
	struct nm_page_process *process = cell;

	if (process->owner)
		nm_mover_drop(stage->mover, process->pid, false);
	nm_regions_free(process->regions);
	free(process->seen);
	free(process->ranges);
	free(process->refusals);
	*process = (struct nm_page_process){0};
}

struct nm_page_stage *nm_page_stage_new(const struct nm_topology *topology,
					struct nm_memory *memory, struct nm_mover *mover)
{
	struct nm_page_stage *stage = nm_must(calloc(1, sizeof(*stage)));

	stage->topology = topology;
	stage->memory = memory;
	stage->mover = mover;
	stage->contention = (struct nm_contention){.imbalance = NAN, .busiest = -1};
	stage->traffic = nm_must(calloc(topology->nr_nodes, sizeof(*stage->traffic)));
	stage->processes = (struct nm_column){.cell_bytes = sizeof(struct nm_page_process),
					      .clear = clear_process,
					      .context = stage};
	return stage;
}

void nm_page_stage_retarget(struct nm_page_stage *stage, const struct nm_topology *topology)
{
	stage->topology = topology;
}

void nm_page_stage_free(struct nm_page_stage *stage)
{
	if (!stage)
		return;
	nm_column_clear(&stage->processes);
	free(stage->traffic);
	free(stage);
}

/* ---- processes ---- */

/* Returns the process in the table of pages if its pages may move; otherwise NULL. With "auto" only
 * pages of processes that are left on several nodes do. */
static const struct nm_memory_process *
movable(const struct nm_page_stage *stage, const struct nm_page_stage_input *input, uint32_t pid)
{
	const struct nm_process *known = nm_tasks_process(input->tasks, pid);

	if (!known || nm_process_is_observed(known) ||
	    nm_placement_has_home(input->placement, pid) ||
	    (input->config->pages.policy == NM_PAGES_AUTO &&
	     !nm_placement_is_spread(input->placement, pid, input->interval)))
		return NULL;
	return nm_memory_process(stage->memory, pid);
}

static void follow_process(struct nm_page_stage *stage, const struct nm_page_stage_input *input,
			   const struct nm_snap_process *now, struct nm_page_process *process)
{
	const struct nm_memory_process *tracked = movable(stage, input, now->pid);

	if (!tracked || tracked->owner != process->owner)
		clear_process(stage, process);
	if (!tracked)
		return;
	if (!process->seen)
		process->seen = nm_must(calloc(NM_PAGE_ACCESSES, sizeof(*process->seen)));
	process->pid = now->pid;
	process->start_ticks = now->start_ticks;
	process->domain = now->domain;
	process->owner = tracked->owner;
	process->held = tracked->held;
	process->nr_threads = now->threads;
	(void)snprintf(process->comm, sizeof(process->comm), "%s", now->comm);
}

static void read_mappings(const struct nm_page_stage *stage,
			  const struct nm_page_stage_input *input, struct nm_page_process *process)
{
	nm_autofree struct nm_range *ranges = NULL;
	size_t count = 0;

	if (process->regions && input->interval - process->mapped < MAP_INTERVALS)
		return;
	const struct nm_process *known = nm_tasks_process(input->tasks, process->pid);
	int r = known && nm_config_keeps_memory(input->config, known->rss_bytes)
			? -EDQUOT
			: nm_mover_ranges(stage->mover, process->pid, process->start_ticks,
					  process->domain, &ranges, &count);
	if (!process->unreadable && (r == -EPERM || r == -EFBIG || r == -EDQUOT)) {
		process->unreadable = true;
		input->handler.unreadable(input->handler.context, process, r);
	}
	if (r < 0)
		return;
	if (!process->regions)
		nm_regions_new(stage->topology->nr_nodes, REGIONS_MAX, &process->regions);
	if (nm_regions_set_ranges(process->regions, ranges, count) < 0)
		return;
	nm_page_set_mappings(process, NM_TAKE(ranges), count);
	process->mapped = input->interval;
}

void nm_page_stage_drop(struct nm_page_stage *stage, uint32_t pid)
{
	struct nm_page_process *process = nm_page_process_of(&stage->processes, pid);

	if (process)
		clear_process(stage, process);
}

void nm_page_stage_threads_moved(struct nm_page_stage *stage,
				 const struct nm_page_stage_input *input,
				 const struct nm_decision *decision)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		struct nm_page_process *process = nm_page_process_of(&stage->processes, step->pid);
		if (step->node_from == step->node_to)
			continue;
		nm_feedback_disturb(input->feedback, step->pid);
		nm_verifier_disturb(input->verifier, step->pid);
		if (process)
			nm_page_threads_moved(process, input->interval);
	}
}

/* ---- accesses ---- */

void nm_page_stage_add(struct nm_page_stage *stage, uint32_t pid, const struct nm_page_touch *touch,
		       uint64_t interval)
{
	struct nm_page_process *process = nm_page_process_of(&stage->processes, pid);

	if (!process)
		return;
	process->seen[process->nr_seen++ % NM_PAGE_ACCESSES] = (struct nm_page_access){
		.address = touch->page.address,
		.interval = interval,
		.page_node = touch->page_node,
		.huge = touch->page.size != NM_PAGE_4K,
		.settled = !touch->passing,
	};
	if (process->regions)
		nm_regions_touch(process->regions, touch->page.address, touch->node);
}

/* ---- one interval ---- */

static void follow_traffic(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	unsigned nr_nodes = stage->topology->nr_nodes;

	for (unsigned k = 0; k < nr_nodes; k++)
		stage->traffic[k] *= TRAFFIC_KEEP;
	for (size_t i = 0; i < input->nr_sampled; i++)
		for (unsigned k = 0; input->sampled[i].stats.fresh && k < nr_nodes; k++)
			stage->traffic[k] += input->sampled[i].stats.fresh[k];
	stage->contention = nm_contention_of(stage->traffic, nr_nodes);
}

void nm_page_stage_follow(struct nm_page_stage *stage, const struct nm_page_stage_input *input)
{
	follow_traffic(stage, input);
	nm_column_follow_processes(&stage->processes, input->snapshot);
	for (size_t i = 0; i < stage->processes.count; i++)
		follow_process(stage, input, &input->snapshot->processes[i],
			       nm_page_process_at(&stage->processes, i));
	for (size_t i = 0; i < stage->processes.count; i++) {
		struct nm_page_process *process = nm_page_process_at(&stage->processes, i);
		if (!process->owner)
			continue;
		nm_page_ranges_age(process, input->config, input->interval_ns);
		read_mappings(stage, input, process);
	}
}
