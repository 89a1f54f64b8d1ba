/* SPDX-License-Identifier: MIT */
/* Measures the cost of the service, and adapts the sampling periods to it. */
#include <time.h>

#include "daemon.h"

/* Cost of one sample for the sampled thread (+0.5 to 0.6 µs). */
#define SAMPLE_COST_NS 600

/* Samples that were dropped, because they are no memory access or are in the kernel, cost as much
 * as others. */
static uint64_t samples_taken(const struct nm_ring_counts *counts)
{
	return counts->samples + counts->no_access + counts->kernel;
}

void nm_cost_begin_handler(struct nm_daemon *daemon)
{
	daemon->costs.external_ns += nm_own_cpu_ns() - daemon->costs.handler_end_ns;
}

void nm_cost_end_handler(struct nm_daemon *daemon)
{
	daemon->costs.handler_end_ns = nm_own_cpu_ns();
}

/* Logs only that sampling is reduced, and that this has ended, but not the steps in between. */
static void report_periods(struct nm_daemon *daemon, double cost_share)
{
	bool held_back = nm_source_is_held_back(daemon->pipeline.source);
	if (held_back == daemon->costs.held_back)
		return;
	daemon->costs.held_back = held_back;
	double limit = nm_config_sampling_limit(daemon->config);
	if (held_back && cost_share > limit)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "Sampling reduced: cost %.2f %% of one CPU, its limit is %.2f",
			  cost_share * 100, limit * 100);
	else if (held_back)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO, "Sampling reduced: records lost");
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO, "Sampling at full rate again");
}

#define LOSSES_REPORT_NS (300 * NM_NSEC_PER_SEC)

/* Logged at most once in five minutes. */
static void report_losses(struct nm_daemon *daemon, uint64_t lost)
{
	if (daemon->costs.losses_reported_ns &&
	    daemon->last_tick_ns - daemon->costs.losses_reported_ns < LOSSES_REPORT_NS)
		return;
	daemon->costs.losses_reported_ns = daemon->last_tick_ns;
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
		  "Buffer full, samples lost: %llu; sampling reduced", (unsigned long long)lost);
}

/* The part of the drain time that was used for samples: forks are recorded with any period. */
static double drained_for_samples_ns(const struct nm_daemon *daemon,
				     const struct nm_ring_counts *counts)
{
	double samples = (double)(samples_taken(counts) - samples_taken(&daemon->costs.counts));
	double tasks = (double)(counts->task_events - daemon->costs.counts.task_events);
	double all = samples + tasks;
	return all > 0 ? (double)daemon->costs.drain_ns * samples / all
		       : (double)daemon->costs.drain_ns;
}

/*
 * The cost that depends on the periods: draining the rings, and the cost of a sample for the
 * sampled thread (design, "Budgets"). The remaining cost of a tick does not decrease with longer
 * periods; the status shows the sum of both.
 */
bool nm_cost_must_reduce_sampling(const struct nm_daemon *daemon, double since_s)
{
	struct nm_source *source = daemon->pipeline.source;
	if (!source || daemon->options.feed)
		return false;
	double ns = drained_for_samples_ns(daemon, &nm_source_status(source)->counts);
	return ns / (double)NM_NSEC_PER_SEC > nm_config_sampling_limit(daemon->config) * since_s;
}

void nm_cost_control(struct nm_daemon *daemon, uint64_t interval_ns)
{
	if (!daemon->pipeline.source)
		return;
	const struct nm_source_status *status = nm_source_status(daemon->pipeline.source);
	uint64_t caused_ns =
		(samples_taken(&status->counts) - samples_taken(&daemon->costs.counts)) *
		SAMPLE_COST_NS;
	uint64_t own_ns = nm_own_cpu_ns();
	double cost_share = (drained_for_samples_ns(daemon, &status->counts) + (double)caused_ns) /
			    (double)interval_ns;

	if (status->counts.lost > daemon->costs.counts.lost)
		report_losses(daemon, status->counts.lost - daemon->costs.counts.lost);
	daemon->tally.cpu_share =
		(double)(own_ns - daemon->costs.own_cpu_ns + caused_ns) / (double)interval_ns;
	daemon->tally.caused_ns += caused_ns;
	daemon->costs.own_cpu_ns = own_ns;
	daemon->costs.drain_ns = 0;
	daemon->costs.counts = status->counts;
	/* Homes are chosen by the CPUs on which threads run; first touches of memory provide no
	 * further information. */
	bool homes = daemon->config->threads.policy == NM_POLICY_AUTO &&
		     !nm_config_follows_pages(daemon->config);
	nm_source_thin_runs(daemon->pipeline.source, homes);
	nm_source_thin_faults(daemon->pipeline.source, homes);
	if (nm_source_control_cost(daemon->pipeline.source, cost_share))
		report_periods(daemon, cost_share);
	nm_report_source_problems(daemon);
}
