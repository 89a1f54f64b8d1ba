/* SPDX-License-Identifier: MIT */
/*
 * The mappings of another process, as needed to move its pages: their extents (/proc/PID/maps),
 * memory policies, and sharing with other processes (/proc/PID/numa_maps, proc(5), numa(7)). For
 * each line of numa_maps the kernel walks the pages of the mapping while it holds the memory map
 * lock of the process. Therefore the file is read a few lines at a time, within a budget, and
 * continued later. The contents of these files are not trusted.
 */
#ifndef NUMA_MIGRD_MAPPINGS_H
#define NUMA_MIGRD_MAPPINGS_H

#include "numa-migrd/base.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/regions.h"

#define NM_MAPPINGS_MOST 65536U /* limit per process; the pages of a process with more mappings are
				 * not moved */

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

struct nm_mappings;

/* Creates an object without mappings. Returns 0 or -ENOMEM. Called by the mover. */
int nm_mappings_new(struct nm_platform *platform, struct nm_mappings **ret);
void nm_mappings_free(struct nm_mappings *mappings);
NM_DEFINE_CLEANUP(struct nm_mappings, nm_mappings_free);

/*
 * Continues reading until all mappings are known (0) or budget_ns has elapsed (-EAGAIN: continue
 * later). `directory` is /proc/PID, of the same process each time; its files stay open between
 * calls. -ESRCH, -EACCES, -EFBIG (NM_MAPPINGS_MOST), -ENOMEM, -ETIMEDOUT and other errors: start
 * again. Called by the mover.
 */
int nm_mappings_read(struct nm_mappings *mappings, int directory, uint64_t budget_ns);

/* Returns the time spent in the kernel so far, which bounds the time for which the lock of the
 * process was held. */
uint64_t nm_mappings_cost_ns(const struct nm_mappings *mappings);

/* Returns the memory used by the object. Pure. */
size_t nm_mappings_bytes(const struct nm_mappings *mappings);

/* Returns the mappings, ascending and disjoint, after nm_mappings_read() has returned 0. They are
 * valid as long as the object. Pure. */
size_t nm_mappings_all(const struct nm_mappings *mappings, const struct nm_mapped **ret);

/* Returns whether a mapping appeared while the others were read, and is missing. Pure. */
bool nm_mappings_have_grown(const struct nm_mappings *mappings);

/* Returns the number of unshared pages of these mappings, by the kernel's node numbers. Pure. */
const uint64_t *nm_mappings_nodes(const struct nm_mappings *mappings);

/* Returns the mapping that contains all of [address, address + bytes), or NULL. Pure. */
const struct nm_mapped *nm_mappings_find(const struct nm_mappings *mappings, uint64_t address,
					 uint64_t bytes);

/* Returns the mappings whose pages may be moved by these rules, for regions; adjacent mappings of
 * one kind are merged. The caller frees the array. Returns 0 or -ENOMEM. Pure. */
int nm_mappings_ranges(const struct nm_mappings *mappings, bool move_bound, bool move_shared,
		       struct nm_range **ret, size_t *ret_count);

#endif
