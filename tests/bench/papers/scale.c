/* SPDX-License-Identifier: MIT */
/* How decisions' time, memory and quality grow with the machine. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "papers.h"

#define PROCESS_THREADS 50U
#define SIMULATED_S 12.0

struct size {
	unsigned nodes, cpus, threads;
};

static const struct size busy[] = {
	{2, 64, 48},	 {4, 128, 96},	   {4, 256, 192},    {8, 512, 384},
	{16, 1024, 768}, {32, 2048, 1536}, {32, 4096, 3072},
};
static const struct size crowded[] = {
	{2, 64, 100},	   {4, 128, 400},     {4, 256, 1000},	  {8, 512, 4000},
	{16, 1024, 10000}, {32, 2048, 30000}, {32, 4096, 100000},
};

static const struct {
	const char *title;
	const struct size *sizes;
	size_t count;
} tables[] = {
	{"Three busy threads on four CPUs", busy, NM_ARRAY_SIZE(busy)},
	{"Ever more threads on a CPU, all of which want to run", crowded, NM_ARRAY_SIZE(crowded)},
};

/* Half streams with memory of its own, half works on its table. */
static int fill(struct nm_sim_workload *workload, unsigned threads)
{
	workload->limit_s = SIMULATED_S;
	for (unsigned begun = 0; begun < threads; begun += PROCESS_THREADS) {
		struct nm_sim_user *user = nm_sim_workload_add(workload, "scale");
		const char *name = begun / PROCESS_THREADS % 2 == 0 ? "stencil" : "bt";
		unsigned left = threads - begun;
		struct nm_sim_program *program =
			user ? nm_sim_user_add(user, name,
					       left < PROCESS_THREADS ? left : PROCESS_THREADS)
			     : NULL;
		if (!program)
			return -ENOMEM;
		program->phases[0].giga = 1e6; /* to the end of the time */
	}
	return 0;
}

/* With a daemon, and without: what the system reaches alone. */
static int run_both(const struct nm_sim_machine *machine, const struct nm_sim_workload *workload,
		    uint64_t seed, struct nm_simulated *ret, struct nm_simulated *ret_alone)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	static const char text[] = "threads: { policy = \"imar2\"; warmup_s = 1.0; };";
	nm_auto(nm_config_errors_clear) struct nm_config_errors errors = {0};
	const struct nm_sim_options options = {.seed = seed, .wander_per_s = NM_SIM_WANDER_USUAL};
	int r = nm_config_parse("scale", text, strlen(text), &errors, &config);
	if (r < 0)
		return r;
	config->journal.level = NM_JOURNAL_ERROR;
	r = nm_simulate(machine, workload, &options, config, NULL, ret);
	return r < 0 ? r : nm_simulate(machine, workload, &options, NULL, NULL, ret_alone);
}

static int run_size(const struct size *size, uint64_t seed, struct nm_simulated *ret,
		    struct nm_simulated *ret_alone)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	nm_auto(nm_sim_workload_clear) struct nm_sim_workload workload = {0};
	int r = nm_sim_machine_regular(size->nodes, size->cpus, &machine);
	if (r == 0)
		r = fill(&workload, size->threads);
	return r < 0 ? r : run_both(machine, &workload, seed, ret, ret_alone);
}

static double tick_s(const struct nm_simulated *run)
{
	return run->decide_s / (double)run->intervals;
}

static double local_percent(const struct nm_simulated *run)
{
	return 100 * run->figures.local_accesses / run->figures.accesses;
}

static void print_size(const struct size *size, const struct nm_simulated *run,
		       const struct nm_simulated *alone, double exponent)
{
	double intervals = (double)run->intervals;
	printf("%5u %6u %8u %9.2f %9.2f %9.2f %8.2f %8.2f %8.1f %8.1f %8.1f", size->nodes,
	       size->cpus, size->threads, 1000 * run->drain_s / intervals, 1000 * tick_s(run),
	       1000 * run->longest_tick_s, 1e6 * tick_s(run) / size->threads,
	       (double)run->daemon_bytes / 1048576, (double)run->decisions / intervals,
	       local_percent(alone), local_percent(run));
	if (isnan(exponent))
		printf(" %8s\n", "-");
	else
		printf(" %8.2f\n", exponent);
	(void)fflush(stdout);
}

/* Of a tick's time in the number of threads, from another size on; that is NULL with the first. */
static double growth(const struct size *size, const struct nm_simulated *now,
		     const struct size *from, const struct nm_simulated *before)
{
	if (!from || !(before->decide_s > 0))
		return (double)NAN;
	return log(tick_s(now) / tick_s(before)) / log((double)size->threads / from->threads);
}

static int run_table(const struct size *sizes, size_t count, uint64_t seed)
{
	struct nm_simulated first = {0}, before = {0};
	printf("%5s %6s %8s %9s %9s %9s %8s %8s %8s %8s %8s %8s\n", "NODES", "CPUS", "THREADS",
	       "DRAIN ms", "TICK ms", "MOST ms", "us/THR", "MiB", "MOVES/T", "ALONE %", "LOCAL %",
	       "GROWTH");
	for (size_t i = 0; i < count; i++) {
		struct nm_simulated run, alone;
		int r = run_size(&sizes[i], seed, &run, &alone);
		if (r < 0)
			return r;
		print_size(&sizes[i], &run, &alone,
			   growth(&sizes[i], &run, i > 0 ? &sizes[i - 1] : NULL, &before));
		before = run;
		if (i == 0)
			first = run;
	}
	printf("From the first row to the last: %.2f\n",
	       growth(&sizes[count - 1], &before, &sizes[0], &first));
	return 0;
}

int papers_scale(uint64_t seed)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(tables); i++) {
		printf("%s%s\n", i > 0 ? "\n" : "", tables[i].title);
		int r = run_table(tables[i].sizes, tables[i].count, seed);
		if (r < 0)
			return r;
	}
	return 0;
}
