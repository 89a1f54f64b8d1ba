/* SPDX-License-Identifier: MIT */
/* The topology as a record. Pure. */
#include "fields.h"

static struct nm_topology_parts parts_of(const struct nm_topology *topology)
{
	return (struct nm_topology_parts){
		.topology = *topology,
		.nr_cells = (size_t)topology->nr_nodes * topology->nr_nodes,
	};
}

void nm_topology_put(const struct nm_topology *topology, struct nm_bytes *ret)
{
	struct nm_topology_parts parts = parts_of(topology);
	nm_shape_put(nm_shape_of_topology(), &parts, ret);
}

void nm_topology_print(const struct nm_topology *topology, FILE *out)
{
	struct nm_topology_parts parts = parts_of(topology);
	nm_shape_print(nm_shape_of_topology(), &parts, out);
}

/* Returns whether the set is finite and contains only existing CPUs. */
static bool is_mask(hwloc_const_bitmap_t mask, unsigned nr_cpus)
{
	return mask && hwloc_bitmap_last(mask) < (int)nr_cpus && hwloc_bitmap_weight(mask) >= 0;
}

static bool is_sound(const struct nm_topology *topology, size_t nr_cells)
{
	if (topology->nr_nodes == 0 || topology->nr_nodes > NM_RECORDING_NODES_MOST ||
	    topology->nr_cpus == 0 || topology->nr_cpus > 1U << 20 ||
	    nr_cells != (size_t)topology->nr_nodes * topology->nr_nodes)
		return false;
	if (!is_mask(topology->usable, topology->nr_cpus) ||
	    !is_mask(topology->online, topology->nr_cpus) || !topology->possible)
		return false;
	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		const struct nm_node *node = &topology->nodes[i];
		if (!is_mask(node->cpus, topology->nr_cpus) || node->nearest_with_cpus < 0 ||
		    (unsigned)node->nearest_with_cpus >= topology->nr_nodes ||
		    (i > 0 && node->os_id <= topology->nodes[i - 1].os_id))
			return false;
	}
	for (unsigned i = 0; i < topology->nr_cpus; i++) {
		const struct nm_cpu *cpu = &topology->cpus[i];
		if (cpu->node < -1 || cpu->node >= (int)topology->nr_nodes || cpu->core < -1 ||
		    cpu->core >= (int)topology->nr_cpus || cpu->cache < -1 ||
		    cpu->cache >= (int)topology->nr_cpus)
			return false;
	}
	return true;
}

int nm_topology_get(struct nm_cursor *cursor, struct nm_arena *arena,
		    const struct nm_topology **ret)
{
	struct nm_topology_parts parts = {0};
	int r = nm_shape_get(nm_shape_of_topology(), cursor, arena, &parts);
	if (r < 0)
		return r;
	if (!is_sound(&parts.topology, parts.nr_cells))
		return -EBADMSG;
	struct nm_topology *topology = nm_arena_get(arena, 1, sizeof(*topology));
	if (!topology)
		return -ENOMEM;
	*topology = parts.topology;
	*ret = topology;
	return 0;
}
