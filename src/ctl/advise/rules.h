/* SPDX-License-Identifier: MIT */
/* The rules: each adds a finding with its name, or nothing. */
#ifndef NUMA_MIGRD_ADVISE_RULES_H
#define NUMA_MIGRD_ADVISE_RULES_H

#include <math.h>

#include "advise.h"

#define NM_WORKER_RUN_SHARE 0.05   /* threads that run less do no work */
#define NM_WORKER_ACCESSES 20.0	   /* minimum number of accesses to assess a thread */
#define NM_REGION_SHARE_LEAST 0.05 /* minimum share of all accesses that justifies a change */

typedef void nm_rule_fn(const char *name, const struct nm_advise_input *input,
			struct nm_findings *findings);

/* placement.c */
nm_rule_fn nm_rule_first_touch, nm_rule_fits_a_node, nm_rule_bound_away;
/* ranges.c */
nm_rule_fn nm_rule_shared_ranges, nm_rule_false_sharing;
/* kernel.c */
nm_rule_fn nm_rule_kernel_balancing;

/* One rule; it adds a finding if it applies. */
struct nm_advise_rule {
	const char *name; /* the `check` of its findings */
	nm_rule_fn *rule; /* NULL: the last one, which is used if there was no other finding */
};
const struct nm_advise_rule *nm_advise_rules(size_t *ret_count);

/* ---- shared functions ---- */

/* Returns whether the thread does work, and enough of its accesses are known. */
static inline bool nm_is_worker(const struct nm_advise_thread *thread)
{
	bool runs = isnan(thread->run_share) || thread->run_share >= NM_WORKER_RUN_SHARE;

	return runs && thread->accesses >= NM_WORKER_ACCESSES && !isnan(thread->local_share);
}

/*
 * nm_all_samples() returns the accesses counted in all ranges; nm_common_share() the share in
 * ranges that several nodes use or, without ranges, the share of such pages. NaN: neither is known.
 */
double nm_all_samples(const struct nm_advise_input *input);
double nm_common_share(const struct nm_advise_input *input);

#endif
