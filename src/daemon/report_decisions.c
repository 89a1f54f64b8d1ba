/* SPDX-License-Identifier: MIT */
/* Reports decisions and their verdicts: to the journal and the history. */
#include <inttypes.h>

#include "daemon.h"
#include "numa-migrd/base.h"

static struct nm_entry_context entry_context(const struct nm_daemon *daemon, const char *policy)
{
	return (struct nm_entry_context){
		.seed = daemon->seed,
		.policy = policy,
		.topology = daemon->pipeline.topology,
		.dry_run = nm_daemon_is_dry_run(daemon),
		.performance = nm_performance_name(daemon->config->threads.performance),
	};
}

void nm_report_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			const struct nm_receipt *receipt)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(decision->kind, decision->policy));
	const struct nm_history_item item = {.time_usec = nm_clock_realtime_usec(),
					     .result = nm_decision_result_name(&context, receipt),
					     .decision = *decision};
	struct nm_entry entry;
	nm_lines_decision(daemon, decision, receipt);
	nm_entry_decision(&entry, &context, decision, receipt);
	entry.domain = nm_roster_domain(daemon->pipeline.roster, decision->steps[0].pid);
	nm_report_entry(daemon, &entry);
	nm_history_add(&daemon->history, daemon->pipeline.topology, &item, &entry);
}

void nm_report_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(verdict->of, verdict->policy));
	struct nm_entry entry;
	nm_lines_verdict(daemon, verdict);
	nm_entry_verdict(&entry, &context, verdict);
	nm_report_entry(daemon, &entry);
	nm_history_judge(&daemon->history, verdict, &entry);
}

void nm_report_home_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			const struct nm_home_state *state, const char *why)
{
	nm_lines_home_end(daemon, state);
	nm_report(daemon, NM_MESSAGE_LEASE, LOG_INFO,
		  "Unplaced %s[%u] from node %u: %s [#%" PRIu64 "]", process->comm, state->pid,
		  daemon->pipeline.topology->nodes[state->home].os_id, why, state->decision);
}
