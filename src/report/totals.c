/* SPDX-License-Identifier: MIT */
/* Copies the statistics of all objects. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "numa-migrd/file.h"
#include "report/views.h"

static double resident_bytes(void)
{
	char text[128];
	unsigned long long pages;

	if (nm_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void gather_trial(const struct nm_trial *group, struct nm_statistics *ret)
{
	struct nm_trial_difference today;
	ret->parts |= 1U << NM_PART_TRIAL;
	(void)nm_trial_result(group, NM_TRIAL_TODAY, NM_TRIAL_CPU, &today);
	nm_trial_describe(&today, ret->sentence, sizeof(ret->sentence));
	ret->today = ret->sentence;
	for (unsigned measure = 0; measure < NM_TRIAL_MEASURES; measure++)
		for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
			ret->sums[measure][arm] = nm_trial_sums(group, measure, arm);
}

/* The reasons for which a lottery considers or ignores the threads that ran in the last interval.
 */
static void gather_candidates(const struct nm_view *view, struct nm_statistics *ret)
{
	const struct nm_snapshot *snapshot = view->snapshot;
	const struct nm_config *config = view->config;
	enum nm_thread_policy policy = nm_drawing_policy(config, snapshot);
	if (!view->may_draw || !nm_policy_draws(policy))
		return;
	ret->parts |= 1U << NM_PART_LOTTERY;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		bool whole = config->threads.policy == NM_POLICY_AUTO &&
			     !nm_placement_is_spread(view->placement, thread->pid,
						     view->tally->intervals);
		if (thread->active)
			ret->candidates[whole ? NM_CANDIDACY_WHOLE
					      : nm_lottery_candidacy(policy, config, thread)]++;
	}
}

void nm_view_totals(const struct nm_view *view, struct nm_statistics *ret)
{
	const struct nm_snapshot *snapshot = view->snapshot;
	const struct nm_tally *tally = view->tally;
	*ret = (struct nm_statistics){.parts = 1U << NM_PART_SERVICE, .tally = *tally};
	ret->service.version = view->version;
	ret->service.source = "none";
	ret->service.policy = nm_config_policy_name(view->config);
	ret->service.pages_policy = nm_page_policy_name(view->config->pages.policy);
	ret->service.paused = view->paused;
	ret->service.dry_run = view->dry_run;
	ret->service.blind = view->blind;
	ret->service.idle = !view->paused && nm_topology_is_single(view->topology);
	ret->service.homes = view->config->threads.policy == NM_POLICY_AUTO;
	ret->service.unrestored = view->unrestored;
	ret->service.interval_s = view->interval_s;
	ret->service.started_s = tally->started_s ? (double)tally->started_s : (double)NAN;
	ret->service.control_percent = view->config->verify.control_percent;
	ret->service.overhead_percent = view->config->sampling.overhead_percent;
	ret->service.late_max_ms = tally->late_max_usec / 1000;
	ret->service.cpu_ns = view->cpu_ns;
	if (view->source) {
		ret->parts |= 1U << NM_PART_SOURCE;
		ret->source = *nm_source_status(view->source);
		ret->service.source = ret->source.name;
	}
	if (!view->paused) {
		ret->parts |= 1U << NM_PART_TASKS;
		ret->nodes = view->topology->nr_nodes;
		ret->tasks = nm_tasks_counts(view->tasks);
		ret->processes_active =
			ret->tasks.processes_managed - ret->tasks.processes_observed;
		ret->threads_measured = snapshot ? snapshot->measured : 0;
		ret->threads_undersampled = snapshot ? snapshot->undersampled : 0;
		ret->assigned = nm_assignments_count(view->assignments);
		ret->moves = nm_moves_counts(view->moves);
		if (view->platform->ops->worker_counts)
			view->platform->ops->worker_counts(view->platform, &ret->workers);
	}
	nm_status_line(ret, ret->service.line, sizeof(ret->service.line));
	ret->service.summary = ret->service.line;
}

void nm_view_statistics(const struct nm_view *view, struct nm_statistics *ret)
{
	const struct nm_balancer *balancer = view->balancer;
	nm_view_totals(view, ret);
	ret->service.resident_bytes = resident_bytes();
	ret->latency = (double)NAN;
	/* The counters survive a pause, which ends the policy. */
	if (view->placement || view->tally->homes.granted > 0)
		ret->parts |= 1U << NM_PART_HOMES;
	ret->homes_now = nm_placement_homes(view->placement);
	ret->prediction_error_percent = 100 * nm_placement_prediction_error(view->placement);
	if (view->trial && view->config->verify.control_percent > 0)
		gather_trial(view->trial, ret);
	if (view->pages) {
		ret->parts |= 1U << NM_PART_PAGES;
		ret->pages = view->pages->tally;
		ret->pages_standing = nm_balancing_text_of(view->balancing_mode)->name;
		ret->mover = nm_mover_counts(view->pages->mover);
		ret->pages_remembered = nm_migrations_remembered(view->migrations);
		ret->memory_imbalance = view->pages->contention.imbalance;
	}
	if (view->snapshot) {
		gather_candidates(view, ret);
		ret->latency = nm_snapshot_latency(view->snapshot);
	}
	if (view->memory) {
		struct nm_exclusivity sums = nm_memory_exclusivity(view->memory);
		ret->parts |= 1U << NM_PART_MEMORY;
		ret->tracked = nm_pages_counts(nm_memory_pages(view->memory));
		ret->sharing = nm_affinity_counts(nm_memory_affinity(view->memory));
		ret->exclusivity = nm_exclusivity_average(&sums);
	}
	if (balancer) {
		ret->parts |= 1U << NM_PART_BALANCE;
		ret->selection = nm_selection_name(view->config->threads.selection);
		ret->balance = balancer->state;
		ret->balancer = balancer->tally;
		ret->dtas_elsewhere = balancer->tally.elsewhere / balancer->tally.typed;
		ret->dtas = !view->config->threads.dtas	 ? "off"
			    : balancer->dtas_unavailable ? "unavailable"
			    : balancer->split		 ? "on"
							 : "undecided";
	}
}
