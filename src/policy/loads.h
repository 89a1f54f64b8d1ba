/* SPDX-License-Identifier: MIT */
/* The load of each CPU and node, including the moves decided so far. */
#ifndef NM_POLICY_LOADS_H
#define NM_POLICY_LOADS_H

#include "numa-migrd/balance.h"

struct nm_loads {
	const struct nm_topology *topology;
	double *cpu;	/* per CPU number */
	double *node;	/* per node: sum over its usable CPUs */
	unsigned *cpus; /* per node: number of usable CPUs */
	/* Usable CPUs from the busiest to the idlest. Ties: the CPU on the fuller node, then the
	 * higher number, counts as busier. */
	uint32_t *order;
	size_t count;
};

/* Returns 0. */
void nm_loads_init(struct nm_loads *loads, const struct nm_balance_input *input);
void nm_loads_clear(struct nm_loads *loads);

/* Returns the load per CPU of a node with CPUs. */
double nm_loads_of_node(const struct nm_loads *loads, int node);

/* Returns the difference between the fullest and the emptiest node; 0 with fewer than two. */
double nm_loads_gap(const struct nm_loads *loads);

void nm_loads_move(struct nm_loads *loads, int from, int to, double load);

#endif
