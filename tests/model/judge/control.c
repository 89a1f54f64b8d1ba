/* SPDX-License-Identifier: MIT */
/* Compares the estimate of the control group with what it estimates: the same run without the
 * service. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define REPETITIONS 20U /* of a run; only the draws differ */
#define PROGRAMS 64U	/* of a run */

/* Values of one program of a scenario. */
struct values {
	char comm[NM_TRIAL_COMM_BYTES];
	struct nm_trial_sum sums[NM_TRIAL_MEASURES][NM_TRIAL_ARMS];
};

struct seed {
	struct values programs[PROGRAMS];
	size_t count;
	double changes[NM_TRIAL_MEASURES]; /* logarithms: all managed, compared with none */
};

static struct values *values_of(struct seed *seed, const char *comm)
{
	for (size_t i = 0; i < seed->count; i++)
		if (strcmp(seed->programs[i].comm, comm) == 0)
			return &seed->programs[i];
	if (seed->count == PROGRAMS)
		return NULL;
	(void)snprintf(seed->programs[seed->count].comm, NM_TRIAL_COMM_BYTES, "%s", comm);
	return &seed->programs[seed->count++];
}

static void add_sum(struct nm_trial_sum *to, const struct nm_trial_sum *from)
{
	to->n += from->n;
	to->sum += from->sum;
	to->squares += from->squares;
}

static void take_results(const struct nm_trial *group, struct seed *seed)
{
	struct nm_trial_program *const *programs;
	size_t count = nm_trial_programs(group, &programs);
	for (size_t i = 0; i < count; i++) {
		struct values *values = values_of(seed, programs[i]->comm);
		for (unsigned m = 0; values && m < NM_TRIAL_MEASURES; m++)
			for (unsigned arm = 0; arm < NM_TRIAL_ARMS; arm++)
				add_sum(&values->sums[m][arm],
					&programs[i]->sums[NM_TRIAL_EVIDENCE][m][arm]);
	}
}

/* Gives each program a name of its own, so that it is compared with itself. */
static void name_programs(struct nm_sim_workload *workload)
{
	for (size_t u = 0; u < workload->nr_users; u++)
		for (size_t i = 0; i < workload->users[u].nr_programs; i++)
			(void)snprintf(workload->users[u].programs[i].name, NM_SIM_NAME_BYTES,
				       "u%hu-%hu", (unsigned short)u, (unsigned short)i);
}

/* group: NULL if all programs are managed, or none is, because there is no service. */
static int run(const struct judge_scenario *scenario, const struct nm_sim_machine *machine,
	       uint64_t seed, bool managed, struct nm_trial *group, struct nm_sim_figures *ret)
{
	const struct nm_sim_policy policy = {
		.name = "auto",
		.config = managed ? "threads: { policy = \"auto\"; };" : NULL};
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	struct nm_sim_outcome outcome;
	int r = judge_fill(scenario, machine, seed, &workload);
	if (r < 0)
		return r;
	name_programs(&workload);
	const struct nm_sim_case what = {
		.machine = machine,
		.workload = &workload,
		.how = {.runs = 1,
			.options = {.seed = seed,
				    .wander_per_s = NM_SIM_WANDER_USUAL,
				    .cache_aware = scenario->cache_aware,
				    .group = group,
				    .control_share = 0.5}}};
	r = nm_sim_case_run(&what, &policy, &outcome);
	if (r == 0)
		*ret = outcome.last.figures;
	return r;
}

static int run_seed(const struct judge_scenario *scenario, const struct nm_sim_machine *machine,
		    uint64_t number, struct seed *seed)
{
	struct nm_sim_figures managed, alone, ignored;
	int r = run(scenario, machine, number, true, NULL, &managed);
	if (r == 0)
		r = run(scenario, machine, number, false, NULL, &alone);
	for (unsigned i = 0; r == 0 && i < REPETITIONS; i++) {
		nm_auto(nm_trial_freep) struct nm_trial *group = NULL;
		nm_trial_new(1000 * number + i, &group);
		if (r == 0)
			r = run(scenario, machine, number, true, group, &ignored);
		if (r == 0)
			take_results(group, seed);
	}
	if (r < 0)
		return r;
	seed->changes[NM_TRIAL_ELAPSED] = log(managed.computing_s / alone.computing_s);
	seed->changes[NM_TRIAL_CPU] = log(managed.thread_s / alone.thread_s);
	return 0;
}

static void judge_measure(const struct seed *seeds, unsigned count, unsigned measure,
			  struct nm_trial_row *rows, struct judge_effect *ret)
{
	struct nm_trial_difference total = {.mean = NAN};
	size_t nr_rows = 0;
	double sum = 0;
	for (unsigned s = 0; s < count; s++) {
		sum += seeds[s].changes[measure];
		for (size_t i = 0; i < seeds[s].count; i++) {
			rows[nr_rows].domain = 0;
			nr_rows += nm_trial_compare(seeds[s].programs[i].sums[measure],
						    &rows[nr_rows].difference);
		}
	}
	(void)nm_trial_total(rows, nr_rows, &total);
	*ret = (struct judge_effect){
		.estimate = total.mean,
		.counterfactual = sum / count,
		.units = total.units[NM_TRIAL_CONTROL] + total.units[NM_TRIAL_TREATED]};
}

int judge_control_group(const struct judge_scenario *scenario, unsigned count, uint64_t first_seed,
			struct judge_effect ret[NM_TRIAL_MEASURES])
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_autofree struct seed *seeds = calloc(count, sizeof(*seeds));
	nm_autofree struct nm_trial_row *rows = calloc(count, PROGRAMS * sizeof(*rows));
	int r = seeds && rows ? nm_sim_machine_by_name(scenario->machine, &machine) : -ENOMEM;
	for (unsigned i = 0; r == 0 && i < count; i++)
		r = run_seed(scenario, machine, first_seed + i, &seeds[i]);
	for (unsigned m = 0; r == 0 && m < NM_TRIAL_MEASURES; m++)
		judge_measure(seeds, count, m, rows, &ret[m]);
	return r;
}
