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
};

void nm_paper_head(const char *title);
void nm_paper_line(const struct nm_paper_line *line);

/* Users who run the eight NAS programs in their own orders (LBMA/IMAR² paper, section 5). -ENOMEM.
 */
int nm_paper_four_users(unsigned threads, double idle_s, struct nm_sim_workload *ret);

/* Percent. */
double nm_paper_change(double now, double before);
/* Its standard error, from those of both. */
double nm_paper_error(double now, double now_error, double before, double before_error);

/* The workloads of the other papers. -ENOMEM. */
int nm_paper_fill_kmlb(unsigned memory, unsigned compute, struct nm_sim_workload *ret);
int nm_paper_fill_exclusivity(struct nm_sim_workload *ret);

int nm_paper_kmaf(uint64_t seed, unsigned runs);
int nm_paper_kmlb(uint64_t seed, unsigned runs);
int nm_paper_exclusivity(uint64_t seed, unsigned runs);
/* The combination of them all against each one's own, where that was published. */
int nm_paper_best(uint64_t seed, unsigned runs);

#endif
