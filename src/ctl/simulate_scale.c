/* SPDX-License-Identifier: MIT */
/* How decisions' time, memory and quality grow with the machine. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "simulate.h"

#define PROCESS_THREADS 50U
#define SIMULATED_S 12.0

static const struct {
	unsigned nodes, cpus, threads;
} sizes[] = {
	{2, 64, 100},	   {4, 128, 400},     {4, 256, 1000},	  {8, 512, 4000},
	{16, 1024, 10000}, {32, 2048, 30000}, {32, 4096, 100000},
};

/* Half streams with memory of its own, half works on its table; a quarter of the CPUs stays free
 * where there are as many. */
static int fill(struct nm_sim_workload *workload, unsigned threads)
{
	workload->limit_s = SIMULATED_S;
	for (unsigned begun = 0; begun < threads; begun += PROCESS_THREADS) {
		struct nm_sim_user *user = nm_sim_workload_add(workload, "scale");
		bool even = begun / PROCESS_THREADS % 2 == 0;
		struct nm_sim_program *program =
			user ? nm_sim_user_add(user, even ? "stencil" : "bt", PROCESS_THREADS)
			     : NULL;
		if (!program)
			return -ENOMEM;
		program->phases[0].giga = 1e6; /* to the end of the time */
	}
	return 0;
}

static int run_size(size_t i, uint64_t seed, struct nm_simulated *ret, size_t *ret_bytes)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	static const char text[] = "threads: { policy = \"imar2\"; warmup_s = 1.0; };";
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	struct nm_sim_options options = {.seed = seed};
	int r = nm_sim_machine_regular(sizes[i].nodes, sizes[i].cpus, &machine);
	if (r == 0)
		r = fill(&workload, sizes[i].threads);
	if (r == 0)
		r = nm_config_parse("scale", text, strlen(text), &errors, &config);
	if (r < 0)
		return r;
	config->journal.level = NM_JOURNAL_ERROR;
	r = nm_simulate(machine, &workload, &options, config, NULL, ret);
	*ret_bytes = mallinfo2().arena + mallinfo2().hblkhd;
	return r;
}

static void print_size(size_t i, const struct nm_simulated *run, double exponent)
{
	const struct nm_sim_figures *figures = &run->figures;
	double intervals = (double)run->intervals;
	printf("%5u %6u %8u %9.2f %9.2f %8.2f %9.1f %8.1f", sizes[i].nodes, sizes[i].cpus,
	       sizes[i].threads, 1000 * run->decide_s / intervals, 1000 * run->longest_tick_s,
	       1e6 * run->decide_s / intervals / sizes[i].threads,
	       (double)run->decisions / intervals,
	       100 * figures->local_accesses / figures->accesses);
	if (isnan(exponent))
		printf("%9s\n", "-");
	else
		printf("%9.2f\n", exponent);
}

/* Of a tick's time in the number of threads, from one row to the next. */
static double growth(const struct nm_simulated *now, const struct nm_simulated *before, size_t i)
{
	if (i == 0 || !(before->decide_s > 0))
		return (double)NAN;
	return log(now->decide_s / before->decide_s) /
	       log((double)sizes[i].threads / sizes[i - 1].threads);
}

int nm_ctl_simulate_scale(const struct nm_ctl *ctl)
{
	struct nm_simulated before = {0};
	printf("%5s %6s %8s %9s %9s %8s %9s %8s %8s\n", "NODES", "CPUS", "THREADS", "TICK ms",
	       "MOST ms", "us/THR", "MOVES/T", "LOCAL %", "GROWTH");
	for (size_t i = 0; i < NM_ARRAY_SIZE(sizes); i++) {
		struct nm_simulated run;
		size_t bytes = 0;
		int r = run_size(i, ctl->simulate.seed, &run, &bytes);
		if (r < 0)
			return nm_ctl_simulate_failed(r);
		print_size(i, &run, growth(&run, &before, i));
		(void)fflush(stdout);
		before = run;
	}
	return EXIT_SUCCESS;
}
