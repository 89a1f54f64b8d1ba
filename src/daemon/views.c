/* SPDX-License-Identifier: MIT */
/* Data about the machine and its threads, for the bus. */
#include "views.h"

#include <stdio.h>
#include <string.h>

#include "daemon.h"
#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

/* ---- the last interval ---- */

static double *sum_served(const struct nm_topology *topology, const struct nm_figures *figures,
			  size_t nr_figures)
{
	double *served = calloc(topology->nr_nodes, sizeof(*served));
	for (size_t i = 0; served && i < nr_figures; i++)
		for (unsigned node = 0;
		     isfinite(figures[i].access_total) && node < topology->nr_nodes; node++)
			served[node] += figures[i].accesses[node];
	return served;
}

void nm_views_update(struct nm_daemon *daemon, struct nm_snapshot *snapshot,
		     const struct nm_figures *figures, size_t nr_figures)
{
	nm_views_clear(daemon);
	daemon->views.snapshot = snapshot;
	/* If memory is short, the shares are omitted. */
	daemon->views.served = sum_served(daemon->pipeline.topology, figures, nr_figures);
}

void nm_views_clear(struct nm_daemon *daemon)
{
	nm_snapshot_free(daemon->views.snapshot);
	free(daemon->views.served);
	daemon->views = (struct nm_views){0};
}

/* ---- shared ---- */

const struct nm_process *nm_view_process(const struct nm_daemon *daemon, uint32_t pid)
{
	return daemon->pipeline.roster ? nm_roster_process(daemon->pipeline.roster, pid) : NULL;
}

bool nm_view_is_managed(const struct nm_daemon *daemon, uint32_t pid)
{
	const struct nm_process *process = nm_view_process(daemon, pid);
	return process && process->eligibility == NM_ELIGIBILITY_MANAGED;
}

void nm_view_node(const struct nm_daemon *daemon, const struct nm_show *show, const char *name,
		  int node)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	if (node >= 0 && (unsigned)node < topology->nr_nodes)
		nm_show_u32(show, name, topology->nodes[node].os_id);
}

/* ---- properties ---- */

void nm_view_facts(void *context, struct nm_control_facts *ret)
{
	const struct nm_daemon *daemon = context;
	*ret = (struct nm_control_facts){
		.version = NM_VERSION,
		.source = nm_report_source_name(daemon),
		.paused = daemon->paused,
		.dry_run = nm_daemon_is_dry_run(daemon),
	};
}

/* ---- nodes ---- */

static double node_load(const struct nm_daemon *daemon, const struct nm_node *node)
{
	double sum = 0;
	unsigned known = 0;
	for (int cpu = hwloc_bitmap_first(node->cpus);
	     cpu >= 0 && cpu < (int)daemon->machine.nr_cpus;
	     cpu = hwloc_bitmap_next(node->cpus, cpu)) {
		if (!isfinite(daemon->machine.busy_share[cpu]))
			continue;
		sum += daemon->machine.busy_share[cpu];
		known++;
	}
	return known ? sum / known : (double)NAN;
}

static uint32_t threads_on(const struct nm_snapshot *snapshot, unsigned node)
{
	uint32_t count = 0;
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++)
		count += snapshot->threads[i].main_node == (int)node;
	return count;
}

static double access_share(const struct nm_daemon *daemon, unsigned node)
{
	const double *served = daemon->views.served;
	double total = 0;
	for (unsigned i = 0; served && i < daemon->pipeline.topology->nr_nodes; i++)
		total += served[i];
	return served && total > 0 ? served[node] / total : (double)NAN;
}

static void write_node(const struct nm_daemon *daemon, unsigned index, const struct nm_show *show)
{
	const struct nm_node *node = &daemon->pipeline.topology->nodes[index];
	char cpus[512];
	struct nm_node_memory memory;
	(void)hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), node->cpus);
	nm_show_u32(show, "node", node->os_id);
	nm_show_text(show, "cpus", cpus);
	nm_show_real(show, "load", node_load(daemon, node));
	nm_show_u32(show, "threads", threads_on(daemon->views.snapshot, index));
	nm_show_real(show, "access_share", access_share(daemon, index));
	nm_show_u64(show, "memory_bytes", node->memory_bytes);
	if (nm_node_memory_read(daemon->pipeline.platform, node->os_id, &memory) == 0)
		nm_show_u64(show, "memory_free_bytes", memory.free_bytes);
}

int nm_view_nodes(void *context, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	if (daemon->paused)
		return 0;
	for (unsigned i = 0; i < daemon->pipeline.topology->nr_nodes; i++) {
		show->open(show->context);
		write_node(daemon, i, show);
		show->close(show->context);
	}
	return 0;
}

/* ---- threads ---- */

#define OWN_NAMES_MAX 256U /* each requires reading a file */

/* Writes the name of a thread, which may differ from that of its process, for example to identify a
 * garbage collector. If there are too many threads, the name of the process is used. */
static void write_comm(const struct nm_daemon *daemon, const struct nm_snap_thread *thread,
		       bool asked, const struct nm_show *show)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	const struct nm_snap_process *process = &daemon->views.snapshot->processes[thread->process];
	bool own = asked && process->threads <= OWN_NAMES_MAX;
	const char *shown = process->comm;
	char path[64], raw[64], escaped[NM_COMM_BYTES];
	(void)snprintf(path, sizeof(path), "proc/%u/task/%u/comm", thread->pid, thread->tid);
	if (own && platform->ops->read_file(platform, NM_ROOT, path, raw, sizeof(raw)) > 0) {
		(void)nm_escape(escaped, sizeof(escaped), raw, strcspn(raw, "\n"));
		shown = escaped;
	}
	nm_show_text(show, "comm", shown);
}

static void write_figures(const struct nm_snap_thread *thread, const struct nm_show *show)
{
	nm_show_real(show, "local_share", thread->local_share);
	nm_show_real(show, "accesses", thread->access_total);
	nm_show_real(show, "latency_cycles", thread->latency);
	nm_show_real(show, "intensity", thread->intensity);
	nm_show_real(show, "operations_per_s", thread->operations);
	nm_show_real(show, "instructions_per_s", thread->instructions);
	nm_show_real(show, "performance", thread->performance);
	nm_show_real(show, "relative_performance", thread->relative);
	nm_show_real(show, "run_share", thread->run_share);
}

static void write_thread(const struct nm_daemon *daemon, const struct nm_snap_thread *thread,
			 const struct nm_show *show)
{
	if (thread->main_cpu >= 0)
		nm_show_u32(show, "cpu", (uint32_t)thread->main_cpu);
	nm_view_node(daemon, show, "node", thread->main_node);
	nm_view_node(daemon, show, "preferred_node", thread->preferred);
	write_figures(thread, show);
	nm_show_flag(
		show, "leased",
		nm_actuator_holds(daemon->pipeline.actuator, thread->tid, thread->start_ticks));
}

static void write_threads(const struct nm_daemon *daemon, uint32_t pid,
			  const struct nm_last_decision *last, size_t nr_last,
			  const struct nm_show *show)
{
	const struct nm_snapshot *snapshot = daemon->views.snapshot;
	enum nm_eligibility eligibility;
	for (size_t i = 0; snapshot && i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if ((pid && thread->pid != pid) ||
		    nm_roster_thread_eligibility(daemon->pipeline.roster, thread->tid,
						 &eligibility) < 0)
			continue; /* exited, or released */
		uint64_t decision =
			nm_last_decision_of(last, nr_last, thread->tid, thread->start_ticks);
		show->open(show->context);
		nm_show_u32(show, "tid", thread->tid);
		nm_show_u32(show, "pid", thread->pid);
		write_comm(daemon, thread, pid != 0, show);
		write_thread(daemon, thread, show);
		if (decision)
			nm_show_u64(show, "last_decision", decision);
		show->close(show->context);
	}
}

int nm_view_threads(void *context, uint32_t pid, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	struct nm_last_decision *last;
	size_t nr_last;
	if (pid && !nm_view_is_managed(daemon, pid))
		return -ESRCH;
	if (daemon->paused)
		return 0;
	int r = nm_history_last(&daemon->history, &last, &nr_last);
	if (r < 0)
		return r;
	write_threads(daemon, pid, last, nr_last, show);
	free(last);
	return 0;
}

/* ---- decisions ---- */

int nm_view_decisions(void *context, uint64_t after, uint32_t most, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	nm_history_list(&daemon->history, after, most, show);
	return 0;
}

int nm_view_explain(void *context, uint64_t id, const struct nm_show *show)
{
	const struct nm_daemon *daemon = context;
	const struct nm_history_item *item = nm_history_find(&daemon->history, id);
	if (!item)
		return -ENOENT;
	nm_history_explain(item, show);
	return 0;
}
