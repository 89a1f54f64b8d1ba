/* SPDX-License-Identifier: MIT */
/* Hands the objects, and the data of the last interval, to report/. */
#include <math.h>

#include "daemon.h"

static double *sum_served(const struct nm_topology *topology, const struct nm_figures *figures,
			  size_t nr_figures)
{
	double *served = nm_must(calloc(topology->nr_nodes, sizeof(*served)));
	for (size_t i = 0; i < nr_figures; i++)
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
	daemon->views.served = sum_served(daemon->pipeline.topology, figures, nr_figures);
}

void nm_views_clear(struct nm_daemon *daemon)
{
	nm_snapshot_free(daemon->views.snapshot);
	free(daemon->views.served);
	daemon->views = (struct nm_views){0};
}

struct nm_view nm_views_of(const struct nm_daemon *daemon)
{
	const struct nm_pipeline *pipeline = &daemon->pipeline;
	return (struct nm_view){
		.version = NM_VERSION,
		.config = daemon->config,
		.tally = &daemon->tally,
		.history = &daemon->history,
		.paused = daemon->paused,
		.dry_run = nm_daemon_is_dry_run(daemon),
		.blind = nm_lacks_accesses(daemon),
		.may_draw = !daemon->paused && nm_may_draw_threads(daemon),
		.unrestored = daemon->runtime.unrestored > 0,
		.interval_s = nm_interval_s(daemon),
		.cpu_ns = nm_own_cpu_ns(),
		.now_ns = daemon->paused ? 0 : nm_daemon_now_ns(daemon),
		.platform = pipeline->platform,
		.topology = pipeline->topology,
		.source = pipeline->source,
		.busy_share = daemon->machine.load.busy_share,
		.nr_cpus = daemon->machine.load.nr_cpus,
		.snapshot = daemon->views.snapshot,
		.served = daemon->views.served,
		.roster = pipeline->roster,
		.actuator = pipeline->actuator,
		.memory = pipeline->memory,
		.pages = pipeline->pages,
		.balancing_mode = daemon->machine.balancing_mode,
		.migrations = &pipeline->migrations,
		.placement = nm_placement_of(daemon),
		.balancer = nm_balancer_of(daemon),
		.trial = daemon->trial.group,
	};
}

int nm_command_dump(void *context)
{
	const struct nm_view view = nm_views_of(context);
	return nm_view_dump(&view);
}
