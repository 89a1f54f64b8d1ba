/* SPDX-License-Identifier: MIT */
/* How much pages belong to one node (kMAF, section 2.2.2, equations 3 and 4, figure 2). Pure. */
#ifndef NUMA_MIGRD_EXCLUSIVITY_H
#define NUMA_MIGRD_EXCLUSIVITY_H

#include <stdint.h>

#define NM_EXCLUSIVITY_STEPS 11U

/* Sums over pages; all zero is a beginning. */
struct nm_exclusivity {
	uint64_t pages;
	uint64_t accesses;
	uint64_t most;				  /* accesses of each page's foremost node */
	uint64_t histogram[NM_EXCLUSIVITY_STEPS]; /* pages by exclusivity, to the nearest tenth */
};

/* Adds a page whose accesses are `total`, `most` of them from one node (equation 3: most / total); none: nothing. */
void nm_exclusivity_add(struct nm_exclusivity *sums, uint32_t most, uint32_t total);

/* Equation 4: the mean over the pages, each weighing as its accesses; NaN without accesses. */
double nm_exclusivity_average(const struct nm_exclusivity *sums);

#endif
