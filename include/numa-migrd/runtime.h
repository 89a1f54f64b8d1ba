/* SPDX-License-Identifier: MIT */
/*
 * Language runtimes that ask for their CPU affinity again while they run, and act on the answer: a
 * lease on one of their threads makes the whole program do with fewer CPUs. Part of platform/.
 */
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
	NM_RUNTIME_UNKNOWN, /* it was asked, and there was no answer */
	NM_RUNTIME_AWAITED, /* not asked yet, or not answered yet */
	NM_RUNTIME_MAX
};

/* "Go" or "Java", "unknown", "awaited"; "" of NONE. */
const char *nm_runtime_name(enum nm_runtime runtime);

static inline bool nm_runtime_counts_again(enum nm_runtime runtime)
{
	return runtime == NM_RUNTIME_GO || runtime == NM_RUNTIME_JVM;
}

/*
 * May a lease be seen by it? As long as an answer may come, it is waited for; what cannot be known
 * is taken for what most are, and its leases end should it be known later.
 */
static inline bool nm_runtime_may_count_again(enum nm_runtime runtime)
{
	return nm_runtime_counts_again(runtime) || runtime == NM_RUNTIME_AWAITED;
}

/* Longer than any line but of a path with hundreds of newlines in it: such a line is passed over. */
#define NM_RUNTIME_LINE_BYTES 4608U

/* Where in a text of /proc/PID/maps the search is. Zeroed: at its beginning. */
struct nm_runtime_search {
	enum nm_runtime found; /* NONE: not yet */
	char line[NM_RUNTIME_LINE_BYTES];
	size_t used;   /* of the line that has begun */
	bool too_long; /* it is; its rest is passed over */
	uint64_t mark, mark_end; /* the last anonymous memory that is used; */
	uint64_t unused_end; /* and the end of what is set aside right behind it, 0: nothing is */
};

/*
 * Goes through the next piece of the text, which may begin and end within a line, until `found` is
 * GO or JVM. JVM: a mapping of a file libjvm.so, whichever program it is in. Go: memory that its
 * runtime (1.25 and later) has named so, where the kernel has names for memory; else its heap where it
 * begins up to Go 1.25, and in builds with -race (malloc.go, mallocinit); or the two tables of an entry for each
 * 4 MiB of a 48-bit address space, one right behind the other and used at the same place
 * (mpagealloc.go, mgcscavenge.go). Pure. Platform, for the roster's questions.
 */
void nm_runtime_search(struct nm_runtime_search *search, const char *text, size_t length);

#endif
