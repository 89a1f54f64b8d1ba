/* SPDX-License-Identifier: MIT */
/* A machine of any size for tests and benches: topology, and the node of each physical address. */
#ifndef NUMA_MIGRD_TESTS_MACHINE_H
#define NUMA_MIGRD_TESTS_MACHINE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "numa-migrd/topology.h"

#define MACHINE_GIB (1ULL << 30)
/* Node k has the physical addresses from k × MACHINE_NODE_BYTES on. */
#define MACHINE_NODE_BYTES (4 * MACHINE_GIB)

static inline uint64_t machine_address(unsigned node, uint64_t offset)
{
	return node * MACHINE_NODE_BYTES + offset;
}

/* CPUs 0 to cpus / nodes - 1 are on node 0, and so on; all are online and usable. Returns NULL
 * without memory. */
static inline struct nm_topology *machine_topology(unsigned nodes, unsigned cpus)
{
	struct nm_topology *topology = calloc(1, sizeof(*topology));

	if (!topology)
		return NULL;
	topology->nr_nodes = nodes;
	topology->nr_cpus = cpus;
	topology->nodes = calloc(nodes, sizeof(*topology->nodes));
	topology->cpus = calloc(cpus, sizeof(*topology->cpus));
	topology->distance = calloc((size_t)nodes * nodes, sizeof(*topology->distance));
	topology->usable = hwloc_bitmap_alloc();
	topology->online = hwloc_bitmap_alloc();
	topology->possible = hwloc_bitmap_alloc();
	if (!topology->nodes || !topology->cpus || !topology->distance || !topology->usable ||
	    !topology->online || !topology->possible) {
		nm_topology_free(topology);
		return NULL;
	}
	for (unsigned k = 0; k < nodes; k++) {
		topology->nodes[k] = (struct nm_node){.os_id = k,
						      .cpus = hwloc_bitmap_alloc(),
						      .memory_bytes = MACHINE_NODE_BYTES,
						      .nearest_with_cpus = (int)k};
		for (unsigned other = 0; other < nodes; other++)
			topology->distance[k * nodes + other] = k == other ? 10 : 20;
	}
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		unsigned node = cpu * nodes / cpus;
		topology->cpus[cpu] = (struct nm_cpu){.present = true,
						      .online = true,
						      .node = (int)node,
						      .core = (int)cpu,
						      .cache = (int)node};
		hwloc_bitmap_set(topology->nodes[node].cpus, cpu);
	}
	hwloc_bitmap_set_range(topology->usable, 0, (int)cpus - 1);
	hwloc_bitmap_copy(topology->online, topology->usable);
	hwloc_bitmap_copy(topology->possible, topology->usable);
	return topology;
}

static inline int machine_remove_entry(const char *path, const struct stat *status, int type,
				       struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

static inline int machine_make_directory(const char *root, const char *below)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, below);
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static inline int machine_write_tree(const char *root, unsigned nodes)
{
	char path[128];
	unsigned per_node = (unsigned)(MACHINE_NODE_BYTES / MACHINE_GIB);

	for (unsigned block = 0; block < nodes * per_node; block++) {
		snprintf(path, sizeof(path), "sys/devices/system/node/node%u/memory%u/",
			 block / per_node, block);
		if (machine_make_directory(root, path) < 0)
			return -errno;
	}
	machine_make_directory(root, "sys/devices/system/memory/");
	snprintf(path, sizeof(path), "%s/sys/devices/system/memory/block_size_bytes", root);
	FILE *file = fopen(path, "w");
	if (!file)
		return -errno;
	fprintf(file, "%llx\n", MACHINE_GIB);
	return fclose(file) == 0 ? 0 : -errno;
}

/* The map of such a machine, read from a temporary /sys tree. */
static inline int machine_physmap(const struct nm_topology *topology, struct nm_physmap **ret)
{
	char root[] = "/tmp/numa-migrd-machine-XXXXXX";

	if (!mkdtemp(root))
		return -errno;
	int r = machine_write_tree(root, topology->nr_nodes);
	if (r == 0)
		r = nm_physmap_load(topology, root, ret);
	(void)nftw(root, machine_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return r;
}

#endif
