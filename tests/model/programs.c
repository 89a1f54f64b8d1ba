/* SPDX-License-Identifier: MIT */
/* Built-in programs: the known properties of the NAS Parallel Benchmarks, class C (DC: B), and a
 * few patterns. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

/*
 * There are two kinds of values. The behaviour of the programs is estimated from published
 * properties: the distribution of their arrays (kMAF paper, figures 1 and 2: SP, BT and LU share
 * with neighbours and have exclusive pages; CG, UA and IS read what other threads write; EP shares
 * nothing), footprints (NAS-99-011 and the programs' own output), and the ratios of their run times
 * (LBMA/IMAR2 paper, section 6.1: EP 24 s, IS 3 s, SP the longest). Three values are fitted to
 * table 3 of that paper, server ct1: a factor on all instructions (its baseline at idle 0), twice
 * the misses and overlap of the three streaming programs (CG, IS, SP), and 0.6 of the overlap of
 * the others. Nothing is fitted to any other table.
 */
/* clang-format off */
static const struct {
	const char *name;
	double giga, cpi, flops, vector, misses_per_kilo, overlap;
	double neighbour_part, shared_part;
	double footprint_mb;
	double period_giga; /* of all threads */
	enum nm_sim_touch touch;
} rows[] = {
	{"bt", 6150, 0.55, 0.5, 1.6, 3, 2.4, 0.08, 0.04, 700, 33, NM_SIM_TOUCH_OWN},
	{"cg", 1200, 0.70, 0.2, 1.0, 28, 10, 0.02, 0.30, 950, 17, NM_SIM_TOUCH_OWN},
	{"dc", 2940, 0.80, 0.0, 1.0, 4, 1.8, 0.02, 0.10, 4000, 0, NM_SIM_TOUCH_OWN},
	{"ep", 800, 0.75, 0.4, 1.0, 0.02, 1.2, 0.00, 0.02, 64, 0, NM_SIM_TOUCH_OWN},
	{"is", 80, 0.80, 0.0, 1.0, 24, 12, 0.02, 0.40, 1000, 9, NM_SIM_TOUCH_OWN},
	{"lu", 5610, 0.60, 0.5, 1.4, 5, 2.4, 0.10, 0.04, 650, 25, NM_SIM_TOUCH_OWN},
	{"sp", 4810, 0.60, 0.5, 1.6, 24, 12, 0.08, 0.06, 800, 13, NM_SIM_TOUCH_OWN},
	{"ua", 4270, 0.70, 0.4, 1.2, 6, 2.4, 0.06, 0.14, 500, 23, NM_SIM_TOUCH_OWN},
	/* Patterns: each thread has its own block and endless work. */
	{"stream", 400, 0.50, 0.3, 4.0, 25.0, 8.0, 0.00, 0.00, 2048, 0, NM_SIM_TOUCH_OWN},
	{"stencil", 2000, 0.60, 0.5, 4.0, 10.0, 6.0, 0.20, 0.00, 2048, 10, NM_SIM_TOUCH_OWN},
	{"table", 1000, 0.80, 0.0, 1.0, 8.0, 2.0, 0.00, 1.00, 4096, 0, NM_SIM_TOUCH_MASTER},
	{"compute", 1500, 0.50, 0.8, 4.0, 0.05, 2.0, 0.00, 0.00, 64, 0, NM_SIM_TOUCH_OWN},
};
/* clang-format on */

static const char *const names[] = {"bt", "cg",	    "dc",      "ep",	"is",	   "lu", "sp",
				    "ua", "stream", "stencil", "table", "compute", NULL};

const char *const *nm_sim_programs(void)
{
	return names;
}

struct nm_sim_user *nm_sim_workload_add(struct nm_sim_workload *workload, const char *name)
{
	void *grown =
		reallocarray(workload->users, workload->nr_users + 1, sizeof(*workload->users));
	if (!grown)
		return NULL;
	workload->users = grown;
	struct nm_sim_user *user = &workload->users[workload->nr_users++];
	*user = (struct nm_sim_user){.node = -1};
	(void)snprintf(user->name, sizeof(user->name), "%s", name);
	return user;
}

static int fill_program(struct nm_sim_program *program, size_t row)
{
	double threads = program->threads;
	program->phases = calloc(1, sizeof(*program->phases));
	if (!program->phases)
		return -ENOMEM;
	program->nr_phases = 1;
	program->footprint_mb = rows[row].footprint_mb;
	program->page_kb = 2048;
	program->touch = rows[row].touch;
	program->phases[0] = (struct nm_sim_phase){
		.giga = rows[row].giga / threads,
		.cpi = rows[row].cpi,
		.flops = rows[row].flops,
		.vector = rows[row].vector,
		.misses_per_kilo = rows[row].misses_per_kilo,
		.overlap = rows[row].overlap,
		.private_part = 1 - rows[row].neighbour_part - rows[row].shared_part,
		.neighbour_part = rows[row].neighbour_part,
		.shared_part = rows[row].shared_part,
		.period_giga = rows[row].period_giga / threads,
	};
	return 0;
}

struct nm_sim_program *nm_sim_user_add(struct nm_sim_user *user, const char *program,
				       unsigned threads)
{
	size_t row = 0;
	while (row < NM_ARRAY_SIZE(rows) && strcmp(rows[row].name, program) != 0)
		row++;
	if (row == NM_ARRAY_SIZE(rows) || threads == 0)
		return NULL;
	void *grown = reallocarray(user->programs, user->nr_programs + 1, sizeof(*user->programs));
	if (!grown)
		return NULL;
	user->programs = grown;
	struct nm_sim_program *added = &user->programs[user->nr_programs];
	*added = (struct nm_sim_program){.threads = threads};
	(void)snprintf(added->name, sizeof(added->name), "%s", program);
	if (fill_program(added, row) < 0)
		return NULL;
	user->nr_programs++;
	return added;
}

void nm_sim_workload_clear(struct nm_sim_workload *workload)
{
	for (size_t u = 0; u < workload->nr_users; u++) {
		struct nm_sim_user *user = &workload->users[u];
		for (size_t p = 0; p < user->nr_programs; p++)
			free(user->programs[p].phases);
		free(user->programs);
	}
	free(workload->users);
	*workload = (struct nm_sim_workload){0};
}
