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
