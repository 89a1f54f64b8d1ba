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

/* What can be had without us, and with the kernel beside us. */
#define IN_ORDER                                                                                   \
	{                                                                                          \
		"by hand, in order", NAN,                                                          \
		{                                                                                  \
			.placed = true, .placement = NM_SIM_PLACE_ORACLE                           \
		}                                                                                  \
	}
#define A_NODE_EACH                                                                                \
	{                                                                                          \
		"by hand, a node each", NAN,                                                       \
		{                                                                                  \
			.placed = true, .placement = NM_SIM_PLACE_DIRECT                           \
		}                                                                                  \
	}
#define INTERLEAVED                                                                                \
	{                                                                                          \
		"by hand, interleaved", NAN,                                                       \
		{                                                                                  \
			.placed = true, .placement = NM_SIM_PLACE_INTERLEAVE                       \
		}                                                                                  \
	}
#define KERNEL                                                                                     \
	{                                                                                          \
		"kernel", NAN,                                                                     \
		{                                                                                  \
			.numa_balancing = true                                                     \
		}                                                                                  \
	}
#define KERNEL_AND(words, text)                                                                    \
	{                                                                                          \
		"kernel + " words " (ours)", NAN,                                                  \
		{                                                                                  \
			.numa_balancing = true, .config = text                                     \
		}                                                                                  \
	}
#define BEST "threads: { policy = \"imar2\"; }; pages: { policy = \"exclusivity\"; };"

static bool is_reachable(const struct nm_sim_policy *policy)
{
	return !policy->config && (policy->placed || policy->numa_balancing);
}

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
	{"best (ours)", NAN, {.config = BEST}},
	INTERLEAVED,
	KERNEL,
	KERNEL_AND("kmaf",
		   "threads: { policy = \"kmaf\"; }; pages: { policy = \"exclusivity\"; };"),
};

static int add_kmaf_program(const char *program, const struct nm_sim_machine *machine,
			    const struct nm_sim_how *how, double *changes)
{
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	const struct nm_sim_case what = {.machine = machine, .workload = &workload, .how = *how};
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

int nm_paper_kmaf(const struct nm_sim_how *how)
{
	static const char *const programs[] = {"bt", "cg", "dc", "ep", "is", "lu", "sp", "ua"};
	enum { COUNT = NM_ARRAY_SIZE(kmaf_rows), PROGRAMS = NM_ARRAY_SIZE(programs) };
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	double changes[PROGRAMS][COUNT] = {0};
	int r = nm_sim_machine_by_name("x7550-4x8", &machine);
	for (size_t p = 0; p < PROGRAMS && r == 0; p++)
		r = add_kmaf_program(programs[p], machine, how, changes[p]);
	if (r < 0)
		return r;
	struct nm_paper_line lines[COUNT + 1] = {
		[COUNT] = {"best of those, each", NAN, 0, 0, true}};
	nm_paper_head("kMAF: change of the time, mean of the NAS programs; +/-: best and worst");
	for (size_t i = 0; i < COUNT; i++) {
		double sum = 0, least = INFINITY, most = -INFINITY;
		for (size_t p = 0; p < PROGRAMS; p++) {
			sum += changes[p][i] / PROGRAMS;
			least = fmin(least, changes[p][i]);
			most = fmax(most, changes[p][i]);
		}
		lines[i] = (struct nm_paper_line){kmaf_rows[i].label, kmaf_rows[i].published, sum,
						  (most - least) / 2,
						  is_reachable(&kmaf_rows[i].policy)};
	}
	for (size_t p = 0; p < PROGRAMS; p++) {
		double best = 0;
		for (size_t i = 0; i < COUNT; i++)
			if (lines[i].reachable)
				best = fmin(best, changes[p][i]);
		lines[COUNT].simulated += best / PROGRAMS;
	}
	nm_paper_lines(lines, COUNT + 1);
	return 0;
}

/* ---- scenarios of many programs at once ---- */

#define ROWS_MOST 16

static int run_rows(const struct row *rows, size_t count, const struct nm_sim_case *what)
{
	struct nm_sim_outcome base = {0};
	struct nm_paper_line lines[ROWS_MOST];
	for (size_t i = 0; i < count; i++) {
		lines[i] = (struct nm_paper_line){.label = rows[i].label,
						  .published = rows[i].published,
						  .reachable = is_reachable(&rows[i].policy)};
		int r = run_row(what, &rows[i], &base, &lines[i].simulated, &lines[i].error);
		if (r < 0)
			return r;
	}
	nm_paper_lines(lines, count);
	return 0;
}

/* ---- kMLB: 56 programs of one thread on 16 CPUs (table 3; tables 5 and 6) ---- */

/*
 * Table 3: how many of each program of SPEC CPU2006 there are in each case, and their sizes:
 * rounded estimates after Henning, "SPEC CPU2006 memory footprint" (2007). Those bound by compute
 * in case 3 are 34 in the table and 35 in the text: one povray more.
 */
static const struct {
	const char *name;
	double mb;
	bool memory;
	unsigned count[3];
} spec[] = {
	{"bwaves", 880, true, {1, 1, 1}},     {"gcc", 940, true, {1, 1, 1}},
	{"GemsFDTD", 840, true, {2, 1, 1}},   {"lbm", 410, true, {2, 2, 1}},
	{"leslie3d", 125, true, {2, 1, 1}},   {"libquantum", 100, true, {6, 5, 3}},
	{"mcf", 1680, true, {1, 1, 1}},	      {"milc", 680, true, {5, 5, 3}},
	{"omnetpp", 170, true, {5, 4, 4}},    {"soplex", 440, true, {6, 5, 3}},
	{"sphinx3", 45, true, {2, 1, 1}},     {"xalancbmk", 420, true, {2, 1, 1}},
	{"astar", 330, false, {0, 1, 1}},     {"bzip2", 850, false, {1, 1, 1}},
	{"cactusADM", 650, false, {1, 1, 1}}, {"calculix", 160, false, {1, 1, 1}},
	{"dealII", 800, false, {1, 1, 1}},    {"gobmk", 30, false, {4, 4, 6}},
	{"gromacs", 15, false, {1, 1, 1}},    {"h264ref", 65, false, {1, 1, 1}},
	{"hmmer", 30, false, {3, 4, 6}},      {"namd", 46, false, {2, 2, 2}},
	{"povray", 5, false, {3, 4, 6}},      {"sjeng", 175, false, {1, 1, 1}},
	{"tonto", 40, false, {2, 4, 5}},      {"wrf", 700, false, {0, 1, 1}},
	{"zeusmp", 510, false, {0, 1, 1}},
};

/* What each does is taken in turn from the model's programs, for about 200 s alone. */
static int add_spec(size_t row, unsigned turn, struct nm_sim_workload *ret)
{
	static const char *const bound[] = {"stream", "sp", "cg", "lu"};
	static const char *const busy[] = {"compute", "ep", "bt"};
	bool memory = spec[row].memory;
	const char *like =
		memory ? bound[turn % NM_ARRAY_SIZE(bound)] : busy[turn % NM_ARRAY_SIZE(busy)];
	struct nm_sim_user *user = nm_sim_workload_add(ret, spec[row].name);
	struct nm_sim_program *program = user ? nm_sim_user_add(user, like, 1) : NULL;
	if (!program)
		return -ENOMEM;
	program->footprint_mb = spec[row].mb;
	program->phases[0].giga = memory ? 150 : 400;
	program->phases[0].period_giga = 0;
	return 0;
}

int nm_paper_fill_kmlb(unsigned number, struct nm_sim_workload *ret)
{
	unsigned turns[2] = {0};
	for (size_t i = 0; i < NM_ARRAY_SIZE(spec); i++)
		for (unsigned k = 0; k < spec[i].count[number - 1]; k++) {
			int r = add_spec(i, turns[spec[i].memory]++, ret);
			if (r < 0)
				return r;
		}
	return 0;
}

static const struct {
	const char *title;
	double published[6];
} kmlb_cases[] = {
	{"kMLB case 1, 35 memory-bound and 21 others: change of the mean time",
	 {-4.02, -3.98, -4.35, -19.65, -16.79, -15.04}},
	{"kMLB case 2, 28 and 28", {-4.61, -4.01, -3.98, -13.57, -11.55, -14.75}},
	{"kMLB case 3, 21 and 35", {-1.58, -1.98, -2.61, -7.34, -7.64, -9.57}},
};

int nm_paper_kmlb(const struct nm_sim_how *how)
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
		{"best (ours)", NAN, {.config = BEST}},
		A_NODE_EACH,
		IN_ORDER,
		INTERLEAVED,
		KERNEL,
		KERNEL_AND("best", BEST),
	};
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	int r = nm_sim_machine_by_name("e5620-2x4", &machine);
	for (size_t i = 0; i < NM_ARRAY_SIZE(kmlb_cases) && r == 0; i++) {
		nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
		const struct nm_sim_case what = {
			.machine = machine, .workload = &workload, .how = *how};
		for (size_t k = 0; k < NM_ARRAY_SIZE(kmlb_cases[i].published); k++)
			rows[k + 1].published = kmlb_cases[i].published[k];
		nm_paper_head(kmlb_cases[i].title);
		r = nm_paper_fill_kmlb((unsigned)i + 1, &workload);
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
		/* Table 2 of the paper: 22 of its 30 programs are touched by the leader. */
		program->touch =
			(i + 1) * 22 / 30 > i * 22 / 30 ? NM_SIM_TOUCH_MASTER : NM_SIM_TOUCH_OWN;
	}
	return 0;
}

int nm_paper_exclusivity(const struct nm_sim_how *how)
{
	static const struct row rows[] = {
		{"system", 0, {.name = "none"}},
		{"first fit", NAN, {PAPER_BALANCE("first_fit")}},
		{"most benefit plus", -11.1, {PAPER_BALANCE("most_benefit_plus")}},
		{"exclusivity", -10.7, {PAPER_BALANCE("exclusivity")}},
		{"balance (ours)", NAN, {.config = "threads: { policy = \"balance\"; };"}},
		{"best (ours)", NAN, {.config = BEST}},
		A_NODE_EACH,
		IN_ORDER,
		INTERLEAVED,
		KERNEL,
		KERNEL_AND("best", BEST),
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
		&(struct nm_sim_case){.machine = machine, .workload = &workload, .how = *how});
}
