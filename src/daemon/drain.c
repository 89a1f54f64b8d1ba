/* SPDX-License-Identifier: MIT */
/* Drains the rings: samples go to the metrics and the tables of pages, task events, in their order,
 * to all stages that follow tasks. */
#include "daemon.h"
#include "stages.h"

static void update_newest_time(struct nm_daemon *daemon, uint64_t time_ns)
{
	if (time_ns > daemon->drained.newest_ns)
		daemon->drained.newest_ns = time_ns;
}

static void store_event(void *context, const struct nm_task_event *event)
{
	struct nm_daemon *daemon = context;
	update_newest_time(daemon, event->time_ns);
	NM_RESERVE(daemon->drained.events, daemon->drained.capacity, daemon->drained.nr_events);
	daemon->drained.events[daemon->drained.nr_events++] = *event;
}

static void handle_sample(void *context, struct nm_sample *sample)
{
	struct nm_daemon *daemon = context;
	const struct nm_physmap *physmap = daemon->pipeline.physmap;
	update_newest_time(daemon, sample->time_ns);
	if (sample->page_node == 0 && sample->physical_address && physmap)
		sample->page_node =
			(uint32_t)(nm_physmap_node(physmap, sample->physical_address) + 1);
	nm_metrics_add(daemon->pipeline.metrics, sample);
	if (!daemon->pipeline.memory)
		return;
	const struct nm_page_touch *touch = nm_memory_add(daemon->pipeline.memory, sample);
	if (touch && daemon->pipeline.pages)
		nm_page_stage_add(daemon->pipeline.pages, sample->pid, touch,
				  daemon->tally.intervals);
}

static void dispatch_event(struct nm_daemon *daemon, const struct nm_task_event *event,
			   uint64_t now_ns)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_moves_task_event(pipeline->moves, event);
	nm_tasks_task_event(pipeline->tasks, event, now_ns);
	nm_trial_stage_task_event(daemon, event, now_ns);
	/* A new program has its memory elsewhere. */
	if (event->kind == NM_TASK_EXIT || event->kind == NM_TASK_EXEC)
		nm_metrics_forget(pipeline->metrics, event->tid);
	if (pipeline->memory && nm_memory_task_event(pipeline->memory, event) && pipeline->pages)
		nm_page_stage_drop(pipeline->pages, event->pid);
	nm_home_stage_task_event(daemon, event, now_ns);
}

/*
 * Events have the time of perf's clock, so that only the time between two records is known. The
 * newest record is assumed to be from now, so that no record appears older than it is.
 */
static void dispatch_events(struct nm_daemon *daemon, uint64_t now_ns)
{
	size_t count = daemon->drained.nr_events;
	nm_autofree struct nm_task_event **order = nm_must(calloc(count + 1, sizeof(*order)));
	daemon->drained.nr_events = 0;
	nm_task_events_order(daemon->drained.events, count, order);
	for (size_t i = 0; i < count; i++) {
		uint64_t age_ns = daemon->drained.newest_ns - order[i]->time_ns;
		dispatch_event(daemon, order[i], age_ns < now_ns ? now_ns - age_ns : now_ns);
	}
}

void nm_drain(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!pipeline->source) {
		nm_moves_records_lost(pipeline->moves);
		return;
	}
	uint64_t before_ns = nm_own_cpu_ns();
	daemon->drained.newest_ns = 0;
	struct nm_sample_sink sink = {
		.context = daemon, .on_sample = handle_sample, .on_task = store_event};
	(void)nm_source_drain(pipeline->source, &sink);
	daemon->costs.drain_ns += nm_own_cpu_ns() - before_ns;
	/* Lost records may include forks, and forks may happen on a CPU without a ring. Inherited
	 * affinities are then found by other means. */
	const struct nm_source_status *status = nm_source_status(pipeline->source);
	if (status->counts.lost != daemon->drained.lost_seen ||
	    (int)status->cpus_open < hwloc_bitmap_weight(pipeline->topology->usable))
		nm_moves_records_lost(pipeline->moves);
	daemon->drained.lost_seen = status->counts.lost;
	/* The processing of forks does not decrease with the sampling rate, and is not charged to
	 * another budget. */
	before_ns = nm_own_cpu_ns();
	dispatch_events(daemon, pipeline->platform->ops->now_ns(pipeline->platform));
	daemon->costs.external_ns += nm_own_cpu_ns() - before_ns;
}
