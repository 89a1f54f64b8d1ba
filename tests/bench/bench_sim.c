/* SPDX-License-Identifier: MIT */
/* Simulated thread time per second of CPU time, including the ticks of the daemon. */
#include <string.h>

#include "../model/sim.h"
#include "bench.h"

#define RUNS 5

static double run_once(const struct nm_sim_machine *machine, const struct nm_config *config,
		       uint64_t seed)
{
	struct nm_sim_workload workload = {.limit_s = 300};
	const struct nm_sim_options options = {.seed = seed, .wander_per_s = NM_SIM_WANDER_USUAL};
	struct nm_simulated done;
	for (unsigned i = 0; i < 4; i++) {
		struct nm_sim_user *user = nm_sim_workload_add(&workload, "user");
		if (!user || !nm_sim_user_add(user, "sp", 10))
			abort();
	}
	double before_ns = bench_cpu_ns();
	if (nm_simulate(machine, &workload, &options, config, NULL, &done) < 0)
		abort();
	double took_s = (bench_cpu_ns() - before_ns) / 1e9;
	nm_sim_workload_clear(&workload);
	return done.figures.thread_s / took_s;
}

int main(void)
{
	static const char text[] = "threads: { policy = \"imar2\"; };";
	struct nm_config_errors errors = {0};
	struct nm_config *config = NULL;
	struct nm_sim_machine *machine = NULL;
	double rates[RUNS];
	if (nm_config_parse("bench", text, strlen(text), &errors, &config) < 0 ||
	    nm_sim_machine_by_name("ring-4x10", &machine) < 0)
		return EXIT_FAILURE;
	config->journal.level = NM_JOURNAL_ERROR;
	for (unsigned i = 0; i < RUNS; i++)
		rates[i] = run_once(machine, config, i + 1);
	bench_print("simulate_thread_seconds_per_s", bench_median(rates, RUNS), "s/s");
	nm_sim_machine_free(machine);
	nm_config_free(config);
	return EXIT_SUCCESS;
}
