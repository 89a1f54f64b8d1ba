/* SPDX-License-Identifier: MIT */
/* The degree to which pages are used by a single node (kMAF, section 2.2.2, equations 3 and 4,
 * figure 2). Pure. */
#ifndef NUMA_MIGRD_EXCLUSIVITY_H
#define NUMA_MIGRD_EXCLUSIVITY_H

#include <stdint.h>

#define NM_EXCLUSIVITY_STEPS 11U

/* Sums over pages; initially all zero. */
struct nm_exclusivity {
	uint64_t pages;
	uint64_t accesses;
	uint64_t most;				  /* accesses by the main node of each page */
	uint64_t histogram[NM_EXCLUSIVITY_STEPS]; /* pages by exclusivity, rounded to 0.1 */
};

/* Adds a page with `total` accesses, `most` of them from one node (equation 3: most / total).
 * Without accesses it has no effect. */
void nm_exclusivity_add(struct nm_exclusivity *sums, uint32_t most, uint32_t total);

/* Equation 4: returns the mean over the pages, weighted by their accesses; NaN without accesses. */
double nm_exclusivity_average(const struct nm_exclusivity *sums);

#endif
