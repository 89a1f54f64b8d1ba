/* SPDX-License-Identifier: MIT */
/* Reports decisions and their verdicts: to the journal, the recording and the history. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "daemon.h"
#include "numa-migrd/base.h"

static struct nm_entry_context entry_context(const struct nm_daemon *daemon,
					     enum nm_thread_policy policy)
{
	return (struct nm_entry_context){
		.seed = daemon->seed,
		.policy = nm_policy_name(policy),
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

/* ---- threads ---- */

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
	struct nm_entry_context context = entry_context(daemon, decision->policy);
	bool lottery = nm_decision_has_tickets(decision);
	double local_before = decision->steps[0].local_before;
	struct nm_past past = {
		.kind = nm_decision_kind_name(decision->kind),
		.policy = context.policy,
		.result = nm_decision_result_name(&context, receipt),
		.nr_threads = decision->nr_steps,
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
	nm_entry_decision(&entry, &context, decision, receipt);
	report_decision(daemon, &entry, &past);
}

void nm_report_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict)
{
	struct nm_entry_context context = entry_context(daemon, verdict->policy);
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	const struct nm_past_verdict past = {
		.kind = verdict->kind,
		.performance_before = verdict->by_performance ? thread->performance_before : NAN,
		.performance_after = verdict->by_performance ? thread->performance_after : NAN,
		.local_before = thread->local_before,
		.local_after = thread->local_after,
	};
	struct nm_entry entry;
	nm_recorder_verdict(daemon, verdict);
	nm_entry_verdict(&entry, &context, verdict);
	report_verdict(daemon, &entry, &past);
}

/* ---- pages ---- */

/* A process whose pages, or all of whose threads, are moved. */
static struct nm_past past_of_process(uint32_t pid, const char *comm, int node_from, int node_to)
{
	struct nm_past past = {
		.nr_threads = 1,
		.threads = {{.pid = pid,
			     .cpu_from = -1,
			     .cpu_to = -1,
			     .node_from = node_from,
			     .node_to = node_to}},
		.before = NAN,
		.after = NAN,
		.tickets = {.total = NAN},
		.draw = NAN,
	};
	memcpy(past.threads[0].comm, comm, sizeof(past.threads[0].comm));
	return past;
}

void nm_report_page_decision(struct nm_daemon *daemon, const struct nm_page_decision *decision)
{
	struct nm_entry_context context = entry_context(daemon, daemon->config->threads.policy);
	struct nm_past past =
		past_of_process(decision->pid, decision->comm, os_node(daemon, decision->node_from),
				os_node(daemon, decision->node_to));
	struct nm_entry entry;
	past.kind = "pages";
	past.policy = nm_page_policy_name(daemon->config->pages.policy);
	past.result = nm_page_result_name(&context);
	past.pages = decision->pages;
	past.bytes = decision->bytes;
	nm_recorder_page_decision(daemon, decision);
	nm_entry_page_decision(&entry, &context, decision);
	report_decision(daemon, &entry, &past);
}

void nm_report_page_verdict(struct nm_daemon *daemon, const struct nm_page_verdict *verdict)
{
	struct nm_entry_context context = entry_context(daemon, daemon->config->threads.policy);
	bool known = isfinite(verdict->performance.figure);
	const struct nm_past_verdict past = {
		.kind = verdict->kind,
		.performance_before = known ? verdict->performance.before : NAN,
		.performance_after = known ? verdict->performance.after : NAN,
		.local_before = verdict->local_before,
		.local_after = verdict->local_after,
	};
	struct nm_entry entry;
	nm_recorder_page_verdict(daemon, verdict);
	nm_entry_page_verdict(&entry, &context, verdict);
	report_verdict(daemon, &entry, &past);
}

/* ---- homes ---- */

static struct nm_entry_home home_of(const struct nm_snapshot *snapshot,
				    const struct nm_placed *placed)
{
	return (struct nm_entry_home){
		.decision = placed->decision,
		.pid = placed->pid,
		.comm = snapshot->processes[placed->process].comm,
		.node = placed->home,
		.threads = placed->running,
		.demand_cpus = placed->demand_cpus,
		.pages_moved = placed->memory.moved,
	};
}

void nm_report_placement(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_placed *placed, const struct nm_place_proposal *proposal)
{
	struct nm_entry_context context = entry_context(daemon, NM_POLICY_AUTO);
	struct nm_entry_home home = home_of(snapshot, placed);
	struct nm_past past =
		past_of_process(placed->pid, home.comm, -1, os_node(daemon, placed->home));
	struct nm_entry entry;
	past.kind = "home";
	past.policy = context.policy;
	past.by = NM_POLICY_AUTO;
	home.runtime = snapshot->processes[placed->process].runtime;
	home.age_s = snapshot->processes[placed->process].age_s;
	home.move_s = placed->memory.state == NM_BRING_NOTHING
			      ? NAN
			      : nm_place_move_s(&daemon->pipeline.placement->page_cost,
						(double)proposal->bytes_away);
	home.nudged =
		daemon->config->threads.pin == NM_PIN_AUTO && nm_runtime_counts_again(home.runtime);
	nm_lines_home(daemon, placed, proposal);
	nm_entry_placement(&entry, &context, &home, proposal);
	report_decision(daemon, &entry, &past);
}

void nm_report_placement_verdict(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
				 const struct nm_placed *placed,
				 const struct nm_place_verdict *verdict)
{
	struct nm_entry_context context = entry_context(daemon, NM_POLICY_AUTO);
	struct nm_entry_home home = home_of(snapshot, placed);
	const struct nm_past_verdict past = {verdict->kind, NAN, NAN, NAN, NAN};
	struct nm_entry entry;
	nm_lines_home_verdict(daemon, placed, verdict);
	nm_entry_placement_verdict(&entry, &context, &home, verdict);
	report_verdict(daemon, &entry, &past);
}

void nm_report_placement_end(struct nm_daemon *daemon, const struct nm_snap_process *process,
			     const struct nm_placed *placed, const char *why)
{
	nm_lines_home_end(daemon, placed);
	nm_report(daemon, NM_MESSAGE_LEASE, LOG_INFO,
		  "Unplaced %s[%u] from node %d: %s [#%" PRIu64 "]", process->comm, placed->pid,
		  os_node(daemon, placed->home), why, placed->decision);
}
