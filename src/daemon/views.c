/* SPDX-License-Identifier: MIT */
/* Hands the state of the stages to report/: the statistics, and the last interval. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon.h"
#include "numa-migrd/file.h"

static double resident_bytes(void)
{
	char text[128];
	unsigned long long pages;

	if (nm_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void add_part(struct nm_statistics *statistics, enum nm_part part)
{
	statistics->parts |= 1U << part;
}

/* ---- also while the service is paused ---- */

static void gather_service(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	uint64_t started_s = daemon->tally.started_s;
	add_part(ret, NM_PART_SERVICE);
	ret->tally = daemon->tally;
	ret->service.version = NM_VERSION;
	ret->service.source = nm_report_source_name(daemon);
	ret->service.policy = nm_config_policy_name(daemon->config);
	ret->service.pages_policy = nm_page_policy_name(daemon->config->pages.policy);
	ret->service.paused = daemon->paused;
	ret->service.dry_run = nm_daemon_is_dry_run(daemon);
	ret->service.blind = nm_lacks_accesses(daemon);
	ret->service.idle = !daemon->paused && nm_topology_is_single(daemon->pipeline.topology);
	ret->service.homes = daemon->config->threads.policy == NM_POLICY_AUTO;
	ret->service.unrestored = daemon->runtime.unrestored > 0;
	ret->service.interval_s = nm_interval_s(daemon);
	ret->service.started_s = started_s ? (double)started_s : (double)NAN;
	ret->service.late_max_ms = daemon->tally.late_max_usec / 1000;
	ret->service.cpu_ns = nm_own_cpu_ns();
}

static void gather_trial(const struct nm_trial *group, struct nm_statistics *ret)
{
	const struct nm_trial_difference *yesterday = nm_trial_yesterday(group);
	struct nm_trial_difference today;
	add_part(ret, NM_PART_TRIAL);
	(void)nm_trial_result(group, NM_TRIAL_TODAY, NM_TRIAL_CPU, &today);
	nm_trial_describe(&today, ret->sentences[0], sizeof(ret->sentences[0]));
	ret->today = ret->sentences[0];
	if (yesterday) {
		nm_trial_describe(yesterday, ret->sentences[1], sizeof(ret->sentences[1]));
		ret->yesterday = ret->sentences[1];
	}
	for (unsigned measure = 0; measure < NM_TRIAL_MEASURES; measure++)
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
			ret->sums[measure][arm] = *nm_trial_sums(group, measure, arm);
}

static void gather_pages(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_page_stage *stage = pipeline->pages;
	add_part(ret, NM_PART_PAGES);
	ret->pages = stage->tally;
	ret->pages_standing = nm_balancing_text_of(daemon->machine.balancing_mode)->name;
	ret->mover = nm_mover_counts(pipeline->mover);
	ret->pages_remembered = nm_migrations_remembered(&pipeline->migrations);
	ret->memory_imbalance = stage->contention.imbalance;
}

/* ---- while it runs ---- */

/* Why a lottery considers or ignores the threads that ran in the last interval. */
static void gather_candidates(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	const struct nm_config *config = daemon->config;
	if (!snapshot || !nm_policy_draws(nm_drawing_policy(config, snapshot)) ||
	    !nm_may_draw_threads(daemon))
		return;
	add_part(ret, NM_PART_LOTTERY);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		bool whole = config->threads.policy == NM_POLICY_AUTO &&
			     !nm_placement_is_spread(nm_placement_of(daemon), thread->pid,
						     daemon->tally.intervals);
		if (thread->active)
			ret->candidates[whole ? NM_CANDIDACY_WHOLE
					      : nm_lottery_candidacy(
							nm_drawing_policy(config, snapshot), config,
							thread)]++;
	}
}

static double mean_latency(const struct nm_snapshot *snapshot)
{
	double cycles = 0, samples = 0;
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (isnan(thread->latency))
			continue;
		cycles += thread->latency * thread->latency_samples;
		samples += thread->latency_samples;
	}
	return samples > 0 ? cycles / samples : (double)NAN;
}

static void gather_tasks(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	struct nm_platform *platform = pipeline->platform;
	add_part(ret, NM_PART_TASKS);
	ret->nodes = pipeline->topology->nr_nodes;
	ret->roster = nm_roster_counts(pipeline->roster);
	ret->processes_active = ret->roster.processes_managed - ret->roster.processes_observed;
	ret->threads_measured = snapshot ? snapshot->measured : 0;
	ret->threads_undersampled = snapshot ? snapshot->undersampled : 0;
	ret->leases = nm_actuator_leases(pipeline->actuator);
	if (platform->ops->worker_counts)
		platform->ops->worker_counts(platform, &ret->workers);
}

static void gather_memory(struct nm_memory *memory, struct nm_statistics *ret)
{
	struct nm_exclusivity sums = nm_memory_exclusivity(memory);
	add_part(ret, NM_PART_MEMORY);
	ret->tracked = nm_pages_counts(nm_memory_pages(memory));
	ret->sharing = nm_affinity_counts(nm_memory_affinity(memory));
	ret->exclusivity = nm_exclusivity_average(&sums);
}

static const char *dtas_state(const struct nm_daemon *daemon)
{
	if (!daemon->config->threads.dtas)
		return "off";
	if (nm_balancer_of(daemon)->dtas_unavailable)
		return "unavailable";
	return nm_balancer_of(daemon)->split ? "on" : "undecided";
}

static void gather_balance(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_balancer *balancer = nm_balancer_of(daemon);
	add_part(ret, NM_PART_BALANCE);
	ret->selection = nm_selection_name(daemon->config->threads.selection);
	ret->balance = balancer->state;
	ret->balancer = balancer->tally;
	ret->dtas = dtas_state(daemon);
}

void nm_statistics_gather_totals(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;

	*ret = (struct nm_statistics){0};
	gather_service(daemon, ret);
	if (pipeline->source) {
		add_part(ret, NM_PART_SOURCE);
		ret->source = *nm_source_status(pipeline->source);
	}
	if (!daemon->paused)
		gather_tasks(daemon, ret);
}

void nm_statistics_gather(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;

	nm_statistics_gather_totals(daemon, ret);
	nm_status_line(ret, ret->service.line, sizeof(ret->service.line));
	ret->service.summary = ret->service.line;
	ret->service.resident_bytes = resident_bytes();
	/* The counters survive a pause, which ends the policy. */
	if (nm_placement_of(daemon) || daemon->tally.homes.granted > 0)
		add_part(ret, NM_PART_HOMES);
	ret->homes_now = nm_placement_homes(nm_placement_of(daemon));
	if (daemon->trial.group && daemon->config->verify.control_percent > 0)
		gather_trial(daemon->trial.group, ret);
	if (pipeline->pages)
		gather_pages(daemon, ret);
	if (daemon->paused)
		return;
	gather_candidates(daemon, ret);
	ret->latency = mean_latency(daemon->views.snapshot);
	if (pipeline->memory)
		gather_memory(pipeline->memory, ret);
	if (nm_balancer_of(daemon))
		gather_balance(daemon, ret);
}

/* ---- the last interval ---- */

static double *sum_served(const struct nm_topology *topology, const struct nm_figures *figures,
			  size_t nr_figures)
{
	double *served = nm_must(calloc(topology->nr_nodes, sizeof(*served)));
	for (size_t i = 0; i < nr_figures; i++)
		for (unsigned node = 0;
		     isfinite(figures[i].access_total) && node < topology->nr_nodes; node++)
			served[node] += figures[i].accesses[node];
	return served;
}

void nm_views_update(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		     const struct nm_figures *figures, size_t nr_figures)
{
	nm_views_clear(daemon);
	daemon->views.snapshot = snapshot;
	daemon->views.served = sum_served(daemon->pipeline.topology, figures, nr_figures);
}

void nm_views_clear(struct nm_daemon *daemon)
{
	nm_snapshot_free(daemon->views.snapshot);
	free(daemon->views.served);
	daemon->views = (struct nm_views){0};
}

struct nm_view nm_views_of(struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_statistics_gather(daemon, statistics);
	return (struct nm_view){
		.config = daemon->config,
		.statistics = statistics,
		.history = &daemon->history,
		.paused = daemon->paused,
		.now_ns = daemon->paused ? 0 : nm_daemon_now_ns(daemon),
		.platform = pipeline->platform,
		.topology = pipeline->topology,
		.busy_share = daemon->machine.load.busy_share,
		.nr_cpus = daemon->machine.load.nr_cpus,
		.snapshot = daemon->views.snapshot,
		.served = daemon->views.served,
		.roster = pipeline->roster,
		.actuator = pipeline->actuator,
		.memory = pipeline->memory,
		.placement = nm_placement_of(daemon),
		.trial = daemon->trial.group,
	};
}

int nm_command_dump(void *context)
{
	struct nm_statistics statistics;
	const struct nm_view view = nm_views_of(context, &statistics);
	return nm_view_dump(&view);
}
