/* SPDX-License-Identifier: MIT */
/* Other programs that place threads, memory or interrupts, by their command names. */
#ifndef NUMA_MIGRD_OTHERS_H
#define NUMA_MIGRD_OTHERS_H

#include "numa-migrd/platform.h"

enum nm_rivalry {
	NM_RIVALRY_NONE, /* no conflict */
	NM_RIVALRY_SOME, /* moves some of the same objects */
	NM_RIVALRY_FULL, /* moves the same objects */
};

struct nm_other {
	const char *comm; /* at most 15 bytes, as stored by the kernel */
	enum nm_rivalry rivalry;
	bool anyone;		   /* any user may run it */
	const char *does, *remedy; /* remedy is NULL if there is no conflict */
};

/* Returns the entry of a command, or NULL. Pure. */
const struct nm_other *nm_other_known(const char *comm);

/*
 * Returns the entry for a process of that command. Returns NULL also for a process of another user
 * than root that would need root to have an effect, because any user may name a program "numad".
 * Called by doctor, and by the daemon at start.
 */
const struct nm_other *nm_other_of(struct nm_platform *platform, uint32_t pid, const char *comm);

#endif
