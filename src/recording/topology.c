/* SPDX-License-Identifier: MIT */
/* The topology as a record. Pure. */
#include "fields.h"

static struct nm_topology_parts parts_of(const struct nm_topology *topology)
{
	return (struct nm_topology_parts){
		.nodes = topology->nodes,
		.cpus = topology->cpus,
		.distance = topology->distance,
		.nr_nodes = topology->nr_nodes,
		.nr_cpus = topology->nr_cpus,
		.nr_cells = (size_t)topology->nr_nodes * topology->nr_nodes,
		.usable = topology->usable,
		.online = topology->online,
		.possible = topology->possible,
		.llc_bytes = topology->llc_bytes,
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

static bool is_sound(const struct nm_topology_parts *parts)
{
	if (parts->nr_nodes == 0 || parts->nr_nodes > NM_RECORDING_NODES_MOST ||
	    parts->nr_cpus == 0 || parts->nr_cpus > 1U << 20 ||
	    parts->nr_cells != (size_t)parts->nr_nodes * parts->nr_nodes)
		return false;
	if (!is_mask(parts->usable, parts->nr_cpus) || !is_mask(parts->online, parts->nr_cpus) ||
	    !parts->possible)
		return false;
	for (unsigned i = 0; i < parts->nr_nodes; i++) {
		const struct nm_node *node = &parts->nodes[i];
		if (!is_mask(node->cpus, parts->nr_cpus) || node->nearest_with_cpus < 0 ||
		    (unsigned)node->nearest_with_cpus >= parts->nr_nodes ||
		    (i > 0 && node->os_id <= parts->nodes[i - 1].os_id))
			return false;
	}
	for (unsigned i = 0; i < parts->nr_cpus; i++) {
		const struct nm_cpu *cpu = &parts->cpus[i];
		if (cpu->node < -1 || cpu->node >= (int)parts->nr_nodes || cpu->core < -1 ||
		    cpu->core >= (int)parts->nr_cpus || cpu->cache < -1 ||
		    cpu->cache >= (int)parts->nr_cpus)
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
	if (!is_sound(&parts))
		return -EBADMSG;
	struct nm_topology *topology = nm_arena_get(arena, 1, sizeof(*topology));
	if (!topology)
		return -ENOMEM;
	*topology = (struct nm_topology){
		.nr_nodes = parts.nr_nodes,
		.nr_cpus = parts.nr_cpus,
		.nodes = parts.nodes,
		.cpus = parts.cpus,
		.distance = parts.distance,
		.usable = parts.usable,
		.online = parts.online,
		.possible = parts.possible,
		.llc_bytes = parts.llc_bytes,
	};
	*ret = topology;
	return 0;
}
