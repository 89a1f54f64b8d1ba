/* SPDX-License-Identifier: MIT */
/*
 * One interval of the decision stages on a machine of 4,096 CPUs and 32 nodes, with 1,000 to
 * 100,000 threads in processes of twenty: adding samples to the metrics, closing the interval, the
 * task table (which adopts a limited number of threads per interval, from synthetic files of
 * /proc), the snapshot, LBMA, the plan and the verdicts. tick_growth_exponent is the exponent k of
 * the growth, time ~ threads^k, from the smallest to the largest number. auto_tick_ms_* is the
 * snapshot and decision of an interval under policy "auto" with the same threads once all are
 * known; nothing is moved, as there is no runtime directory, and no page is moved. Finally, the
 * table of pages with a million entries under ten million distinct pages.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "../../src/daemon/daemon.h"
#include "../../src/daemon/loop.h"
#include "../../src/daemon/pipeline_build.h"
#include "../../src/daemon/report.h"
#include "../../src/daemon/stages.h"
#include "../support/fake_ask.h"
#include "../support/machine.h"
#include "bench.h"
#include "policy/judge.h"
#include "observe/memory.h"
#include "tasks/metrics.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "numa-migrd/snapshot.h"
#include "tasks/tasks.h"

enum { NODES = 32, CPUS = 4096, FIRST_TID = 1000, PER_PROCESS = 20, REPEATS = 5 };
enum { RUN_SAMPLES = 4, ACCESSES = 12 };
enum stage { SAMPLES, CLOSE, ROSTER, SNAPSHOT, POLICY, PLAN, VERIFY, STAGES };

static const char *const stage_names[STAGES] = {"samples", "close", "tasks", "snapshot",
						"policy",  "plan",  "verify"};

/* ---- /proc of identical threads; the number of a directory is that of its thread ---- */

static uint64_t fake_now_ns(struct nm_platform *platform)
{
	(void)platform;
	return 1000 * NM_NSEC_PER_SEC;
}

static int fake_open_directory(struct nm_platform *platform, int directory, const char *path)
{
	unsigned pid, tid;
	(void)platform, (void)directory;
	if (sscanf(path, "proc/%u/task/%u", &pid, &tid) == 2)
		return (int)tid;
	return sscanf(path, "proc/%u", &pid) == 1 ? (int)pid : -ENOENT;
}

static void fake_close(struct nm_platform *platform, int fd)
{
	(void)platform, (void)fd;
}

static int leader_of(int tid)
{
	return tid - (tid - FIRST_TID) % PER_PROCESS;
}

static ssize_t fake_read_file(struct nm_platform *platform, int directory, const char *path,
			      char *buffer, size_t size)
{
	int pid = leader_of(directory);
	(void)platform;
	if (strcmp(path, "stat") == 0)
		return snprintf(
			buffer, size,
			"%d (worker) R 1 %d %d 0 -1 0 11 0 12 0 13 14 0 0 20 0 1 0 5000 4096 25 "
			"18446744073709551615 1 1 140000000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 "
			"0 0 0 0 0 0\n",
			directory, pid, pid);
	if (strcmp(path, "status") == 0)
		return snprintf(
			buffer, size,
			"Name:\tworker\nUmask:\t0022\nState:\tR (running)\nTgid:\t%d\nNgid:\t0\n"
			"Pid:\t%d\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t%d\n"
			"VmRSS:\t 4194304 kB\nThreads:\t20\n",
			pid, directory, directory);
	if (strcmp(path, "statm") == 0)
		return snprintf(buffer, size, "2097152 1048576 0 0 0 0 0\n");
	if (strcmp(path, "cgroup") == 0)
		return snprintf(buffer, size, "0::/\n");
	if (strstr(path, "cpuset.cpus.effective"))
		return snprintf(buffer, size, "0-%d\n", CPUS - 1);
	if (strstr(path, "/schedstat"))
		return snprintf(buffer, size, "5000000000 1000 100\n");
	return strcmp(path, "proc/uptime") == 0 ? snprintf(buffer, size, "1000.00 1.00\n")
						: -ENOENT;
}

static int fake_list_directory(struct nm_platform *platform, int directory, const char *path,
			       nm_name_fn each, void *context)
{
	(void)platform, (void)directory, (void)path, (void)each, (void)context;
	return 0;
}

static int fake_affinity_get(struct nm_platform *platform, pid_t tid, hwloc_bitmap_t ret)
{
	(void)platform, (void)tid;
	return hwloc_bitmap_set_range(ret, 0, CPUS - 1);
}

static int fake_owner(struct nm_platform *platform, int descriptor, struct nm_owner *ret)
{
	(void)platform, (void)descriptor;
	*ret = (struct nm_owner){.uid = 1000};
	return 0;
}

static const struct nm_platform_ops fake_ops = {
	FAKE_ASK,
	.now_ns = fake_now_ns,
	.open_directory = fake_open_directory,
	.close = fake_close,
	.read_file = fake_read_file,
	.list_directory = fake_list_directory,
	.owner = fake_owner,
	.affinity_get = fake_affinity_get,
};

/* ---- one interval ---- */

struct scale {
	struct nm_platform platform;
	struct nm_topology *topology;
	struct nm_config *config;
	struct nm_metrics *metrics;
	struct nm_released_list *memory;
	struct nm_task_table *tasks;
	struct nm_verifier *verifier;
	struct nm_daemon *daemon; /* only for policy "auto" */
	double *busy;
	unsigned threads;
	uint64_t interval, next_id;
	struct nm_rng rng;
	double took_ms[STAGES][REPEATS];
};

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench: %s\n", strerror(-r));
	exit(EXIT_FAILURE);
}

/* Homes are on random nodes, and 33 % of the memory is local. */
static void add_samples(struct scale *scale, unsigned i)
{
	uint32_t tid = FIRST_TID + i;
	struct nm_sample sample = {.kind = NM_EVENT_CLOCK,
				   .tid = tid,
				   .pid = (uint32_t)leader_of((int)tid),
				   .cpu = i * 37 % CPUS,
				   .level = NM_LEVEL_DRAM};
	unsigned home = sample.cpu / (CPUS / NODES);
	unsigned memory = i % 3 ? (home + 1 + i % (NODES - 1)) % NODES : home;
	for (unsigned k = 0; k < RUN_SAMPLES; k++)
		nm_metrics_add(scale->metrics, &sample);
	sample.kind = NM_EVENT_FAULT_MIN;
	for (unsigned k = 0; k < ACCESSES; k++) {
		sample.page_node = memory + 1;
		nm_metrics_add(scale->metrics, &sample);
	}
}

static struct nm_snapshot *build_snapshot(const struct scale *scale,
					  const struct nm_sampled_thread *sampled, size_t count)
{
	struct nm_snapshot *snapshot;
	struct nm_snapshot_input input = {
		.interval = scale->interval,
		.time_ns = (1000 + scale->interval) * NM_NSEC_PER_SEC,
		.topology = scale->topology,
		.config = scale->config,
		.sampled = sampled,
		.nr_sampled = count,
		.busy_share = scale->busy,
	};
	input.nr_managed = nm_tasks_managed(scale->tasks, &input.managed);
	check(nm_snapshot_build(&input, &snapshot));
	return snapshot;
}

static double lap(double *mark)
{
	double now = bench_cpu_ns(), ms = (now - *mark) * 1e-6;
	*mark = now;
	return ms;
}

static void place(struct scale *scale, struct nm_snapshot *snapshot, double ms[STAGES],
		  double *mark)
{
	nm_home_stage_tick(scale->daemon, snapshot, NM_NSEC_PER_SEC);
	ms[POLICY] = lap(mark);
	ms[PLAN] = ms[VERIFY] = 0;
}

static void decide(struct scale *scale, struct nm_snapshot *snapshot, double ms[STAGES],
		   double *mark)
{
	nm_auto(nm_proposals_clear) struct nm_proposals proposals = {0};
	nm_auto(nm_plan_clear) struct nm_plan plan = {0};
	nm_auto(nm_verdicts_clear) struct nm_verdicts verdicts = {0};
	const struct nm_policy_input policy_input = {
		.snapshot = snapshot, .config = scale->config, .rng = &scale->rng};
	(void)nm_lbma_policy.propose(NULL, &policy_input, &proposals);
	ms[POLICY] = lap(mark);
	nm_plan_build(snapshot, scale->config, &proposals, &scale->next_id, &plan);
	ms[PLAN] = lap(mark);
	const struct nm_verifier_input input = {snapshot, NULL, scale->config, NULL};
	nm_verifier_judge(scale->verifier, &input, &verdicts);
	for (size_t i = 0; i < plan.count; i++)
		nm_verifier_add(scale->verifier, NULL, &plan.decisions[i]);
	ms[VERIFY] = lap(mark);
}

static void live_one(struct scale *scale, double ms[STAGES])
{
	const struct nm_sampled_thread *sampled;
	struct nm_metrics_interval interval = {
		.length_ns = NM_NSEC_PER_SEC, .run_sample_ns = 1e8, .keep = 0.9, .min_samples = 10};
	double mark = bench_cpu_ns();
	scale->interval++;
	for (unsigned i = 0; i < scale->threads; i++)
		add_samples(scale, i);
	ms[SAMPLES] = lap(&mark);
	int count = nm_metrics_close(scale->metrics, &interval, &sampled);
	check(count);
	ms[CLOSE] = lap(&mark);
	check(nm_tasks_update(scale->tasks, sampled, (size_t)count,
			      (1000 + scale->interval) * NM_NSEC_PER_SEC));
	ms[ROSTER] = lap(&mark);
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot =
		build_snapshot(scale, sampled, (size_t)count);
	ms[SNAPSHOT] = lap(&mark);
	(scale->daemon ? place : decide)(scale, snapshot, ms, &mark);
}

/* ---- a number of threads ---- */

static void open_scale(struct scale *scale, unsigned threads)
{
	*scale = (struct scale){.platform.ops = &fake_ops, .threads = threads, .next_id = 1};
	nm_rng_seed(&scale->rng, 7);
	scale->topology = machine_topology(NODES, CPUS);
	scale->busy = calloc(CPUS, sizeof(*scale->busy));
	check(scale->topology && scale->busy ? 0 : -ENOMEM);
	check(nm_config_default(&scale->config));
	scale->config->threads.policy = NM_POLICY_LBMA;
	scale->config->targets.min_rss_mb = 1;
	scale->config->targets.min_cpu_percent = 0;
	scale->config->rules.n = 64;
	nm_metrics_new(scale->topology, true, &scale->metrics);
	nm_released_list_new(&scale->memory);
	nm_task_table_new(&scale->platform, scale->topology, scale->config, NULL, scale->memory,
			  &scale->tasks);
	scale->verifier = nm_verifier_new();
}

static void close_scale(struct scale *scale)
{
	nm_verifier_free(scale->verifier);
	nm_task_table_free(scale->tasks);
	nm_released_list_free(scale->memory);
	nm_metrics_free(scale->metrics);
	nm_config_free(scale->config);
	nm_topology_free(scale->topology);
	free(scale->busy);
}

static double resident_mb(void)
{
	long total = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
		exit(EXIT_FAILURE);
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void print_stage(const char *name, const char *what, unsigned threads, double ms)
{
	char line[64];
	snprintf(line, sizeof(line), "scale_%s_%s_%uk", name, what, threads / 1000);
	bench_print(line, ms, "ms");
}

/* Runs intervals until all threads are managed; returns the time of the task table. */
static double adopt(struct scale *scale)
{
	double ms[STAGES], sum = 0;
	do {
		live_one(scale, ms);
		sum += ms[ROSTER];
	} while (nm_tasks_counts(scale->tasks).threads_managed < scale->threads);
	return sum;
}

/* Prints the medians of the stages; returns their sum in ms. */
static double measure(unsigned threads)
{
	struct scale scale;
	double before = resident_mb(), sum = 0;
	open_scale(&scale, threads);
	double adoption_ms = adopt(&scale);
	for (unsigned i = 0; i < REPEATS; i++) {
		double ms[STAGES];
		live_one(&scale, ms);
		for (unsigned stage = 0; stage < STAGES; stage++)
			scale.took_ms[stage][i] = ms[stage];
	}
	for (unsigned stage = 0; stage < STAGES; stage++) {
		double median = bench_median(scale.took_ms[stage], REPEATS);
		print_stage(stage_names[stage], "ms", threads, median);
		sum += median;
	}
	print_stage("adoption", "ms", threads, adoption_ms);
	print_stage("tick", "ms", threads, sum);
	fprintf(stderr, "%u threads: %u managed, %.1f MB\n", threads,
		nm_tasks_counts(scale.tasks).threads_managed, resident_mb() - before);
	if (threads == 100000)
		bench_print("scale_rss_mb_100k", resident_mb() - before, "MB");
	close_scale(&scale);
	return sum;
}

/* ---- policy "auto" ---- */

static void open_daemon(struct scale *scale)
{
	struct nm_daemon *daemon = calloc(1, sizeof(*daemon));
	check(daemon ? 0 : -ENOMEM);
	scale->config->threads.policy = NM_POLICY_AUTO;
	daemon->config = scale->config;
	daemon->options.feed = &(struct nm_feed){0}; /* no worker is needed */
	daemon->machine.load.busy_share = scale->busy;
	daemon->machine.load.nr_cpus = CPUS;
	daemon->next_decision = 1;
	daemon->machine.balancing = -1;
	daemon->pipeline.platform = &scale->platform;
	daemon->pipeline.topology = scale->topology;
	daemon->pipeline.tasks = scale->tasks;
	nm_trial_new(7, &daemon->trial.group);
	nm_journal_new(&daemon->journal);
	check(nm_moves_new(&scale->platform, scale->topology, -1, "", NULL, NULL,
			   &daemon->pipeline.moves));
	daemon->pipeline.assignments = nm_assignments_new();
	scale->daemon = daemon;
}

static void close_daemon(struct nm_daemon *daemon)
{
	nm_home_stage_end(daemon);
	nm_policies_close(&daemon->pipeline.policies);
	nm_history_clear(&daemon->history);
	nm_moves_free(daemon->pipeline.moves);
	nm_assignments_free(daemon->pipeline.assignments);
	nm_trial_free(daemon->trial.group);
	nm_journal_free(daemon->journal);
	free(daemon);
}

#define PROCESSES 2000U

/* The cost of a record of a new or exited process beside all that are known. */
static void measure_events(const struct scale *scale)
{
	static const enum nm_task_event_kind kinds[] = {NM_TASK_FORK, NM_TASK_EXEC, NM_TASK_EXIT};
	struct nm_daemon *daemon = scale->daemon;
	double start = bench_cpu_ns();
	for (uint32_t i = 0; i < 3 * PROCESSES; i++) {
		uint32_t pid = 1000000 + i / 3;
		const struct nm_task_event event = {.kind = kinds[i % 3],
						    .pid = pid,
						    .tid = pid,
						    .parent_pid = 1,
						    .parent_tid = 1};
		nm_moves_task_event(daemon->pipeline.moves, &event);
		nm_tasks_task_event(scale->tasks, &event, NM_NSEC_PER_SEC);
		nm_home_stage_task_event(daemon, &event, NM_NSEC_PER_SEC);
	}
	bench_print("event_us", (bench_cpu_ns() - start) * 1e-3 / (3 * PROCESSES), "us");
}

static void measure_auto(const char *name, unsigned threads)
{
	struct scale scale;
	double took_ms[REPEATS];
	open_scale(&scale, threads);
	open_daemon(&scale);
	(void)adopt(&scale);
	for (unsigned i = 0; i < REPEATS; i++) {
		double ms[STAGES];
		live_one(&scale, ms);
		took_ms[i] = ms[SNAPSHOT] + ms[POLICY];
	}
	bench_print(name, bench_median(took_ms, REPEATS), "ms");
	if (threads == 10000)
		measure_events(&scale);
	close_daemon(scale.daemon);
	close_scale(&scale);
}

/* ---- pages ---- */

#define PAGES 1000000U
#define OFFERED (10ULL * PAGES)

static void measure_pages(void)
{
	struct nm_config *config;
	struct nm_pages *pages;
	uint16_t owner;
	const uint64_t key[4] = {1, 2, 3, 4};
	double before = resident_mb();
	check(nm_config_default(&config));
	config->rules.max_tracked = PAGES;
	nm_pages_new(config, NODES, key, &pages);
	check(nm_pages_open(pages, &owner));
	nm_pages_hold(pages, owner, false);
	double start = bench_cpu_ns();
	for (uint64_t i = 0; i < OFFERED; i++) {
		struct nm_page_finding finding;
		struct nm_page_touch touch = {
			.page = {.address = 0x7f0000000000 + i * 4096, .owner = owner},
			.node = (uint16_t)(i % NODES),
			.page_node = (int16_t)(i / 7 % NODES),
			.thread = (uint16_t)(1 + i % 64)};
		nm_pages_touch(pages, (uint32_t)(100 + i / 1000000), &touch, 1, &finding);
		if (i % 100000 == 0)
			nm_pages_update(pages, (uint32_t)(100 + i / 1000000), 0);
	}
	bench_print("pages_offered_10m_ns", (bench_cpu_ns() - start) / OFFERED, "ns");
	struct nm_pages_counts counts = nm_pages_counts(pages);
	bench_print("pages_offered_10m_tracked", (double)counts.tracked, "pages");
	bench_print("pages_offered_10m_rss_mb", resident_mb() - before, "MB");
	nm_pages_free(pages);
	nm_config_free(config);
}

/* With any argument only the smallest number is measured: the test that this program runs at all. */
int main(int argc, char **argv)
{
	(void)argv;
	double small = measure(1000);
	if (argc > 1) {
		measure_auto("auto_tick_ms_1k", 1000);
		return EXIT_SUCCESS;
	}
	(void)measure(10000);
	double large = measure(100000);
	bench_print("tick_growth_exponent", log(large / small) / log(100), "exponent");
	measure_auto("auto_tick_ms_10k", 10000);
	measure_auto("auto_tick_ms_100k", 100000);
	measure_pages();
	return EXIT_SUCCESS;
}
