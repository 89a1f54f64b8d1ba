/* SPDX-License-Identifier: MIT */
/*
 * The machine as an immutable value: nodes, CPUs, distances, and which node a physical address is on.
 * Loaded by hwloc (from this machine, an hwloc XML file, or a /sys + /proc tree for tests); after load
 * every function is pure. A new value is loaded when CPUs or memory blocks come or go.
 *
 * Nodes are numbered densely from 0 ("node index"); the kernel's sparse numbers are nodes[].os_id.
 * CPUs are indexed by the kernel's numbers, so absent ids are holes with present == false.
 */
#ifndef NUMA_MIGRD_TOPOLOGY_H
#define NUMA_MIGRD_TOPOLOGY_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"

#define NM_DISTANCE_LOCAL 10U /* SLIT: from a node to its own memory */

/* A CPU bitmap that is freed when the variable leaves its scope. */
static inline void nm_bitmap_freep(hwloc_bitmap_t *bitmap)
{
	hwloc_bitmap_free(*bitmap);
}
#define nm_autobitmap nm_auto(nm_bitmap_freep) hwloc_bitmap_t

struct nm_topology;

struct nm_topology_source {
	const char *xml_path;  /* an hwloc XML export, or NULL */
	/* Gives one of its own, in place of both: a replay's. NULL: see below. */
	int (*load)(void *context, struct nm_topology **ret);
	void *context;
	const char *root_path; /* a tree holding /sys and /proc of a machine; NULL or "/": this one */
};

struct nm_cpu {
	bool present;  /* the kernel knows it (it may be offline) */
	bool online;
	bool isolated; /* isolcpus or an isolated cpuset partition: never sampled, never a destination */
	bool nohz_full;
	int node;      /* node index, -1 where unknown */
	int core;      /* index shared by SMT siblings, -1 while offline */
	int cache;     /* index shared by the CPUs under one last-level cache, -1 where unknown */
};

struct nm_node {
	unsigned os_id;
	hwloc_bitmap_t cpus; /* online, neither isolated nor nohz_full; empty on a memory-only node */
	uint64_t memory_bytes;
	int nearest_with_cpus; /* itself where it has CPUs (algorithms: stands for a memory-only node),
				* and where no node has any; of a memory-only node, by the firmware's
				* initiators, else hwloc's set of CPUs, then the distance */
};

struct nm_topology {
	unsigned nr_nodes;
	unsigned nr_cpus; /* highest CPU number + 1 */
	struct nm_node *nodes;
	struct nm_cpu *cpus;
	unsigned *distance;      /* nr_nodes × nr_nodes, SLIT scale (10 = local); see nm_topology_distance() */
	hwloc_bitmap_t usable;   /* online and neither isolated nor nohz_full */
	hwloc_bitmap_t online;
	hwloc_bitmap_t possible; /* /sys/devices/system/cpu/possible: what "no restriction" means */
	uint64_t llc_bytes;      /* the largest last-level cache instance; 0 where unknown */
};

/*
 * Loads the topology. Returns 0; -ENOENT/-EINVAL (source missing or unreadable), -ENOMEM. On failure
 * `error` (error_size bytes) holds one sentence with place and remedy. A machine without NUMA has one
 * node. The caller frees. Called by the daemon at start and when CPUs change (hwloc(7)). hwloc takes its
 * settings from the environment, which is changed during the call: not beside other threads.
 */
int nm_topology_load(const struct nm_topology_source *source, char *error, size_t error_size,
		     struct nm_topology **ret);
void nm_topology_free(struct nm_topology *topology);
NM_DEFINE_CLEANUP(struct nm_topology, nm_topology_free);

/* Distance from node index a to b on SLIT's scale; where the firmware tells none: 10 local, 20 remote. */
static inline unsigned nm_topology_distance(const struct nm_topology *topology, int a, int b)
{
	return topology->distance[(size_t)a * topology->nr_nodes + (size_t)b];
}

/* Node index of the kernel's node number, or -1. */
int nm_topology_node_index(const struct nm_topology *topology, unsigned os_id);

/* Node index of a CPU, or -1 for ids that do not exist. */
int nm_topology_node_of_cpu(const struct nm_topology *topology, int cpu);

/*
 * Sets of CPUs or nodes as the kernel and the ledger write them, up to a newline or the end: a list, "0-3,8", or a
 * map, "0000ffff,00000000" (cpuset(7), "FORMATS"). -EINVAL for anything else, an empty one, and numbers above
 * NM_LIST_MOST (more than any kernel has), so that damaged text cannot ask for any amount of memory; -ENOMEM.
 * Pure.
 */
#define NM_LIST_MOST 65535U
int nm_list_parse(const char *text, hwloc_bitmap_t ret);
int nm_map_parse(const char *text, hwloc_bitmap_t ret);

/* ---- physical address → node (sampling.md, "Node of an access") ---- */

struct nm_physmap;

/*
 * Builds the table from <root>/sys/devices/system/node/nodeN/memoryM and
 * <root>/sys/devices/system/memory/block_size_bytes, else from <root>/proc/zoneinfo; on a single-node
 * machine everything is node 0. root_path as in nm_topology_source. Returns 0, -ENODATA (no source tells;
 * the home node is then unavailable), -ENOMEM.
 */
int nm_physmap_load(const struct nm_topology *topology, const char *root_path,
		    struct nm_physmap **ret);
/* One that knows no address: where samples bring their nodes along. -ENOMEM. */
int nm_physmap_empty(struct nm_physmap **ret);
void nm_physmap_free(struct nm_physmap *map);
NM_DEFINE_CLEANUP(struct nm_physmap, nm_physmap_free);

/* Node index of a physical address; -1 for 0 (not known to the sampler) and addresses outside memory. */
int nm_physmap_node(const struct nm_physmap *map, uint64_t physical_address);

#endif
