/* SPDX-License-Identifier: MIT */
/* One thread's part of a decision. */
#ifndef NM_PLAN_STEP_H
#define NM_PLAN_STEP_H

#include "numa-migrd/plan.h"

struct nm_step_route {
	int cpu_from, cpu_to, node_from, node_to;
	bool whole_node;	     /* also with the rules of a paper */
	hwloc_const_bitmap_t within; /* subset of the node's CPUs; NULL: all */
};

/* Returns 0 or -ENOENT (the thread may use no CPU there); *ret is unchanged on failure. */
int nm_step_build(const struct nm_snapshot *snapshot, const struct nm_config *config,
		  const struct nm_snap_thread *thread, const struct nm_step_route *route,
		  struct nm_step *ret);

void nm_decision_clear(struct nm_decision *decision);

/* Appends the decision to the plan, which takes it over. */
void nm_plan_append(struct nm_plan *plan, const struct nm_decision *decision);

#endif
