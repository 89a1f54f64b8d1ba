/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process that may move, by the kernel's text about it: status, maps and numa_maps
 * in /proc/PID (proc(5), numa(7)). Their contents are not trusted. Pure.
 */
#ifndef NUMA_MIGRD_MAPS_H
#define NUMA_MIGRD_MAPS_H

#include "numa-migrd/regions.h"

/* Limit per process; the pages of a process with more mappings are not moved. */
#define NM_MAPPINGS_MOST 65536U
#define NM_MAPPINGS_LINE_BYTES 1024U

/* The memory that may move, by the configuration. */
struct nm_maps_rules {
	bool move_bound, move_shared;
	uint64_t rss_bytes; /* maximum resident memory of a process without hugetlb pages, because
			     * the kernel reads its mappings for long; 0: no limit */
};

/* Why memory stays where it is. */
enum nm_maps_rule {
	NM_MAPS_MOVES,	 /* no rule refuses */
	NM_MAPS_UNKNOWN, /* numa_maps does not describe it, or its description was cut short */
	NM_MAPS_EMPTY,
	NM_MAPS_BOUND,	   /* its owner has set its location */
	NM_MAPS_SHARED,	   /* other processes can map it */
	NM_MAPS_FILE,	   /* of a file */
	NM_MAPS_EXITED,	   /* the process has no memory any more */
	NM_MAPS_TOO_LARGE, /* the process exceeds rss_bytes */
	NM_MAPS_TOO_MANY   /* it exceeds NM_MAPPINGS_MOST */
};

/* Returns the rule that refuses to move the pages of a mapping. Pages of a private mapping are its
 * own even if other processes map some of them, after fork(2) or by KSM: the kernel leaves out only
 * those. Pure. */
enum nm_maps_rule nm_mapped_rule(const struct nm_mapped *mapped, const struct nm_maps_rules *rules);

/* Returns whether no rule refuses pages that are in the mapping by now. Pure. */
static inline bool nm_mapped_may_move(const struct nm_mapped *mapped,
				      const struct nm_maps_rules *rules)
{
	enum nm_maps_rule rule = nm_mapped_rule(mapped, rules);

	return rule == NM_MAPS_MOVES || rule == NM_MAPS_EMPTY;
}

/* ---- in pieces ---- */

/* The mappings read so far: first the whole of maps, then that of numa_maps. Initially zero. */
struct nm_maps {
	struct nm_mapped *items; /* ascending and disjoint */
	size_t count, capacity;
	bool described; /* the lines are those of numa_maps */
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
/* Returns the ranges that may move; adjacent ones with pages of one size are merged. The caller
 * frees the array. Pure. */
void nm_maps_ranges(const struct nm_maps *maps, const struct nm_maps_rules *rules,
		    struct nm_range **ret, size_t *ret_count);

/* ---- at once ---- */

struct nm_maps_text {
	const char *status, *maps, *numa_maps;
};

/*
 * Returns the ranges that may move, which the caller frees, and NM_MAPS_MOVES; or no ranges, and
 * the rule that refuses: of several, the one that refuses most pages. The status is that of a
 * thread that has not exited. Returns 0, or -EINVAL if it is damaged. Pure.
 */
int nm_maps_judge(const struct nm_maps_text *text, const struct nm_maps_rules *rules,
		  struct nm_range **ret, size_t *ret_count, enum nm_maps_rule *ret_rule);

#endif
