/* SPDX-License-Identifier: MIT */
/* Programs beside us that place threads, memory or interrupts, by the names of their commands. */
#ifndef NUMA_MIGRD_OTHERS_H
#define NUMA_MIGRD_OTHERS_H

#include "numa-migrd/platform.h"

enum nm_rivalry {
	NM_RIVALRY_NONE, /* both get along */
	NM_RIVALRY_SOME, /* moves some of what we move */
	NM_RIVALRY_FULL, /* moves the same */
};

struct nm_other {
	const char *comm; /* at most 15 bytes, as the kernel keeps them */
	enum nm_rivalry rivalry;
	bool anyone;		   /* any user may start it */
	const char *does, *remedy; /* remedy: NULL where both get along */
};

/* NULL: not one of them. Pure. */
const struct nm_other *nm_other_known(const char *comm);

/*
 * The same of a process of that command; NULL also where it is not root's and could do nothing
 * then: anybody may call a program "numad". doctor, and the daemon at its start.
 */
const struct nm_other *nm_other_of(struct nm_platform *platform, uint32_t pid, const char *comm);

#endif
