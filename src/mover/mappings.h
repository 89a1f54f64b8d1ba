/* SPDX-License-Identifier: MIT */
/*
 * The mappings of another process, as needed to move its pages: their extents (/proc/PID/maps),
 * memory policies, and sharing with other processes (/proc/PID/numa_maps, proc(5), numa(7)). For
 * each line of numa_maps the kernel walks the pages of the mapping while it holds the memory map
 * lock of the process. Therefore the file is read a few lines at a time, within a budget, and
 * continued later. The contents of these files are not trusted.
 */
#ifndef NM_MOVER_MAPPINGS_H
#define NM_MOVER_MAPPINGS_H

#include "numa-migrd/base.h"
#include "numa-migrd/maps.h"
#include "numa-migrd/platform.h"

struct nm_mappings {
	struct nm_platform *platform;
	enum { NM_MAPPINGS_EXTENTS, NM_MAPPINGS_POLICIES, NM_MAPPINGS_COMPLETE } phase;
	int directory, fd; /* -1: none */
	/* Time spent in the kernel: in completed turns; in this turn, which bounds the time for
	 * which the lock of the process was held; in the last call. */
	uint64_t cost_ns, spent_ns, held_ns;
	uint64_t budget_ns; /* of this turn */
	char *text;	    /* what the last call read; NULL once all was read */
	struct nm_maps maps;
};

/* Creates an object without mappings. Called by the mover. */
void nm_mappings_new(struct nm_platform *platform, struct nm_mappings **ret);
void nm_mappings_free(struct nm_mappings *mappings);
NM_DEFINE_CLEANUP(struct nm_mappings, nm_mappings_free);

/*
 * Continues reading until all mappings are known (0) or budget_ns has elapsed (-EAGAIN: continue
 * later). NM_CALL_BEGUN: a call is in progress; nm_mappings_continue() continues with its result.
 * `directory` is /proc/PID, of the same process each time; this function takes it over. Its files
 * stay open between calls. -ESRCH, -EACCES, -EFBIG (NM_MAPPINGS_MOST), -ETIMEDOUT and other errors:
 * start again. Called by the mover.
 */
int nm_mappings_read(struct nm_mappings *mappings, int directory, uint64_t budget_ns);
int nm_mappings_continue(struct nm_mappings *mappings, int r);

/* Returns the memory used by the object. Pure. */
size_t nm_mappings_bytes(const struct nm_mappings *mappings);

/* Returns the mappings, ascending and disjoint, after nm_mappings_read() has returned 0. They are
 * valid as long as the object. Pure. */
size_t nm_mappings_all(const struct nm_mappings *mappings, const struct nm_mapped **ret);

/* Returns the mapping that contains all of [address, address + bytes), or NULL. Pure. */
const struct nm_mapped *nm_mappings_find(const struct nm_mappings *mappings, uint64_t address,
					 uint64_t bytes);

#endif
