/* SPDX-License-Identifier: MIT */
/* Determines the CPUs on which threads may be placed. */
#include "kmaf_plan.h"

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

/* A thread that must stay is bound to its node, so that partners move to it. */
static int bind_to_node(const struct nm_snapshot *snapshot, const struct nm_snap_thread *thread,
			hwloc_bitmap_t *ret)
{
	int node = nm_topology_node_of_cpu(snapshot->topology, thread->main_cpu);
	hwloc_bitmap_t mask = hwloc_bitmap_dup(thread->allowed);
	if (!mask)
		return -ENOMEM;
	*ret = mask;
	if (node < 0)
		return 0;
	return hwloc_bitmap_and(mask, mask, snapshot->topology->nodes[node].cpus) < 0 ? -ENOMEM : 0;
}

static int take_up(const struct nm_snapshot *snapshot, struct input *input, size_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	input->threads[i] = (struct nm_mapping_thread){
		.cpu = thread->main_cpu,
		.load = thread->main_cpu < 0 ? 0 : thread->run_share,
		.allowed = thread->allowed,
		.memory = (unsigned)(thread->preferred + 1),
	};
	if (thread->movable && thread->main_node >= 0)
		return 0;
	int r = bind_to_node(snapshot, thread, &input->masks[i]);
	if (r == 0)
		input->threads[i].allowed = input->masks[i];
	return r;
}

static int make_input(const struct nm_snapshot *snapshot, struct input *input)
{
	int r = 0;
	input->count = snapshot->nr_threads;
	input->threads = calloc(input->count + 1, sizeof(*input->threads));
	input->masks = calloc(input->count + 1, sizeof(hwloc_bitmap_t));
	if (!input->threads || !input->masks)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < input->count; i++)
		r = take_up(snapshot, input, i);
	return r;
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
	int r = make_input(snapshot, &input);
	if (r == 0)
		r = nm_mapping_compute(snapshot->topology, graph, input.threads,
				       config->threads.mapping_gain, seed, &mapping);
	if (r == -ENODATA) {
		*ret = (struct nm_proposals){0};
		return 0;
	}
	return r < 0 ? r : nm_kmaf_moves(snapshot, config, graph, mapping, ret);
}
