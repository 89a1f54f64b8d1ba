/* SPDX-License-Identifier: MIT */
/* Pages of managed processes: who accesses them, and who shares them. */
#include <string.h>

#include "daemon.h"

static bool is_wanted(const struct nm_config *config)
{
	return config->pages.policy != NM_PAGES_NONE || config->threads.policy == NM_POLICY_KMAF;
}

int nm_watch_restart(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	struct nm_rng keys;
	uint64_t key[4];

	nm_page_stage_close(daemon);
	nm_memory_free(pipeline->memory);
	pipeline->memory = NULL;
	if (!is_wanted(daemon->config) || pipeline->topology->nr_nodes < 2)
		return 0;
	/* A generator of its own: the decisions' draws are the same with and without. */
	nm_rng_seed(&keys, ~daemon->seed);
	for (size_t i = 0; i < NM_ARRAY_SIZE(key); i++)
		key[i] = nm_rng_next(&keys);
	int r = nm_memory_new(pipeline->topology, pipeline->physmap, daemon->config, key,
			      &pipeline->memory);
	return r < 0 ? r : nm_page_stage_restart(daemon);
}

int nm_watch_configure(struct nm_daemon *daemon)
{
	struct nm_memory *memory = daemon->pipeline.memory;

	if (!memory || !is_wanted(daemon->config))
		return nm_watch_restart(daemon);
	nm_memory_configure(memory, daemon->config);
	return nm_page_stage_configure(daemon);
}

static int follow_members(struct nm_daemon *daemon)
{
	const struct nm_member *members;
	size_t count = nm_roster_members(daemon->pipeline.roster, &members);
	nm_autofree struct nm_memory_thread *threads = calloc(count + 1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		threads[i] =
			(struct nm_memory_thread){.tid = members[i].tid, .pid = members[i].pid};
	return nm_memory_follow(daemon->pipeline.memory, threads, count);
}

/*
 * Pages wait for their threads to be mapped by what they share (section 3.3), where that is what
 * places them. Other policies do so one by one, at any time.
 */
static void need_no_mapping(struct nm_daemon *daemon)
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

/* Short of memory newcomers wait: the next interval tries again, and nothing depends on it. */
void nm_watch_follow(struct nm_daemon *daemon)
{
	if (!daemon->pipeline.memory)
		return;
	(void)follow_members(daemon);
	need_no_mapping(daemon);
}

/* Short of memory the table stays as large as it is. */
void nm_watch_update(struct nm_daemon *daemon)
{
	if (!daemon->pipeline.memory)
		return;
	(void)nm_memory_update(daemon->pipeline.memory);
	nm_memory_clear_wanted(daemon->pipeline.memory);
}
