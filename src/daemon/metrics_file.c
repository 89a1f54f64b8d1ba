/* SPDX-License-Identifier: MIT */
/* Metrics for Prometheus, written to the file that metrics.file names. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "statistics.h"

#define PERIOD_S 15.0 /* between two updates of the file */
#define NSEC ((double)NM_NSEC_PER_SEC)

/* ---- values of a snapshot ---- */

static void reset_nodes(struct nm_exporter *exporter, unsigned nr_nodes)
{
	if (nr_nodes != exporter->nr_nodes) {
		free(exporter->nodes);
		exporter->nodes = nm_must(calloc(nr_nodes, sizeof(*exporter->nodes)));
		exporter->nr_nodes = nr_nodes;
	}
	memset(exporter->nodes, 0, nr_nodes * sizeof(*exporter->nodes));
}

static void add_thread(struct nm_exporter *exporter, const struct nm_snap_thread *thread)
{
	if (thread->main_node >= 0)
		exporter->nodes[thread->main_node].threads++;
	for (unsigned node = 0; thread->access_total > 0 && node < exporter->nr_nodes; node++)
		exporter->nodes[node].accesses += thread->accesses[node];
}

void nm_exporter_update(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_exporter *exporter = &daemon->exporter;
	double cycles = 0, samples = 0;

	if (!daemon->config->metrics.file[0])
		return;
	reset_nodes(exporter, snapshot->topology->nr_nodes);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		add_thread(exporter, thread);
		if (isnan(thread->latency))
			continue;
		cycles += thread->latency * thread->latency_samples;
		samples += thread->latency_samples;
	}
	exporter->latency = samples > 0 ? cycles / samples : (double)NAN;
}

/* ---- nodes, under the kernel's numbers ---- */

static double busy_share_of(const struct nm_daemon *daemon, const struct nm_node *node)
{
	double busy = 0;
	unsigned known = 0;

	for (unsigned cpu = 0; cpu < daemon->machine.nr_cpus; cpu++) {
		if (!hwloc_bitmap_isset(node->cpus, cpu) || isnan(daemon->machine.busy_share[cpu]))
			continue;
		busy += daemon->machine.busy_share[cpu];
		known++;
	}
	return known > 0 ? busy / known : (double)NAN;
}

static void put_for_nodes(const struct nm_daemon *daemon, struct nm_export *out,
			  enum nm_metric metric)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	const struct nm_exporter *exporter = &daemon->exporter;
	double all = 0;
	char label[16];

	for (unsigned i = 0; i < exporter->nr_nodes; i++)
		all += exporter->nodes[i].accesses;
	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		double value = NAN;
		(void)snprintf(label, sizeof(label), "%u", topology->nodes[i].os_id);
		if (metric == NM_METRIC_NODE_BUSY)
			value = busy_share_of(daemon, &topology->nodes[i]);
		else if (i >= exporter->nr_nodes)
			continue;
		else if (metric == NM_METRIC_NODE_THREADS)
			value = exporter->nodes[i].threads;
		else if (all > 0)
			value = exporter->nodes[i].accesses / all;
		nm_export_put(out, metric, NM_LABELS(label), value);
	}
}

/* ---- the text ---- */

static void put_info(const struct nm_daemon *daemon, struct nm_export *out)
{
	struct nm_source *source = daemon->pipeline.source;

	nm_export_put(out, NM_METRIC_INFO,
		      NM_LABELS(NM_VERSION, source ? nm_source_status(source)->name : "none",
				nm_config_policy_name(daemon->config),
				nm_page_policy_name(daemon->config->pages.policy)),
		      1);
}

static void put_rows(const struct nm_statistics *statistics, enum nm_metric metric, struct nm_export *out)
{
	for (unsigned i = 0; i < NM_STATISTIC_MAX; i++) {
		const struct nm_statistic_row *row = nm_statistic_row((enum nm_statistic)i);
		if (!row->in_metrics || row->metric != metric || !statistics->now[i].known)
			continue;
		double unit = row->metric_unit > 0 ? row->metric_unit : 1;
		nm_export_put(out, metric, row->labels, statistics->now[i].number / unit);
	}
}

static bool is_per_node(enum nm_metric metric)
{
	return metric == NM_METRIC_NODE_BUSY || metric == NM_METRIC_NODE_THREADS ||
	       metric == NM_METRIC_NODE_ACCESSES;
}

/* Returns the current metrics, which the caller clears. Returns 0. */
static int write_metrics(const struct nm_daemon *daemon, struct nm_export *ret)
{
	nm_auto(nm_export_clear) struct nm_export out = {0};
	struct nm_statistics statistics;

	nm_statistics_gather(daemon, &statistics);
	put_info(daemon, &out);
	for (unsigned i = 0; i < NM_METRIC_MAX; i++) {
		enum nm_metric metric = (enum nm_metric)i;
		if (!is_per_node(metric))
			put_rows(&statistics, metric, &out);
		else if (!daemon->paused)
			put_for_nodes(daemon, &out, metric);
	}
	int r = nm_export_finish(&out);
	if (r < 0)
		return r;
	*ret = out;
	out = (struct nm_export){0};
	return 0;
}

/* ---- the file ---- */

/* The path is absolute (metrics.file). */
static const char *name_in(const char *path)
{
	return strrchr(path, '/') + 1;
}

static int open_directory_of(const char *path)
{
	nm_autofree char *directory = nm_must(strndup(path, (size_t)(name_in(path) - path)));

	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_file(const struct nm_daemon *daemon)
{
	nm_auto(nm_export_clear) struct nm_export out = {0};
	const char *path = daemon->exporter.path;

	int r = write_metrics(daemon, &out);
	if (r < 0)
		return r;
	nm_auto(nm_closep) int directory = open_directory_of(path);
	if (directory < 0)
		return directory;
	return nm_replace_public(directory, name_in(path), out.text, out.length);
}

/* Logged when a problem begins and when it ends. */
static void report_failure(struct nm_daemon *daemon, int error)
{
	struct nm_exporter *exporter = &daemon->exporter;

	if (error < 0 && !exporter->write_failed)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "metrics.file %s not written: %s; retrying every %g s", exporter->path,
			  strerror(-error), PERIOD_S);
	else if (error == 0 && exporter->write_failed)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "metrics.file %s written again", exporter->path);
	exporter->write_failed = error < 0;
}

static void remove_file(struct nm_exporter *exporter)
{
	if (!exporter->path[0])
		return;
	nm_auto(nm_closep) int directory = open_directory_of(exporter->path);
	if (directory >= 0 && exporter->written_ns && !exporter->write_failed)
		(void)unlinkat(directory, name_in(exporter->path), 0);
	exporter->path[0] = '\0';
	exporter->write_failed = false;
	exporter->written_ns = 0;
}

/* Half an interval early is better than late, because ticks are not exact. */
static bool is_time(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double due_s = PERIOD_S - nm_interval_s(daemon) / 2;

	return daemon->exporter.written_ns == 0 ||
	       (double)(now_ns - daemon->exporter.written_ns) >= due_s * NSEC;
}

void nm_exporter_tick(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	const char *wanted = daemon->config->metrics.file;

	if (strcmp(exporter->path, wanted) != 0) {
		remove_file(exporter);
		memcpy(exporter->path, wanted, sizeof(exporter->path));
	}
	uint64_t now_ns = nm_clock_ns();
	if (!exporter->path[0] || !is_time(daemon, now_ns))
		return;
	exporter->written_ns = now_ns;
	report_failure(daemon, write_file(daemon));
}

void nm_exporter_close(struct nm_daemon *daemon)
{
	remove_file(&daemon->exporter);
	free(daemon->exporter.nodes);
	daemon->exporter = (struct nm_exporter){0};
}
