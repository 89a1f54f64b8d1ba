/* SPDX-License-Identifier: MIT */
/* kMAF, kMLB and exclusivity: published averages beside simulated ones. Nothing is fitted to them.
 */
#include <math.h>
#include <stdio.h>

#include "simulate_paper.h"

/* A policy and what the paper says it brings, in percent of the time. */
struct row {
	const char *label;
	double published;
	struct nm_sim_policy policy;
};

#define PAPER_BALANCE(selection)                                                                   \
	.config = "profile = \"paper\"; threads: { policy = \"balance\"; selection = \"" selection \
		  "\"; };"
#define PAPER_DTAS(selection)                                                                      \
	.config = "profile = \"paper\"; threads: { policy = \"balance\"; dtas = true; selection "  \
		  "= \"" selection "\"; };"

/* Runs a row; the first one's outcome is what the others are compared with. */
static int run_row(const struct nm_sim_case *what, const struct row *row,
		   struct nm_sim_outcome *base, double *ret_change, double *ret_error)
{
	struct nm_sim_outcome outcome;
	int r = nm_sim_case_run(what, &row->policy, &outcome);
	if (r < 0)
		return r;
	bool first = !(base->computing_s > 0);
	if (first)
		*base = outcome;
	*ret_change = nm_paper_change(outcome.computing_s, base->computing_s);
	*ret_error = nm_paper_error(outcome.computing_s, outcome.computing_error_s,
				    base->computing_s, first ? 0 : base->computing_error_s);
	return 0;
}

/* ---- kMAF: each program alone, a thread on each CPU (section 5; figures 8 and 11) ---- */

static const struct row kmaf_rows[] = {
	{"system", 0, {.name = "none"}},
	{"kMAF",
	 -13.8,
	 {.config = "profile = \"paper\"; threads: { policy = \"kmaf\"; }; "
		    "pages: { policy = \"exclusivity\"; };"}},
	{"oracle", -15.3, {.placed = true, .placement = NM_SIM_PLACE_ORACLE}},
	{"threads only", -6.4, {.config = "profile = \"paper\"; threads: { policy = \"kmaf\"; };"}},
	{"data only",
	 -2.0,
	 {.config = "profile = \"paper\"; threads: { policy = \"none\"; }; "
		    "pages: { policy = \"exclusivity\"; };"}},
	{"kmaf (ours)",
	 NAN,
	 {.config = "threads: { policy = \"kmaf\"; }; pages: { policy = \"exclusivity\"; };"}},
	{"best (ours)",
	 NAN,
	 {.config = "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; };"}},
};

static int add_kmaf_program(const char *program, const struct nm_sim_machine *machine,
			    uint64_t seed, unsigned runs, double *changes)
{
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	const struct nm_sim_case what = {
		.machine = machine, .workload = &workload, .seed = seed, .runs = runs};
	struct nm_sim_outcome base = {0};
	struct nm_sim_user *user = nm_sim_workload_add(&workload, "user");
	if (!user || !nm_sim_user_add(user, program, machine->topology->nr_cpus))
		return -ENOMEM;
	for (size_t i = 0; i < NM_ARRAY_SIZE(kmaf_rows); i++) {
		double error;
		int r = run_row(&what, &kmaf_rows[i], &base, &changes[i], &error);
		if (r < 0)
			return r;
	}
	return 0;
}

int nm_paper_kmaf(uint64_t seed, unsigned runs)
{
	static const char *const programs[] = {"bt", "cg", "dc", "ep", "is", "lu", "sp", "ua"};
	enum { COUNT = NM_ARRAY_SIZE(kmaf_rows), PROGRAMS = NM_ARRAY_SIZE(programs) };
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	double changes[PROGRAMS][COUNT] = {0};
	int r = nm_sim_machine_by_name("x7550-4x8", &machine);
	for (size_t p = 0; p < PROGRAMS && r == 0; p++)
		r = add_kmaf_program(programs[p], machine, seed, runs, changes[p]);
	if (r < 0)
		return r;
	nm_paper_head("kMAF: change of the time, mean of the NAS programs; +/-: best and worst");
	for (size_t i = 0; i < COUNT; i++) {
		double sum = 0, least = INFINITY, most = -INFINITY;
		for (size_t p = 0; p < PROGRAMS; p++) {
			sum += changes[p][i] / PROGRAMS;
			least = fmin(least, changes[p][i]);
			most = fmax(most, changes[p][i]);
		}
		nm_paper_line(&(struct nm_paper_line){kmaf_rows[i].label, kmaf_rows[i].published,
						      sum, (most - least) / 2});
	}
	return 0;
}

/* ---- scenarios of many programs at once ---- */

static int run_rows(const struct row *rows, size_t count, const struct nm_sim_case *what)
{
	struct nm_sim_outcome base = {0};
	for (size_t i = 0; i < count; i++) {
		struct nm_paper_line line = {.label = rows[i].label,
					     .published = rows[i].published};
		int r = run_row(what, &rows[i], &base, &line.simulated, &line.error);
		if (r < 0)
			return r;
		nm_paper_line(&line);
	}
	return 0;
}

/* ---- kMLB: 56 programs of one thread on 16 CPUs (table 3; tables 5 and 6) ---- */

/* Spread over memory-bound and compute-bound programs, each with work for about 200 s alone. */
int nm_paper_fill_kmlb(unsigned memory, unsigned compute, struct nm_sim_workload *ret)
{
	static const char *const bound[] = {"stream", "sp", "cg", "lu"};
	static const char *const busy[] = {"compute", "ep", "bt"};
	for (unsigned i = 0; i < memory + compute; i++) {
		const char *name = i < memory ? bound[i % NM_ARRAY_SIZE(bound)]
					      : busy[i % NM_ARRAY_SIZE(busy)];
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		struct nm_sim_program *program = user ? nm_sim_user_add(user, name, 1) : NULL;
		if (!program)
			return -ENOMEM;
		program->footprint_mb = 200;
		program->phases[0].giga = i < memory ? 150 : 400;
		program->phases[0].period_giga = 0;
	}
	return 0;
}

static const struct {
	const char *title;
	unsigned memory, compute;
	double published[6];
} kmlb_cases[] = {
	{"kMLB case 1, 35 memory-bound and 21 others: change of the mean time",
	 35,
	 21,
	 {-4.02, -3.98, -4.35, -19.65, -16.79, -15.04}},
	{"kMLB case 2, 28 and 28", 28, 28, {-4.61, -4.01, -3.98, -13.57, -11.55, -14.75}},
	{"kMLB case 3, 21 and 35", 21, 35, {-1.58, -1.98, -2.61, -7.34, -7.64, -9.57}},
};

int nm_paper_kmlb(uint64_t seed, unsigned runs)
{
	struct row rows[] = {
		{"system", 0, {.name = "none"}},
		{"total min", 0, {PAPER_BALANCE("total_min")}},
		{"remote min", 0, {PAPER_BALANCE("remote_min")}},
		{"local max", 0, {PAPER_BALANCE("local_max")}},
		{"DTAS, total min", 0, {PAPER_DTAS("total_min")}},
		{"DTAS, remote min", 0, {PAPER_DTAS("remote_min")}},
		{"DTAS, local max", 0, {PAPER_DTAS("local_max")}},
		{"balance (ours)", NAN, {.config = "threads: { policy = \"balance\"; };"}},
		{"best (ours)",
		 NAN,
		 {.config = "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; "
			    "};"}},
	};
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	int r = nm_sim_machine_by_name("e5620-2x4", &machine);
	for (size_t i = 0; i < NM_ARRAY_SIZE(kmlb_cases) && r == 0; i++) {
		nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
		const struct nm_sim_case what = {
			.machine = machine, .workload = &workload, .seed = seed, .runs = runs};
		for (size_t k = 0; k < NM_ARRAY_SIZE(kmlb_cases[i].published); k++)
			rows[k + 1].published = kmlb_cases[i].published[k];
		nm_paper_head(kmlb_cases[i].title);
		r = nm_paper_fill_kmlb(kmlb_cases[i].memory, kmlb_cases[i].compute, &workload);
		if (r == 0)
			r = run_rows(rows, NM_ARRAY_SIZE(rows), &what);
	}
	return r;
}

/* ---- exclusivity: 29 programs of 16 threads on 32 CPUs (section 4; figure 14) ---- */

int nm_paper_fill_exclusivity(struct nm_sim_workload *ret)
{
	static const char *const names[] = {"table", "stencil", "compute", "stream",
					    "cg",    "table",	"ua"};
	for (unsigned i = 0; i < 29; i++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		struct nm_sim_program *program =
			user ? nm_sim_user_add(user, names[i % NM_ARRAY_SIZE(names)], 16) : NULL;
		if (!program)
			return -ENOMEM;
		program->footprint_mb = 300;
		program->phases[0].giga /= 10;
	}
	return 0;
}

int nm_paper_exclusivity(uint64_t seed, unsigned runs)
{
	static const struct row rows[] = {
		{"system", 0, {.name = "none"}},
		{"first fit", NAN, {PAPER_BALANCE("first_fit")}},
		{"most benefit plus", -11.1, {PAPER_BALANCE("most_benefit_plus")}},
		{"exclusivity", -10.7, {PAPER_BALANCE("exclusivity")}},
		{"balance (ours)", NAN, {.config = "threads: { policy = \"balance\"; };"}},
		{"best (ours)",
		 NAN,
		 {.config = "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; "
			    "};"}},
	};
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	int r = nm_sim_machine_by_name("o6320-4x8", &machine);
	if (r == 0)
		r = nm_paper_fill_exclusivity(&workload);
	if (r < 0)
		return r;
	nm_paper_head("Exclusivity, 29 programs of 16 threads at once: change of the mean time");
	return run_rows(
		rows, NM_ARRAY_SIZE(rows),
		&(struct nm_sim_case){
			.machine = machine, .workload = &workload, .seed = seed, .runs = runs});
}
