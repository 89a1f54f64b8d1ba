/* SPDX-License-Identifier: MIT */
/* Figures for Prometheus: gathered, and written where metrics.file says. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "balance.h"
#include "numa-migrd/clock.h"
#include "numa-migrd/file.h"

#define NSEC ((double)NM_NSEC_PER_SEC)

/* ---- what a snapshot tells ---- */

static int make_room(struct nm_exporter *exporter, unsigned nr_nodes)
{
	if (nr_nodes != exporter->nr_nodes) {
		free(exporter->nodes);
		exporter->nodes = calloc(nr_nodes, sizeof(*exporter->nodes));
		exporter->nr_nodes = exporter->nodes ? nr_nodes : 0;
	}
	if (!exporter->nodes)
		return -ENOMEM;
	memset(exporter->nodes, 0, nr_nodes * sizeof(*exporter->nodes));
	return 0;
}

static void note_thread(struct nm_exporter *exporter, const struct nm_snap_thread *thread)
{
	if (thread->main_node >= 0)
		exporter->nodes[thread->main_node].threads++;
	for (unsigned node = 0; thread->access_total > 0 && node < exporter->nr_nodes; node++)
		exporter->nodes[node].accesses += thread->accesses[node];
}

void nm_exporter_note(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_exporter *exporter = &daemon->exporter;
	double cycles = 0, samples = 0;

	if (!daemon->config->metrics.file[0] ||
	    make_room(exporter, snapshot->topology->nr_nodes) < 0)
		return;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		note_thread(exporter, thread);
		if (isnan(thread->latency))
			continue;
		cycles += thread->latency * thread->latency_samples;
		samples += thread->latency_samples;
	}
	exporter->latency = samples > 0 ? cycles / samples : (double)NAN;
}

/* ---- the text ---- */

static void put(struct nm_export *out, enum nm_metric metric, double value)
{
	nm_export_put(out, metric, NULL, value);
}

static void put_of(struct nm_export *out, enum nm_metric metric, const char *label, double value)
{
	nm_export_put(out, metric, NM_LABELS(label), value);
}

static void put_general(const struct nm_daemon *daemon, struct nm_export *out)
{
	const struct nm_config *config = daemon->config;
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	bool dry_run = nm_daemon_is_dry_run(daemon);

	nm_export_put(
		out, NM_METRIC_INFO,
		NM_LABELS(NM_VERSION,
			  pipeline->source ? nm_source_status(pipeline->source)->name : "none",
			  nm_policy_name(config->threads.policy),
			  nm_page_policy_name(config->pages.policy)),
		1);
	put(out, NM_METRIC_START, daemon->started_s ? (double)daemon->started_s : (double)NAN);
	put(out, NM_METRIC_PAUSED, daemon->paused);
	put(out, NM_METRIC_DRY_RUN, dry_run);
	put(out, NM_METRIC_BLIND, nm_pipeline_is_blind(daemon));
	put(out, NM_METRIC_INTERVAL, nm_loop_interval_s(daemon));
	put(out, NM_METRIC_INTERVALS, (double)daemon->tally.intervals);
}

static void put_managed(const struct nm_daemon *daemon, struct nm_export *out)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_roster_counts roster = nm_roster_counts(pipeline->roster);

	put_of(out, NM_METRIC_PROCESSES, "managed",
	       roster.processes_managed - roster.processes_observed);
	put_of(out, NM_METRIC_PROCESSES, "observed", roster.processes_observed);
	put_of(out, NM_METRIC_PROCESSES, "off", roster.processes_off);
	put(out, NM_METRIC_THREADS, roster.threads_managed);
	put(out, NM_METRIC_LEASES, (double)nm_actuator_leases(pipeline->actuator));
	if (pipeline->placement)
		put(out, NM_METRIC_PLACED, (double)nm_placement_homes(daemon));
	put(out, NM_METRIC_LOCAL, daemon->tally.local_share);
	if (daemon->exporter.nr_nodes > 0)
		put(out, NM_METRIC_LATENCY, daemon->exporter.latency);
	if (pipeline->balancer)
		put(out, NM_METRIC_WAITING, (double)pipeline->balancer->result.waiting);
	if (pipeline->pages)
		put(out, NM_METRIC_IMBALANCE, pipeline->pages->contention.imbalance);
}

/* ---- nodes, under the kernel's numbers ---- */

static double busy_share_of(const struct nm_daemon *daemon, const struct nm_node *node)
{
	double busy = 0;
	unsigned known = 0;

	for (unsigned cpu = 0; cpu < daemon->nr_cpus; cpu++) {
		if (!hwloc_bitmap_isset(node->cpus, cpu) || isnan(daemon->busy_share[cpu]))
			continue;
		busy += daemon->busy_share[cpu];
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
		put_of(out, metric, label, value);
	}
}

/* ---- what was done ---- */

static void put_thread_verdicts(const struct nm_tally *tally, struct nm_export *out)
{
	const enum nm_metric metric = NM_METRIC_VERDICTS;

	nm_export_put(out, metric, NM_LABELS("threads", "improved"), (double)tally->improved);
	nm_export_put(out, metric, NM_LABELS("threads", "neutral"), (double)tally->neutral);
	nm_export_put(out, metric, NM_LABELS("threads", "rolled_back"), (double)tally->rolled_back);
	nm_export_put(out, metric, NM_LABELS("threads", "cancelled"), (double)tally->cancelled);
	nm_export_put(out, metric, NM_LABELS("threads", "inconclusive"),
		      (double)tally->inconclusive);
}

static void put_page_verdicts(const struct nm_page_tally *tally, struct nm_export *out)
{
	const enum nm_metric metric = NM_METRIC_VERDICTS;

	nm_export_put(out, metric, NM_LABELS("pages", "improved"), (double)tally->improved);
	nm_export_put(out, metric, NM_LABELS("pages", "neutral"), (double)tally->neutral);
	nm_export_put(out, metric, NM_LABELS("pages", "rolled_back"), (double)tally->rolled_back);
	nm_export_put(out, metric, NM_LABELS("pages", "inconclusive"), (double)tally->inconclusive);
}

static void put_pages(const struct nm_page_stage *stage, struct nm_export *out)
{
	const struct nm_page_tally *tally = &stage->tally;
	struct nm_mover_counts mover = nm_mover_counts(stage->mover);

	put_of(out, NM_METRIC_PAGES, "moved", (double)tally->moved);
	put_of(out, NM_METRIC_PAGES, "elsewhere", (double)tally->elsewhere);
	put_of(out, NM_METRIC_PAGES, "refused", (double)tally->refused);
	put_of(out, NM_METRIC_PAGES, "failed", (double)tally->failed);
	put_of(out, NM_METRIC_PAGES, "untried", (double)tally->untried);
	put(out, NM_METRIC_PAGE_BYTES, (double)tally->bytes);
	put(out, NM_METRIC_PAGE_SECONDS, (double)mover.call_ns / NSEC);
	put(out, NM_METRIC_PAGE_LONGEST, (double)mover.call_longest_ns / NSEC);
	put(out, NM_METRIC_PAGE_BACKOFFS, (double)mover.backoffs);
}

static void put_homes(const struct nm_home_tally *homes, struct nm_export *out)
{
	put_of(out, NM_METRIC_HOMES, "granted", (double)homes->granted);
	put_of(out, NM_METRIC_HOMES, "expired", (double)homes->expired);
	put_of(out, NM_METRIC_HOMES, "yielded", (double)homes->yielded);
	put_of(out, NM_METRIC_HOMES, "rolled_back", (double)homes->rolled_back);
	put(out, NM_METRIC_HOME_PAGES, (double)homes->pages);
	put(out, NM_METRIC_HOME_BYTES, (double)homes->bytes);
}

static void put_acts(const struct nm_daemon *daemon, struct nm_export *out)
{
	const struct nm_tally *tally = &daemon->tally;
	const struct nm_page_stage *stage = daemon->pipeline.pages;

	put_of(out, NM_METRIC_DECISIONS, "threads", (double)tally->decisions);
	if (stage)
		put_of(out, NM_METRIC_DECISIONS, "pages", (double)stage->tally.decisions);
	put_of(out, NM_METRIC_MOVES, "applied", (double)tally->applied);
	put_of(out, NM_METRIC_MOVES, "refused", (double)tally->failed);
	put_thread_verdicts(tally, out);
	if (stage)
		put_page_verdicts(&stage->tally, out);
	if (stage)
		put_pages(stage, out);
	put_homes(&tally->homes, out);
}

/* ---- what it costs ---- */

static double resident_bytes(void)
{
	char text[128];
	unsigned long long pages;

	if (nm_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return NAN;
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void put_costs(const struct nm_daemon *daemon, struct nm_export *out)
{
	const struct nm_tally *tally = &daemon->tally;
	const struct nm_source_status *source =
		daemon->pipeline.source ? nm_source_status(daemon->pipeline.source) : NULL;

	put_of(out, NM_METRIC_CPU, "self", (double)nm_own_cpu_ns() / NSEC);
	put_of(out, NM_METRIC_CPU, "sampling", (double)tally->caused_ns / NSEC);
	if (source)
		put(out, NM_METRIC_OVERHEAD, tally->cpu_share);
	put(out, NM_METRIC_RESIDENT, resident_bytes());
	if (source) {
		put(out, NM_METRIC_SAMPLES, (double)source->counts.samples);
		put(out, NM_METRIC_LOST, (double)source->counts.lost);
		put(out, NM_METRIC_FAULT_PERIOD, (double)source->fault_period);
	}
	put(out, NM_METRIC_SUPPRESSED, (double)tally->suppressed);
}

int nm_exporter_text(const struct nm_daemon *daemon, struct nm_export *ret)
{
	nm_auto(nm_export_clear) struct nm_export out = {0};

	put_general(daemon, &out);
	if (!daemon->paused) {
		put_managed(daemon, &out);
		put_for_nodes(daemon, &out, NM_METRIC_NODE_BUSY);
		put_for_nodes(daemon, &out, NM_METRIC_NODE_THREADS);
		put_for_nodes(daemon, &out, NM_METRIC_NODE_ACCESSES);
	}
	put_acts(daemon, &out);
	put_costs(daemon, &out);
	if (!daemon->paused)
		put(&out, NM_METRIC_STEER_CONFLICTS,
		    (double)nm_steer_conflicts(daemon->pipeline.steer));
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
	nm_autofree char *directory = strndup(path, (size_t)(name_in(path) - path));

	if (!directory)
		return -ENOMEM;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_file(const struct nm_daemon *daemon)
{
	nm_auto(nm_export_clear) struct nm_export out = {0};
	const char *path = daemon->exporter.path;

	int r = nm_exporter_text(daemon, &out);
	if (r < 0)
		return r;
	nm_auto(nm_closep) int directory = open_directory_of(path);
	if (directory < 0)
		return directory;
	return nm_replace_public(directory, name_in(path), out.text, out.length);
}

/* Told when it begins and when it is over. */
static void report_trouble(struct nm_daemon *daemon, int error)
{
	struct nm_exporter *exporter = &daemon->exporter;

	if (error < 0 && !exporter->troubled)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "metrics.file %s not written: %s; retrying every %g s", exporter->path,
			  strerror(-error), daemon->config->metrics.period_s);
	else if (error == 0 && exporter->troubled)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "metrics.file %s written again", exporter->path);
	exporter->troubled = error < 0;
}

static void remove_file(struct nm_exporter *exporter)
{
	if (!exporter->path[0])
		return;
	nm_auto(nm_closep) int directory = open_directory_of(exporter->path);
	if (directory >= 0 && exporter->written_ns && !exporter->troubled)
		(void)unlinkat(directory, name_in(exporter->path), 0);
	exporter->path[0] = '\0';
	exporter->troubled = false;
	exporter->written_ns = 0;
}

/* Half an interval early rather than late: ticks come when they come. */
static bool is_time(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double due_s = daemon->config->metrics.period_s - nm_loop_interval_s(daemon) / 2;

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
	report_trouble(daemon, write_file(daemon));
}

void nm_exporter_close(struct nm_daemon *daemon)
{
	remove_file(&daemon->exporter);
	free(daemon->exporter.nodes);
	daemon->exporter = (struct nm_exporter){0};
}
