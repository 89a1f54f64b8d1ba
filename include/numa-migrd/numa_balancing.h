/* SPDX-License-Identifier: MIT */
/*
 * What a value of kernel.numa_balancing means (Documentation/admin-guide/sysctl/kernel.rst of
 * Linux). It is a set of bits: 1 balances between nodes, 2 brings hot pages from slow memory to
 * fast. Without the first, ordinary memory has no hinting faults, and neither its pages nor threads
 * are moved. Pure.
 */
#ifndef NUMA_MIGRD_NUMA_BALANCING_H
#define NUMA_MIGRD_NUMA_BALANCING_H

#include "numa-migrd/base.h"

#define NM_NUMA_BALANCING_NODES 1

/* Does the kernel balance between nodes? Negative: it has no such setting. */
static inline bool nm_balances_nodes(int64_t value)
{
	return value >= 0 && value & NM_NUMA_BALANCING_NODES;
}

/* The value that balances nodes, or does not, and leaves the rest as it is. */
static inline int nm_balancing_with(int64_t value, bool nodes)
{
	int others = value < 0 ? 0 : (int)value & ~NM_NUMA_BALANCING_NODES;

	return nodes ? others | NM_NUMA_BALANCING_NODES : others;
}

/* "kernel.numa_balancing is …" where it does not balance nodes. */
static inline const char *nm_balancing_off_text(int64_t value)
{
	if (value < 0)
		return "not offered by this kernel";
	return value == 0 ? "0" : "2 (tiers of memory only)";
}

#endif
