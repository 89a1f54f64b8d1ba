/* SPDX-License-Identifier: MIT */
/*
 * The meaning of a value of kernel.numa_balancing (Documentation/admin-guide/sysctl/kernel.rst of
 * Linux). It is a set of bits: 1 balances between nodes, 2 promotes hot pages from slow to fast
 * memory. Without bit 1, there are no hinting faults in ordinary memory, and neither its pages nor
 * threads are moved. Pure.
 */
#ifndef NUMA_MIGRD_NUMA_BALANCING_H
#define NUMA_MIGRD_NUMA_BALANCING_H

#include "numa-migrd/base.h"

#define NM_NUMA_BALANCING_NODES 1

/* Returns whether the kernel balances between nodes. A negative value means that it has no such
 * setting. */
static inline bool nm_balances_nodes(int64_t value)
{
	return value >= 0 && value & NM_NUMA_BALANCING_NODES;
}

/*
 * Returns the value with balancing between nodes switched on or off and the other bits unchanged.
 */
static inline int nm_balancing_with(int64_t value, bool nodes)
{
	int others = value < 0 ? 0 : (int)value & ~NM_NUMA_BALANCING_NODES;

	return nodes ? others | NM_NUMA_BALANCING_NODES : others;
}

/* Completes "kernel.numa_balancing is …" for a value that does not balance between nodes. */
static inline const char *nm_balancing_off_text(int64_t value)
{
	if (value < 0)
		return "not offered by this kernel";
	return value == 0 ? "0" : "2 (tiers of memory only)";
}

#endif
