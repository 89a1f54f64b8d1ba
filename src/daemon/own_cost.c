/* SPDX-License-Identifier: MIT */
/* Measures the cost of the service, and adapts the sampling periods to it. */
#include "daemon.h"
#include "pipeline.h"
#include "report.h"
#include "stages.h"

void nm_cost_begin_handler(struct nm_costs *costs)
{
	costs->external_ns += nm_own_cpu_ns() - costs->handler_end_ns;
}

void nm_cost_end_handler(struct nm_costs *costs)
{
	costs->handler_end_ns = nm_own_cpu_ns();
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
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "Sampling reduced: cost %.2f %% of one CPU, its limit is %.2f",
			  cost_share * 100, limit * 100);
	else if (held_back)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "Sampling reduced: records lost");
	else
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "Sampling at full rate again");
}

#define LOSSES_REPORT_NS (300 * NM_NSEC_PER_SEC)

/* Logged at most once in five minutes. */
static void report_losses(struct nm_daemon *daemon, uint64_t lost)
{
	if (daemon->costs.losses_reported_ns &&
	    daemon->last_tick_ns - daemon->costs.losses_reported_ns < LOSSES_REPORT_NS)
		return;
	daemon->costs.losses_reported_ns = daemon->last_tick_ns;
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_INFO,
		  "Buffer full, samples lost: %llu; sampling reduced", (unsigned long long)lost);
}

static struct nm_sampling_cost sampling_cost(const struct nm_daemon *daemon)
{
	return nm_sampling_cost(&daemon->costs.counts,
				&nm_source_status(daemon->pipeline.source)->counts,
				daemon->costs.drain_ns);
}

bool nm_cost_must_reduce_sampling(const struct nm_daemon *daemon, double since_s)
{
	if (!daemon->pipeline.source || daemon->options.feed)
		return false;
	return sampling_cost(daemon).drain_ns / (double)NM_NSEC_PER_SEC >
	       nm_config_sampling_limit(daemon->config) * since_s;
}

void nm_cost_control(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_source *source = daemon->pipeline.source;
	struct nm_costs *costs = &daemon->costs;
	if (!source)
		return;
	const struct nm_source_status *status = nm_source_status(source);
	const struct nm_sampling_cost cost = sampling_cost(daemon);
	uint64_t own_ns = nm_own_cpu_ns();
	double cost_share = (cost.drain_ns + (double)cost.caused_ns) / (double)interval_ns;

	if (status->counts.lost > costs->counts.lost)
		report_losses(daemon, status->counts.lost - costs->counts.lost);
	daemon->tally.cpu_share =
		(double)(own_ns - costs->own_cpu_ns + cost.caused_ns) / (double)interval_ns;
	daemon->tally.caused_ns += cost.caused_ns;
	costs->own_cpu_ns = own_ns;
	costs->drain_ns = 0;
	costs->counts = status->counts;
	/* Homes are chosen by the CPUs on which threads run; first touches of memory provide no
	 * further information. */
	bool stable = nm_placement_is_stable(nm_placement_of(&daemon->pipeline));
	nm_source_thin(source, stable || (daemon->config->threads.policy == NM_POLICY_AUTO &&
					  !nm_config_follows_pages(daemon->config)));
	nm_source_rest(source, stable);
	if (nm_source_control_cost(source, cost_share))
		report_periods(daemon, cost_share);
	nm_report_source_problems(daemon);
}
