/* SPDX-License-Identifier: MIT */
/* When the file that metrics.file names is written, and what is logged of it. */
#include <string.h>
#include <unistd.h>

#include "daemon.h"

#define PERIOD_S 15.0 /* between two updates of the file */

static void write_file(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	const struct nm_view view = nm_views_of(daemon);
	int r = nm_view_export(&view, exporter->path);

	/* Logged when a problem begins and when it ends. */
	if (r < 0 && !exporter->write_failed)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "metrics.file %s not written: %s; retrying every %g s", exporter->path,
			  strerror(-r), PERIOD_S);
	else if (r == 0 && exporter->write_failed)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE, "metrics.file %s written again",
			  exporter->path);
	exporter->write_failed = r < 0;
}

void nm_exporter_close(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	if (exporter->written_ns && !exporter->write_failed)
		(void)unlink(exporter->path);
	*exporter = (struct nm_exporter){0};
}

void nm_exporter_tick(struct nm_daemon *daemon)
{
	struct nm_exporter *exporter = &daemon->exporter;
	const char *wanted = daemon->config->metrics.file;
	uint64_t now_ns = nm_clock_ns();
	/* Half an interval early is better than late, because ticks are not exact. */
	double due_s = PERIOD_S - nm_interval_s(daemon) / 2;

	if (strcmp(exporter->path, wanted) != 0) {
		nm_exporter_close(daemon);
		memcpy(exporter->path, wanted, sizeof(exporter->path));
	}
	if (!exporter->path[0] || (exporter->written_ns && (double)(now_ns - exporter->written_ns) <
								   due_s * (double)NM_NSEC_PER_SEC))
		return;
	exporter->written_ns = now_ns;
	write_file(daemon);
}
