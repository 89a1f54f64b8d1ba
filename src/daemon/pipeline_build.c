/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "loop.h"
#include "pipeline_build.h"
#include "platform/helper.h"
#include "report.h"
#include "runtime.h"
#include "stages.h"

#define RETRY_BLIND_NS (60 * NM_NSEC_PER_SEC)

int nm_pipeline_open_platform(struct nm_daemon *daemon)
{
	const struct nm_config *config = daemon->config;
	const struct nm_topology *topology = daemon->pipeline.topology; /* NULL while paused */
	bool dry_run = nm_daemon_is_dry_run(daemon);
	bool moves_memory =
		!dry_run && topology && !nm_topology_is_single(topology) &&
		(config->threads.policy == NM_POLICY_AUTO || nm_config_follows_pages(config));
	/* Root needs no helper. The service's user needs it if the kernel is strict. */
	struct nm_platform_options options = {
		.root_path = "/",
		.helper_socket = geteuid() == 0 ? NULL : NM_HELPER_SOCKET_PATH,
		.worker_socket = NM_WORKER_SOCKET_PATH,
		.config = {.path = daemon->options.config.path,
			   .folder = daemon->options.config.folder},
		.dry_run = dry_run,
		.start_workers = moves_memory,
		.unresponsive = daemon->runtime.unresponsive,
	};
	int r = nm_machine_open_platform(&daemon->options, &options, &daemon->pipeline.platform);
	if (r < 0)
		return r;
	nm_watch_queries(daemon);
	return 0;
}

static int load_topology(const struct nm_daemon *daemon, char *error, size_t error_size,
			 struct nm_topology **ret_topology, struct nm_physmap **ret_physmap)
{
	struct nm_topology_source source = daemon->options.topology;
	source.isolated = daemon->machine.isolation.isolated; /* as far as known */
	return nm_topology_load_all(&source, error, error_size, ret_topology, ret_physmap);
}

static int open_machine(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	char error[256] = "";
	int r = load_topology(daemon, error, sizeof(error), &pipeline->topology,
			      &pipeline->physmap);
	if (r < 0) {
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR, "Topology not readable: %s",
			  error[0] ? error : strerror(-r));
		return r;
	}
	if (!pipeline->physmap)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Nothing is moved: no node ranges in "
			  "/sys/devices/system/node/node*/memory* or /proc/zoneinfo");
	return 0;
}

/* ---- pages ---- */

/* By default only accesses sampled by hardware are followed: first touches show no exclusivity. */
static bool tracks_pages(const struct nm_daemon *daemon)
{
	const struct nm_config *config = daemon->config;
	struct nm_source *source = daemon->pipeline.source;
	if (nm_topology_is_single(daemon->pipeline.topology))
		return false;
	if (nm_config_follows_pages(config) || config->threads.policy == NM_POLICY_KMAF)
		return true;
	return nm_config_moves_pages(config) && source &&
	       nm_source_status(source)->memory != NM_MEMORY_NONE;
}

static void close_page_stage(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (pipeline->pages) {
		nm_restore_balancing(daemon);
		nm_verifier_drop_pages(pipeline->verifier);
		nm_migrations_drop(&pipeline->migrations, false);
	}
	nm_page_stage_free(NM_TAKE(pipeline->pages));
	nm_release_mover(&daemon->pipeline, false);
}

static void open_memory(struct nm_daemon *daemon)
{
	struct nm_rng keys;
	uint64_t key[4];
	/* A separate generator, so that the random numbers of decisions do not depend on this. */
	nm_rng_seed(&keys, ~daemon->seed);
	for (size_t i = 0; i < NM_ARRAY_SIZE(key); i++)
		key[i] = nm_rng_next(&keys);
	nm_memory_new(daemon->pipeline.topology, daemon->config, key, &daemon->pipeline.memory);
}

void nm_pipeline_configure_pages(struct nm_daemon *daemon, bool restart)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_config *config = daemon->config;
	bool tracks = tracks_pages(daemon), moves = tracks && nm_config_moves_pages(config);
	if (restart || !moves)
		close_page_stage(daemon);
	if (restart || !tracks)
		nm_memory_free(NM_TAKE(pipeline->memory));
	if (pipeline->memory)
		nm_memory_configure(pipeline->memory, config);
	else if (tracks)
		open_memory(daemon);
	if (!moves)
		return;
	nm_open_mover(&daemon->pipeline, daemon->config);
	if (pipeline->pages)
		nm_mover_configure(pipeline->mover, pipeline->topology, config);
	else
		pipeline->pages =
			nm_page_stage_new(pipeline->topology, pipeline->memory, pipeline->mover);
	if (config->pages.policy != NM_PAGES_AUTO && nm_mover_is_barred(pipeline->mover))
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "No pages migrated: isolated or nohz_full CPUs (allow with "
			  "parameters: { pages: { also = ( \"isolated\" ); }; };)");
	if (daemon->machine.balancing_mode == NM_PAGES_MANAGED &&
	    config->pages.numa_balancing != NM_BALANCING_MANAGE)
		nm_restore_balancing(daemon);
}

/* ---- building and destroying ---- */

static int open_stages(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_metrics_new(pipeline->topology, pipeline->physmap != NULL, &pipeline->metrics);
	int r = nm_moves_new(pipeline->platform, pipeline->topology, daemon->runtime.directory,
			     daemon->runtime.boot_id, nm_report_move, daemon, &pipeline->moves);
	if (r < 0) {
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_ERR,
			  "Moves not recorded: %s (/run/numa-migrd/moves must be a regular file of "
			  "this user)",
			  strerror(-r));
		return r;
	}
	pipeline->assignments = nm_assignments_new();
	struct nm_move_lookup moves = {
		.context = pipeline->moves,
		.original = nm_moves_original,
		.is_moving = nm_moves_is_moving,
	};
	nm_task_table_new(pipeline->platform, pipeline->topology, daemon->config, &moves,
			  daemon->runtime.released, &pipeline->tasks);
	pipeline->verifier = nm_verifier_new();
	nm_pipeline_configure_pages(daemon, true);
	nm_pipeline_reset_performance(daemon);
	return 0;
}

static void close_balancer(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (nm_balancer_of(&daemon->pipeline))
		nm_location_cancel(pipeline->platform,
				   &nm_balancer_of(&daemon->pipeline)->query.query_id);
	nm_policy_close(&pipeline->policies, NM_POLICY_BALANCE);
}

/* Closes the states of policies, because the nodes or the policy have changed. */
static void close_policies(struct nm_daemon *daemon)
{
	close_balancer(daemon);
	nm_home_stage_end(daemon);
	nm_policies_close(&daemon->pipeline.policies);
}

/* The same nodes have other CPUs: only the state that refers to these is closed. */
static void retarget_policies(struct nm_daemon *daemon, const struct nm_topology *topology)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	close_balancer(daemon);
	if (nm_placement_of(&daemon->pipeline))
		nm_placement_retarget(nm_placement_of(&daemon->pipeline), pipeline->topology,
				      topology);
	if (pipeline->memory)
		nm_memory_retarget(pipeline->memory, topology);
	if (pipeline->pages)
		nm_page_stage_retarget(pipeline->pages, topology);
	if (pipeline->mover)
		nm_mover_configure(pipeline->mover, topology, daemon->config);
}

void nm_pipeline_reset_performance(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_feedback_free(pipeline->feedback);
	pipeline->feedback = nm_feedback_new();
	close_policies(daemon);
	daemon->reported.missing = 0;
}

void nm_pipeline_open_source(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	char error[512] = "";

	nm_source_free(pipeline->source);
	pipeline->source = NULL;
	daemon->costs.counts = (struct nm_ring_counts){0};
	daemon->drained.lost_seen = 0;
	daemon->pipeline.latency_seen = 0;
	nm_watch_source(daemon); /* no longer the one that was freed */
	if (nm_topology_is_single(pipeline->topology)) {
		daemon->pipeline.no_source_until_ns = 0;
		return;
	}
	int r = 0;
	if (daemon->options.feed)
		nm_source_open_feed(daemon->options.feed, &pipeline->source);
	else
		r = nm_source_open(pipeline->platform, pipeline->topology, daemon->config, error,
				   sizeof(error), &pipeline->source);
	if (r < 0 && daemon->pipeline.no_source_until_ns == 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING, "Nothing moved: %s",
			  error[0] ? error : strerror(-r));
	daemon->pipeline.no_source_until_ns =
		r < 0 ? pipeline->platform->ops->now_ns(pipeline->platform) + RETRY_BLIND_NS : 0;
	if (r == 0) {
		nm_report_source_problems(daemon);
		daemon->reported.first_touches = false;
	}
	/* Forks that happened while no ring was open must be found by other means. */
	nm_moves_records_begin(pipeline->moves);
	nm_watch_source(daemon);
	if (daemon->config->pages.policy == NM_PAGES_AUTO) /* depends on the source */
		nm_pipeline_configure_pages(daemon, false);
}

/* Passes the new topology to every stage that uses the old one, and then frees the old one. */
static void adopt_topology(struct nm_daemon *daemon, struct nm_topology *topology,
			   struct nm_physmap *physmap)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	bool same = nm_topology_has_same_nodes(pipeline->topology, topology);
	nm_metrics_retarget(pipeline->metrics, topology, physmap != NULL);
	nm_verifier_retarget(pipeline->verifier, pipeline->topology, topology);
	if (pipeline->source)
		(void)nm_source_retarget(pipeline->source, topology);
	nm_moves_retarget(pipeline->moves, topology);
	nm_tasks_configure(pipeline->tasks, topology, daemon->config);
	if (same)
		retarget_policies(daemon, topology);
	else
		close_policies(daemon);
	nm_views_clear(daemon);
	nm_topology_free(pipeline->topology);
	nm_physmap_free(pipeline->physmap);
	pipeline->topology = topology;
	pipeline->physmap = physmap;
	nm_pipeline_configure_pages(daemon, !same);
	if (!pipeline->source || nm_topology_is_single(topology))
		nm_pipeline_open_source(daemon); /* or close it */
}

static int reload_topology(struct nm_daemon *daemon, char *error, size_t error_size)
{
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	int r = load_topology(daemon, error, error_size, &topology, &physmap);
	if (r == 0)
		adopt_topology(daemon, topology, physmap);
	return r;
}

/* ---- changes of the machine ---- */

static void follow_online(struct nm_daemon *daemon, uint64_t now_ns)
{
	char online[sizeof(daemon->machine.online.cpus)], error[256];
	const char *changed = nm_online_follow(&daemon->machine.online, daemon->pipeline.platform,
					       now_ns, online, sizeof(online));
	if (!changed)
		return;
	if (reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "%s changed (online: %s); topology not read again: %s", changed, online,
			  error);
	else
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "%s changed; online: %s%s", changed, online,
			  nm_topology_is_single(daemon->pipeline.topology)
				  ? "; one node has CPUs: nothing to move"
				  : "");
}

/* The first time, what the kernel lists has been loaded, but not what the cgroups show. */
static void follow_isolation(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_isolation *isolation = &daemon->machine.isolation;
	char error[256];
	bool first = isolation->listed == 0;
	if (daemon->options.topology.load ||
	    nm_isolation_follow(isolation, daemon->pipeline.platform, now_ns) <= 0 ||
	    (first && !isolation->found[0]))
		return;
	if (reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Isolated CPUs changed; topology not read again: %s", error);
	else
		nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Isolated CPUs or partitions changed; isolated: %s",
			  isolation->isolated[0] ? isolation->isolated : "none");
}

void nm_pipeline_follow_machine(struct nm_daemon *daemon, uint64_t now_ns)
{
	follow_online(daemon, now_ns);
	follow_isolation(daemon, now_ns);
}

/* ---- begin and end ---- */

int nm_pipeline_open(struct nm_daemon *daemon)
{
	int r = open_machine(daemon);
	if (r == 0)
		r = nm_pipeline_open_platform(daemon);
	if (r == 0)
		r = open_stages(daemon);
	if (r == 0)
		nm_trial_stage_open(daemon);
	if (r < 0) {
		nm_pipeline_close(daemon);
		return r;
	}
	daemon->pipeline.no_source_until_ns = 0;
	daemon->machine.balancing = -1;
	nm_machine_read_balancing(daemon);
	nm_pipeline_open_source(daemon);
	nm_inject_configure(daemon);
	nm_report_sampling_source(daemon);
	daemon->last_tick_ns = nm_daemon_now_ns(daemon);
	daemon->machine.online = (struct nm_online){0}; /* it has just been loaded */
	nm_pipeline_follow_machine(daemon, daemon->last_tick_ns);
	nm_cpu_load_read(&daemon->machine.load, daemon->pipeline.platform,
			 daemon->pipeline.topology->nr_cpus);
	daemon->costs.own_cpu_ns = nm_own_cpu_ns();
	daemon->costs.drain_ns = 0;
	return 0;
}

void nm_pipeline_close(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (pipeline->tasks) { /* the last of what an interval needs: before it, nothing is
				   narrowed */
		nm_drain(daemon);
		daemon->runtime.unrestored = nm_moves_end(pipeline->moves);
		nm_runtime_save(&daemon->runtime, daemon->pipeline.platform, daemon->journal);
	}
	nm_source_free(pipeline->source);
	pipeline->source = NULL;
	nm_watch_source(daemon);
	close_page_stage(daemon);
	nm_verifier_free(pipeline->verifier);
	nm_feedback_free(pipeline->feedback);
	close_policies(daemon);
	free(pipeline->migrations.items);
	nm_views_clear(daemon);
	nm_memory_free(pipeline->memory);
	nm_task_table_free(pipeline->tasks);
	nm_moves_free(pipeline->moves);
	nm_assignments_free(pipeline->assignments);
	nm_metrics_free(pipeline->metrics);
	nm_physmap_free(pipeline->physmap);
	nm_topology_free(pipeline->topology);
	struct nm_platform *machine = NM_TAKE(pipeline->platform);
	nm_watch_queries(daemon);
	nm_platform_free(machine);
	*pipeline = (struct nm_pipeline){0};
	nm_runtime_save(&daemon->runtime, daemon->pipeline.platform,
			daemon->journal); /* because calls have been cancelled */
}

void nm_pipeline_clear(struct nm_daemon *daemon)
{
	nm_history_clear(&daemon->history);
	nm_released_list_free(daemon->runtime.released);
	nm_trial_free(daemon->trial.group);
	nm_journal_free(daemon->journal);
	nm_cpu_load_clear(&daemon->machine.load);
	free(daemon->drained.events);
}
