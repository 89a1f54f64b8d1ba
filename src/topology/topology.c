// SPDX-License-Identifier: MIT
/* The loaded value: lookups, comparison, release. Pure. */
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

int nm_topology_node_index(const struct nm_topology *topology, unsigned os_id)
{
	unsigned low = 0, high = topology->nr_nodes;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		if (topology->nodes[middle].os_id < os_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == topology->nr_nodes || topology->nodes[low].os_id != os_id)
		return -1;
	return (int)low;
}

int nm_topology_node_of_cpu(const struct nm_topology *topology, int cpu)
{
	if (cpu < 0 || (unsigned)cpu >= topology->nr_cpus)
		return -1;
	return topology->cpus[cpu].node;
}

static bool equal_cpu(const struct nm_cpu *a, const struct nm_cpu *b)
{
	return a->present == b->present && a->online == b->online && a->isolated == b->isolated &&
	       a->nohz_full == b->nohz_full && a->node == b->node && a->core == b->core &&
	       a->cache == b->cache;
}

static bool equal_node(const struct nm_node *a, const struct nm_node *b)
{
	return a->os_id == b->os_id && a->memory_bytes == b->memory_bytes &&
	       a->nearest_with_cpus == b->nearest_with_cpus &&
	       hwloc_bitmap_isequal(a->cpus, b->cpus);
}

bool nm_topology_equal(const struct nm_topology *a, const struct nm_topology *b)
{
	if (a->nr_nodes != b->nr_nodes || a->nr_cpus != b->nr_cpus || a->llc_bytes != b->llc_bytes)
		return false;
	if (!hwloc_bitmap_isequal(a->usable, b->usable) ||
	    !hwloc_bitmap_isequal(a->online, b->online) ||
	    !hwloc_bitmap_isequal(a->possible, b->possible))
		return false;
	for (unsigned i = 0; i < a->nr_cpus; i++)
		if (!equal_cpu(&a->cpus[i], &b->cpus[i]))
			return false;
	for (unsigned i = 0; i < a->nr_nodes; i++)
		if (!equal_node(&a->nodes[i], &b->nodes[i]))
			return false;
	size_t cells = (size_t)a->nr_nodes * a->nr_nodes;
	return memcmp(a->distance, b->distance, cells * sizeof(*a->distance)) == 0;
}
