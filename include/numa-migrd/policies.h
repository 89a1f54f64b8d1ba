/* SPDX-License-Identifier: MIT */
/* The policies that move threads, as rows of one table. A new policy is a file and a row. Pure. */
#ifndef NUMA_MIGRD_POLICIES_H
#define NUMA_MIGRD_POLICIES_H

#include "numa-migrd/balancer.h"
#include "numa-migrd/kmaf.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/policy.h"

/* The input of policies in an interval, and the state that they keep between intervals. */
struct nm_policy_input {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	double interval_s;
	struct nm_rng *rng;
	uint64_t seed; /* the same in all intervals */
	const struct nm_record *record;
	struct nm_memory *memory; /* NULL: not kept with this policy */
	struct nm_kmaf_clock *kmaf_clock;
	const struct nm_balancer *balancer; /* NULL: not kept with this policy */
};

struct nm_policy_ops {
	bool by_performance; /* see nm_policy_by_performance() */
	/* Proposes moves of threads. Returns 0 or -ENOMEM; the caller clears *ret. NULL: the policy
	 * moves no threads, or processes as a whole (homes.h). */
	int (*propose)(const struct nm_policy_input *input, struct nm_proposals *ret);
};

/* Returns the row of a policy; static. Called by the tick. */
const struct nm_policy_ops *nm_policy_ops(enum nm_thread_policy policy);

#endif
