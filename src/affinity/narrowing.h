/* SPDX-License-Identifier: MIT */
/* One narrowed affinity: all that is needed to restore it, and to recognize the tasks that
 * inherited it. Also its form as a line of text. */
#ifndef NM_AFFINITY_NARROWING_H
#define NM_AFFINITY_NARROWING_H

#include <hwloc.h>
#include <stdbool.h>
#include <stdint.h>

#include "numa-migrd/base.h"

struct nm_narrowing {
	uint32_t tid, pid;
	uint64_t start_ticks; /* start time of the thread, field 22 of stat */
	uint64_t given_ticks; /* when the affinity was narrowed, on the same scale */
	uint64_t known_ticks; /* tasks that started before are known; 0: none. Not part of the line
			       */
	uint64_t decision;
	uint32_t session;   /* of its process, to find descendants whose parents have exited */
	uint32_t uid;	    /* of its process, for the same purpose */
	uint64_t ran_ticks; /* CPU time of the thread at that time; 0: unknown */
	bool unrestricted;  /* restore all possible CPUs instead of the exact original affinity */
	hwloc_bitmap_t original, target;
	uint64_t cgroup; /* of its process, for the same purpose: nm_narrowing_cgroup() */
	uint64_t domain; /* the domain whose share the slot uses: nm_domain_of() */
};

/* Maximum length of a line, which no name or affinity of a process can exceed. */
#define NM_NARROWING_BYTES 512

/* Returns a hash of a cgroup's path, by which descendants are found; 0 for NULL and for the root,
 * which contains unrelated processes. */
uint64_t nm_narrowing_cgroup(const char *path);

/* Write the narrowing as text, without a newline, and read it: "give TID PID START GIVEN DECISION
 * SESSION UID RAN CGROUP DOMAIN UNRESTRICTED ORIGINAL TARGET .". Return 0; -E2BIG if it would be
 * too long; or -EINVAL. The caller clears *ret. */
int nm_narrowing_format(const struct nm_narrowing *narrowing, char line[NM_NARROWING_BYTES + 1]);
int nm_narrowing_parse(const char *line, struct nm_narrowing *ret);

void nm_narrowing_clear(struct nm_narrowing *narrowing);

#endif
