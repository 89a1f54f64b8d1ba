/* SPDX-License-Identifier: MIT */
/* Communication between threads: places threads once per placement period (policy "kmaf"), and ages
 * the matrix. */
#include "daemon.h"
#include "numa-migrd/kmaf.h"

#define PARTNERS_MOST 16U /* number of strongest partners of a thread that its placement
			   * considers */

/* Ticks are slightly early or late; the one nearest to the end of the period counts. */
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

/* ---- effect of the placement on pages ---- */

static bool is_placed(const struct nm_snapshot *snapshot, const struct nm_proposals *proposals,
		      uint32_t pid)
{
	for (size_t i = 0; i < proposals->count; i++)
		if (snapshot->threads[proposals->items[i].moves[0].thread].pid == pid)
			return true;
	return false;
}

/* Releases the pages of processes whose threads are being placed. Pages of other processes keep
 * waiting for a limited time, until it is known that their threads need not move. */
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
	/* The same seed each time: otherwise threads would move back and forth between equivalent
	 * placements. */
	if (r == 0)
		r = nm_kmaf_propose(snapshot, daemon->config, graph, (uint32_t)daemon->seed, ret);
	if (r < 0)
		return r;
	release_held_pages(daemon, snapshot, ret);
	/* If memory is short, the matrix is not aged, and the next period tries again. */
	(void)nm_affinity_age(nm_memory_affinity(daemon->pipeline.memory));
	return 0;
}

void nm_sharing_tick(struct nm_daemon *daemon, uint64_t now_ns)
{
	if (!daemon->pipeline.memory)
		return;
	/* With other policies the matrix is aged here, so that it reflects recent accesses. */
	if (daemon->config->threads.policy != NM_POLICY_KMAF && is_over(daemon, now_ns)) {
		daemon->mapped_ns = now_ns;
		(void)nm_affinity_age(nm_memory_affinity(daemon->pipeline.memory));
	}
}
