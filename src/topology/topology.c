// SPDX-License-Identifier: MIT
/* Lookups in the loaded topology, and its release. Pure. */
#include "numa-migrd/topology.h"

#include <string.h>

void nm_topology_free(struct nm_topology *topology)
{
	if (!topology)
		return;
	for (unsigned i = 0; topology->nodes && i < topology->nr_nodes; i++)
		hwloc_bitmap_free(topology->nodes[i].cpus);
	hwloc_bitmap_free(topology->usable);
	hwloc_bitmap_free(topology->online);
	hwloc_bitmap_free(topology->possible);
	free(topology->nodes);
	free(topology->cpus);
	free(topology->distance);
	free(topology);
}

static void *copy_of(const void *items, size_t count, size_t size)
{
	void *copy = nm_must(calloc(count, size));
	memcpy(copy, items, count * size);
	return copy;
}

void nm_topology_copy(const struct nm_topology *topology, struct nm_topology **ret)
{
	struct nm_topology *copy = nm_must(calloc(1, sizeof(*copy)));
	copy->nr_nodes = topology->nr_nodes;
	copy->nr_cpus = topology->nr_cpus;
	copy->llc_bytes = topology->llc_bytes;
	copy->nodes = nm_must(calloc(copy->nr_nodes, sizeof(*copy->nodes)));
	copy->cpus = copy_of(topology->cpus, copy->nr_cpus, sizeof(*copy->cpus));
	copy->distance = copy_of(topology->distance, (size_t)copy->nr_nodes * copy->nr_nodes,
				 sizeof(*copy->distance));
	copy->usable = nm_must(hwloc_bitmap_dup(topology->usable));
	copy->online = nm_must(hwloc_bitmap_dup(topology->online));
	copy->possible = nm_must(hwloc_bitmap_dup(topology->possible));
	for (unsigned i = 0; i < copy->nr_nodes; i++) {
		copy->nodes[i] = topology->nodes[i];
		copy->nodes[i].cpus = nm_must(hwloc_bitmap_dup(topology->nodes[i].cpus));
	}
	*ret = copy;
}

unsigned nm_topology_cpu_nodes(const struct nm_topology *topology)
{
	unsigned count = 0;
	for (unsigned node = 0; node < topology->nr_nodes; node++)
		count += !hwloc_bitmap_iszero(topology->nodes[node].cpus);
	return count;
}

bool nm_topology_has_same_nodes(const struct nm_topology *a, const struct nm_topology *b)
{
	for (unsigned i = 0; a->nr_nodes == b->nr_nodes && i < a->nr_nodes; i++)
		if (a->nodes[i].os_id != b->nodes[i].os_id ||
		    a->nodes[i].nearest_with_cpus != b->nodes[i].nearest_with_cpus)
			return false;
	return a->nr_nodes == b->nr_nodes;
}

bool nm_topology_keeps_node(const struct nm_topology *a, const struct nm_topology *b, int node)
{
	return node >= 0 && (unsigned)node < a->nr_nodes && (unsigned)node < b->nr_nodes &&
	       hwloc_bitmap_isequal(a->nodes[node].cpus, b->nodes[node].cpus);
}

int nm_topology_node_index(const struct nm_topology *topology, unsigned os_id)
{
	_Static_assert(offsetof(struct nm_node, os_id) == 0, "bsearch compares the first field");
	const struct nm_node *node = bsearch(&os_id, topology->nodes, topology->nr_nodes,
					     sizeof(*topology->nodes), nm_compare_u32);
	return node ? (int)(node - topology->nodes) : -1;
}

int nm_topology_node_of_cpu(const struct nm_topology *topology, int cpu)
{
	if (cpu < 0 || (unsigned)cpu >= topology->nr_cpus)
		return -1;
	return topology->cpus[cpu].node;
}
