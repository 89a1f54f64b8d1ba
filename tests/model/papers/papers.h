/* SPDX-License-Identifier: MIT */
/* The tables of the papers, published and simulated: declarations shared by the files of
 * nm_papers. */
#ifndef NM_PAPERS_H
#define NM_PAPERS_H

#include "../policies.h"

#define PAPERS_ROWS_MOST 19U

struct papers_row {
	struct nm_sim_policy policy;
};

/* One workload, or several whose changes are averaged, with each policy. */
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

#endif
