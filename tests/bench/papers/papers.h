/* SPDX-License-Identifier: MIT */
/* The papers' tables, published beside simulated: what the files of nm_papers share. */
#ifndef NM_PAPERS_H
#define NM_PAPERS_H

#include "../../../src/ctl/simulate.h"

#define PAPERS_USERS_MOST 4U /* of a workload that papers_search() takes */
#define PAPERS_ROWS_MOST 17U

struct papers_row {
	struct nm_sim_policy policy;
	bool searched; /* users are placed by papers_search() */
};

/* One workload, or several whose changes are averaged, under each policy. */
struct papers_table {
	const char *name, *title, *machine;
	/* Adds workload `index` of the table. -ENOMEM. */
	int (*fill)(const struct papers_table *table, unsigned index, struct nm_sim_workload *ret);
	unsigned first, second; /* parameters of `fill` */
	unsigned workloads;
	bool slowest; /* compares the time of the slowest user, otherwise of all programs */
	const struct papers_row *rows;
	size_t nr_rows;
	/* By row: change in percent, or seconds if the first is above 0. 0: not published. */
	double published[PAPERS_ROWS_MOST];
};

extern const struct papers_table papers_tables[];
extern const size_t papers_table_count;

/*
 * Gives the users of the workload the best placement that trying finds, from two beginnings and
 * user after user. -E2BIG: more than PAPERS_USERS_MOST; otherwise as nm_simulate().
 */
int papers_search(const struct nm_sim_case *what);

#endif
