/* SPDX-License-Identifier: MIT */
/* Detects changes of CPUs, nodes, memory and isolation, and passes the new topology to the stages.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon.h"

#define MEMORY_LOOK_NS (10 * NM_NSEC_PER_SEC)

/* ---- the topology ---- */

/* Passes the new topology to every stage that uses the old one, and then frees the old one. */
static void adopt_topology(struct nm_daemon *daemon, struct nm_topology *topology,
			   struct nm_physmap *physmap)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	nm_metrics_retarget(pipeline->metrics, topology, physmap != NULL);
	/* Pending evaluations use the old node indices, and are dropped. */
	nm_verifier_free(pipeline->verifier);
	pipeline->verifier = nm_verifier_new();
	if (pipeline->source)
		(void)nm_source_retarget(pipeline->source, topology);
	nm_actuator_retarget(pipeline->actuator, topology);
	nm_roster_configure(pipeline->roster, topology, daemon->config);
	nm_pipeline_close_policies(daemon);
	nm_views_clear(daemon);
	nm_topology_free(pipeline->topology);
	nm_physmap_free(pipeline->physmap);
	pipeline->topology = topology;
	pipeline->physmap = physmap;
	nm_pipeline_restart_pages(daemon);
	if (!pipeline->source || nm_topology_is_single(topology))
		nm_pipeline_open_source(daemon); /* or close it */
}

static int reload_topology(struct nm_daemon *daemon, char *error, size_t error_size)
{
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_topology_source source = daemon->options.topology;
	source.isolated = daemon->machine.isolation.isolated;
	int r = nm_machine_load_topology(&source, &topology, &physmap, error, error_size);
	if (r < 0)
		return r;
	adopt_topology(daemon, topology, physmap);
	return 0;
}

static void reload_after_change(struct nm_daemon *daemon, const char *what, const char *online)
{
	char error[256];

	if (reload_topology(daemon, error, sizeof(error)) == 0) {
		bool single = nm_topology_is_single(daemon->pipeline.topology);
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE, "%s changed; online: %s%s", what,
			  online, single ? "; one node has CPUs: nothing to move" : "");
		return;
	}
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "%s changed (online: %s); topology not read again: %s", what, online, error);
}

static void check_cpus(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	char online[sizeof(daemon->machine.online)];

	if (platform->ops->read_file(platform, NM_ROOT, "sys/devices/system/cpu/online", online,
				     sizeof(online)) <= 0 ||
	    strcmp(online, daemon->machine.online) == 0)
		return;
	bool first = daemon->machine.online[0] == '\0';
	memcpy(daemon->machine.online, online, sizeof(online));
	if (first)
		return;
	online[strcspn(online, "\n")] = '\0';
	reload_after_change(daemon, "CPUs", online);
}

/* ---- memory ---- */

/*
 * Reads the set of nodes and the amount of memory, in a short form that suffices to detect changes.
 */
static bool read_memory(struct nm_platform *platform, struct nm_memory_fingerprint *ret)
{
	char text[8192];

	if (platform->ops->read_file(platform, NM_ROOT, "sys/devices/system/node/online",
				     ret->nodes, sizeof(ret->nodes)) <= 0 ||
	    platform->ops->read_file(platform, NM_ROOT, "proc/meminfo", text, sizeof(text)) <= 0)
		return false;
	ret->nodes[strcspn(ret->nodes, "\n")] = '\0';
	return sscanf(text, "MemTotal: %" SCNu64, &ret->total_kb) == 1;
}

static int add_block(void *context, const char *name)
{
	struct nm_memory_fingerprint *mark = context;
	uint64_t number;

	if (sscanf(name, "memory%" SCNu64, &number) == 1) {
		mark->blocks++;
		mark->block_sum += number;
	}
	return 0;
}

/* A balloon changes the sum, and blocks that are switched off stay in the directory; neither counts
 * as a change. */
static bool has_changed(const struct nm_memory_fingerprint *before,
			const struct nm_memory_fingerprint *now)
{
	return before->blocks != now->blocks || before->block_sum != now->block_sum ||
	       strcmp(before->nodes, now->nodes) != 0;
}

static void check_memory(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	struct nm_memory_fingerprint *before = &daemon->machine.memory_fingerprint;
	struct nm_memory_fingerprint now = {.seen_ns = now_ns};
	char text[sizeof(now.nodes) + 64];

	if (before->seen_ns && now_ns - before->seen_ns < MEMORY_LOOK_NS)
		return;
	before->seen_ns = now_ns;
	if (!read_memory(platform, &now) ||
	    (now.total_kb == before->total_kb && strcmp(now.nodes, before->nodes) == 0) ||
	    platform->ops->list_directory(platform, NM_ROOT, "sys/devices/system/memory", add_block,
					  &now) < 0)
		return;
	bool changed = before->total_kb && has_changed(before, &now);
	*before = now;
	if (!changed)
		return;
	(void)snprintf(text, sizeof(text), "nodes %s with %" PRIu64 " MiB", now.nodes,
		       now.total_kb >> 10);
	reload_after_change(daemon, "memory", text);
}

/* ---- isolated CPUs ---- */

/* The first time, what the kernel lists has been loaded, but not what the cgroups show. */
static void check_isolation(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_isolation *isolation = &daemon->machine.isolation;
	char error[256];
	bool first = isolation->listed == 0;
	if (daemon->options.topology.load ||
	    nm_isolation_follow(isolation, daemon->pipeline.platform, now_ns) <= 0 ||
	    (first && !isolation->found[0]))
		return;
	if (reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Isolated CPUs changed; topology not read again: %s", error);
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Isolated CPUs or partitions changed; isolated: %s",
			  isolation->isolated[0] ? isolation->isolated : "none");
}

void nm_machine_follow_topology(struct nm_daemon *daemon, uint64_t now_ns)
{
	check_cpus(daemon);
	check_memory(daemon, now_ns);
	check_isolation(daemon, now_ns);
}
