/* SPDX-License-Identifier: MIT */
/* Tables 3 and 5 of the LBMA/IMAR² paper, as published and as simulated; the choice of papers. */
#include "simulate_paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#define PROGRAMS 8U
#define ROWS 4U
#define COLUMNS 10U

#define IMAR2(performance)                                                                         \
	"profile = \"paper\"; threads: { policy = \"imar2\"; performance = \"" performance "\"; "  \
	"};"

/* In the paper's order. */
static const struct nm_sim_policy columns[COLUMNS] = {
	{.name = "baseline"},
	{.name = "direct", .placed = true, .placement = NM_SIM_PLACE_DIRECT},
	{.name = "interleave", .placed = true, .placement = NM_SIM_PLACE_INTERLEAVE},
	{.name = "LBMA", .config = "profile = \"paper\"; threads: { policy = \"lbma\"; };"},
	{.name = "IMAR2", .config = IMAR2("product")},
	{.name = "IMAR2 L", .config = IMAR2("latency")},
	{.name = "IMAR2 OF", .config = IMAR2("operations")},
	{.name = "IMAR2 I", .config = IMAR2("intensity")},
	{.name = "IMAR2 OR,L,I", .config = IMAR2("product_instructions")},
	{.name = "IMAR2 OR", .config = IMAR2("instructions")},
};

/* What no paper has; "kernel": what Debian's kernels do by themselves. */
static const char *const beyond[] = {"kernel", "kernel+lbma", "kernel+imar2", "lbma",
				     "imar2",  "best",	      "oracle"};
enum { SHOWN = COLUMNS + NM_ARRAY_SIZE(beyond) };

struct table {
	const char *title, *machine;
	unsigned threads; /* of a program */
	double idle_s[ROWS];
	double published_s[ROWS][COLUMNS];
};

/* Tables 3 and 5. Table 5's baseline at 48 s contradicts its text and figure 5, which fit 288 s. */
static const struct table ct1 = {
	"LBMA and IMAR2, server ct1 (table 3)",
	"ring-4x10",
	10,
	{0, 50, 100, 200},
	{{2158, 2311, 2233, 1719, 1658, 1867, 1688, 1734, 1744, 1642},
	 {1997, 2225, 1971, 1384, 1490, 1521, 1529, 1532, 1483, 1476},
	 {1877, 1936, 1861, 1384, 1309, 1379, 1376, 1468, 1359, 1386},
	 {1700, 1674, 1647, 1053, 1177, 1253, 1284, 1310, 1225, 1273}},
};
static const struct table ct2 = {
	"LBMA and IMAR2, server ct2 (table 5)",
	"mesh-4x20",
	20,
	{0, 12, 24, 48},
	{{374, 303, 583, 329, 330, 328, 324, 340, 326, 324},
	 {341, 303, 446, 310, 314, 305, 302, 315, 306, 301},
	 {317, 304, 398, 304, 311, 299, 295, 309, 306, 298},
	 {288, 302, 398, 280, 293, 279, 286, 290, 282, 282}},
};

/* ---- lines ---- */

void nm_paper_head(const char *title)
{
	printf("%s\n%-28s %11s %11s %8s  %s\n", title, "", "PUBLISHED %", "SIMULATED %", "+/-",
	       "PUBLISHED AND ORACLE");
}

const char *nm_paper_beyond(double published, double oracle)
{
	if (isnan(published) || isnan(oracle) || published >= 0)
		return "-";
	return published < oracle ? "beyond" : "within";
}

static void print_line(const struct nm_paper_line *line, double oracle)
{
	printf("%-28s ", line->label);
	if (isnan(line->published))
		printf("%11s ", "-");
	else
		printf("%+11.1f ", line->published);
	printf("%+11.1f %8.1f  %s\n", line->simulated, line->error,
	       nm_paper_beyond(line->published, oracle));
}

void nm_paper_lines(const struct nm_paper_line *lines, size_t count)
{
	const struct nm_paper_line *best = NULL;
	for (size_t i = 0; i < count; i++)
		if (lines[i].reachable && (!best || lines[i].simulated < best->simulated))
			best = &lines[i];
	for (size_t i = 0; i < count; i++)
		print_line(&lines[i], best ? best->simulated : (double)NAN);
	if (best)
		printf("the model's oracle: %s, %+.1f\n", best->label, best->simulated);
	(void)fflush(stdout);
}

double nm_paper_change(double now, double before)
{
	return before > 0 ? 100 * (now / before - 1) : (double)NAN;
}

double nm_paper_error(double now, double now_error, double before, double before_error)
{
	return before > 0 ? 100 * hypot(now_error, now / before * before_error) / before
			  : (double)NAN;
}

int nm_paper_four_users(unsigned threads, double idle_s, struct nm_sim_workload *ret)
{
	static const char *const order[] = {"bt", "cg", "dc", "ep", "is", "lu", "sp", "ua"};
	static const unsigned first[] = {0, 2, 4, 6};
	for (size_t u = 0; u < NM_ARRAY_SIZE(first); u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		if (!user)
			return -ENOMEM;
		user->idle_s = idle_s;
		for (unsigned i = 0; i < PROGRAMS; i++)
			if (!nm_sim_user_add(user, order[(first[u] + i) % PROGRAMS], threads))
				return -ENOMEM;
	}
	return 0;
}

/* ---- tables ---- */

/* What a table shows of one policy. */
struct shown {
	char name[32];
	double published_s; /* NAN: in no paper */
	bool reachable;	    /* by hand or by the kernel */
	struct nm_sim_outcome outcome;
};

static void print_row(const struct shown *shown, const struct shown *base, double oracle)
{
	const struct nm_sim_outcome *outcome = &shown->outcome;
	double published = nm_paper_change(shown->published_s, base->published_s);
	printf("  %-14s", shown->name);
	if (isnan(shown->published_s))
		printf("%8s %7s   ", "-", "-");
	else
		printf("%8.0f %+6.1f%%   ", shown->published_s, published);
	printf("%8.0f %+6.1f%% +/- %4.1f%%   local %4.1f%%   %s\n", outcome->slowest_user_s,
	       nm_paper_change(outcome->slowest_user_s, base->outcome.slowest_user_s),
	       shown == base ? 100 * outcome->slowest_error_s / outcome->slowest_user_s
			     : nm_paper_error(outcome->slowest_user_s, outcome->slowest_error_s,
					      base->outcome.slowest_user_s,
					      base->outcome.slowest_error_s),
	       100 * outcome->local_share, nm_paper_beyond(published, oracle));
}

static void print_rows(const struct shown *shown)
{
	const struct shown *best = NULL;
	for (size_t i = 0; i < SHOWN; i++)
		if (shown[i].reachable &&
		    (!best || shown[i].outcome.slowest_user_s < best->outcome.slowest_user_s))
			best = &shown[i];
	double oracle =
		nm_paper_change(best->outcome.slowest_user_s, shown[0].outcome.slowest_user_s);
	for (size_t i = 0; i < SHOWN; i++)
		print_row(&shown[i], &shown[0], oracle);
	printf("  the model's oracle: %s, %+.1f%%\n", best->name, oracle);
	(void)fflush(stdout);
}

static int run_policy(const struct nm_sim_case *what, const struct nm_sim_policy *policy,
		      const char *suffix, double published_s, struct shown *ret)
{
	*ret = (struct shown){.published_s = published_s,
			      .reachable = !policy->config &&
					   (policy->placed || policy->numa_balancing)};
	(void)snprintf(ret->name, sizeof(ret->name), "%s%s", policy->name, suffix);
	return nm_sim_case_run(what, policy, &ret->outcome);
}

static int run_columns(const struct table *table, unsigned row, const struct nm_sim_case *what)
{
	struct shown shown[SHOWN];
	int r = 0;
	for (unsigned c = 0; c < COLUMNS && r == 0; c++)
		r = run_policy(what, &columns[c], "", table->published_s[row][c], &shown[c]);
	for (size_t i = 0; i < NM_ARRAY_SIZE(beyond) && r == 0; i++) {
		const struct nm_sim_policy *policy = nm_sim_policy_by_name(beyond[i]);
		r = run_policy(what, policy, policy->config ? " (ours)" : "", (double)NAN,
			       &shown[COLUMNS + i]);
	}
	if (r == 0)
		print_rows(shown);
	return r;
}

static int run_table(const struct table *table, const struct nm_sim_how *how)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	int r = nm_sim_machine_by_name(table->machine, &machine);
	printf("%s: computation time of the slowest of four users\n%-14s%18s %17s\n", table->title,
	       "", "PUBLISHED s", "SIMULATED s");
	for (unsigned row = 0; row < ROWS && r == 0; row++) {
		nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
		const struct nm_sim_case what = {
			.machine = machine, .workload = &workload, .how = *how};
		printf("idle %.0f s between two programs\n", table->idle_s[row]);
		r = nm_paper_four_users(table->threads, table->idle_s[row], &workload);
		if (r == 0)
			r = run_columns(table, row, &what);
	}
	return r;
}

static int run_ct1(const struct nm_sim_how *how)
{
	return run_table(&ct1, how);
}

static int run_ct2(const struct nm_sim_how *how)
{
	return run_table(&ct2, how);
}

int nm_ctl_simulate_paper(const struct nm_ctl *ctl, const char *name)
{
	static const struct {
		const char *name;
		int (*run)(const struct nm_sim_how *how);
	} papers[] = {
		{"imar2-ct1", run_ct1},
		{"imar2-ct2", run_ct2},
		{"kmaf", nm_paper_kmaf},
		{"kmlb", nm_paper_kmlb},
		{"exclusivity", nm_paper_exclusivity},
		{"auto", nm_paper_auto},
	};
	struct nm_sim_how how = nm_sim_how_of(&ctl->simulate);
	if (how.runs <= 1)
		how.runs = NM_PAPER_RUNS;
	for (size_t i = 0; i < NM_ARRAY_SIZE(papers); i++) {
		if (strcmp(papers[i].name, name) != 0)
			continue;
		int r = papers[i].run(&how);
		return r < 0 ? nm_ctl_simulate_failed(r) : EXIT_SUCCESS;
	}
	(void)fprintf(stderr, "numa-migrctl: no such paper: %s\nThere are:\n", name);
	for (size_t i = 0; i < NM_ARRAY_SIZE(papers); i++)
		(void)fprintf(stderr, "  %s\n", papers[i].name);
	return EX_USAGE;
}
