/* SPDX-License-Identifier: MIT */
/*
 * The machine as an immutable value: nodes, CPUs, distances, and the node of each physical address.
 * It is loaded with hwloc (from this machine, from an hwloc XML file, or from a /sys and /proc tree
 * for tests); all other functions are pure. A new value is loaded when CPUs or memory blocks are
 * added or removed.
 *
 * Nodes are numbered densely from 0 ("node index"); the kernel's sparse numbers are in
 * nodes[].os_id. CPUs are indexed by the kernel's numbers, so absent ids are holes with present ==
 * false.
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

/* Returns whether `current` is the part of `mask` within `limit`; false if memory is short. */
static inline bool nm_is_part(hwloc_const_bitmap_t current, hwloc_const_bitmap_t mask,
			      hwloc_const_bitmap_t limit)
{
	nm_autobitmap part = hwloc_bitmap_alloc();

	return part && hwloc_bitmap_and(part, mask, limit) == 0 &&
	       hwloc_bitmap_isequal(current, part);
}

struct nm_topology;

struct nm_topology_source {
	const char *xml_path; /* an hwloc XML export, or NULL */
	/* Returns a topology instead of loading a file; for the model. NULL: see the other fields.
	 */
	int (*load)(void *context, struct nm_topology **ret);
	void *context;
	const char *isolated;  /* list of isolated CPUs, in addition to those that are
				* listed in the tree; NULL or "": none */
	const char *root_path; /* a tree with /sys and /proc of a machine; NULL or "/": this
				* machine */
};

struct nm_cpu {
	bool present; /* known to the kernel, but possibly offline */
	bool online;
	bool isolated; /* isolcpus or an isolated cpuset partition: never sampled, never a
			  destination */
	bool nohz_full;
	int node;  /* node index; -1: not known */
	int core;  /* index shared by SMT siblings; -1: offline */
	int cache; /* index shared by the CPUs of one last-level cache; -1: not known */
};

struct nm_node {
	unsigned os_id;
	hwloc_bitmap_t cpus; /* online, neither isolated nor nohz_full; empty for a memory-only
			      * node */
	uint64_t memory_bytes;
	/*
	 * The node itself if it has CPUs, or if no node has any. For a memory-only node, the node
	 * that represents it in the algorithms, chosen by the firmware's initiators, otherwise by
	 * hwloc's set of CPUs, otherwise by distance.
	 */
	int nearest_with_cpus;
};

struct nm_topology {
	unsigned nr_nodes;
	unsigned nr_cpus; /* highest CPU number + 1 */
	struct nm_node *nodes;
	struct nm_cpu *cpus;
	unsigned *distance;    /* nr_nodes × nr_nodes, SLIT scale (10: local); see
				* nm_topology_distance() */
	hwloc_bitmap_t usable; /* online and neither isolated nor nohz_full */
	hwloc_bitmap_t online;
	hwloc_bitmap_t possible; /* /sys/devices/system/cpu/possible: the affinity of an
				  * unrestricted thread */
	uint64_t llc_bytes;	 /* size of the largest last-level cache; 0: not known */
};

/*
 * Loads the topology. Returns 0, or -ENOENT or -EINVAL (source missing or unreadable). On failure
 * `error` (error_size bytes) gets one sentence with place and remedy. A machine without NUMA has
 * one node. The caller frees the topology. hwloc takes its settings from the environment, which is
 * modified during the call, so no other thread may run.
 */
int nm_topology_load(const struct nm_topology_source *source, char *error, size_t error_size,
		     struct nm_topology **ret);
/*
 * Returns in *ret only which CPUs are online and possible, from /sys below root_path (NULL: "/"):
 * restoration needs no more, and must not depend on memory for the whole topology. Returns 0, or
 * -ENOENT if one of the lists is missing. The caller frees it. Called before the daemon loads the
 * topology, and by --restore.
 */
int nm_topology_load_cpus(const char *root_path, struct nm_topology **ret);
void nm_topology_free(struct nm_topology *topology);
NM_DEFINE_CLEANUP(struct nm_topology, nm_topology_free);
/* Copies a topology, which the caller frees. */
void nm_topology_copy(const struct nm_topology *topology, struct nm_topology **ret);

/* Returns the distance from node index a to b on the SLIT scale. If the firmware provides none: 10
 * local, 20 remote. */
static inline unsigned nm_topology_distance(const struct nm_topology *topology, int a, int b)
{
	return topology->distance[(size_t)a * topology->nr_nodes + (size_t)b];
}

/* Returns the kernel's number of the node with this index, or -1 if there is none. */
static inline int nm_topology_os_id(const struct nm_topology *topology, int node)
{
	bool known = node >= 0 && (unsigned)node < topology->nr_nodes;
	return known ? (int)topology->nodes[node].os_id : -1;
}

/* Returns the number of nodes with usable CPUs. */
unsigned nm_topology_cpu_nodes(const struct nm_topology *topology);

/* Returns whether there is nothing to move: fewer than two nodes have usable CPUs, regardless of
 * nodes with memory only (CXL, HBM, GPUs). */
static inline bool nm_topology_is_single(const struct nm_topology *topology)
{
	return nm_topology_cpu_nodes(topology) < 2;
}

/* Returns whether node indices mean the same in both, and the CPUs of the same nodes represent
 * those without CPUs. */
bool nm_topology_has_same_nodes(const struct nm_topology *a, const struct nm_topology *b);
/* Returns whether the node with this index has the same usable CPUs in both, which have the same
 * nodes. */
bool nm_topology_keeps_node(const struct nm_topology *a, const struct nm_topology *b, int node);

/* Returns the node index of the kernel's node number, or -1. */
int nm_topology_node_index(const struct nm_topology *topology, unsigned os_id);

/* Returns the node index of a CPU, or -1 for ids that do not exist. */
int nm_topology_node_of_cpu(const struct nm_topology *topology, int cpu);

/*
 * Parse sets of CPUs or nodes in the formats of the kernel and the ledger, up to a newline or the
 * end: a list, "0-3,8", or a map, "0000ffff,00000000" (cpuset(7), "FORMATS"). Return 0; or
 * -EINVAL for other text, an empty set, and numbers above NM_LIST_MAX (more than any kernel has),
 * so that damaged text cannot cause large allocations. Pure.
 */
#define NM_LIST_MAX 65535U
int nm_list_parse(const char *text, hwloc_bitmap_t ret);
int nm_map_parse(const char *text, hwloc_bitmap_t ret);

/* ---- physical address → node ---- */

struct nm_physmap;

/*
 * Builds the table from <root>/sys/devices/system/node/nodeN/memoryM and
 * <root>/sys/devices/system/memory/block_size_bytes, or else from <root>/proc/zoneinfo. On a
 * single-node machine all memory is on node 0. root_path is as in nm_topology_source. Returns 0 or
 * -ENODATA (none of the files has the information; nodes of addresses are then unknown).
 */
int nm_physmap_load(const struct nm_topology *topology, const char *root_path,
		    struct nm_physmap **ret);
/* Loads a topology and its table, as nm_topology_load(). *ret_physmap is NULL if none of the files
 * has the information. */
int nm_topology_load_all(const struct nm_topology_source *source, char *error, size_t error_size,
			 struct nm_topology **ret_topology, struct nm_physmap **ret_physmap);
/* Creates an empty table, for samples that contain their nodes. */
void nm_physmap_empty(struct nm_physmap **ret);
void nm_physmap_free(struct nm_physmap *map);
NM_DEFINE_CLEANUP(struct nm_physmap, nm_physmap_free);

/* Returns the node index of a physical address; -1 for 0 (not known to the sampler) and for
 * addresses outside memory. */
int nm_physmap_node(const struct nm_physmap *map, uint64_t physical_address);

#endif
