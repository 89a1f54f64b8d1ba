/* SPDX-License-Identifier: MIT */
/* Metrics for Prometheus, written to the file that metrics.file names. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "numa-migrd/file.h"

#define PERIOD_S 15.0 /* between two updates of the file */
#define NSEC ((double)NM_NSEC_PER_SEC)

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

static int write_file(struct nm_daemon *daemon)
{
	const char *path = daemon->exporter.path;
	struct nm_statistics statistics;
	nm_auto(nm_closep) int directory = open_directory_of(path);
	if (directory < 0)
		return directory;
	const struct nm_view view = nm_views_of(daemon, &statistics);
	size_t nr_nodes = daemon->paused ? 0 : statistics.nodes;
	nm_autofree struct nm_node_row *nodes = nm_must(calloc(nr_nodes + 1, sizeof(*nodes)));
	for (unsigned i = 0; i < nr_nodes; i++)
		nodes[i] = nm_view_node(&view, i);
	nm_autofree char *text = nm_statistics_metrics(&statistics, nodes, nr_nodes);
	return nm_replace_public(directory, name_in(path), text, strlen(text));
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
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE, "metrics.file %s written again",
			  exporter->path);
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
	daemon->exporter = (struct nm_exporter){0};
}
