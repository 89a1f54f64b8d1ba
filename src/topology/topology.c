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
