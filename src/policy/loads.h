/* SPDX-License-Identifier: MIT */
/* How much each CPU and node is wanted, as it will be after the moves decided on so far. */
#ifndef NM_POLICY_LOADS_H
#define NM_POLICY_LOADS_H

#include "numa-migrd/balance.h"

struct nm_loads {
	const struct nm_topology *topology;
	double *cpu;	/* per CPU number */
	double *node;	/* per node: the sum over its usable CPUs */
	unsigned *cpus; /* per node: how many these are */
	/*
	 * Usable CPUs from the busiest to the idlest; of equals the one on the fuller node, then
	 * the higher number is the busier.
	 */
	uint32_t *order;
	size_t count;
};

/* Returns 0 or -ENOMEM, with nothing to clear. */
int nm_loads_init(struct nm_loads *loads, const struct nm_balance_input *input);
void nm_loads_clear(struct nm_loads *loads);

/* Load per CPU of a node that has CPUs. */
double nm_loads_of_node(const struct nm_loads *loads, int node);

/* That of the fullest node less that of the emptiest; 0 with fewer than two. */
double nm_loads_gap(const struct nm_loads *loads);

void nm_loads_move(struct nm_loads *loads, int from, int to, double load);

/* Of a thread; unknown: a whole CPU. */
double nm_loads_of_thread(const struct nm_balance_thread *thread);

#endif
