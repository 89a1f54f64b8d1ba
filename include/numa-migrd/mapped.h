/* SPDX-License-Identifier: MIT */
/*
 * The only parser of the lines of /proc/PID/maps and numa_maps (proc(5), numa(7)). Their contents
 * are not trusted. Pure.
 */
#ifndef NUMA_MIGRD_MAPPED_H
#define NUMA_MIGRD_MAPPED_H

#include "numa-migrd/base.h"

enum nm_memory_policy {
	NM_MEMORY_UNKNOWN, /* no line described it */
	NM_MEMORY_DEFAULT, /* on the node of the first access */
	NM_MEMORY_LOCAL,   /* the same, set explicitly */
	NM_MEMORY_PREFERRED,
	NM_MEMORY_BIND,
	NM_MEMORY_INTERLEAVE, /* weighted or not */
	NM_MEMORY_OTHER	      /* an unknown policy, set by the owner */
};

struct nm_mapped {
	uint64_t start, end;
	uint64_t page_bytes; /* size of the kernel's pages; transparent huge pages are not visible
			      * here */
	uint8_t policy; /* enum nm_memory_policy; for a mapping without its own, that of the thread
			 * queried */
	bool shared;	/* `common`, or a page of it is mapped elsewhere */
	bool common;	/* mapped so that other processes can share it */
	bool file;	/* except huge pages without a name */
	bool huge;	/* pages from the pool of huge pages */
	bool empty;	/* contained no pages */
	int only_on;	/* the kernel's number of the node that held all of its pages; -1: none */
	uint64_t resident; /* number of pages in memory */
};

/* Returns whether the owner has set the location: bound, preferred, interleaved, or by an unknown
 * policy. Pure. */
static inline bool nm_mapped_is_bound(const struct nm_mapped *mapped)
{
	return mapped->policy != NM_MEMORY_DEFAULT && mapped->policy != NM_MEMORY_LOCAL;
}

/* Parses one line of maps, NUL-terminated, with or without its newline: start, end, shared, file.
 * Clears the other fields. Returns 0 or -EINVAL. Pure. */
int nm_mapped_parse_extent(const char *line, struct nm_mapped *ret);

/* Parses one line of numa_maps in the same way: start, policy, page_bytes, huge, the resident
 * pages, and its information about shared and file. Returns 0 or -EINVAL. Pure. */
int nm_mapped_parse_policy(const char *line, struct nm_mapped *ret);

/* Adds the page counts of such a line to the counts of the kernel's first nodes. Pure. */
#define NM_MAPPINGS_NODES 64U
void nm_mapped_add_nodes(const char *line, uint64_t pages[NM_MAPPINGS_NODES]);

#endif
