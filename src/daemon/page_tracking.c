/* SPDX-License-Identifier: MIT */
/* Tracks the pages of managed processes: the threads that access them, and communication between
 * threads. */
#include <string.h>

#include "daemon.h"

/* By default only accesses sampled by hardware are followed: first touches show no exclusivity. */
static bool is_wanted(const struct nm_daemon *daemon)
{
	const struct nm_config *config = daemon->config;
	struct nm_source *source = daemon->pipeline.source;
	if (nm_config_follows_pages(config) || config->threads.policy == NM_POLICY_KMAF)
		return true;
	return nm_config_moves_pages(config) && source &&
	       nm_source_status(source)->memory != NM_MEMORY_NONE;
}

void nm_page_tracking_restart(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_rng keys;
	uint64_t key[4];

	nm_page_stage_close(daemon);
	nm_memory_free(pipeline->memory);
	pipeline->memory = NULL;
	if (!is_wanted(daemon) || nm_topology_is_single(pipeline->topology))
		return;
	/* A separate generator, so that the random numbers of decisions do not depend on this. */
	nm_rng_seed(&keys, ~daemon->seed);
	for (size_t i = 0; i < NM_ARRAY_SIZE(key); i++)
		key[i] = nm_rng_next(&keys);
	nm_memory_new(pipeline->topology, daemon->config, key, &pipeline->memory);
	nm_page_stage_restart(daemon);
}

void nm_page_tracking_configure(struct nm_daemon *daemon)
{
	struct nm_memory *memory = daemon->pipeline.memory;

	if (!memory || !is_wanted(daemon)) {
		nm_page_tracking_restart(daemon);
		return;
	}
	nm_memory_configure(memory, daemon->config);
	nm_page_stage_configure(daemon);
}

/* With policy "kmaf", pages wait for the placement of their threads (section 3.3). Other policies
 * place threads individually at any time, so pages need not wait. */
static void release_waiting_pages(struct nm_daemon *daemon)
{
	struct nm_memory *memory = daemon->pipeline.memory;
	const struct nm_memory_process *processes;
	size_t count = nm_memory_processes(memory, &processes);

	if (daemon->config->threads.policy == NM_POLICY_KMAF)
		return;
	for (size_t i = 0; i < count; i++)
		if (processes[i].held)
			nm_memory_mapping_over(memory, processes[i].pid, true);
}

/*
 * If memory is short, new processes wait: the next interval tries again, and nothing depends on it.
 */
void nm_page_tracking_follow(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	if (!daemon->pipeline.memory)
		return;
	nm_memory_follow(daemon->pipeline.memory, snapshot);
	release_waiting_pages(daemon);
}

void nm_page_tracking_update(struct nm_daemon *daemon)
{
	if (!daemon->pipeline.memory)
		return;
	nm_memory_update(daemon->pipeline.memory);
	nm_memory_clear_wanted(daemon->pipeline.memory);
}
