/* SPDX-License-Identifier: MIT */
/* Outputs of an interval, for a recording or a replay. */
#include <string.h>

#include "daemon.h"

static struct nm_recorded_thread thread_of(const struct nm_snap_thread *thread)
{
	return (struct nm_recorded_thread){
		.tid = thread->tid,
		.pid = thread->pid,
		.main_cpu = thread->main_cpu,
		.main_node = thread->main_node,
		.preferred = thread->preferred,
		.run_share = thread->run_share,
		.local_share = thread->local_share,
		.access_total = thread->access_total,
		.latency = thread->latency,
		.instructions = thread->instructions,
		.operations = thread->operations,
		.intensity = thread->intensity,
		.performance = thread->performance,
		.relative = thread->relative,
		.leased = thread->leased,
		.measured = thread->measured,
		.movable = thread->movable,
	};
}

static int add_threads(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_autofree struct nm_recorded_thread *threads =
		calloc(snapshot->nr_threads + 1, sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		threads[i] = thread_of(&snapshot->threads[i]);
	struct nm_recorded record = {.kind = NM_RECORDED_THREADS,
				     .threads = {.items = threads, .count = snapshot->nr_threads}};
	return nm_recorder_add(daemon, &record);
}

static int add_processes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_autofree struct nm_recorded_process *processes =
		calloc(snapshot->nr_processes + 1, sizeof(*processes));
	if (!processes)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		const struct nm_snap_process *process = &snapshot->processes[i];
		processes[i] = (struct nm_recorded_process){
			.pid = process->pid,
			.uid = process->uid,
			.threads = process->threads,
			.performance = process->performance,
		};
		(void)strncpy(processes[i].comm, process->comm, sizeof(processes[i].comm) - 1);
	}
	struct nm_recorded record = {
		.kind = NM_RECORDED_PROCESSES,
		.processes = {.items = processes, .count = snapshot->nr_processes}};
	return nm_recorder_add(daemon, &record);
}

void nm_recorder_interval(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  uint64_t length_ns)
{
	if (!daemon->recorder)
		return;
	struct nm_recorded record = {.kind = NM_RECORDED_INTERVAL,
				     .about = {.number = snapshot->interval,
					       .time_ns = snapshot->time_ns,
					       .length_ns = length_ns,
					       .local_share = daemon->tally.local_share,
					       .performance = snapshot->performance,
					       .nr_threads = (uint32_t)snapshot->nr_threads}};
	int r = nm_recorder_add(daemon, &record);
	if (r == 0)
		r = add_threads(daemon, snapshot);
	if (r == 0)
		r = add_processes(daemon, snapshot);
	nm_recorder_failed(daemon, r);
}

/* ---- decisions ---- */

void nm_recorder_decision(struct nm_daemon *daemon, const struct nm_decision *decision,
			  const struct nm_receipt *receipt)
{
	struct nm_recorded record = {.kind = NM_RECORDED_DECISION, .decision = *decision};
	nm_lines_decision(daemon, decision, receipt);
	(void)nm_recorder_add(daemon, &record);
	if (!receipt)
		return;
	record = (struct nm_recorded){.kind = NM_RECORDED_RECEIPT, .receipt = *receipt};
	(void)nm_recorder_add(daemon, &record);
}

/* ---- journal entries ---- */

void nm_recorder_entry(struct nm_daemon *daemon, const struct nm_entry *entry, uint64_t time_usec)
{
	if (!daemon->recorder)
		return;
	nm_autofree char *fields = nm_entry_fields(entry);
	struct nm_recorded record = {.kind = NM_RECORDED_ENTRY,
				     .entry = {.decision = entry->decision,
					       .time_usec = time_usec,
					       .priority = entry->priority,
					       .text = entry->text,
					       .fields = fields}};
	nm_recorder_failed(daemon, fields ? nm_recorder_add(daemon, &record) : -ENOMEM);
}
