/* SPDX-License-Identifier: MIT */
#define SET_UP set_up_four_nodes
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include <math.h>

#include "../support/machine.h"
#include "numa-migrd/base.h"
#include "tasks/metrics.h"

#define SECOND NM_NSEC_PER_SEC
#define RUN_NS 1e7 /* 100 run samples make a second */

struct fixture {
	struct nm_topology *topology;
	struct nm_metrics *metrics;
	const struct nm_figures *figures;
};

static int set_up(struct fixture *f, unsigned nodes, unsigned cpus)
{
	f->topology = machine_topology(nodes, cpus);
	assert_non_null(f->topology);
	nm_metrics_new(f->topology, true, &f->metrics);
	return 0;
}

static int set_up_four_nodes(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){0};
	*state = &fixture;
	return set_up(&fixture, 4, 16);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	nm_metrics_free(f->metrics);
	nm_topology_free(f->topology);
	return 0;
}

static void run_as(struct fixture *f, uint32_t pid, uint32_t tid, uint32_t cpu, unsigned times)
{
	const struct nm_sample sample = {
		.kind = NM_EVENT_CLOCK, .pid = pid, .tid = tid, .cpu = cpu};

	for (unsigned i = 0; i < times; i++)
		nm_metrics_add(f->metrics, &sample);
}

static void run(struct fixture *f, uint32_t tid, uint32_t cpu, unsigned times)
{
	run_as(f, 100, tid, cpu, times);
}

/* page_node as in struct nm_sample. */
static void touch_at(struct fixture *f, uint32_t tid, uint32_t page_node, unsigned times)
{
	const struct nm_sample sample = {.kind = NM_EVENT_FAULT_MIN,
					 .pid = 100,
					 .tid = tid,
					 .address = 0x7000,
					 .page_node = page_node};

	for (unsigned i = 0; i < times; i++)
		nm_metrics_add(f->metrics, &sample);
}

static void touch(struct fixture *f, uint32_t tid, unsigned node, unsigned times)
{
	touch_at(f, tid, node + 1, times);
}

static int close_with(struct fixture *f, double keep)
{
	const struct nm_metrics_interval interval = {
		.length_ns = SECOND, .run_sample_ns = RUN_NS, .keep = keep, .min_samples = 10};

	return nm_metrics_close(f->metrics, &interval, &f->figures);
}

TEST(empty_interval)
{
	assert_int_equal(close_with(*state, 0.5), 0);
}

TEST(counts_runs_and_accesses)
{
	struct fixture *f = *state;

	run(f, 7, 5, 30);
	touch(f, 7, 1, 6);
	touch(f, 7, 3, 2);
	assert_int_equal(close_with(f, 0.0), 1);
	const struct nm_figures *thread = &f->figures[0];
	assert_int_equal(thread->pid, 100);
	assert_int_equal(thread->tid, 7);
	assert_int_equal(thread->run_samples, 30);
	assert_true(fabs(thread->run_share - 0.3) < 1e-12);
	assert_int_equal(thread->main_cpu, 5);
	assert_int_equal(thread->main_node, 1);
	assert_true(thread->main_node_share == 1.0);
	assert_int_equal(thread->access_new, 8);
	assert_true(thread->access_total == 8.0);
	const double expected[] = {0, 6, 0, 2};
	for (unsigned k = 0; k < 4; k++)
		assert_true(thread->accesses[k] == expected[k]);
}

TEST(major_faults_and_cycles_count_too)
{
	struct fixture *f = *state;
	struct nm_sample sample = {.kind = NM_EVENT_CYCLES, .pid = 1, .tid = 1, .cpu = 3};

	nm_metrics_add(f->metrics, &sample);
	sample.kind = NM_EVENT_FAULT_MAJ;
	sample.page_node = 3;
	nm_metrics_add(f->metrics, &sample);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(f->figures[0].run_samples, 1);
	assert_int_equal(f->figures[0].access_new, 1);
}

TEST(run_share_is_at_most_one)
{
	struct fixture *f = *state;

	run(f, 7, 0, 103);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_true(f->figures[0].run_share == 1.0);
}

TEST(metrics_ascend_by_tid)
{
	struct fixture *f = *state;
	struct nm_rng rng;

	nm_rng_seed(&rng, 3);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 500; i++)
			run(f, 1 + (uint32_t)nm_rng_below(&rng, 4000), 0, 1);
		int count = close_with(f, 0.0);
		assert_true(count > 0);
		for (int i = 1; i < count; i++)
			assert_true(f->figures[i - 1].tid < f->figures[i].tid);
	}
}

/* ---- home ---- */

TEST(the_home_is_the_node_with_most_run_time)
{
	struct fixture *f = *state;

	run(f, 7, 1, 2);
	run(f, 7, 9, 3);
	run(f, 7, 1, 2);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(f->figures[0].main_cpu, 1);
	assert_true(fabs(f->figures[0].main_node_share - 4.0 / 7.0) < 1e-12);
}

TEST(a_home_tie_goes_to_the_latest_node)
{
	struct fixture *f = *state;

	run(f, 7, 1, 3);
	run(f, 7, 9, 3);
	run(f, 8, 9, 3);
	run(f, 8, 1, 3);
	assert_int_equal(close_with(f, 0.0), 2);
	assert_int_equal(f->figures[0].main_cpu, 9);
	assert_int_equal(f->figures[1].main_cpu, 1);
}

/* Of 13 CPUs on four nodes, node 2 has most samples although none of its CPUs leads early. */
TEST(many_cpus_preserve_the_home_node)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 10; round++)
		for (uint32_t cpu = 0; cpu < 16; cpu++)
			run(f, 7, cpu, cpu / 4 == 2 ? 3 : 1);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(f->figures[0].main_node, 2);
	assert_int_equal(f->figures[0].main_cpu / 4, 2);
	assert_true(fabs(f->figures[0].main_node_share - 120.0 / 240.0) < 1e-12);
}

/* A CPU with more than 25 % of the samples survives any number of others. */
TEST(a_frequent_cpu_is_never_missed)
{
	struct fixture *f = *state;
	struct nm_rng rng;

	nm_rng_seed(&rng, 11);
	for (unsigned i = 0; i < 1000; i++)
		run(f, 7, nm_rng_below(&rng, 2) ? 6 : (uint32_t)nm_rng_below(&rng, 16), 1);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(f->figures[0].main_cpu, 6);
	assert_int_equal(f->figures[0].main_node, 1);
}

TEST(runs_start_anew_each_interval)
{
	struct fixture *f = *state;

	run(f, 7, 1, 50);
	assert_int_equal(close_with(f, 0.0), 1);
	run(f, 7, 9, 2);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(f->figures[0].run_samples, 2);
	assert_int_equal(f->figures[0].main_cpu, 9);
	assert_int_equal(close_with(f, 0.0), 0);
}

TEST(unknown_cpus_have_no_node)
{
	struct fixture *f = *state;

	f->topology->cpus[3].node = -1;
	run(f, 7, 3, 2);
	run(f, 8, 999, 2);
	assert_int_equal(close_with(f, 0.0), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f->figures[i].main_node, -1);
		assert_true(isnan(f->figures[i].main_node_share));
	}
	assert_int_equal(f->figures[0].main_cpu, 3);
	assert_int_equal(f->figures[1].main_cpu, 999);
}

/* ---- unavailable metrics ---- */

TEST(runs_not_sampled)
{
	struct fixture *f = *state;

	touch(f, 7, 1, 3);
	const struct nm_metrics_interval interval = {.length_ns = SECOND};
	assert_int_equal(nm_metrics_close(f->metrics, &interval, &f->figures), 1);
	assert_true(isnan(f->figures[0].run_share));
	assert_int_equal(f->figures[0].main_cpu, -1);
	assert_int_equal(f->figures[0].main_node, -1);
	assert_true(isnan(f->figures[0].main_node_share));
	assert_true(f->figures[0].access_total == 3.0);
}

TEST(ran_without_accesses)
{
	struct fixture *f = *state;

	run(f, 7, 1, 3);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(f->figures[0].access_total == 0.0);
}

TEST(without_nodes_of_memory)
{
	struct fixture *f = *state;

	nm_metrics_retarget(f->metrics, f->topology, false);
	run(f, 7, 1, 3);
	touch_at(f, 7, 0, 5);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(isnan(f->figures[0].access_total));
	for (unsigned k = 0; k < 4; k++)
		assert_true(isnan(f->figures[0].accesses[k]));
	assert_int_equal(f->figures[0].main_node, 0);
	assert_int_equal(close_with(f, 0.5), 0);
}

/* ---- history ---- */

/* One fault on a huge page represents 512 small ones, but is one sample. */
TEST(a_huge_page_counts_as_its_small_pages)
{
	struct fixture *f = *state;
	struct nm_sample sample = {.kind = NM_EVENT_FAULT_MIN,
				   .pid = 100,
				   .tid = 7,
				   .page_node = 3,
				   .page_bytes = 2 << 20};

	nm_metrics_add(f->metrics, &sample);
	touch(f, 7, 1, 3);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_int_equal(f->figures[0].fresh[2], 512);
	assert_int_equal(f->figures[0].fresh[1], 3);
	assert_true(f->figures[0].access_total == 515.0);
	assert_true(f->figures[0].access_samples == 4.0);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(f->figures[0].access_samples == 2.0);

	sample.page_bytes = UINT64_MAX;
	nm_metrics_add(f->metrics, &sample);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_int_equal(f->figures[0].fresh[2], 1 << 18);
}

TEST(history_decays)
{
	struct fixture *f = *state;

	touch(f, 7, 1, 8);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(f->figures[0].access_total == 8.0);
	touch(f, 7, 2, 4);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(f->figures[0].accesses[1] == 4.0);
	assert_true(f->figures[0].accesses[2] == 4.0);
	assert_int_equal(f->figures[0].access_new, 4);
	assert_int_equal(f->figures[0].fresh[1], 0);
	assert_int_equal(f->figures[0].fresh[2], 4);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_true(f->figures[0].access_total == 4.0);
	assert_int_equal(f->figures[0].access_new, 0);
	assert_int_equal(f->figures[0].fresh[2], 0);
}

TEST(history_ends)
{
	struct fixture *f = *state;
	unsigned intervals = 0;

	touch(f, 7, 1, 8);
	while (close_with(f, 0.5) == 1 && intervals < 1000)
		intervals++;
	assert_in_range(intervals, 8, 20); /* 8 × 2^-n falls below 0.01 */
}

TEST(the_paper_profile_keeps_no_history)
{
	struct fixture *f = *state;

	touch(f, 7, 1, 8);
	assert_int_equal(close_with(f, 0.0), 1);
	assert_int_equal(close_with(f, 0.0), 0);
}

TEST(silent_threads_are_dropped)
{
	struct fixture *f = *state;
	unsigned intervals = 0;

	touch(f, 7, 1, 8);
	while (close_with(f, 1.0) == 1 && intervals < 10000)
		intervals++;
	assert_int_equal(intervals, 601);
}

TEST(dropping_a_query_drops_its_counts)
{
	struct fixture *f = *state;

	touch(f, 7, 1, 8);
	touch(f, 8, 1, 8);
	assert_int_equal(close_with(f, 0.5), 2);
	nm_metrics_forget(f->metrics, 7);
	nm_metrics_forget(f->metrics, 7);
	nm_metrics_forget(f->metrics, 4000000);
	assert_int_equal(close_with(f, 0.5), 1);
	assert_int_equal(f->figures[0].tid, 8);
}

TEST(reused_identifiers_start_empty)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 5; i++) {
		touch(f, 7, 1, 8);
		nm_metrics_forget(f->metrics, 7);
	}
	touch(f, 7, 2, 1);
	touch(f, 9, 2, 1);
	assert_int_equal(close_with(f, 0.5), 2);
	assert_int_equal(f->figures[0].tid, 7);
	assert_true(f->figures[0].access_total == 1.0);
	assert_true(f->figures[0].accesses[1] == 0.0);
	assert_int_equal(f->figures[1].tid, 9);
}

/* An EXIT record may be lost; the other process with the number shows it. */
TEST(a_reused_number_starts_anew)
{
	struct fixture *f = *state;

	touch(f, 7, 1, 8);
	run(f, 7, 1, 8);
	assert_int_equal(close_with(f, 1.0), 1);
	run_as(f, 200, 7, 9, 2);
	assert_int_equal(close_with(f, 1.0), 1);
	assert_int_equal(f->figures[0].pid, 200);
	assert_int_equal(f->figures[0].run_samples, 2);
	assert_true(f->figures[0].access_total == 0.0);
}

/* Compared with a plain model: random work, exits and reuse over many intervals. */
TEST(agrees_with_a_plain_count)
{
	enum { TIDS = 300, ROUNDS = 60 };
	struct fixture *f = *state;
	double model[TIDS][4] = {0};
	struct nm_rng rng;

	nm_rng_seed(&rng, 42);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 400; i++) {
			uint32_t tid = 1 + (uint32_t)nm_rng_below(&rng, TIDS - 1);
			unsigned node = (unsigned)nm_rng_below(&rng, 4);
			if (nm_rng_below(&rng, 20) == 0) {
				nm_metrics_forget(f->metrics, tid);
				memset(model[tid], 0, sizeof(model[tid]));
			} else {
				touch(f, tid, node, 1);
				model[tid][node] += 1.0;
			}
		}
		int count = close_with(f, 1.0), seen = 0;
		for (uint32_t tid = 0; tid < TIDS; tid++) {
			if (model[tid][0] + model[tid][1] + model[tid][2] + model[tid][3] == 0.0)
				continue;
			assert_true(seen < count);
			assert_int_equal(f->figures[seen].tid, tid);
			assert_memory_equal(f->figures[seen].accesses, model[tid],
					    sizeof(model[tid]));
			seen++;
		}
		assert_int_equal(seen, count);
	}
}

/* ---- losses and changes of the machine ---- */

static const struct nm_figures *figures_of(const struct fixture *f, int count, uint32_t tid)
{
	for (int i = 0; i < count; i++)
		if (f->figures[i].tid == tid)
			return &f->figures[i];
	return NULL;
}

/* A process that creates one thread after another does not fill the memory of the daemon, nor
 * displace active threads. */
/* SECURITY: many-threads */
TEST(the_coldest_threads_are_evicted)
{
	enum { HOT = 1000, EACH = NM_METRICS_THREADS_MOST / 2 };
	struct nm_metrics_interval interval = {.keep = 0.9};
	struct fixture *f = *state;
	uint32_t tid = 10 * HOT;

	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t hot = 1; hot <= HOT; hot++)
			run(f, hot, 0, 1);
		for (unsigned i = 0; i < EACH; i++)
			run(f, tid++, 1, 1);
		int count = nm_metrics_close(f->metrics, &interval, &f->figures);
		assert_in_range(count, HOT + EACH, NM_METRICS_THREADS_MOST);
		assert_non_null(figures_of(f, count, HOT));
		assert_non_null(figures_of(f, count, tid - 1));
		assert_int_equal(f->figures[0].run_samples, 1);
	}
	/* More active threads in one interval than can be counted: the last ones are lost until the
	 * next. */
	for (unsigned i = 0; i < 2 * NM_METRICS_THREADS_MOST; i++)
		run(f, tid + i, 1, 1);
	assert_int_equal(nm_metrics_close(f->metrics, &interval, &f->figures),
			 NM_METRICS_THREADS_MOST);
	run(f, 1, 0, 1);
	assert_int_equal(nm_metrics_close(f->metrics, &interval, &f->figures), 1);
}

TEST(what_belongs_to_no_thread_or_node_is_ignored)
{
	struct fixture *f = *state;

	run(f, UINT32_MAX, 0, 2);
	touch_at(f, 7, 0, 3);
	touch_at(f, 7, 5, 1);
	run(f, 0, 0, 5); /* the idle task is not a thread */
	assert_int_equal(close_with(f, 0.0), 0);
}

TEST(retarget_starts_anew)
{
	struct fixture *f = *state;
	nm_auto(nm_topology_freep) struct nm_topology *topology = machine_topology(12, 24);

	assert_non_null(topology);
	touch_at(f, 7, 0, 1);
	touch(f, 7, 1, 8);
	nm_metrics_retarget(f->metrics, topology, true);
	assert_int_equal(close_with(f, 0.5), 0);

	for (uint32_t tid = 1; tid <= 200; tid++) {
		run(f, tid, 23, 1);
		touch(f, tid, tid % 12, 2);
	}
	assert_int_equal(close_with(f, 0.5), 200);
	for (unsigned i = 0; i < 200; i++) {
		const struct nm_figures *thread = &f->figures[i];
		assert_int_equal(thread->main_node, 11);
		assert_true(thread->accesses[thread->tid % 12] == 2.0);
	}
	nm_metrics_retarget(f->metrics, f->topology, true);
}

TEST_BETWEEN(NULL, NULL, a_single_node_is_all_local)
{
	struct fixture f = {0};
	void *single = &f;

	assert_int_equal(set_up(&f, 1, 2), 0);
	run(&f, 7, 1, 1);
	touch_at(&f, 7, 1, 3);
	assert_int_equal(close_with(&f, 0.0), 1);
	assert_true(f.figures[0].accesses[0] == 3.0 && f.figures[0].access_total == 3.0);
	tear_down(&single);
}

TEST_BETWEEN(NULL, NULL, free_takes_null)
{
	nm_metrics_free(NULL);
}

RUN_TESTS()
