/* SPDX-License-Identifier: MIT */
/* Language runtimes that query their CPU affinity repeatedly while they run and adapt to it: a
 * lease on one of their threads makes the whole program use fewer CPUs. Part of platform/. */
#ifndef NUMA_MIGRD_RUNTIME_H
#define NUMA_MIGRD_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "numa-migrd/base.h"

enum nm_runtime {
	NM_RUNTIME_NONE,
	NM_RUNTIME_GO,
	NM_RUNTIME_JVM,
	NM_RUNTIME_UNKNOWN, /* queried without an answer */
	NM_RUNTIME_AWAITED, /* not queried, or not answered yet */
	NM_RUNTIME_MAX
};

/* Returns "Go", "Java", "unknown" or "awaited"; "" for NONE. */
const char *nm_runtime_name(enum nm_runtime runtime);

static inline bool nm_runtime_counts_again(enum nm_runtime runtime)
{
	return runtime == NM_RUNTIME_GO || runtime == NM_RUNTIME_JVM;
}

/*
 * Returns whether the runtime may observe a lease. While an answer may still arrive, the runtime is
 * assumed to do so. An unknown runtime is treated like the majority, which does not; its leases end
 * if it is identified later.
 */
static inline bool nm_runtime_may_count_again(enum nm_runtime runtime)
{
	return nm_runtime_counts_again(runtime) || runtime == NM_RUNTIME_AWAITED;
}

/* Longer than any line except one of a path with hundreds of newlines, which is skipped. */
#define NM_RUNTIME_LINE_BYTES 4608U

/* Position of the search in the text of /proc/PID/maps; initially zero. */
struct nm_runtime_search {
	enum nm_runtime found; /* NONE: not found yet */
	char line[NM_RUNTIME_LINE_BYTES];
	size_t used;   /* length of the line read so far */
	bool too_long; /* the line exceeds the buffer; the rest of it is skipped */
	uint64_t mark, mark_end; /* the last anonymous memory in use */
	uint64_t unused_end; /* end of the reserved memory directly after it; 0: none */
};

/*
 * Searches the next piece of the text, which may begin and end within a line, until `found` is GO
 * or JVM. JVM: a mapping of a file libjvm.so, in any program. Go: memory named by its runtime (1.25
 * and later), if the kernel supports names for memory; otherwise its heap at the address used up to
 * Go 1.25 and in builds with -race (malloc.go, mallocinit); or the two tables with an entry for
 * each 4 MiB of a 48-bit address space, directly adjacent and used at the same offset
 * (mpagealloc.go, mgcscavenge.go). Pure. Called by the platform for queries of the task table.
 */
void nm_runtime_search(struct nm_runtime_search *search, const char *text, size_t length);

#endif
