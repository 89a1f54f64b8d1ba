/* SPDX-License-Identifier: MIT */
/*
 * The cost of one decision on a large machine: a fresh snapshot, LBMA or IMAR² (with its record and
 * feedback) with n = 64, and the plan, for 10,000 threads of 500 processes on 256 CPUs and 8 nodes.
 * Medians over repeats with different seeds.
 */
#include "../support/interval.h"
#include "bench.h"
#include "policy/judge.h"
#include "policy/policy.h"

enum { NODES = 8, CPUS_PER_NODE = 32, SMT = 2, THREADS = 10000, THREADS_PER_PROCESS = 20 };
enum { REPEATS = 31 };

/* Homes are on every CPU and most memory is remote, or all memory is local. */
static struct machine *make_machine(bool settled)
{
	struct machine *m = machine_of_size(NODES, CPUS_PER_NODE, SMT, THREADS);
	struct nm_rng rng;
	nm_rng_seed(&rng, 1);
	for (unsigned i = 0; i < THREADS; i++) {
		int cpu = (int)nm_rng_below(&rng, m->topology->nr_cpus);
		unsigned memory = settled ? (unsigned)m->topology->cpus[cpu].node
					  : (unsigned)nm_rng_below(&rng, NODES);
		size_t thread = machine_thread(m, 1 + i / THREADS_PER_PROCESS, cpu, -1);
		m->sampled[thread].stats.run_share = 0.1;
		m->managed[thread].everywhere = true; /* as reported by the task table */
		for (unsigned node = 0; node < NODES; node++)
			machine_touch(m, thread, node, (double)nm_rng_below(&rng, 50));
		machine_touch(m, thread, memory, 200 + (double)nm_rng_below(&rng, 100));
	}
	return m;
}

/* State of IMAR²; NULL: LBMA. */
struct memory {
	void *record;
	struct nm_feedback *feedback;
};

static void propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct memory *memory, struct nm_rng *rng, struct nm_proposals *ret)
{
	const struct nm_policy_input input = {.snapshot = snapshot, .config = config, .rng = rng};
	struct nm_feedback_result result;
	if (!memory) {
		(void)nm_lbma_policy.propose(NULL, &input, ret);
		return;
	}
	nm_imar2_policy.follow(memory->record, snapshot, config);
	nm_imar2_feedback(memory->feedback, snapshot, config, &result);
	(void)nm_imar2_policy.propose(memory->record, &input, ret);
}

static void remember(const struct nm_snapshot *snapshot, const struct memory *memory,
		     const struct nm_plan *plan)
{
	for (size_t i = 0; memory && i < plan->count; i++)
		for (unsigned k = 0; k < plan->decisions[i].nr_steps; k++)
			nm_feedback_moved(memory->feedback, snapshot, plan->decisions[i].id,
					  plan->decisions[i].steps[k].pid, false);
}

static void tick(struct machine *m, const struct memory *memory, struct nm_rng *rng)
{
	struct nm_proposals proposals;
	struct nm_plan plan;
	uint64_t next_id = 1;
	nm_auto(nm_snapshot_freep) struct nm_snapshot *snapshot = machine_snapshot(m);
	if (!snapshot)
		abort();
	propose(snapshot, &m->config, memory, rng, &proposals);
	nm_plan_build(snapshot, &m->config, &proposals, &next_id, &plan);
	remember(snapshot, memory, &plan);
	m->interval++;
	nm_proposals_clear(&proposals);
	nm_plan_clear(&plan);
}

static void measure(const char *name, struct machine *m, const struct memory *memory)
{
	double took[REPEATS];
	struct nm_rng rng;
	nm_rng_seed(&rng, 7);
	m->config.rules.n = 64;
	tick(m, memory, &rng);
	for (unsigned i = 0; i < REPEATS; i++) {
		double start = bench_cpu_ns();
		tick(m, memory, &rng);
		took[i] = (bench_cpu_ns() - start) * 1e-6;
	}
	bench_print(name, bench_median(took, REPEATS), "ms");
}

/* Every thread was on other nodes before, and most are slow on some node. */
static void make_performances(struct machine *m)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, 3);
	for (size_t i = 0; i < m->count; i++) {
		double speed = 1e9 * (0.1 + nm_rng_unit(&rng));
		machine_perform(m, i, speed, speed, 1e7, 100 + 300 * nm_rng_unit(&rng));
	}
}

static void measure_imar2(const char *name, struct machine *m)
{
	struct memory memory = {.record = nm_imar2_policy.open(m->topology, 4096),
				.feedback = nm_feedback_new()};
	make_performances(m);
	m->config.threads.policy = NM_POLICY_IMAR2;
	measure(name, m, &memory);
	nm_imar2_policy.close(memory.record);
	nm_feedback_free(memory.feedback);
}

int main(void)
{
	struct machine *m = make_machine(false);
	measure("tick_ms_10k", m, NULL);
	measure_imar2("imar2_tick_ms_10k", m);
	machine_paper(&m->config);
	measure("tick_paper_ms_10k", m, NULL);
	measure_imar2("imar2_tick_paper_ms_10k", m);
	machine_free(m);
	m = make_machine(true);
	measure("tick_settled_ms_10k", m, NULL);
	measure_imar2("imar2_tick_settled_ms_10k", m);
	machine_free(m);
	return 0;
}
