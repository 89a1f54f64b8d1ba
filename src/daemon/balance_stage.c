/* SPDX-License-Identifier: MIT */
/* Policy "balance" in the daemon: measures for it. */
#include "daemon.h"

/* ---- types of threads ---- */

static void report_dtas_availability(struct nm_daemon *daemon, bool available)
{
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	if (available != balancer->dtas_unavailable)
		return;
	balancer->dtas_unavailable = !available;
	if (available)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "All events that threads.selection = \"dtas\" needs are sampled");
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "DTAS is off: it needs hardware samples of instructions and of "
			  "memory traffic");
}

static void follow_types(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	struct nm_source *source = daemon->pipeline.source;
	const struct nm_source_status *status = source ? nm_source_status(source) : NULL;
	bool available = daemon->config->threads.dtas && status && status->has_dram &&
			 status->has_instructions;
	if (daemon->config->threads.dtas)
		report_dtas_availability(daemon, available);
	if (!available) {
		nm_balancer_clear_types(balancer);
		return;
	}
	nm_balancer_follow_types(balancer, snapshot);
}

/* ---- one interval ---- */

/* Reads the times of the threads that may wait. Returns their number. Every thread that was read
 * has run: if one has no times, the kernel provides none. */
static size_t read_times(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	struct nm_times_reading readings[NM_BALANCER_READINGS_MOST];
	bool were_missing = balancer->times_missing;
	size_t count;
	nm_balancer_select_threads(snapshot, daemon->config, NM_BALANCER_READINGS_MOST, readings,
				   &count);
	nm_times_read(daemon->pipeline.platform, readings, count);
	for (size_t i = 0; i < count; i++)
		nm_balancer_add_reading(balancer, snapshot->interval, &readings[i]);
	if (balancer->times_missing && !were_missing)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "No run queue delay in /proc/PID/task/TID/schedstat: policy \"balance\" "
			  "moves nothing");
	return count;
}

void nm_balance_stage_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	if (daemon->config->threads.policy != NM_POLICY_BALANCE)
		return;
	nm_open_policy(daemon, NM_POLICY_BALANCE);
	struct nm_balancer *balancer = nm_balancer_of(daemon);
	bool was_active = balancer->state.active;
	balancer->paper = daemon->config->rules.paper;
	nm_column_follow_threads(&balancer->threads, snapshot);
	size_t candidates = read_times(daemon, snapshot);
	follow_types(daemon, snapshot);
	nm_balancer_locate(daemon->pipeline.platform, balancer, snapshot, candidates > 0);
	nm_balancer_round(balancer, snapshot, daemon->config);
	nm_balancer_confine(balancer, snapshot, daemon->config);
	if (balancer->state.active != was_active)
		nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
			  was_active ? "Balancing ended: loads differ by %.2f per CPU"
				     : "Balancing nodes: loads differ by %.2f per CPU",
			  balancer->state.gap);
}
