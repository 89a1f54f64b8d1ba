/* SPDX-License-Identifier: MIT */
/*
 * Moves pages to the nodes that use them (pages.policy = "exclusivity"); the work of one interval.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"

/* Factor by which the nodes' traffic decays per interval, so that a single burst does not count as
 * contention. */
#define TRAFFIC_KEEP 0.5
#define MIB 1048576.0
#define SENT_OF 4 /* one of this number of threads counts as many */

/* ---- creation and destruction ---- */

static void clear_process(void *context, void *cell)
{
	struct nm_daemon *daemon = context;
	struct nm_page_process *process = cell;

	if (process->owner)
		nm_mover_drop(daemon->pipeline.mover, process->pid, false);
	nm_regions_free(process->regions);
	free(process->seen);
	free(process->ranges);
	free(process->refusals);
	*process = (struct nm_page_process){0};
}

static void stage_free(struct nm_page_stage *stage)
{
	if (!stage)
		return;
	nm_column_clear(&stage->processes);
	free(stage->traffic);
	free(stage);
}
NM_DEFINE_CLEANUP(struct nm_page_stage, stage_free);

static void stage_new(struct nm_daemon *daemon, struct nm_page_stage **ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_auto(stage_freep) struct nm_page_stage *stage = nm_must(calloc(1, sizeof(*stage)));

	stage->contention = (struct nm_contention){.imbalance = NAN, .busiest = -1};
	stage->traffic = nm_must(calloc(pipeline->topology->nr_nodes, sizeof(*stage->traffic)));
	stage->processes = (struct nm_column){.cell_bytes = sizeof(struct nm_page_process),
					      .clear = clear_process,
					      .context = daemon};
	*ret = NM_TAKE(stage);
}

static void report_barred(struct nm_daemon *daemon)
{
	if (daemon->config->pages.policy != NM_PAGES_AUTO &&
	    nm_mover_is_barred(daemon->pipeline.mover))
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "No pages migrated: isolated or nohz_full CPUs (allow with "
			  "pages.also = ( \"isolated\" ))");
}

void nm_page_stage_close(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;

	if (pipeline->pages) {
		nm_page_balancing_end(daemon);
		nm_verifier_drop_pages(pipeline->verifier);
		nm_migrations_drop(&pipeline->migrations, NM_DECISION_PAGES, false);
	}
	stage_free(pipeline->pages);
	pipeline->pages = NULL;
	nm_release_mover(daemon, false);
}

void nm_page_stage_restart(struct nm_daemon *daemon)
{
	nm_page_stage_close(daemon);
	if (!nm_config_moves_pages(daemon->config) || !daemon->pipeline.memory)
		return;
	stage_new(daemon, &daemon->pipeline.pages);
	nm_open_mover(daemon);
	report_barred(daemon);
}

void nm_page_stage_configure(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	if (!stage || !nm_config_moves_pages(daemon->config)) {
		nm_page_stage_restart(daemon);
		return;
	}
	nm_mover_configure(daemon->pipeline.mover, daemon->pipeline.topology, daemon->config);
	report_barred(daemon);
}

/* ---- processes ---- */

/* With "auto" only pages of processes that are left on several nodes move. */
static bool is_excluded(const struct nm_daemon *daemon, uint32_t pid)
{
	return daemon->config->pages.policy == NM_PAGES_AUTO &&
	       !nm_placement_is_spread(nm_placement_of(daemon), pid, daemon->tally.intervals);
}

/* Returns the process in the table of pages if its pages may move; otherwise NULL. */
static const struct nm_memory_process *movable(struct nm_daemon *daemon, uint32_t pid)
{
	const struct nm_process *known = nm_roster_process(daemon->pipeline.roster, pid);

	if (!known || nm_process_is_observed(known) ||
	    nm_placement_has_home(nm_placement_of(daemon), pid) || is_excluded(daemon, pid))
		return NULL;
	return nm_memory_process(daemon->pipeline.memory, pid);
}

static void follow_process(struct nm_daemon *daemon, const struct nm_snap_process *now,
			   struct nm_page_process *process)
{
	const struct nm_memory_process *tracked = movable(daemon, now->pid);

	if (!tracked || tracked->owner != process->owner)
		clear_process(daemon, process);
	if (!tracked)
		return;
	if (!process->seen)
		process->seen = nm_must(calloc(NM_PAGE_ACCESSES, sizeof(*process->seen)));
	process->pid = now->pid;
	process->start_ticks = now->start_ticks;
	process->owner = tracked->owner;
	process->held = tracked->held;
	process->nr_threads = now->threads;
	(void)snprintf(process->comm, sizeof(process->comm), "%s", now->comm);
}

static void follow_processes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	nm_column_follow_processes(&stage->processes, snapshot);
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		follow_process(daemon, &snapshot->processes[i],
			       nm_page_process_at(&stage->processes, i));
}

void nm_page_stage_drop(struct nm_daemon *daemon, uint32_t pid)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	struct nm_page_process *process = stage ? nm_page_process_of(&stage->processes, pid) : NULL;

	if (process)
		clear_process(daemon, process);
}

void nm_page_stage_task_event(struct nm_daemon *daemon, const struct nm_task_event *event)
{
	const struct nm_process *process = nm_roster_process(daemon->pipeline.roster, event->pid);
	/* The first thread may exit before the others. If the records come in this order when all
	 * exit, the end is detected when the process is gone. */
	bool ends = event->kind == NM_TASK_EXIT && event->tid == event->pid &&
		    (!process || process->nr_threads == 0);
	if (event->kind == NM_TASK_EXEC || ends)
		nm_page_stage_drop(daemon, event->pid);
}

/* ---- accesses ---- */

void nm_page_stage_add(struct nm_daemon *daemon, const struct nm_sample *sample)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_page_process *process =
		nm_page_process_of(&pipeline->pages->processes, sample->pid);
	int node = nm_topology_node_of_cpu(pipeline->topology, (int)sample->cpu);

	if (!process || node < 0 || !nm_memory_counts(sample))
		return;
	process->seen[process->nr_seen++ % NM_PAGE_ACCESSES] = (struct nm_page_access){
		.address = sample->address,
		.interval = daemon->tally.intervals,
		.page_node = (int16_t)nm_sample_node(sample, pipeline->topology->nr_nodes),
		.huge = sample->page_bytes >= NM_REGION_LEAST_BYTES,
		.settled = nm_memory_has_settled(pipeline->memory, sample->tid, (unsigned)node),
	};
	if (process->regions)
		nm_regions_touch(process->regions, sample->address, (unsigned)node);
}

static void follow_traffic(struct nm_daemon *daemon, const struct nm_figures *figures, size_t count)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;

	for (unsigned k = 0; k < nr_nodes; k++)
		stage->traffic[k] *= TRAFFIC_KEEP;
	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; figures[i].fresh && k < nr_nodes; k++)
			stage->traffic[k] += figures[i].fresh[k];
	stage->contention = nm_contention_of(stage->traffic, nr_nodes);
}

/* ---- moving ---- */

static void update_waiting(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	for (size_t i = 0; i < stage->processes.count; i++) {
		struct nm_page_process *process = nm_page_process_at(&stage->processes, i);
		process->waits =
			daemon->tally.intervals < process->until ||
			(!daemon->config->rules.paper &&
			 nm_verifier_awaits(daemon->pipeline.verifier, process->pid,
					    process->start_ticks, daemon->tally.intervals));
	}
	for (size_t i = 0; i < daemon->pipeline.migrations.count; i++) {
		const struct nm_migration *one = &daemon->pipeline.migrations.items[i];
		struct nm_page_process *process = nm_page_process_of(
			&stage->processes, one->decision.steps[0].pid);
		if (process && one->roll_back)
			process->waits = true;
	}
}

static void decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_mover *mover = daemon->pipeline.mover;
	const struct nm_config *config = daemon->config;
	struct nm_page_budget room = {0};

	nm_page_stage_roll_back(daemon, snapshot);
	if (nm_mover_is_barred(daemon->pipeline.mover))
		return;
	update_waiting(daemon);
	room.pages = nm_mover_room(mover, snapshot->time_ns);
	room.bytes = nm_mover_room_bytes(mover, snapshot->time_ns);
	room.whole = (double)room.bytes + 1 >
		     (double)config->pages.max_mb_per_s * MIB * config->general.interval_s;
	/* Alternates the order, so that each of the two gets its share of the budget. */
	if (snapshot->interval % 2)
		nm_page_stage_by_range(daemon, snapshot, &room);
	nm_page_stage_by_rule(daemon, snapshot, &room);
	if (snapshot->interval % 2 == 0)
		nm_page_stage_by_range(daemon, snapshot, &room);
}

/* Counts from the time when many of its threads were on another node are not valid for their
 * current nodes. */
static void decay_if_threads_moved(struct nm_page_process *process)
{
	if (process->regions && process->nr_moved_threads * SENT_OF >= process->nr_threads &&
	    process->nr_moved_threads > 0)
		nm_regions_fade(process->regions, 0);
	process->nr_moved_threads = 0;
}

void nm_page_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct nm_figures *figures, size_t nr_figures, uint64_t interval_ns)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;

	if (!stage)
		return;
	follow_processes(daemon, snapshot);
	follow_traffic(daemon, figures, nr_figures);
	for (size_t i = 0; i < stage->processes.count; i++) {
		struct nm_page_process *process = nm_page_process_at(&stage->processes, i);
		if (!process->owner)
			continue;
		decay_if_threads_moved(process);
		nm_page_ranges_update(daemon, process, interval_ns);
	}
	nm_page_stage_collect(daemon);
	bool left_to_kernel = daemon->config->pages.policy == NM_PAGES_AUTO &&
			      nm_balances_nodes(daemon->machine.balancing);
	if (left_to_kernel || !nm_page_balancing(daemon)) {
		nm_migrations_drop(&daemon->pipeline.migrations, NM_DECISION_PAGES, true);
		return;
	}
	decide(daemon, snapshot);
}
