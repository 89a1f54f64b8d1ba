// SPDX-License-Identifier: MIT
/* Workloads of the simulator. An accepted workload is simulated briefly if it is small. */
#include "../model/sim.h"
#include "fuzz.h"

#define THREADS_MOST 64U
#define MB_MOST 256.0
#define STEPS 4

/* libconfig 1.5 does not free the string at which a syntax error is found. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:strbuf_append\nleak:libconfig_yylex\n";
}

static void look_at_phases(const struct nm_sim_program *program)
{
	FUZZ_REQUIRE(program->nr_phases > 0);
	for (size_t i = 0; i < program->nr_phases; i++) {
		const struct nm_sim_phase *phase = &program->phases[i];
		FUZZ_REQUIRE(phase->giga >= 0 && phase->cpi > 0 && phase->idle_s >= 0);
		FUZZ_REQUIRE(phase->misses_per_kilo >= 0 && phase->overlap > 0);
	}
}

/* Is it small enough for a machine with N nodes? */
static bool look(const struct nm_sim_workload *workload, unsigned nr_nodes)
{
	unsigned threads = 0;
	double footprint_mb = 0;
	bool fits = true;

	for (size_t u = 0; u < workload->nr_users; u++) {
		const struct nm_sim_user *user = &workload->users[u];
		FUZZ_REQUIRE(user->nr_programs > 0 && user->start_s >= 0 && user->idle_s >= 0);
		fits = fits && user->node < (int)nr_nodes && user->nr_programs < 8;
		for (size_t p = 0; p < user->nr_programs; p++) {
			const struct nm_sim_program *program = &user->programs[p];
			FUZZ_REQUIRE(program->threads > 0 && program->footprint_mb > 0);
			look_at_phases(program);
			threads +=
				program->threads < THREADS_MOST ? program->threads : THREADS_MOST;
			footprint_mb += program->footprint_mb;
		}
	}
	return fits && threads < THREADS_MOST && footprint_mb < MB_MOST;
}

static void simulate(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload)
{
	const struct nm_sim_options options = {.seed = 1, .step_s = 0.05};
	nm_auto(nm_sim_freep) struct nm_sim *sim = NULL;

	FUZZ_REQUIRE(nm_sim_new(machine, workload, &options, &sim) == 0);
	for (int i = 0; i < STEPS && !nm_sim_is_finished(sim); i++)
		FUZZ_REQUIRE(nm_sim_step(sim) == 0);
	FUZZ_REQUIRE(nm_sim_figures(sim).accesses >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nm_sim_machine *machine;
	struct nm_sim_workload workload = {0};
	char error[256] = "";

	if (!machine)
		FUZZ_REQUIRE(nm_sim_machine_regular(4, 16, &machine) == 0);
	int r = nm_sim_workload_parse("fuzz", (const char *)data, size, error, sizeof(error),
				      &workload);
	FUZZ_REQUIRE(r == 0 || (r == -EINVAL && error[0]));
	if (r == 0 && look(&workload, machine->topology->nr_nodes))
		simulate(machine, &workload);
	if (r == 0)
		nm_sim_workload_clear(&workload);
	return 0;
}
