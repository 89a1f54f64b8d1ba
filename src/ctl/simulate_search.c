/* SPDX-License-Identifier: MIT */
/* The best placement by hand that trying finds: from which node on, and over how many. */
#include <math.h>
#include <stdio.h>

#include "simulate.h"

#define ROUNDS 3

/* What is made less: the time of the slowest; where not all end, nobody's. */
static int try_placement(const struct nm_sim_case *what, double *ret)
{
	const struct nm_sim_options options = nm_sim_options_of(&what->how, 0);
	struct nm_simulated run;
	int r = nm_simulate(what->machine, what->workload, &options, NULL, NULL, &run);
	if (r < 0)
		return r;
	size_t finite = 0;
	for (size_t u = 0; u < what->workload->nr_users; u++)
		finite += !what->workload->users[u].for_ever;
	bool ended = finite > 0 && run.figures.users_ended == finite;
	*ret = ended ? run.figures.slowest_user_s : INFINITY;
	return 0;
}

static void put(struct nm_sim_user *user, unsigned first, unsigned width)
{
	user->placement = NM_SIM_PLACE_ORACLE;
	user->node = (int)first;
	user->width = width;
}

/* One user's, with the others' as they are. */
static int improve(const struct nm_sim_case *what, struct nm_sim_user *user, unsigned nodes,
		   double *best)
{
	unsigned first_best = (unsigned)user->node, width_best = user->width;
	for (unsigned width = 1; width <= nodes; width *= 2)
		for (unsigned first = 0; first < nodes; first++) {
			double time_s;
			put(user, first, width);
			int r = try_placement(what, &time_s);
			if (r < 0)
				return r;
			if (time_s >= *best)
				continue;
			*best = time_s;
			first_best = first;
			width_best = width;
		}
	put(user, first_best, width_best);
	return 0;
}

static unsigned count_nodes(const struct nm_topology *topology)
{
	unsigned nodes = 0;
	for (unsigned k = 0; k < topology->nr_nodes; k++)
		nodes += !hwloc_bitmap_iszero(topology->nodes[k].cpus);
	return nodes;
}

/* From each of two beginnings user after user, until nothing gets better. */
static int climb(const struct nm_sim_case *what, unsigned nodes, unsigned width, double *ret)
{
	struct nm_sim_workload *workload = what->workload;
	for (size_t u = 0; u < workload->nr_users; u++)
		put(&workload->users[u], (unsigned)(u % nodes), width);
	int r = try_placement(what, ret);
	double before = INFINITY;
	for (unsigned round = 0; r == 0 && round < ROUNDS && *ret < before; round++) {
		before = *ret;
		for (size_t u = 0; r == 0 && u < workload->nr_users; u++)
			r = improve(what, &workload->users[u], nodes, ret);
	}
	return r;
}

int nm_sim_search(const struct nm_sim_case *what)
{
	struct nm_sim_workload *workload = what->workload;
	unsigned nodes = count_nodes(what->machine->topology);
	struct {
		int node;
		unsigned width;
	} found[NM_SIM_SEARCH_USERS];
	double apart = INFINITY, spread = INFINITY;
	if (workload->nr_users > NM_SIM_SEARCH_USERS || nodes == 0)
		return -E2BIG;
	int r = climb(what, nodes, 1, &apart);
	for (size_t u = 0; u < workload->nr_users; u++) {
		found[u].node = workload->users[u].node;
		found[u].width = workload->users[u].width;
	}
	if (r == 0)
		r = climb(what, nodes, nodes, &spread);
	for (size_t u = 0; u < workload->nr_users && apart < spread; u++)
		put(&workload->users[u], (unsigned)found[u].node, found[u].width);
	return r;
}
