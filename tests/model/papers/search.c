/* SPDX-License-Identifier: MIT */
/* The best placement found by trial: the first node and the number of nodes of each user. */
#include <math.h>

#include "papers.h"

#define ROUNDS 3

struct place {
	unsigned first, width;
};

static void put(const struct nm_sim_case *what, const struct place *places)
{
	for (size_t u = 0; u < what->workload->nr_users; u++) {
		struct nm_sim_user *user = &what->workload->users[u];
		user->placement = NM_SIM_PLACE_ORACLE;
		user->node = (int)places[u].first;
		user->width = places[u].width;
	}
}

/* The time of the slowest user in the first run. */
static int measure(const struct nm_sim_case *what, const struct place *places, double *ret)
{
	struct nm_simulated run;
	put(what, places);
	int r = nm_simulate(what->machine, what->workload, &what->how.options, NULL, NULL, &run);
	if (r == 0)
		*ret = run.figures.slowest_user_s;
	return r;
}

/* Tries every placement of one user while the others stay. */
static int improve(const struct nm_sim_case *what, struct place *places, size_t user, double *best)
{
	unsigned nodes = what->machine->topology->nr_nodes;
	struct place found = places[user];
	for (unsigned width = 1; width <= nodes; width *= 2)
		for (unsigned first = 0; first < nodes; first++) {
			double time_s;
			places[user] = (struct place){first, width};
			int r = measure(what, places, &time_s);
			if (r < 0)
				return r;
			if (time_s >= *best)
				continue;
			*best = time_s;
			found = places[user];
		}
	places[user] = found;
	return 0;
}

/* Starts with users apart or spread out, and improves one user after another until nothing
 * changes. */
static int climb(const struct nm_sim_case *what, unsigned width, struct place *places, double *ret)
{
	size_t users = what->workload->nr_users;
	double before = INFINITY;
	for (size_t u = 0; u < users; u++)
		places[u] = (struct place){(unsigned)u % what->machine->topology->nr_nodes, width};
	int r = measure(what, places, ret);
	for (unsigned round = 0; r == 0 && round < ROUNDS && *ret < before; round++) {
		before = *ret;
		for (size_t u = 0; r == 0 && u < users; u++)
			r = improve(what, places, u, ret);
	}
	return r;
}

int papers_search(const struct nm_sim_case *what)
{
	struct place apart[PAPERS_USERS_MOST], spread[PAPERS_USERS_MOST];
	double apart_s = INFINITY, spread_s = INFINITY;
	if (what->workload->nr_users > PAPERS_USERS_MOST)
		return -E2BIG;
	int r = climb(what, 1, apart, &apart_s);
	if (r == 0)
		r = climb(what, what->machine->topology->nr_nodes, spread, &spread_s);
	put(what, apart_s < spread_s ? apart : spread);
	return r;
}
