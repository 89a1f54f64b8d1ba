/* SPDX-License-Identifier: MIT */
/* Policy "balance" in the daemon: measures for it. */
#include "pipeline.h"
#include "report.h"
#include "stages.h"

/* ---- types of threads ---- */

static void report_dtas_availability(struct nm_balancer *balancer, struct nm_journal *journal,
				     bool available)
{
	if (available != balancer->dtas_unavailable)
		return;
	balancer->dtas_unavailable = !available;
	if (available)
		nm_report(journal, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "All events that threads.selection = \"dtas\" needs are sampled");
	else
		nm_report(journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "DTAS is off: it needs hardware samples of instructions and of "
			  "memory traffic");
}

static void follow_types(struct nm_pipeline *pipeline, const struct nm_config *config,
			 struct nm_journal *journal, const struct nm_snapshot *snapshot)
{
	struct nm_balancer *balancer = nm_balancer_of(pipeline);
	struct nm_source *source = pipeline->source;
	const struct nm_source_status *status = source ? nm_source_status(source) : NULL;
	bool available =
		config->threads.dtas && status && status->has_dram && status->has_instructions;
	if (config->threads.dtas)
		report_dtas_availability(balancer, journal, available);
	if (!available) {
		nm_balancer_clear_types(balancer);
		return;
	}
	nm_balancer_follow_types(balancer, snapshot);
}

/* ---- one interval ---- */

/* Reads the times of the threads that may wait. Returns their number. Every thread that was read
 * has run: if one has no times, the kernel provides none. */
static size_t read_times(struct nm_pipeline *pipeline, const struct nm_config *config,
			 struct nm_journal *journal, const struct nm_snapshot *snapshot)
{
	struct nm_balancer *balancer = nm_balancer_of(pipeline);
	struct nm_times_reading readings[NM_BALANCER_READINGS_MOST];
	bool were_missing = balancer->times_missing;
	size_t count;
	nm_balancer_select_threads(snapshot, config, NM_BALANCER_READINGS_MOST, readings, &count);
	nm_times_read(pipeline->platform, readings, count);
	for (size_t i = 0; i < count; i++)
		nm_balancer_add_reading(balancer, snapshot->interval, &readings[i]);
	if (balancer->times_missing && !were_missing)
		nm_report(journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "No run queue delay in /proc/PID/task/TID/schedstat: policy \"balance\" "
			  "moves nothing");
	return count;
}

void nm_balance_stage_tick(struct nm_pipeline *pipeline, const struct nm_config *config,
			   struct nm_journal *journal, const struct nm_snapshot *snapshot)
{
	if (config->threads.policy != NM_POLICY_BALANCE)
		return;
	nm_open_policy(pipeline, NM_POLICY_BALANCE);
	struct nm_balancer *balancer = nm_balancer_of(pipeline);
	bool was_active = balancer->state.active;
	balancer->paper = config->rules.paper;
	nm_column_follow_threads(&balancer->threads, snapshot);
	size_t candidates = read_times(pipeline, config, journal, snapshot);
	follow_types(pipeline, config, journal, snapshot);
	nm_balancer_locate(pipeline->platform, balancer, snapshot, candidates > 0);
	nm_balancer_round(balancer, snapshot, config);
	nm_balancer_confine(balancer, snapshot, config);
	if (balancer->state.active != was_active)
		nm_report(journal, NM_MESSAGE_SUMMARY, LOG_INFO,
			  was_active ? "Balancing ended: loads differ by %.2f per CPU"
				     : "Balancing nodes: loads differ by %.2f per CPU",
			  balancer->state.gap);
}
