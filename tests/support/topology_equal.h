/* SPDX-License-Identifier: MIT */
#ifndef NM_TOPOLOGY_EQUAL_H
#define NM_TOPOLOGY_EQUAL_H

#include <string.h>

#include "numa-migrd/topology.h"

static inline bool equal_cpu(const struct nm_cpu *a, const struct nm_cpu *b)
{
	return a->present == b->present && a->online == b->online && a->isolated == b->isolated &&
	       a->nohz_full == b->nohz_full && a->node == b->node && a->core == b->core &&
	       a->cache == b->cache;
}

static inline bool equal_node(const struct nm_node *a, const struct nm_node *b)
{
	return a->os_id == b->os_id && a->memory_bytes == b->memory_bytes &&
	       a->nearest_with_cpus == b->nearest_with_cpus &&
	       hwloc_bitmap_isequal(a->cpus, b->cpus);
}

/* Returns true if both describe the same machine in the same state. */
static inline bool topology_equal(const struct nm_topology *a, const struct nm_topology *b)
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

#endif
