/* SPDX-License-Identifier: MIT */
/*
 * nm_papers [-m] [-r RUNS] [-s SEED] [-w WANDER] TABLE: prints a table of a paper, published and
 * modelled; -m: as rows of the table in docs/simulation.md. Not installed. No parameter is fitted.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "papers.h"

/* Seconds over all runs, and means of what happened. */
struct mean {
	double value, error;
	double moves, pages, samples_s, choices, chosen;
};

/* Change relative to the first row in percent. */
struct line {
	double simulated, error;
	double least, most; /* over the workloads */
	struct mean sums;   /* over the workloads */
};

static double change(double now, double before)
{
	return before > 0 ? 100 * (now / before - 1) : (double)NAN;
}

static double published(const struct papers_table *table, size_t row)
{
	const double *values = table->published;
	if (values[0] > 0)
		return values[row] > 0 ? change(values[row], values[0]) : (double)NAN;
	return values[row] != 0 || row == 0 ? values[row] : (double)NAN;
}

/* ---- runs ---- */

static int run_once(const struct papers_table *table, unsigned index, const struct papers_row *row,
		    const struct nm_sim_machine *machine, const struct nm_sim_how *how,
		    struct mean *ret)
{
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	const struct nm_sim_case what = {.machine = machine, .workload = &workload, .how = *how};
	struct nm_sim_outcome outcome;
	int r = table->fill(table, index, &workload);
	if (r == 0)
		r = nm_sim_case_run(&what, &row->policy, &outcome);
	if (r < 0)
		return r;
	*ret = (struct mean){
		.value = table->slowest ? outcome.slowest_user_s : outcome.computing_s,
		.moves = outcome.moves,
		.pages = outcome.pages_moved,
		.samples_s = outcome.time_s > 0 ? outcome.samples / outcome.time_s : 0,
		.choices = outcome.choices,
		.chosen = outcome.chosen,
	};
	return 0;
}

static void add(struct mean *sum, const struct mean *one, double weight)
{
	sum->value += weight * one->value;
	sum->moves += weight * one->moves;
	sum->pages += weight * one->pages;
	sum->samples_s += weight * one->samples_s;
	sum->choices += weight * one->choices;
	sum->chosen += weight * one->chosen;
}

static int run_all(const struct papers_table *table, unsigned index, const struct papers_row *row,
		   const struct nm_sim_machine *machine, const struct nm_sim_how *how,
		   struct mean *ret)
{
	double squares = 0;
	struct mean sum = {0};
	for (unsigned i = 0; i < how->runs; i++) {
		struct nm_sim_how once = *how;
		struct mean one;
		once.options.seed += i;
		once.runs = 1;
		int r = run_once(table, index, row, machine, &once, &one);
		if (r < 0)
			return r;
		add(&sum, &one, 1.0 / how->runs);
		squares += one.value * one.value / how->runs;
	}
	*ret = sum;
	if (how->runs > 1)
		ret->error = sqrt(fmax(squares - sum.value * sum.value, 0) / (how->runs - 1));
	return 0;
}

/* Adds one workload of the table to its lines. */
static int add_workload(const struct papers_table *table, unsigned index,
			const struct nm_sim_machine *machine, const struct nm_sim_how *how,
			struct line *lines)
{
	struct mean base = {0}, now;
	for (size_t i = 0; i < table->nr_rows; i++) {
		int r = run_all(table, index, &table->rows[i], machine, how, &now);
		if (r < 0)
			return r;
		if (i == 0)
			base = now;
		double percent = change(now.value, base.value);
		double before_error = i > 0 ? now.value / base.value * base.error : 0;
		lines[i].simulated += percent / table->workloads;
		lines[i].error = 100 * hypot(now.error, before_error) / base.value;
		add(&lines[i].sums, &now, 1.0 / table->workloads);
		lines[i].least = fmin(lines[i].least, percent);
		lines[i].most = fmax(lines[i].most, percent);
	}
	return 0;
}

/* ---- output ---- */

static void print_line(const struct papers_table *table, size_t row, const struct line *line)
{
	double percent = published(table, row);
	double error = table->workloads > 1 ? (line->most - line->least) / 2 : line->error;
	printf("%-28s ", table->rows[row].policy.name);
	if (isnan(percent))
		printf("%11s ", "-");
	else
		printf("%+11.1f ", percent);
	printf("%+11.1f %8.1f %9.0f %9.0f %9.0f", line->simulated, error, line->sums.moves,
	       line->sums.pages, line->sums.samples_s);
	if (line->sums.choices > 0)
		printf(" (the rule chose another thread in %.0f of %.0f moves)", line->sums.chosen,
		       line->sums.choices);
	putchar('\n');
}

static void print_markdown(const struct papers_table *table, const struct line *lines)
{
	printf("| %s: %s | %+.1f |", table->title, table->rows[1].policy.name, published(table, 1));
	for (size_t i = 1; i + 1 < table->nr_rows; i++) {
		/* The last two are placements by hand, of which the better one is shown. */
		bool last = i + 2 == table->nr_rows && lines[i + 1].simulated < lines[i].simulated;
		printf(" %+.1f ± %.1f |", lines[i + last].simulated, lines[i + last].error);
	}
	putchar('\n');
	(void)fflush(stdout);
}

static int run_table(const struct papers_table *table, const struct nm_sim_how *how, bool markdown)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	struct line lines[PAPERS_ROWS_MOST];
	int r = nm_sim_machine_by_name(table->machine, &machine);
	for (size_t i = 0; i < table->nr_rows; i++)
		lines[i] = (struct line){.least = INFINITY, .most = -INFINITY, .sums = {0}};
	for (unsigned i = 0; i < table->workloads && r == 0; i++)
		r = add_workload(table, i, machine, how, lines);
	if (r < 0)
		return r;
	if (markdown) {
		print_markdown(table, lines);
		return 0;
	}
	printf("%s: change of the time of %s\n%-28s %11s %11s %8s %9s %9s %9s\n", table->title,
	       table->slowest ? "the slowest user" : "all programs", "", "PUBLISHED %",
	       "SIMULATED %", table->workloads > 1 ? "RANGE/2" : "+/-", "MOVES", "PAGES",
	       "SAMPLES/S");
	for (size_t i = 0; i < table->nr_rows; i++)
		print_line(table, i, &lines[i]);
	(void)fflush(stdout);
	return 0;
}

static int run_name(const char *name, const struct nm_sim_how *how, bool markdown)
{
	int r = -ENOENT;
	for (size_t i = 0; i < papers_table_count; i++) {
		if (strcmp(papers_tables[i].name, name) != 0)
			continue;
		r = run_table(&papers_tables[i], how, markdown);
		if (r < 0)
			break;
	}
	return r;
}

static int usage(void)
{
	(void)fputs("usage: nm_papers [-m] [-r RUNS] [-s SEED] [-w WANDER] TABLE\nTables:", stderr);
	for (size_t i = 0; i < papers_table_count; i++)
		if (i == 0 || strcmp(papers_tables[i].name, papers_tables[i - 1].name) != 0)
			(void)fprintf(stderr, " %s", papers_tables[i].name);
	(void)fputc('\n', stderr);
	return EX_USAGE;
}

int main(int argc, char **argv)
{
	struct nm_sim_how how = {.runs = 5,
				 .options = {.seed = 1, .wander_per_s = NM_SIM_WANDER_USUAL}};
	bool markdown = false;
	for (int c; (c = getopt(argc, argv, "mr:s:w:")) != -1;) {
		if (c == 'm')
			markdown = true;
		else if (c == 'r')
			how.runs = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			how.options.seed = strtoull(optarg, NULL, 10);
		else if (c == 'w')
			how.options.wander_per_s = strtod(optarg, NULL);
		else
			return usage();
	}
	if (optind + 1 != argc || how.runs == 0)
		return usage();
	int r = run_name(argv[optind], &how, markdown);
	if (r == -ENOENT)
		return usage();
	if (r < 0)
		(void)fprintf(stderr, "nm_papers: %s\n", strerror(-r));
	return r < 0;
}
