/* SPDX-License-Identifier: MIT */
/*
 * The mappings of another process, as far as moving its pages depends on them: where they begin and
 * end (/proc/PID/maps), and what their memory policy is and who shares them (/proc/PID/numa_maps,
 * proc(5), numa(7)). The kernel walks the pages of a mapping for its line of numa_maps, with the
 * process's lock on its mappings held: so the file is read a few lines at a time, under a budget,
 * and gone on with later. What others wrote into these files is not trusted.
 */
#ifndef NUMA_MIGRD_MAPPINGS_H
#define NUMA_MIGRD_MAPPINGS_H

#include "numa-migrd/base.h"
#include "numa-migrd/platform.h"
#include "numa-migrd/regions.h"

#define NM_MAPPINGS_MOST 65536U /* of one process; it stays as it is when it has more */

enum nm_memory_policy {
	NM_MEMORY_UNKNOWN, /* no line told */
	NM_MEMORY_DEFAULT, /* where it was touched first */
	NM_MEMORY_LOCAL,   /* the same, said on purpose */
	NM_MEMORY_PREFERRED,
	NM_MEMORY_BIND,
	NM_MEMORY_INTERLEAVE, /* weighted or not */
	NM_MEMORY_OTHER	      /* a word that we do not know: the owner's */
};

struct nm_mapped {
	uint64_t start, end;
	uint64_t page_bytes; /* of the kernel's pages; transparent huge pages do not show here */
	uint8_t policy; /* enum nm_memory_policy; without its own, the thread's that was asked */
	bool shared;	/* mapped so that others can see it, or a page is mapped elsewhere */
	bool common;	/* the former */
	bool file;	/* but for huge pages without a name */
	bool huge;	/* pages of the pool of huge pages */
	bool empty;	/* no page was in it */
	int only_on;	/* the kernel's number of the node that all of its pages were on; -1: of none */
	uint64_t resident; /* pages that were in it */
};

/*
 * The owner has decided where it is: bound, preferred, interleaved, or in words that we do not
 * know. Pure.
 */
static inline bool nm_mapped_is_bound(const struct nm_mapped *mapped)
{
	return mapped->policy != NM_MEMORY_DEFAULT && mapped->policy != NM_MEMORY_LOCAL;
}

/* One line of maps, NUL-terminated, with or without its newline: start, end, shared, file. The rest
 * is empty. -EINVAL. Pure. */
int nm_mapped_parse_extent(const char *line, struct nm_mapped *ret);

/* One line of numa_maps likewise: start, policy, page_bytes, huge, what was resident, and what it
 * tells of shared and file. -EINVAL. Pure. */
int nm_mapped_parse_policy(const char *line, struct nm_mapped *ret);

/* Adds to each of the kernel's first nodes the pages that such a line tells of on it. Pure. */
#define NM_MAPPINGS_NODES 64U
void nm_mapped_add_nodes(const char *line, uint64_t pages[NM_MAPPINGS_NODES]);

struct nm_mappings;

/* Nothing read yet. -ENOMEM. Mover. */
int nm_mappings_new(struct nm_platform *platform, struct nm_mappings **ret);
void nm_mappings_free(struct nm_mappings *mappings);
NM_DEFINE_CLEANUP(struct nm_mappings, nm_mappings_free);

/*
 * Reads on until all is known (0) or budget_ns are over (-EAGAIN: go on later). `directory`:
 * /proc/PID, the same process each time; its files stay open in between. -ESRCH, -EACCES,
 * -EFBIG (NM_MAPPINGS_MOST), -ENOMEM, -ETIMEDOUT, -errno: begin anew. Mover.
 */
int nm_mappings_read(struct nm_mappings *mappings, int directory, uint64_t budget_ns);

/* For how long the kernel was at it, so far: the process's lock was held for that long at most. */
uint64_t nm_mappings_cost_ns(const struct nm_mappings *mappings);

/* Memory that they take. Pure. */
size_t nm_mappings_bytes(const struct nm_mappings *mappings);

/* After nm_mappings_read() returned 0: ascending and apart. Valid as long as the mappings. Pure. */
size_t nm_mappings_all(const struct nm_mappings *mappings, const struct nm_mapped **ret);

/* A mapping has begun since the others were read: it is not among them. Pure. */
bool nm_mappings_have_grown(const struct nm_mappings *mappings);

/* Pages of those mappings that nobody shares, by the kernel's numbers of nodes. Pure. */
const uint64_t *nm_mappings_nodes(const struct nm_mappings *mappings);

/* The one that holds all of [address, address + bytes), or NULL. Pure. */
const struct nm_mapped *nm_mappings_find(const struct nm_mappings *mappings, uint64_t address,
					 uint64_t bytes);

/* Those with pages that may be moved by the rules, for regions; neighbours of a kind are one. The
 * caller frees. -ENOMEM. Pure. */
int nm_mappings_ranges(const struct nm_mappings *mappings, bool move_bound, bool move_shared,
		       struct nm_range **ret, size_t *ret_count);

#endif
