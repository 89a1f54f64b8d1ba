/* SPDX-License-Identifier: MIT */
/* Published beside simulated: what the papers' tables share. */
#ifndef NM_CTL_SIMULATE_PAPER_H
#define NM_CTL_SIMULATE_PAPER_H

#include "simulate.h"

#define NM_PAPER_RUNS 5U

/* One line: percent by which the time changes against the first policy's; NAN: not published. */
struct nm_paper_line {
	const char *label;
	double published, simulated, error;
	bool reachable; /* pinned by hand, or the kernel: the best of them is the model's oracle */
};

void nm_paper_head(const char *title);
/* All of a table, its oracle, and of each published gain whether that lies beyond it. */
void nm_paper_lines(const struct nm_paper_line *lines, size_t count);
const char *nm_paper_beyond(double published, double oracle);

/* Users who run the eight NAS programs in their own orders (LBMA/IMAR² paper, section 5). -ENOMEM.
 */
int nm_paper_four_users(unsigned threads, double idle_s, struct nm_sim_workload *ret);

/* Percent. */
double nm_paper_change(double now, double before);
/* Its standard error, from those of both. */
double nm_paper_error(double now, double now_error, double before, double before_error);

/* The workloads of the other papers. -ENOMEM. */
/* number: 1 to 3, as the paper counts its cases. */
int nm_paper_fill_kmlb(unsigned number, struct nm_sim_workload *ret);
int nm_paper_fill_exclusivity(struct nm_sim_workload *ret);

int nm_paper_kmaf(const struct nm_sim_how *how);
int nm_paper_kmlb(const struct nm_sim_how *how);
int nm_paper_exclusivity(const struct nm_sim_how *how);
/* The combination of them all against each one's own, where that was published. */
int nm_paper_auto(const struct nm_sim_how *how);

#endif
