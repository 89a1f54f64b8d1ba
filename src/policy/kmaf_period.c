/* SPDX-License-Identifier: MIT */
/* Places threads once per placement period (policy "kmaf"), and ages the matrix of communication.
 */
#include "numa-migrd/policy.h"

#define PARTNERS_MOST                                                                              \
	16U /* number of strongest partners of a thread that its placement                         \
	     * considers */

bool nm_kmaf_ends_period(struct nm_kmaf_clock *clock, const struct nm_config *config,
			 double interval_s, uint64_t now_ns)
{
	double passed_s = (double)(now_ns - clock->ended_ns) / (double)NM_NSEC_PER_SEC;
	/* Ticks are slightly early or late; the one nearest to the end of the period counts. */
	if (passed_s < config->threads.mapping_s - interval_s / 2)
		return false;
	clock->ended_ns = now_ns;
	return true;
}

static int make_graph(const struct nm_affinity *affinity, const struct nm_snapshot *snapshot,
		      struct nm_affinity_graph **ret)
{
	nm_autofree uint32_t *tids = calloc(snapshot->nr_threads + 1, sizeof(*tids));
	if (!tids)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		tids[i] = snapshot->threads[i].tid;
	return nm_affinity_graph(affinity, tids, snapshot->nr_threads, PARTNERS_MOST, ret);
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
static void release_held_pages(struct nm_memory *memory, const struct nm_snapshot *snapshot,
			       const struct nm_proposals *proposals)
{
	const struct nm_memory_process *processes;
	size_t count = nm_memory_processes(memory, &processes);
	for (size_t i = 0; i < count; i++)
		nm_memory_mapping_over(memory, processes[i].pid,
				       is_placed(snapshot, proposals, processes[i].pid));
}

int nm_kmaf_place(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  struct nm_memory *memory, uint32_t seed, struct nm_proposals *ret)
{
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	int r = make_graph(nm_memory_affinity(memory), snapshot, &graph);
	if (r == 0)
		r = nm_kmaf_propose(snapshot, config, graph, seed, ret);
	if (r < 0)
		return r;
	release_held_pages(memory, snapshot, ret);
	/* If memory is short, the matrix is not aged, and the next period tries again. */
	(void)nm_affinity_age(nm_memory_affinity(memory));
	return 0;
}
