/* SPDX-License-Identifier: MIT */
/*
 * A synthetic machine for tests of the stages behind the metrics: topology, configuration, metrics
 * and members from literals, and snapshots of them. Tests may change any field between two calls.
 */
#ifndef NUMA_MIGRD_TESTS_INTERVAL_H
#define NUMA_MIGRD_TESTS_INTERVAL_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "numa-migrd/snapshot.h"

#define MACHINE_SECOND NM_NSEC_PER_SEC

struct machine {
	struct nm_topology *topology;
	struct nm_config config;
	size_t count, capacity; /* threads */
	struct nm_sampled_thread *sampled;
	struct nm_managed_thread *managed;
	hwloc_bitmap_t *masks;	      /* original affinities of the members */
	struct nm_process *processes; /* one per pid */
	size_t nr_processes;
	double *accesses; /* capacity × nr_nodes */
	uint32_t *fresh;
	double *busy; /* per CPU */
	uint64_t interval, now_ns;
	uint32_t kinds; /* sampled kinds, as bits 1 << kind */
	bool had_latencies;
};

/* Parses a configuration text; it has no targets. */
static inline void machine_configure(struct nm_config *config, const char *text)
{
	struct nm_config_errors errors = {0};
	struct nm_config *parsed = NULL;

	if (nm_config_parse("test", text, strlen(text), &errors, &parsed) < 0)
		abort();
	*config = *parsed;
	config->targets.include = config->targets.exclude = (struct nm_target_list){0};
	nm_config_free(parsed);
}

static inline void machine_shipped(struct nm_config *config)
{
	machine_configure(config, "");
}

static inline void machine_paper(struct nm_config *config)
{
	machine_configure(config, "threads: { policy = \"lbma-paper\"; };");
}

/* CPU c of node k is k × cpus_per_node + c; `smt` neighbours share a core. */
static inline struct machine *machine_of_size(unsigned nodes, unsigned cpus_per_node, unsigned smt,
					      size_t capacity)
{
	struct machine *m = calloc(1, sizeof(*m));
	m->topology = machine_topology(nodes, nodes * cpus_per_node);
	for (unsigned cpu = 0; cpu < m->topology->nr_cpus; cpu++)
		m->topology->cpus[cpu].core = (int)(cpu / smt);
	machine_shipped(&m->config);
	m->capacity = capacity;
	m->sampled = calloc(capacity, sizeof(*m->sampled));
	m->masks = calloc(capacity, sizeof(*m->masks));
	m->managed = calloc(capacity, sizeof(*m->managed));
	m->processes = calloc(capacity, sizeof(*m->processes));
	m->accesses = calloc(capacity * nodes, sizeof(*m->accesses));
	m->fresh = calloc(capacity * nodes, sizeof(*m->fresh));
	m->busy = calloc(m->topology->nr_cpus + 1, sizeof(*m->busy));
	m->interval = 100;
	m->now_ns = 1000 * MACHINE_SECOND;
	return m;
}

static inline struct machine *machine_new(unsigned nodes, unsigned cpus_per_node)
{
	return machine_of_size(nodes, cpus_per_node, 1, 64);
}

static inline void machine_free(struct machine *m)
{
	for (size_t i = 0; i < m->count; i++)
		hwloc_bitmap_free(m->masks[i]);
	nm_topology_free(m->topology);
	free(m->sampled);
	free(m->managed);
	free(m->masks);
	free(m->processes);
	free(m->accesses);
	free(m->fresh);
	free(m->busy);
	free(m);
}

static inline struct nm_process *machine_process(struct machine *m, uint32_t pid)
{
	for (size_t i = m->nr_processes; i-- > 0;)
		if (m->processes[i].pid == pid)
			return &m->processes[i];
	struct nm_process *process = &m->processes[m->nr_processes++];
	process->pid = pid;
	process->uid = 1000;
	process->start_ticks = 77;
	process->started_ns = 1 * MACHINE_SECOND;
	snprintf(process->comm, sizeof(process->comm), "prog%u", pid);
	return process;
}

/* Runs thread i on a CPU (-1: none) and keeps it busy. */
static inline void machine_run_on(struct machine *m, size_t i, int cpu)
{
	struct nm_sampled_thread *sampled = &m->sampled[i];
	sampled->stats.main_cpu = cpu;
	sampled->stats.main_node = cpu < 0 ? -1 : m->topology->cpus[cpu].node;
	sampled->stats.main_node_share = cpu < 0 ? 0 : 1;
	sampled->stats.run_share = cpu < 0 ? 0 : 0.9;
	if (cpu >= 0)
		m->busy[cpu] = 0.9;
}

static inline void machine_touch(struct machine *m, size_t i, unsigned node, double accesses)
{
	m->accesses[i * m->topology->nr_nodes + node] = accesses;
	m->fresh[i * m->topology->nr_nodes + node] = (uint32_t)accesses;
	m->sampled[i].stats.access_total = 0;
	m->sampled[i].stats.fresh_samples = (uint32_t)accesses;
	for (unsigned k = 0; k < m->topology->nr_nodes; k++)
		m->sampled[i].stats.access_total += m->accesses[i * m->topology->nr_nodes + k];
	m->sampled[i].stats.access_samples = m->sampled[i].stats.access_total;
}

/* Adds thread 1000 + index of a process that runs on `cpu` with its memory on `node` (-1: no
 * accesses). */
static inline size_t machine_thread(struct machine *m, uint32_t pid, int cpu, int node)
{
	size_t i = m->count++;
	uint32_t tid = 1000 + (uint32_t)i;
	m->masks[i] = hwloc_bitmap_dup(m->topology->usable);
	m->sampled[i] = (struct nm_sampled_thread){
		.pid = pid,
		.tid = tid,
		.stats.latency = NAN,
		.stats.recent_latency = NAN,
		.stats.instructions = NAN,
		.stats.operations = NAN,
		.stats.traffic = NAN,
		.stats.accesses = m->accesses + i * m->topology->nr_nodes,
		.stats.fresh = m->fresh + i * m->topology->nr_nodes};
	m->managed[i] = (struct nm_managed_thread){.tid = tid,
						   .pid = pid,
						   .start_ticks = 5000 + tid,
						   .process = machine_process(m, pid),
						   .original = m->masks[i],
						   .adopted_ns = 1 * MACHINE_SECOND};
	machine_run_on(m, i, cpu);
	if (node >= 0)
		machine_touch(m, i, (unsigned)node, 100);
	return i;
}

/* Enables hardware samples: O_R and O_F per second, bytes per second, L. */
static inline void machine_perform(struct machine *m, size_t i, double instructions,
				   double operations, double traffic, double latency)
{
	m->kinds = 1U << NM_EVENT_MEMORY | 1U << NM_EVENT_INSTRUCTIONS | 1U << NM_EVENT_FLOPS |
		   1U << NM_EVENT_DRAM;
	m->sampled[i].stats.instructions = instructions;
	m->sampled[i].stats.operations = operations;
	m->sampled[i].stats.traffic = traffic;
	m->sampled[i].stats.latency = latency;
	m->sampled[i].stats.latency_samples = isnan(latency) ? 0 : 100;
	m->sampled[i].stats.recent_latency = latency;
	m->sampled[i].stats.recent_latency_samples = m->sampled[i].stats.latency_samples;
}

/* Restricts the thread to these CPUs. */
static inline void machine_allow(struct machine *m, size_t i, const char *list)
{
	hwloc_bitmap_list_sscanf(m->masks[i], list);
}

/* Makes node k a memory-only node whose nearest node with CPUs is `nearest`. */
static inline void machine_take_cpus(struct machine *m, unsigned k, unsigned nearest)
{
	for (unsigned cpu = 0; cpu < m->topology->nr_cpus; cpu++) {
		if (m->topology->cpus[cpu].node != (int)k)
			continue;
		m->topology->cpus[cpu] = (struct nm_cpu){.node = -1, .core = -1, .cache = -1};
		hwloc_bitmap_clr(m->topology->usable, cpu);
	}
	hwloc_bitmap_zero(m->topology->nodes[k].cpus);
	m->topology->nodes[k].nearest_with_cpus = (int)nearest;
}

static inline struct nm_snapshot_input machine_input(const struct machine *m)
{
	return (struct nm_snapshot_input){.interval = m->interval,
					  .time_ns = m->now_ns,
					  .topology = m->topology,
					  .config = &m->config,
					  .sampled = m->sampled,
					  .nr_sampled = m->count,
					  .managed = m->managed,
					  .nr_managed = m->count,
					  .busy_share = m->busy,
					  .kinds = m->kinds,
					  .had_latencies = m->had_latencies};
}

/* Returns NULL without memory or if the input is refused. */
static inline struct nm_snapshot *machine_snapshot(const struct machine *m)
{
	struct nm_snapshot_input input = machine_input(m);
	struct nm_snapshot *snapshot = NULL;
	return nm_snapshot_build(&input, &snapshot) < 0 ? NULL : snapshot;
}

/* Proposals of a lottery, which cannot fail. */
static inline void machine_propose(const struct machine *machine,
				   const struct nm_policy_ops *policy, void *state,
				   const struct nm_snapshot *snapshot, struct nm_rng *rng,
				   struct nm_proposals *ret)
{
	const struct nm_policy_input input = {
		.snapshot = snapshot, .config = &machine->config, .rng = rng};
	(void)policy->propose(state, &input, ret);
}

#endif
