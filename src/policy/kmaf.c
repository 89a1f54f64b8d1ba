/* SPDX-License-Identifier: MIT */
/* Places threads once per placement period (policy "kmaf"), and ages the matrix of communication.
 */
#include "kmaf_plan.h"
#include "numa-migrd/policy.h"

#define PARTNERS_MAX 16U /* strongest partners of a thread that its placement considers */

/* The threads as input of the placement, and the CPU sets created for those that must stay. */
struct input {
	struct nm_mapping_thread *threads;
	hwloc_bitmap_t *masks;
	size_t count;
};

static void free_input(struct input *input)
{
	for (size_t i = 0; input->masks && i < input->count; i++)
		hwloc_bitmap_free(input->masks[i]);
	free(input->masks);
	free(input->threads);
}

static void add_thread(const struct nm_snapshot *snapshot, struct input *input, size_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	input->threads[i] = (struct nm_mapping_thread){
		.cpu = thread->main_cpu,
		.load = thread->main_cpu < 0 ? 0 : thread->run_share,
		.allowed = thread->allowed,
		.memory = (unsigned)(thread->preferred + 1),
	};
	if (thread->movable && thread->main_node >= 0)
		return;
	/* A thread that must stay is bound to its node, so that partners move to it. */
	int node = nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu);
	hwloc_bitmap_t mask = nm_must(hwloc_bitmap_dup(thread->allowed));
	if (node >= 0)
		nm_must_do(hwloc_bitmap_and(mask, mask, snapshot->topology->nodes[node].cpus));
	input->masks[i] = mask;
	input->threads[i].allowed = mask;
}

int nm_kmaf_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_affinity_graph *graph, uint32_t seed, struct nm_proposals *ret)
{
	nm_auto(free_input) struct input input = {0};
	nm_auto(nm_mapping_freep) struct nm_mapping *mapping = NULL;
	if (graph->first[graph->nr_threads] == 0) {
		*ret = (struct nm_proposals){0};
		return 0;
	}
	input.count = snapshot->nr_threads;
	input.threads = nm_must(calloc(input.count + 1, sizeof(*input.threads)));
	input.masks = nm_must(calloc(input.count + 1, sizeof(hwloc_bitmap_t)));
	for (size_t i = 0; i < input.count; i++)
		add_thread(snapshot, &input, i);
	int r = nm_mapping_compute(snapshot->topology, graph, input.threads,
				   config->rules.mapping_gain, seed, &mapping);
	if (r == -ENODATA) {
		*ret = (struct nm_proposals){0};
		return 0;
	}
	if (r < 0)
		return r;
	nm_kmaf_moves(snapshot, config, graph, mapping, ret);
	return 0;
}

/* Returns whether a placement period ends now, which begins the next one. interval_s is the time
 * between two calls, each in a tick. */
static bool ends_period(struct nm_kmaf_clock *clock, const struct nm_config *config,
			double interval_s, uint64_t now_ns)
{
	double passed_s = (double)(now_ns - clock->ended_ns) / (double)NM_NSEC_PER_SEC;
	/* Ticks are slightly early or late; the one nearest to the end of the period counts. */
	if (passed_s < config->rules.mapping_s - interval_s / 2)
		return false;
	clock->ended_ns = now_ns;
	return true;
}

static bool is_process_moved(const struct nm_snapshot *snapshot,
			     const struct nm_proposals *proposals, uint32_t pid)
{
	for (size_t i = 0; i < proposals->count; i++)
		if (snapshot->threads[proposals->items[i].moves[0].thread].pid == pid)
			return true;
	return false;
}

int nm_kmaf_place(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  struct nm_memory *memory, uint32_t seed, struct nm_proposals *ret)
{
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	nm_autofree uint32_t *tids = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*tids)));
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		tids[i] = snapshot->threads[i].tid;
	nm_affinity_graph(nm_memory_affinity(memory), tids, snapshot->nr_threads, PARTNERS_MAX,
			  &graph);
	int r = nm_kmaf_propose(snapshot, config, graph, seed, ret);
	if (r < 0)
		return r;
	/* Release the pages of processes whose threads are being placed. Pages of other processes
	 * keep waiting for a limited time, until it is known that their threads need not move. */
	const struct nm_memory_process *processes;
	size_t count = nm_memory_processes(memory, &processes);
	for (size_t i = 0; i < count; i++)
		nm_memory_mapping_over(memory, processes[i].pid,
				       is_process_moved(snapshot, ret, processes[i].pid));
	nm_affinity_age(nm_memory_affinity(memory));
	return 0;
}

static void *open_clock(const struct nm_topology *topology, double page_bytes)
{
	(void)topology;
	(void)page_bytes;
	return nm_must(calloc(1, sizeof(struct nm_kmaf_clock)));
}

/* Proposes only at the end of a placement period. */
static int propose_kmaf(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	if (!input->memory ||
	    !ends_period(state, input->config, input->interval_s, input->snapshot->time_ns))
		return 0;
	return nm_kmaf_place(input->snapshot, input->config, input->memory, (uint32_t)input->seed,
			     ret);
}

const struct nm_policy_ops nm_kmaf_policy = {
	.open = open_clock,
	.close = free,
	.propose = propose_kmaf,
	.judged_by = {{.by = NM_BY_LATENCY}, {.by = NM_BY_COMMUNICATION}},
};
