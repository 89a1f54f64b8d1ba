/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <stdint.h>

#include "../support/machine.h"
#define SCRIPT_STEP() (void)0
#include "../support/script.h"
#include "numa-migrd/base.h"
#include "tasks/metrics.h"

#define RUN_NS 1e7 /* 100 run samples make a second */

static struct nm_topology *topology;
static struct nm_metrics *metrics;
static const struct nm_sampled_thread *sampled;
static unsigned closed; /* intervals */

static void open_metrics(unsigned nodes, unsigned cpus)
{
	topology = machine_topology(nodes, cpus);
	assert_non_null(topology);
	nm_metrics_new(topology, true, &metrics);
}

/* Four nodes of four CPUs. */
static int set_up(void **state)
{
	(void)state;
	open_metrics(4, 16);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_metrics_free(metrics);
	nm_topology_free(topology);
	return 0;
}

static void add(struct nm_sample sample, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		nm_metrics_add(metrics, &sample);
}

static void run(uint32_t tid, uint32_t cpu, unsigned times)
{
	add((struct nm_sample){.kind = NM_EVENT_CLOCK, .pid = 100, .tid = tid, .cpu = cpu}, times);
}

/* page_node as in struct nm_sample. */
static void touch_at(uint32_t tid, uint32_t page_node, uint64_t page_bytes, unsigned times)
{
	add((struct nm_sample){.kind = NM_EVENT_FAULT_MIN,
			       .pid = 100,
			       .tid = tid,
			       .address = 0x7000,
			       .page_node = page_node,
			       .page_bytes = page_bytes},
	    times);
}

static void touch(uint32_t tid, unsigned node, unsigned times)
{
	touch_at(tid, node + 1, 0, times);
}

static int close_with(double keep)
{
	const struct nm_metrics_interval interval = {.length_ns = NM_NSEC_PER_SEC,
						     .run_sample_ns = RUN_NS,
						     .keep = keep,
						     .min_samples = 10};
	closed++;
	return nm_metrics_close(metrics, &interval, &sampled);
}

static int close_unsampled(void)
{
	const struct nm_metrics_interval interval = {.length_ns = NM_NSEC_PER_SEC};
	return nm_metrics_close(metrics, &interval, &sampled);
}

/* ---- words ---- */

/* run 7 on 5 30 times; touch 7 on node1 6 times */
ACTION(run, run(U(0), U(1), U(2)))
ACTION(touch, touch(U(0), U(1), U(2)))
ACTION(touch_nowhere, touch_at(U(0), 0, 0, U(1)))
ACTION(touch_beyond, touch_at(U(0), 5, 0, U(1)))
ACTION(touch_huge, touch_at(U(0), U(1) + 1, (uint64_t)N(2), 1))
ACTION(forget, nm_metrics_forget(metrics, U(0)))
ACTION(without_nodes, nm_metrics_retarget(metrics, topology, false))
ACTION(count_intervals, closed = 0)

WORD(run_as)
{
	add((struct nm_sample){.kind = NM_EVENT_CLOCK, .pid = U(0), .tid = U(1), .cpu = U(2)},
	    U(3));
}

/* sample cycles 1 on 3, or major 1 on node2 */
WORD(sample)
{
	const bool cycles = step_has(step, "cycles");
	add((struct nm_sample){.kind = cycles ? NM_EVENT_CYCLES : NM_EVENT_FAULT_MAJ,
			       .pid = 1,
			       .tid = U(0),
			       .cpu = U(1),
			       .page_node = cycles ? 0 : U(1) + 1},
	    1);
}

WORD(single_node)
{
	assert_int_equal(tear_down(NULL), 0);
	open_metrics(1, 2);
}

/* close 0.5 = 2: the history that is kept, and the number of threads */
QUANTITY(close, close_with(N(0)))
QUANTITY(close_unsampled, close_unsampled())
QUANTITY(closed, closed)
KNOB(cpu_node, topology->cpus[U(0)].node)
QUANTITY(pid, sampled[U(0)].pid)
QUANTITY(tid, sampled[U(0)].tid)
QUANTITY(runs, sampled[U(0)].stats.run_samples)
QUANTITY(run_share, sampled[U(0)].stats.run_share)
QUANTITY(main_cpu, sampled[U(0)].stats.main_cpu)
QUANTITY(main_node, sampled[U(0)].stats.main_node)
QUANTITY(main_share, sampled[U(0)].stats.main_node_share)
QUANTITY(new, sampled[U(0)].stats.fresh_samples)
QUANTITY(total, sampled[U(0)].stats.access_total)
QUANTITY(samples, sampled[U(0)].stats.access_samples)
QUANTITY(accesses, sampled[U(0)].stats.accesses[U(1)])
QUANTITY(fresh, sampled[U(0)].stats.fresh[U(1)])

SCRIPT(empty_interval, "close 0.5 = 0")

SCRIPT(counts_runs_and_accesses,
       "run 7 on 5 30; touch 7 on node1 6; touch 7 on node3 2; close 0 = 1; pid 0 = 100; tid 0 = 7",
       "runs 0 = 30; run_share 0 = 0.3; main_cpu 0 = 5; main_node 0 = 1; main_share 0 = 1",
       "new 0 = 8; total 0 = 8; accesses 0 node0 = 0; accesses 0 node1 = 6",
       "accesses 0 node2 = 0; accesses 0 node3 = 2")

SCRIPT(major_faults_and_cycles_count_too,
       "sample cycles 1 on 3; sample major 1 on node2; close 0 = 1; runs 0 = 1; new 0 = 1")

SCRIPT(run_share_is_at_most_one, "run 7 on 0 103; close 0 = 1; run_share 0 = 1")

TEST(metrics_ascend_by_tid)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 3);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 500; i++)
			run(1 + (uint32_t)nm_rng_below(&rng, 4000), 0, 1);
		int count = close_with(0.0);
		assert_true(count > 0);
		for (int i = 1; i < count; i++)
			assert_true(sampled[i - 1].tid < sampled[i].tid);
	}
}

/* ---- home ---- */

SCRIPT(the_home_is_the_node_with_most_run_time,
       "run 7 on 1 2; run 7 on 9 3; run 7 on 1 2; close 0 = 1; main_cpu 0 = 1",
       "main_share 0 in 0.5714..0.5715")

SCRIPT(a_home_tie_goes_to_the_latest_node,
       "run 7 on 1 3; run 7 on 9 3; run 8 on 9 3; run 8 on 1 3; close 0 = 2; main_cpu 0 = 9",
       "main_cpu 1 = 1")

/* Of each node as often, of node 2 three times. */
WORD(run_everywhere)
{
	for (uint32_t cpu = 0; cpu < 16; cpu++)
		run(7, cpu, cpu / 4 == 2 ? 3 : 1);
}

/* Of 13 CPUs on four nodes, node 2 has most samples although none of its CPUs leads early. */
SCRIPT(many_cpus_preserve_the_home_node, "each 10: run_everywhere",
       "close 0 = 1; main_node 0 = 2; main_cpu 0 in 8..11; main_share 0 = 0.5")

/* A CPU with more than 25 % of the samples survives any number of others. */
TEST(a_frequent_cpu_is_never_missed)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 11);
	for (unsigned i = 0; i < 1000; i++)
		run(7, nm_rng_below(&rng, 2) ? 6 : (uint32_t)nm_rng_below(&rng, 16), 1);
	assert_int_equal(close_with(0.0), 1);
	assert_int_equal(sampled[0].stats.main_cpu, 6);
	assert_int_equal(sampled[0].stats.main_node, 1);
}

SCRIPT(runs_start_anew_each_interval,
       "run 7 on 1 50; close 0 = 1; run 7 on 9 2; close 0 = 1; runs 0 = 2; main_cpu 0 = 9",
       "close 0 = 0")

SCRIPT(unknown_cpus_have_no_node,
       "set cpu_node 3 = -1; run 7 on 3 2; run 8 on 999 2; close 0 = 2; main_node 0 = -1",
       "main_share 0 = nan; main_node 1 = -1; main_share 1 = nan; main_cpu 0 = 3",
       "main_cpu 1 = 999")

/* ---- unavailable metrics ---- */

SCRIPT(runs_not_sampled,
       "touch 7 on node1 3; close_unsampled = 1; run_share 0 = nan; main_cpu 0 = -1",
       "main_node 0 = -1; main_share 0 = nan; total 0 = 3")

SCRIPT(ran_without_accesses, "run 7 on 1 3; close 0.5 = 1; total 0 = 0")

SCRIPT(without_nodes_of_memory,
       "without_nodes; run 7 on 1 3; touch_nowhere 7 5; close 0.5 = 1; total 0 = nan",
       "accesses 0 node0 = nan; accesses 0 node1 = nan; accesses 0 node2 = nan",
       "accesses 0 node3 = nan; main_node 0 = 0; close 0.5 = 0")

/* ---- history ---- */

/* One fault on a huge page represents 512 small ones, but is one sample. At most 1 GiB counts. */
SCRIPT(a_huge_page_counts_as_its_small_pages,
       "touch_huge 7 on node2 2M; touch 7 on node1 3; close 0.5 = 1; fresh 0 node2 = 512",
       "fresh 0 node1 = 3; total 0 = 515; samples 0 = 4; close 0.5 = 1; samples 0 = 2",
       "touch_huge 7 on node2 8e18; close 0.5 = 1; fresh 0 node2 = 262144")

SCRIPT(history_decays,
       "touch 7 on node1 8; close 0.5 = 1; total 0 = 8; touch 7 on node2 4; close 0.5 = 1",
       "accesses 0 node1 = 4; accesses 0 node2 = 4; new 0 = 4; fresh 0 node1 = 0",
       "fresh 0 node2 = 4; close 0.5 = 1; total 0 = 4; new 0 = 0; fresh 0 node2 = 0")

/* 8 * 2^-n falls below 0.01. */
SCRIPT(history_ends,
       "touch 7 on node1 8; count_intervals; until close 0.5 = 0 within 20; closed in 9..21")

SCRIPT(the_paper_profile_keeps_no_history, "touch 7 on node1 8; close 0 = 1; close 0 = 0")

SCRIPT(silent_threads_are_dropped,
       "touch 7 on node1 8; count_intervals; until close 1 = 0 within 700; closed = 602")

SCRIPT(dropping_a_query_drops_its_counts,
       "touch 7 on node1 8; touch 8 on node1 8; close 0.5 = 2; forget 7; forget 7",
       "forget 4000000; close 0.5 = 1; tid 0 = 8")

SCRIPT(reused_identifiers_start_empty, "each 5: touch 7 on node1 8; forget 7",
       "touch 7 on node2 1; touch 9 on node2 1; close 0.5 = 2; tid 0 = 7; total 0 = 1",
       "accesses 0 node1 = 0; tid 1 = 9")

/* An EXIT record may be lost; the other process with the number shows it. */
SCRIPT(a_reused_number_starts_anew,
       "touch 7 on node1 8; run 7 on 1 8; close 1 = 1; run_as 200 7 on 9 2; close 1 = 1",
       "pid 0 = 200; runs 0 = 2; total 0 = 0")

/* Compared with a plain model: random work, exits and reuse over many intervals. */
TEST(agrees_with_a_plain_count)
{
	enum { TIDS = 300, ROUNDS = 60 };
	double model[TIDS][4] = {0};
	struct nm_rng rng;

	nm_rng_seed(&rng, 42);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 400; i++) {
			uint32_t tid = 1 + (uint32_t)nm_rng_below(&rng, TIDS - 1);
			unsigned node = (unsigned)nm_rng_below(&rng, 4);
			if (nm_rng_below(&rng, 20) == 0) {
				nm_metrics_forget(metrics, tid);
				memset(model[tid], 0, sizeof(model[tid]));
			} else {
				touch(tid, node, 1);
				model[tid][node] += 1.0;
			}
		}
		int count = close_with(1.0), seen = 0;
		for (uint32_t tid = 0; tid < TIDS; tid++) {
			if (model[tid][0] + model[tid][1] + model[tid][2] + model[tid][3] == 0.0)
				continue;
			assert_true(seen < count);
			assert_int_equal(sampled[seen].tid, tid);
			assert_memory_equal(sampled[seen].stats.accesses, model[tid],
					    sizeof(model[tid]));
			seen++;
		}
		assert_int_equal(seen, count);
	}
}

/* ---- losses and changes of the machine ---- */

static const struct nm_sampled_thread *sampled_of(const int count, uint32_t tid)
{
	for (int i = 0; i < count; i++)
		if (sampled[i].tid == tid)
			return &sampled[i];
	return NULL;
}

/* A process that creates one thread after another does not fill the memory of the daemon, nor
 * displace active threads. */
/* SECURITY: many-threads */
TEST(the_coldest_threads_are_evicted)
{
	enum { HOT = 1000, EACH = NM_METRICS_THREADS_MOST / 2 };
	struct nm_metrics_interval interval = {.keep = 0.9};
	uint32_t tid = 10 * HOT;

	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t hot = 1; hot <= HOT; hot++)
			run(hot, 0, 1);
		for (unsigned i = 0; i < EACH; i++)
			run(tid++, 1, 1);
		int count = nm_metrics_close(metrics, &interval, &sampled);
		assert_in_range(count, HOT + EACH, NM_METRICS_THREADS_MOST);
		assert_non_null(sampled_of(count, HOT));
		assert_non_null(sampled_of(count, tid - 1));
		assert_int_equal(sampled[0].stats.run_samples, 1);
	}
	/* More active threads in one interval than can be counted: the last ones are lost until the
	 * next. */
	for (unsigned i = 0; i < 2 * NM_METRICS_THREADS_MOST; i++)
		run(tid + i, 1, 1);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), NM_METRICS_THREADS_MOST);
	run(1, 0, 1);
	assert_int_equal(nm_metrics_close(metrics, &interval, &sampled), 1);
}

/* The idle task is not a thread. */
SCRIPT(what_belongs_to_no_thread_or_node_is_ignored,
       "run 4294967295 on 0 2; touch_nowhere 7 3; touch_beyond 7 1; run 0 on 0 5; close 0 = 0")

TEST(retarget_starts_anew)
{
	nm_auto(nm_topology_freep) struct nm_topology *larger = machine_topology(12, 24);

	assert_non_null(larger);
	touch_at(7, 0, 0, 1);
	touch(7, 1, 8);
	nm_metrics_retarget(metrics, larger, true);
	assert_int_equal(close_with(0.5), 0);

	for (uint32_t tid = 1; tid <= 200; tid++) {
		run(tid, 23, 1);
		touch(tid, tid % 12, 2);
	}
	assert_int_equal(close_with(0.5), 200);
	for (unsigned i = 0; i < 200; i++) {
		const struct nm_sampled_thread *thread = &sampled[i];
		assert_int_equal(thread->stats.main_node, 11);
		assert_true(thread->stats.accesses[thread->tid % 12] == 2.0);
	}
	nm_metrics_retarget(metrics, topology, true);
}

SCRIPT(a_single_node_is_all_local,
       "single_node; run 7 on 1 1; touch 7 on node0 3; close 0 = 1; accesses 0 node0 = 3",
       "total 0 = 3")

TEST_BETWEEN(NULL, NULL, free_takes_null)
{
	nm_metrics_free(NULL);
}

RUN_TESTS()
