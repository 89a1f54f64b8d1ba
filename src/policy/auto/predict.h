/* SPDX-License-Identifier: MIT */
/* The predicted cost of a home, and of none. Pure. */
#ifndef NM_POLICY_AUTO_PREDICT_H
#define NM_POLICY_AUTO_PREDICT_H

#include "policy/placement.h"

/* The loads of the nodes, including the homes assigned so far. */
struct nm_loads {
	const struct nm_place_view *view;
	double *cpus;	      /* per node: in demand */
	double *traffic;      /* per node: bytes per second */
	uint64_t *free_bytes; /* per node: not assigned yet */
	double wanted, cores; /* of the machine: CPUs in demand now, and cores */
	double largest_cores; /* of a node */
};

/* Begins with the load of other tasks, of threads that must not be moved, and of existing homes. */
void nm_loads_init(struct nm_loads *loads, const struct nm_place_view *view);
void nm_loads_clear(struct nm_loads *loads);
/* Adds a group that stays where it is, or one that is assigned this home. */
void nm_loads_add_in_place(struct nm_loads *loads, const struct nm_place_group *group);
void nm_loads_add_at(struct nm_loads *loads, const struct nm_place_group *group, unsigned node);

/* Returns the number of threads of a group, including those that do not run now: a program that has
 * run more threads will run as many again. */
unsigned nm_place_threads(const struct nm_place_group *group);
/* Returns the CPUs that the threads of a group that may be moved will demand. */
double nm_place_expected_cpus(const struct nm_loads *loads, const struct nm_place_group *group);
/* Returns the CPUs by which the demand may exceed this room, because it is measured, while threads
 * need whole CPUs. */
double nm_place_tolerance(double room);
/* Returns the memory that would be moved to this node. */
double nm_place_bytes_elsewhere(const struct nm_loads *loads, const struct nm_place_group *group,
				unsigned node);

/* Predicts the cost of staying where it is, after its pages have followed its threads. */
struct nm_prediction nm_predict_staying(const struct nm_loads *loads,
					const struct nm_place_group *group);
/* Predicts the cost of running on one node, at this mean distance from its memory. A group that is
 * at home there is not part of the loads. */
struct nm_prediction nm_predict_at(const struct nm_loads *loads, const struct nm_place_group *group,
				   unsigned node, double distance);
/* Predicts the cost of running evenly spread over all nodes, with its memory. */
struct nm_prediction nm_predict_spread(const struct nm_loads *loads,
				       const struct nm_place_group *group);

#endif
