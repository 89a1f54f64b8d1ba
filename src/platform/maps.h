/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process that may move, by the kernel's text about it: maps and numa_maps in
 * /proc/PID (proc(5), numa(7)). Their contents are not trusted. Pure.
 */
#ifndef NUMA_MIGRD_MAPS_H
#define NUMA_MIGRD_MAPS_H

#include "numa-migrd/base.h"

/* Limit per process; the pages of a process with more mappings are not moved. */
#define NM_MAPPINGS_MOST 65536U
#define NM_MAPPINGS_LINE_BYTES 1024U

/* A mapping of the process. */
struct nm_range {
	uint64_t start, end;
	uint64_t page_bytes; /* size of its largest pages; values below 2 MiB mean 2 MiB, because
			      * pages may be huge */
};

/* ---- lines of numa_maps ---- */

/*
 * The only parser of the lines of /proc/PID/maps and numa_maps (proc(5), numa(7)). Their contents
 * are not trusted. Pure.
 */

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
	bool shared;	/* mapped so that other processes can share it */
	bool file;	/* except huge pages without a name */
	bool huge;	/* pages from the pool of huge pages */
	bool written;	/* some of its pages are dirty, as all are of memory without a disk */
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
 * pages, and its information about file. Returns 0 or -EINVAL. Pure. */
int nm_mapped_parse_policy(const char *line, struct nm_mapped *ret);

/* The nodes of the pages of a process, by the kernel's number: those that can follow it, and those
 * that cannot, because they are shared or of files. */
#define NM_NODE_NUMBERS 1024U /* more than any kernel has (CONFIG_NODES_SHIFT) */
struct nm_node_pages {
	uint64_t own[NM_NODE_NUMBERS], staying[NM_NODE_NUMBERS];
	uint64_t own_bytes;  /* the size of the first kind, without pages from the pool */
	uint64_t huge_bytes; /* the size of its pages from the pool of huge pages */
	bool whole;	     /* all pages were counted; otherwise a sample, without own_bytes */
};

/* Adds the pages of one line of numa_maps, in pages of page_bytes. A line without pages, or another
 * text, adds nothing. Pages of programs and libraries do not count, and neither do nodes above the
 * limit. Pure. */
void nm_node_pages_add(struct nm_node_pages *pages, const char *line, uint64_t page_bytes);

/* ---- rules ---- */

/* The memory that may move, by the configuration. */
struct nm_maps_rules {
	bool move_bound, move_shared;
};

/* Why memory stays where it is. */
enum nm_maps_rule {
	NM_MAPS_MOVES,	 /* no rule refuses */
	NM_MAPS_UNKNOWN, /* numa_maps does not describe it, or its description was cut short */
	NM_MAPS_EMPTY,
	NM_MAPS_BOUND,	/* its owner has set its location */
	NM_MAPS_SHARED, /* other processes can map it */
	NM_MAPS_FILE	/* of a file */
};

/* Returns the rule that refuses to move the pages of a mapping. Pages of a private mapping are its
 * own even if other processes map some of them, after fork(2) or by KSM: the kernel leaves out only
 * those. Pure. */
enum nm_maps_rule nm_mapped_rule(const struct nm_mapped *mapped, const struct nm_maps_rules *rules);

/* Returns whether a mapping with this rule, or pages that are in it by now, may move. */
static inline bool nm_maps_may_move(uint8_t rule)
{
	return rule == NM_MAPS_MOVES || rule == NM_MAPS_EMPTY;
}

/* ---- in pieces ---- */

/* The mappings read so far: first the whole of maps, then that of numa_maps. Initially zero. */
struct nm_maps {
	struct nm_mapped *items; /* ascending and disjoint */
	size_t count, capacity;
	bool described; /* the lines are those of numa_maps */
	bool complete;	/* there are no more */
	size_t next;	/* the first mapping that further lines of numa_maps may describe */
	size_t used;
	bool overlong; /* the end of the current line is lost */
	char line[NM_MAPPINGS_LINE_BYTES];
};

/* Adds a piece of the current file, which may begin and end within a line. Returns 0 or -EFBIG
 * (NM_MAPPINGS_MOST). Pure. */
int nm_maps_add(struct nm_maps *maps, const char *piece, size_t length);
/* Ends the current file. A last line without its newline was cut short, and does not count. Pure.
 */
void nm_maps_end_file(struct nm_maps *maps);
void nm_maps_clear(struct nm_maps *maps);

#endif
