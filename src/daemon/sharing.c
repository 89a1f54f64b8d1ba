/* SPDX-License-Identifier: MIT */
/* What threads share: once in each mapping period it places them (policy "kmaf"), and ages. */
#include "daemon.h"
#include "numa-migrd/kmaf.h"

#define PARTNERS_MOST 16U /* of a thread that count when it is placed, the strongest first */

/* Ticks come a little early or late: the one nearest to the period's end is meant. */
static bool is_over(const struct nm_daemon *daemon, uint64_t now_ns)
{
	double passed_s = (double)(now_ns - daemon->mapped_ns) / (double)NM_NSEC_PER_SEC;
	return passed_s >= daemon->config->threads.mapping_s - nm_loop_interval_s(daemon) / 2;
}

static int make_graph(const struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      struct nm_affinity_graph **ret)
{
	nm_autofree uint32_t *tids = calloc(snapshot->nr_threads + 1, sizeof(*tids));
	if (!tids)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		tids[i] = snapshot->threads[i].tid;
	return nm_affinity_graph(nm_memory_affinity(daemon->pipeline.memory), tids,
				 snapshot->nr_threads, PARTNERS_MOST, ret);
}

/* ---- what the mapping means for pages ---- */

static bool is_placed(const struct nm_snapshot *snapshot, const struct nm_proposals *proposals,
		      uint32_t pid)
{
	for (size_t i = 0; i < proposals->count; i++)
		if (snapshot->threads[proposals->items[i].moves[0].thread].pid == pid)
			return true;
	return false;
}

/* Threads that share are being placed; pages of others go on waiting for a while, until it is known
 * that they are well where they are. */
static void release_held_pages(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			       const struct nm_proposals *proposals)
{
	const struct nm_memory_process *processes;
	size_t count = nm_memory_processes(daemon->pipeline.memory, &processes);
	for (size_t i = 0; i < count; i++)
		nm_memory_mapping_over(daemon->pipeline.memory, processes[i].pid,
				       is_placed(snapshot, proposals, processes[i].pid));
}

int nm_sharing_propose(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       struct nm_proposals *ret)
{
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	if (!daemon->pipeline.memory || !is_over(daemon, snapshot->time_ns))
		return 0;
	daemon->mapped_ns = snapshot->time_ns;
	int r = make_graph(daemon, snapshot, &graph);
	/* One seed for all: between placements as good as each other nobody goes back and forth. */
	if (r == 0)
		r = nm_kmaf_propose(snapshot, daemon->config, graph, (uint32_t)daemon->seed, ret);
	if (r < 0)
		return r;
	release_held_pages(daemon, snapshot, ret);
	/* Short of memory it is as old as before, and the next period tries again. */
	(void)nm_affinity_age(nm_memory_affinity(daemon->pipeline.memory));
	return 0;
}

void nm_sharing_tick(struct nm_daemon *daemon, uint64_t now_ns)
{
	if (!daemon->pipeline.memory)
		return;
	/* With any policy: sharing is of recent time. */
	if (daemon->config->threads.policy != NM_POLICY_KMAF && is_over(daemon, now_ns)) {
		daemon->mapped_ns = now_ns;
		(void)nm_affinity_age(nm_memory_affinity(daemon->pipeline.memory));
	}
}
