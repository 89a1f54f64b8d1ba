/* SPDX-License-Identifier: MIT */
/* Collects the current statistics of the daemon, for the table in statistics.h. */
#include "statistics.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>

#include "numa-migrd/file.h"
#include "numa-migrd/policy.h"

static void set(struct nm_statistics *statistics, enum nm_statistic value, double number)
{
	statistics->now[value] = (struct nm_statistic_now){.known = true, .number = number};
}

/* Counters, whose conversion is exact up to 2^53. */
static void count(struct nm_statistics *statistics, enum nm_statistic value, uint64_t number)
{
	set(statistics, value, (double)number);
}

static void name(struct nm_statistics *statistics, enum nm_statistic value, const char *text)
{
	statistics->now[value] = (struct nm_statistic_now){.known = true, .text = text};
}

static double resident_bytes(void)
{
	char text[128];
	unsigned long long pages;

	if (nm_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* ---- also while the service is paused ---- */

static void gather_service(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	name(statistics, NM_STATISTIC_VERSION, NM_VERSION);
	name(statistics, NM_STATISTIC_SOURCE, nm_report_source_name(daemon));
	name(statistics, NM_STATISTIC_POLICY, nm_config_policy_name(daemon->config));
	set(statistics, NM_STATISTIC_PAUSED, daemon->paused);
	set(statistics, NM_STATISTIC_DRY_RUN, nm_daemon_is_dry_run(daemon));
	set(statistics, NM_STATISTIC_BLIND, nm_lacks_accesses(daemon));
	set(statistics, NM_STATISTIC_IDLE,
	    !daemon->paused && nm_topology_is_single(daemon->pipeline.topology));
	set(statistics, NM_STATISTIC_INTERVAL_S, nm_interval_s(daemon));
	set(statistics, NM_STATISTIC_STARTED_S,
	    daemon->tally.started_s ? (double)daemon->tally.started_s : (double)NAN);
	count(statistics, NM_STATISTIC_CPU_SELF_NS, nm_own_cpu_ns());
	set(statistics, NM_STATISTIC_RESIDENT_BYTES, resident_bytes());
}

_Static_assert(NM_STATISTIC_VERDICTS_IMPROVED + NM_VERDICT_INCONCLUSIVE ==
		       NM_STATISTIC_VERDICTS_INCONCLUSIVE,
	       "in the order of enum nm_verdict_kind");

static void gather_tally(const struct nm_tally *tally, struct nm_statistics *statistics)
{
	count(statistics, NM_STATISTIC_INTERVALS, tally->intervals);
	count(statistics, NM_STATISTIC_INTERVAL_LATE_MAX_MS, tally->late_max_usec / 1000);
	count(statistics, NM_STATISTIC_DECISIONS, tally->decisions);
	count(statistics, NM_STATISTIC_MOVES_APPLIED, tally->applied);
	count(statistics, NM_STATISTIC_MOVES_REFUSED, tally->failed);
	for (unsigned kind = 0; kind < NM_VERDICT_KINDS; kind++)
		count(statistics, NM_STATISTIC_VERDICTS_IMPROVED + kind, tally->verdicts[kind]);
	count(statistics, NM_STATISTIC_CPU_SAMPLING_NS, tally->caused_ns);
	count(statistics, NM_STATISTIC_SUPPRESSED, tally->suppressed);
}

/* The counters survive a pause, which ends the policy. */
static void gather_homes(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_home_tally *homes = &daemon->tally.homes;

	if (!daemon->pipeline.placement && homes->granted == 0)
		return;
	count(statistics, NM_STATISTIC_PROCESSES_PLACED, nm_placement_homes(daemon->pipeline.placement));
	count(statistics, NM_STATISTIC_HOMES_GRANTED, homes->granted);
	count(statistics, NM_STATISTIC_HOMES_EXPIRED, homes->expired);
	count(statistics, NM_STATISTIC_HOMES_YIELDED, homes->yielded);
	count(statistics, NM_STATISTIC_HOMES_ROLLED_BACK, homes->rolled_back);
	count(statistics, NM_STATISTIC_PAGES_MOVED_HOME, homes->pages);
	count(statistics, NM_STATISTIC_BYTES_MOVED_HOME, homes->bytes);
}

static void gather_trial(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_trial_stage *stage = &daemon->trial;
	struct nm_trial_difference today;
	unsigned value = NM_STATISTIC_TRIAL;

	if (!stage->group || !(daemon->config->verify.control_percent > 0))
		return;
	(void)nm_trial_result(stage->group, NM_TRIAL_TODAY, NM_TRIAL_CPU, &today);
	nm_trial_describe(&today, statistics->compared_today, sizeof(statistics->compared_today));
	name(statistics, NM_STATISTIC_COMPARED_TODAY, statistics->compared_today);
	if (stage->has_yesterday) {
		nm_trial_describe(&stage->yesterday, statistics->compared_yesterday,
				  sizeof(statistics->compared_yesterday));
		name(statistics, NM_STATISTIC_COMPARED_YESTERDAY, statistics->compared_yesterday);
	}
	for (unsigned measure = 0; measure < NM_TRIAL_MEASURES; measure++)
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++) {
			const struct nm_trial_sum *sum = nm_trial_sums(stage->group, measure, arm);
			set(statistics, value++, sum->n);
			set(statistics, value++, sum->sum);
			set(statistics, value++, sum->squares);
		}
}

/* ---- while it runs ---- */

/* Shows why a lottery considers or ignores the threads that ran in the last interval. */
static void gather_candidates(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	const struct nm_config *config = daemon->config;
	uint64_t counts[NM_CANDIDACY_MAX] = {0};
	if (!snapshot || !nm_policy_draws(nm_drawing_policy(config, snapshot)) ||
	    !nm_may_draw_threads(daemon))
		return;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		bool whole = config->threads.policy == NM_POLICY_AUTO &&
			     !nm_placement_is_spread(daemon->pipeline.placement, thread->pid,
						     daemon->tally.intervals);
		if (thread->active)
			counts[whole ? NM_CANDIDACY_WHOLE
				     : nm_lottery_candidacy(nm_drawing_policy(config, snapshot),
							    config, thread)]++;
	}
	for (unsigned kind = 0; kind < NM_CANDIDACY_MAX; kind++)
		count(statistics, NM_STATISTIC_THREADS_CANDIDATES + kind, counts[kind]);
	count(statistics, NM_STATISTIC_THREADS_STUCK, daemon->tally.stuck);
}

static void gather_managed(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	struct nm_roster_counts roster = nm_roster_counts(pipeline->roster);

	count(statistics, NM_STATISTIC_NODES, pipeline->topology->nr_nodes);
	count(statistics, NM_STATISTIC_PROCESSES_MANAGED, roster.processes_managed);
	count(statistics, NM_STATISTIC_PROCESSES_ACTIVE,
	      roster.processes_managed - roster.processes_observed);
	count(statistics, NM_STATISTIC_PROCESSES_OBSERVED, roster.processes_observed);
	count(statistics, NM_STATISTIC_PROCESSES_OFF, roster.processes_off);
	count(statistics, NM_STATISTIC_THREADS_MANAGED, roster.threads_managed);
	count(statistics, NM_STATISTIC_THREADS_MEASURED, snapshot ? snapshot->measured : 0);
	count(statistics, NM_STATISTIC_THREADS_UNDERSAMPLED, snapshot ? snapshot->undersampled : 0);
	gather_candidates(daemon, statistics);
	count(statistics, NM_STATISTIC_LEASES, nm_actuator_leases(pipeline->actuator));
	set(statistics, NM_STATISTIC_LOCAL_SHARE, daemon->tally.local_share);
	set(statistics, NM_STATISTIC_CPU_SHARE, daemon->tally.cpu_share);
	if (daemon->exporter.nr_nodes > 0)
		set(statistics, NM_STATISTIC_ACCESS_LATENCY, daemon->exporter.latency);
}

static void gather_workers(struct nm_platform *machine, struct nm_statistics *statistics)
{
	struct nm_worker_counts counts = {0};

	if (machine->ops->worker_counts)
		machine->ops->worker_counts(machine, &counts);
	count(statistics, NM_STATISTIC_WORKERS_GIVEN_UP, counts.given_up);
	count(statistics, NM_STATISTIC_WORKERS_STUCK, counts.stuck);
}

static void gather_memory(struct nm_memory *memory, struct nm_statistics *statistics)
{
	struct nm_pages_counts counts = nm_pages_counts(nm_memory_pages(memory));
	struct nm_exclusivity sums = nm_memory_exclusivity(memory);

	count(statistics, NM_STATISTIC_PAGES_TRACKED, counts.tracked);
	count(statistics, NM_STATISTIC_PAGES_EVICTED, counts.evicted);
	count(statistics, NM_STATISTIC_PAGES_PING_PONG, counts.ping_pong);
	count(statistics, NM_STATISTIC_PAGES_TABLE_BYTES, counts.bytes);
	set(statistics, NM_STATISTIC_PAGE_EXCLUSIVITY, nm_exclusivity_average(&sums));
	count(statistics, NM_STATISTIC_SHARING_THREADS,
	      nm_affinity_counts(nm_memory_affinity(memory)).threads);
	count(statistics, NM_STATISTIC_SHARING_PAIRS,
	      nm_affinity_counts(nm_memory_affinity(memory)).pairs);
}

static void gather_pages(const struct nm_page_stage *stage, struct nm_mover *mover,
			 struct nm_statistics *statistics)
{
	const struct nm_page_tally *tally = &stage->tally;
	struct nm_mover_counts counts = nm_mover_counts(mover);

	name(statistics, NM_STATISTIC_PAGES_STANDING,
	     nm_balancing_mode_name(stage->balancing_mode));
	count(statistics, NM_STATISTIC_PAGE_DECISIONS, tally->decisions);
	count(statistics, NM_STATISTIC_PAGES_MOVED, tally->moved);
	count(statistics, NM_STATISTIC_PAGES_MOVED_BYTES, tally->bytes);
	count(statistics, NM_STATISTIC_PAGES_ELSEWHERE, tally->elsewhere);
	count(statistics, NM_STATISTIC_PAGES_REFUSED, tally->refused);
	count(statistics, NM_STATISTIC_PAGES_FAILED, tally->failed);
	count(statistics, NM_STATISTIC_PAGES_UNTRIED, tally->untried);
	count(statistics, NM_STATISTIC_PAGES_WAITING, counts.waiting);
	count(statistics, NM_STATISTIC_PAGE_VERDICTS_IMPROVED,
	      tally->verdicts[NM_VERDICT_IMPROVED]);
	count(statistics, NM_STATISTIC_PAGE_VERDICTS_NEUTRAL, tally->verdicts[NM_VERDICT_NEUTRAL]);
	count(statistics, NM_STATISTIC_PAGE_VERDICTS_ROLLED_BACK,
	      tally->verdicts[NM_VERDICT_ROLLED_BACK]);
	count(statistics, NM_STATISTIC_PAGE_VERDICTS_INCONCLUSIVE,
	      tally->verdicts[NM_VERDICT_INCONCLUSIVE]);
	count(statistics, NM_STATISTIC_PAGES_REMEMBERED, stage->nr_origins);
	count(statistics, NM_STATISTIC_PAGES_FORGOTTEN, tally->forgotten);
	count(statistics, NM_STATISTIC_PAGE_BACKOFFS, counts.backoffs);
	count(statistics, NM_STATISTIC_PAGE_SPLITS, counts.splits);
	count(statistics, NM_STATISTIC_PAGE_CALL_NS, counts.call_ns);
	count(statistics, NM_STATISTIC_PAGE_CALL_LONGEST_NS, counts.call_longest_ns);
	set(statistics, NM_STATISTIC_MEMORY_IMBALANCE, stage->contention.imbalance);
}

static const char *dtas_state(const struct nm_daemon *daemon)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	if (!daemon->config->threads.dtas)
		return "off";
	if (pipeline->balance.dtas_reported)
		return "unavailable";
	return nm_balancer_of(daemon)->split ? "on" : "undecided";
}

static void gather_balance(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_balancer *balancer = nm_balancer_of(daemon);

	name(statistics, NM_STATISTIC_SELECTION,
	     nm_selection_name(daemon->config->threads.selection));
	set(statistics, NM_STATISTIC_BALANCING, balancer->result.active);
	set(statistics, NM_STATISTIC_LOAD_GAP, balancer->result.gap);
	count(statistics, NM_STATISTIC_THREADS_WAITING, balancer->result.waiting);
	count(statistics, NM_STATISTIC_SCHEDSTAT_READS, daemon->pipeline.balance.reads);
	count(statistics, NM_STATISTIC_RESIDENCY_COUNTS, balancer->tally.pages_counted);
	count(statistics, NM_STATISTIC_STOPPED_BY_GAIN, balancer->tally.stopped_by_gain);
	count(statistics, NM_STATISTIC_STOPPED_BY_LEADER, balancer->tally.stopped_by_leader);
	count(statistics, NM_STATISTIC_STOPPED_BY_UNKNOWN_PAGES, balancer->tally.unknown);
	name(statistics, NM_STATISTIC_DTAS, dtas_state(daemon));
}

static void gather_source(const struct nm_daemon *daemon, struct nm_statistics *statistics)
{
	const struct nm_source_status *source = nm_source_status(daemon->pipeline.source);

	set(statistics, NM_STATISTIC_SAMPLES_RUNS, source->runs);
	set(statistics, NM_STATISTIC_SAMPLES_ACCESSES, source->accesses);
	set(statistics, NM_STATISTIC_RUN_SAMPLE_NS, source->run_sample_ns);
	count(statistics, NM_STATISTIC_FAULT_PERIOD, source->fault_period);
	count(statistics, NM_STATISTIC_SAMPLES, source->counts.samples);
	count(statistics, NM_STATISTIC_SAMPLES_LOST, source->counts.lost);
	set(statistics, NM_STATISTIC_OVERHEAD, daemon->tally.cpu_share);
}

void nm_statistics_gather(const struct nm_daemon *daemon, struct nm_statistics *ret)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;

	*ret = (struct nm_statistics){0};
	gather_service(daemon, ret);
	gather_tally(&daemon->tally, ret);
	gather_homes(daemon, ret);
	gather_trial(daemon, ret);
	/* Stages that are not running have no statistics. */
	if (pipeline->pages)
		gather_pages(pipeline->pages, pipeline->mover, ret);
	if (pipeline->source)
		gather_source(daemon, ret);
	if (daemon->paused)
		return;
	gather_managed(daemon, ret);
	gather_workers(pipeline->platform, ret);
	if (pipeline->memory)
		gather_memory(pipeline->memory, ret);
	if (nm_balancer_of(daemon))
		gather_balance(daemon, ret);
}

/* ---- the status ---- */

/* Returns NULL for a number that is not finite. */
static json_t *value_of(const struct nm_statistic_row *row, const struct nm_statistic_now *now)
{
	switch (row->type) {
	case NM_FIELD_TEXT:
		return json_string(now->text);
	case NM_FIELD_FLAG:
		return json_boolean(now->number != 0);
	case NM_FIELD_REAL:
		return json_real(now->number);
	default:
		return isfinite(now->number) ? json_integer((json_int_t)now->number) : NULL;
	}
}

json_t *nm_view_status(const struct nm_daemon *daemon)
{
	struct nm_statistics statistics;
	json_t *status = nm_must(json_object());

	nm_statistics_gather(daemon, &statistics);
	for (unsigned i = 0; i < NM_STATISTIC_MAX; i++) {
		const struct nm_statistic_row *row = nm_statistic_row((enum nm_statistic)i);
		const struct nm_statistic_now *now = &statistics.now[i];
		json_t *value = row->status && now->known ? value_of(row, now) : NULL;
		if (value)
			nm_must_do(json_object_set_new_nocheck(status, row->status, value));
	}
	return status;
}
