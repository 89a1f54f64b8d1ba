/* SPDX-License-Identifier: MIT */
/* Reports decisions and their verdicts: to the journal, the recording and the history. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

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

static int os_node(const struct nm_daemon *daemon, int node)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	return node < 0 || (unsigned)node >= topology->nr_nodes ? -1
								: (int)topology->nodes[node].os_id;
}

static void report_decision(struct nm_daemon *daemon, const struct nm_entry *entry,
			    struct nm_past *past)
{
	nm_report_entry(daemon, entry);
	past->id = entry->decision;
	past->time_usec = nm_clock_realtime_usec();
	nm_history_add(&daemon->history, past, entry);
}

static void report_verdict(struct nm_daemon *daemon, const struct nm_entry *entry,
			   const struct nm_past_verdict *verdict)
{
	nm_report_entry(daemon, entry);
	nm_history_judge(&daemon->history, verdict, entry);
}

static struct nm_past_thread thread_of(const struct nm_daemon *daemon, const struct nm_step *step)
{
	struct nm_past_thread thread = {
		.pid = step->pid,
		.tid = step->tid,
		.start_ticks = step->start_ticks,
		.cpu_from = step->cpu_from,
		.cpu_to = step->cpu_to,
		.node_from = os_node(daemon, step->node_from),
		.node_to = os_node(daemon, step->node_to),
	};
	memcpy(thread.comm, step->comm, sizeof(thread.comm));
	return thread;
}

static void add_alternatives(const struct nm_daemon *daemon, const struct nm_decision *decision,
			     struct nm_past *past)
{
	past->nr_alternatives = decision->nr_alternatives;
	past->nr_candidates = decision->nr_candidates;
	for (size_t i = 0; i < decision->nr_alternatives; i++) {
		past->alternatives[i] = decision->alternatives[i];
		past->alternatives[i].node_to = os_node(daemon, decision->alternatives[i].node_to);
	}
}

void nm_report_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			const struct nm_receipt *receipt)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(decision->kind, decision->policy));
	bool lottery = nm_decision_has_tickets(decision);
	double local_before = decision->steps[0].local_before;
	struct nm_past past = {
		.kind = nm_decision_kind_name(decision->kind),
		.policy = context.policy,
		.result = nm_decision_result_name(&context, receipt),
		.nr_threads = decision->nr_steps,
		.pages = decision->pages.pages,
		.bytes = decision->pages.bytes,
		.figure = isfinite(local_before) ? "local_share" : NULL,
		.before = local_before,
		.after = NAN,
		.by = decision->policy,
		.tickets = decision->tickets,
		.draw = lottery ? decision->draw : NAN,
	};
	struct nm_entry entry;
	if (!lottery)
		past.tickets.total = NAN;
	for (unsigned i = 0; i < decision->nr_steps; i++)
		past.threads[i] = thread_of(daemon, &decision->steps[i]);
	add_alternatives(daemon, decision, &past);
	nm_recorder_decision(daemon, decision, receipt);
	nm_entry_decision(&entry, &context, decision, receipt);
	report_decision(daemon, &entry, &past);
}

void nm_report_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_entry_context context =
		entry_context(daemon, nm_decision_policy_name(verdict->of, verdict->policy));
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	const struct nm_past_verdict past = {
		.kind = verdict->kind,
		.performance_before = verdict->by_performance ? thread->performance_before : NAN,
		.performance_after = verdict->by_performance ? thread->performance_after : NAN,
		.local_before = thread->local_before,
		.local_after = thread->local_after,
	};
	const struct nm_recorded record = {.kind = NM_RECORDED_VERDICT, .verdict = *verdict};
	struct nm_entry entry;
	nm_lines_verdict(daemon, verdict);
	(void)nm_recorder_add(daemon, &record);
	nm_entry_verdict(&entry, &context, verdict);
	report_verdict(daemon, &entry, &past);
}

void nm_report_home_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			const struct nm_placed *placed, const char *why)
{
	nm_lines_home_end(daemon, placed);
	nm_report(daemon, NM_MESSAGE_LEASE, LOG_INFO,
		  "Unplaced %s[%u] from node %d: %s [#%" PRIu64 "]", process->comm, placed->pid,
		  os_node(daemon, placed->home), why, placed->decision);
}
