/* SPDX-License-Identifier: MIT */
/* The document of Dump, with nodes and threads. */
#include "report/views.h"

#include <string.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

/* ---- nodes ---- */

/* Without the list of its CPUs, and its free memory. */
static struct nm_node_row node_row(const struct nm_view *view, unsigned index)
{
	const struct nm_snapshot *snapshot = view->snapshot;
	const struct nm_node *node = &view->topology->nodes[index];
	double load = 0, served = 0;
	unsigned known = 0;
	struct nm_node_row row = {
		.node = node->os_id,
		.load = (double)NAN,
		.threads = snapshot ? 0 : -1,
		.access_share = (double)NAN,
		.memory_bytes = (int64_t)node->memory_bytes,
		.memory_free_bytes = -1,
	};
	for (int cpu = hwloc_bitmap_first(node->cpus); cpu >= 0 && cpu < (int)view->nr_cpus;
	     cpu = hwloc_bitmap_next(node->cpus, cpu)) {
		if (!isfinite(view->busy_share[cpu]))
			continue;
		load += view->busy_share[cpu];
		known++;
	}
	if (known > 0)
		row.load = load / known;
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++)
		row.threads += snapshot->threads[i].stats.main_node == (int)index;
	for (unsigned i = 0; view->served && i < view->topology->nr_nodes; i++)
		served += view->served[i];
	if (served > 0)
		row.access_share = view->served[index] / served;
	return row;
}

static void show_nodes(const struct nm_view *view, struct nm_dump *dump)
{
	nm_dump_begin(dump, nm_node_table.name);
	for (unsigned i = 0; !view->paused && i < view->topology->nr_nodes; i++) {
		const struct nm_node *node = &view->topology->nodes[i];
		char cpus[512];
		struct nm_node_memory memory;
		struct nm_node_row row = node_row(view, i);
		if (!nm_dump_admit(dump))
			continue;
		(void)hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), node->cpus);
		row.cpus = cpus;
		if (nm_node_memory_read(view->platform, node->os_id, &memory) == 0)
			row.memory_free_bytes = (int64_t)memory.free_bytes;
		nm_dump_row(dump, nm_row_json(&nm_node_table, &row));
	}
	nm_dump_end(dump);
}

int nm_view_export(const struct nm_view *view, const char *path)
{
	unsigned nr_nodes = view->paused ? 0 : view->topology->nr_nodes;
	nm_autofree struct nm_node_row *nodes = nm_must(calloc(nr_nodes + 1, sizeof(*nodes)));
	for (unsigned i = 0; i < nr_nodes; i++)
		nodes[i] = node_row(view, i);
	struct nm_statistics statistics;
	nm_view_statistics(view, &statistics);
	nm_autofree char *text = nm_statistics_metrics(&statistics, nodes, nr_nodes);
	return nm_replace_public(path, text, strlen(text));
}

/* ---- threads ---- */

static json_t *thread_json(const struct nm_view *view, const struct nm_snap_thread *thread,
			   uint64_t decision)
{
	struct nm_thread_row row = {
		.tid = thread->tid,
		.pid = thread->pid,
		.comm = view->snapshot->processes[thread->process].comm,
		.cpu = thread->stats.main_cpu,
		.node = nm_topology_os_id(view->topology, thread->stats.main_node),
		.preferred_node = nm_topology_os_id(view->topology, thread->preferred),
		.local_share = thread->local_share,
		.accesses = thread->stats.access_total,
		.latency_cycles = thread->stats.latency,
		.intensity = thread->intensity,
		.operations_per_s = thread->stats.operations,
		.instructions_per_s = thread->stats.instructions,
		.performance = thread->performance,
		.relative_performance = thread->relative,
		.run_share = thread->stats.run_share,
		.assigned_node = nm_topology_os_id(view->topology, thread->assigned),
		.last_decision = decision ? (int64_t)decision : -1,
	};
	return nm_row_json(&nm_thread_table, &row);
}

static void show_threads(const struct nm_view *view, const uint64_t *last, struct nm_dump *dump)
{
	const struct nm_snapshot *snapshot = view->paused ? NULL : view->snapshot;
	enum nm_eligibility eligibility;
	nm_dump_begin(dump, nm_thread_table.name);
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		/* Not if it has exited, or was released. */
		if (nm_tasks_thread_eligibility(view->tasks, thread->tid, &eligibility) == 0 &&
		    nm_dump_admit_of(dump, snapshot->processes[thread->process].domain))
			nm_dump_row(dump, thread_json(view, thread, last[i]));
	}
	nm_dump_end(dump);
}

/* ---- the document ---- */

/* Finds the newest decision about each thread of the snapshot. */
static uint64_t *find_last_decisions(const struct nm_view *view)
{
	const struct nm_snapshot *snapshot = view->snapshot;
	const struct nm_history *history = view->history;
	uint64_t *last = nm_must(calloc((snapshot ? snapshot->nr_threads : 0) + 1, sizeof(*last)));
	for (uint64_t id = history->first; snapshot && id < history->next; id++) {
		const struct nm_history_item *item = nm_history_find(history, id);
		for (unsigned i = 0; item && i < item->decision.nr_steps; i++) {
			const struct nm_step *step = &item->decision.steps[i];
			const struct nm_snap_thread *thread =
				nm_snapshot_thread(snapshot, step->tid);
			/* Another thread may have its number. */
			if (thread && thread->start_ticks == step->start_ticks)
				last[thread - snapshot->threads] = id;
		}
	}
	return last;
}

/* Threads come last: only they usually exceed the limit. */
int nm_view_dump(const struct nm_view *view)
{
	nm_auto(nm_dump_clear) struct nm_dump dump = {0};
	nm_autofree uint64_t *last = find_last_decisions(view);
	struct nm_statistics statistics;
	nm_view_statistics(view, &statistics);
	int r = nm_dump_open(&dump);
	if (r < 0)
		return r;
	nm_dump_value(&dump, "status", nm_statistics_json(&statistics));
	show_nodes(view, &dump);
	nm_history_show(view->history, &dump);
	nm_dump_value(&dump, "trial", nm_view_trial(view, &dump));
	nm_view_processes(view, last, &dump);
	show_threads(view, last, &dump);
	return nm_dump_finish(&dump);
}
