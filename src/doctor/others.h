/* SPDX-License-Identifier: MIT */
/* Programs that place threads, memory or interrupts, by the names of their commands. */
#ifndef NUMA_MIGRD_DOCTOR_OTHERS_H
#define NUMA_MIGRD_DOCTOR_OTHERS_H

#include "numa-migrd/findings.h"

struct nm_other {
	const char *comm; /* at most 15 bytes, as the kernel keeps them */
	enum nm_severity severity;
	const char *does, *remedy; /* remedy: NULL where both get along */
};

/* NULL: not one of them. */
const struct nm_other *nm_other_known(const char *comm);

#endif
