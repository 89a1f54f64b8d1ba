/* SPDX-License-Identifier: MIT */
/* Runs one interval: sample → metrics → snapshot → verify → policy → plan → actuate → journal. */
#include <math.h>
#include <string.h>

#include "daemon.h"
#include "pipeline_build.h"
#include "report.h"
#include "report/decision_lines.h"
#include "stages.h"

/* ---- metrics ---- */

static uint32_t sampled_kinds(const struct nm_source_status *status)
{
	uint32_t kinds = 0;
	if (status && status->memory != NM_MEMORY_NONE)
		kinds |= 1U << NM_EVENT_MEMORY;
	if (status && status->has_instructions)
		kinds |= 1U << NM_EVENT_INSTRUCTIONS;
	if (status && status->has_flops)
		kinds |= 1U << NM_EVENT_FLOPS;
	if (status && status->has_dram)
		kinds |= 1U << NM_EVENT_DRAM;
	return kinds;
}

static const struct nm_source_status *source_status(const struct nm_daemon *daemon)
{
	return daemon->pipeline.source ? nm_source_status(daemon->pipeline.source) : NULL;
}

static int close_interval(struct nm_daemon *daemon, uint64_t interval_ns,
			  const struct nm_sampled_thread **ret)
{
	const struct nm_source_status *status = source_status(daemon);
	double half_life_ns = daemon->config->rules.history_s * (double)NM_NSEC_PER_SEC;
	struct nm_metrics_interval interval = {
		.length_ns = interval_ns,
		.run_sample_ns = status && status->runs ? status->run_sample_ns : 0,
		.keep = half_life_ns > 0 ? exp2(-(double)interval_ns / half_life_ns) : 0,
		.min_samples = daemon->config->rules.min_samples,
		.kinds = sampled_kinds(status),
	};
	if (daemon->pipeline.source)
		interval.taken_per_seen =
			nm_source_taken_per_seen(daemon->pipeline.source, &interval.nr_cpus);
	return nm_metrics_close(daemon->pipeline.metrics, &interval, ret);
}

/* Long enough that a lull does not change the meaning of P, and short enough to detect a source
 * that has stopped. */
#define LATENCY_MEMORY_INTERVALS 60

/* ---- the tick ---- */

static void report_bar(struct nm_daemon *daemon)
{
	const char *bar = nm_moves_bar(daemon->pipeline.moves);
	if (bar == daemon->reported.move_bar)
		return;
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, bar ? LOG_WARNING : LOG_NOTICE, "%s%s",
		  bar ? "No threads moved: " : "Threads are moved again", bar ? bar : "");
	daemon->reported.move_bar = bar;
}

static void update_moves(struct nm_daemon *daemon, uint64_t now_ns)
{
	nm_moves_update(daemon->pipeline.moves, now_ns);
	report_bar(daemon);
}

/* Draws threads, and moves them. */
static int propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	int r = nm_propose(daemon, snapshot, &plan);
	if (r < 0)
		return r;
	nm_plan_filter(&plan, nm_trial_stage_allows, daemon);
	nm_autofree struct nm_receipt *receipts = nm_act(daemon, snapshot, &plan);
	nm_report_plan(daemon, &plan, receipts);
	nm_act_again(daemon, snapshot, plan.count);
	return 0;
}

static int decide(struct nm_daemon *daemon, const struct nm_sampled_thread *sampled,
		  size_t nr_sampled, uint64_t now_ns, uint64_t interval_ns)
{
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = NULL;
	nm_auto(nm_plan_clear) struct nm_plan rollbacks = {0};
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_snapshot_input input = {
		.interval = daemon->tally.intervals,
		.time_ns = now_ns,
		.topology = pipeline->topology,
		.config = daemon->config,
		.sampled = sampled,
		.nr_sampled = nr_sampled,
		.busy_share = daemon->machine.load.busy_share,
		.kinds = sampled_kinds(source_status(daemon)),
		.had_latencies = pipeline->latency_seen &&
				 daemon->tally.intervals - pipeline->latency_seen <=
					 LATENCY_MEMORY_INTERVALS,
		.kernel_balances = nm_balances_nodes(daemon->machine.balancing),
	};
	input.nr_managed = nm_tasks_managed(pipeline->tasks, &input.managed);

	nm_views_clear(daemon); /* before the next one is built, because they are large */
	int r = nm_snapshot_build(&input, &snapshot);
	if (r < 0)
		return r;
	nm_assignments_follow(pipeline->assignments, snapshot, daemon->config);
	if (pipeline->memory)
		nm_memory_follow(pipeline->memory, snapshot);
	if (snapshot->has_latencies)
		pipeline->latency_seen = daemon->tally.intervals;
	daemon->tally.local_share = nm_snapshot_local_share(snapshot);
	nm_placement_mark_homes(nm_placement_of(&daemon->pipeline), snapshot);
	bool may_propose = nm_apply_feedback(daemon, snapshot);
	nm_judge(daemon, snapshot, &rollbacks);
	nm_balance_stage_tick(pipeline, daemon->config, daemon->journal, snapshot);
	nm_autofree struct nm_receipt *receipts = nm_act(daemon, snapshot, &rollbacks);
	nm_report_plan(daemon, &rollbacks, receipts);
	nm_home_stage_tick(daemon, snapshot, interval_ns);
	/* A tick that rolls back moves proposes none: the effect must be visible first. */
	if (rollbacks.count == 0 && may_propose)
		r = propose(daemon, snapshot);
	if (r == 0 && pipeline->pages) {
		struct nm_page_stage_input pages = nm_page_input(daemon, snapshot);
		pages.interval_ns = interval_ns;
		pages.sampled = sampled;
		pages.nr_sampled = nr_sampled;
		pages.may_move = nm_follow_balancing(daemon);
		nm_page_stage_tick(pipeline->pages, &pages);
	}
	nm_views_update(daemon, NM_TAKE(snapshot), sampled, nr_sampled);
	return r;
}

int nm_tick(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_sampled_thread *sampled = NULL;

	if (daemon->paused)
		return 0;
	if (pipeline->source)
		nm_source_flush(pipeline->source);
	nm_drain(daemon); /* first, because rings of CPUs that went offline are closed with their
			   * contents */
	if (pipeline->memory)
		nm_memory_flush(pipeline->memory);
	uint64_t now_ns = pipeline->platform->ops->now_ns(pipeline->platform);
	uint64_t interval_ns = now_ns - daemon->last_tick_ns;
	daemon->last_tick_ns = now_ns;
	daemon->tally.intervals++;
	if (daemon->options.lines)
		daemon->options.lines->interval = daemon->tally.intervals;
	nm_pipeline_follow_machine(daemon, now_ns);
	nm_trial_stage_follow(daemon, now_ns);
	if (nm_topology_is_single(pipeline->topology)) {
		update_moves(daemon, now_ns);
		return 0;
	}
	nm_machine_read_balancing(daemon);
	nm_cpu_load_read(&daemon->machine.load, pipeline->platform, pipeline->topology->nr_cpus);

	int count = close_interval(daemon, interval_ns, &sampled);
	if (count < 0)
		return count;
	int r = nm_tasks_update(pipeline->tasks, sampled, (size_t)count, now_ns);
	nm_trial_stage_tick(daemon, sampled, (size_t)count, now_ns);
	if (r == 0)
		r = decide(daemon, sampled, (size_t)count, now_ns, interval_ns);
	update_moves(daemon, now_ns);
	if (pipeline->memory)
		nm_memory_update(pipeline->memory);

	nm_inject(daemon);
	if (pipeline->source)
		nm_source_follow_load(pipeline->source, daemon->machine.load.busy_share,
				      daemon->machine.load.nr_cpus);
	nm_cost_control(daemon, interval_ns);
	nm_report_sampling_source(daemon);
	nm_report_workers(daemon);
	return r;
}
