/* SPDX-License-Identifier: MIT */
/* Overloaded machines for tests and benches of balancing: threads that wait, pages, types. */
#ifndef NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H
#define NUMA_MIGRD_TESTS_BALANCE_FIXTURE_H

#include "interval.h"
#include "policy/balance.h"

struct workload {
	struct machine *machine;      /* tests may change it between two rounds */
	struct nm_snapshot *snapshot; /* of the last round */
	struct nm_balancer *balancer;
	struct nm_balancer_thread_state *threads; /* per thread, for the next round */
	double *pages; /* per process of the machine and node; NaN on node 0: not known */
};

/* Sets the rules of "balance" or "balance-paper". */
static inline void workload_rules(struct workload *workload, const char *policy,
				  enum nm_selection selection)
{
	char text[64];
	snprintf(text, sizeof(text), "threads: { policy = \"%s\"; };", policy);
	machine_configure(&workload->machine->config, text);
	workload->machine->config.threads.selection = selection;
	workload->machine->config.rules.balance_persist = 1;
}

static inline struct workload *workload_new(unsigned nodes, unsigned cpus, size_t most_threads)
{
	struct workload *workload = nm_must(calloc(1, sizeof(*workload)));
	workload->machine = machine_of_size(nodes, cpus / nodes, 1, most_threads);
	workload->threads = nm_must(calloc(most_threads, sizeof(*workload->threads)));
	workload->pages = nm_must(calloc(most_threads * nodes, sizeof(*workload->pages)));
	nm_balancer_new(workload->machine->topology, 1, &workload->balancer);
	workload_rules(workload, "balance", NM_SELECTION_MOST_BENEFIT);
	return workload;
}

static inline void workload_free(struct workload *workload)
{
	nm_balancer_free(workload->balancer);
	nm_snapshot_free(workload->snapshot);
	machine_free(workload->machine);
	free(workload->threads);
	free(workload->pages);
	free(workload);
}

/* Returns the pages of a process by node. */
static inline double *workload_pages(const struct workload *workload, uint32_t pid)
{
	size_t process =
		(size_t)(machine_process(workload->machine, pid) - workload->machine->processes);
	return workload->pages + process * workload->machine->topology->nr_nodes;
}

/* Adds a thread that waited all the time; it leads its process if the PID is its TID, 1000 plus its
 * index. */
static inline size_t workload_thread(struct workload *workload, uint32_t pid, int cpu)
{
	double busy = cpu < 0 ? 0 : workload->machine->busy[cpu];
	size_t i = machine_thread(workload->machine, pid, cpu, -1);
	workload->machine->sampled[i].stats.run_share = 0;
	if (cpu >= 0)
		workload->machine->busy[cpu] = busy;
	workload->threads[i].load = 1;
	workload->threads[i].waiting = true;
	return i;
}

/* Adds N programs of one thread each on a CPU, with their pages on a node. */
static inline void workload_programs(struct workload *workload, int cpu, unsigned count,
				     unsigned memory)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t pid = 1000 + (uint32_t)workload->machine->count;
		workload_thread(workload, pid, cpu);
		workload_pages(workload, pid)[memory] = 10;
	}
}

static inline void workload_hold(struct workload *workload, size_t thread)
{
	workload->machine->managed[thread].backoff_until = workload->machine->interval + 1;
}

/* Divides the CPUs by type. */
static inline void workload_split(struct workload *workload, const enum nm_dtas_type *types)
{
	enum { TYPES = NM_DTAS_MEMORY + 1 };
	const struct nm_topology *topology = workload->machine->topology;
	struct nm_balancer *balancer = workload->balancer;
	balancer->split = true;
	balancer->cpu_types = nm_must(calloc(topology->nr_cpus, sizeof(*types)));
	memcpy(balancer->cpu_types, types, topology->nr_cpus * sizeof(*types));
	balancer->cpus_of_type =
		nm_must(calloc((size_t)topology->nr_nodes * TYPES, sizeof(hwloc_bitmap_t)));
	for (unsigned i = 0; i < topology->nr_nodes * TYPES; i++) {
		balancer->cpus_of_type[i] = nm_must(hwloc_bitmap_alloc());
		nm_dtas_cpus(topology, types, (int)(i / TYPES), (enum nm_dtas_type)(i % TYPES),
			     balancer->cpus_of_type[i]);
	}
}

/* Takes a snapshot; the balancer follows its threads and processes. */
static inline void workload_look(struct workload *workload)
{
	nm_snapshot_free(workload->snapshot);
	workload->snapshot = nm_must(machine_snapshot(workload->machine));
	nm_column_follow_threads(&workload->balancer->threads, workload->snapshot);
	nm_column_follow_processes(&workload->balancer->residences, workload->snapshot);
}

/* Takes a snapshot, and gives the balancer what it knows of it. */
static inline void workload_measure(struct workload *workload)
{
	const struct machine *machine = workload->machine;
	size_t nr_nodes = machine->topology->nr_nodes;
	workload_look(workload);
	for (size_t i = 0; i < machine->count; i++) {
		struct nm_balancer_thread_state *state = nm_balancer_thread(workload->balancer, i);
		*state = workload->threads[i];
		state->read_interval = workload->snapshot->interval;
	}
	for (size_t i = 0; i < machine->nr_processes; i++) {
		struct nm_residence *residence = nm_must(
			nm_column_find(&workload->balancer->residences, machine->processes[i].pid));
		memcpy(residence->pages, workload->pages + i * nr_nodes,
		       nr_nodes * sizeof(*residence->pages));
		residence->known = !isnan(residence->pages[0]);
	}
}

/* Performs a round. Returns the number of moves. */
static inline size_t workload_round(struct workload *workload)
{
	workload_measure(workload);
	nm_balancer_round(workload->balancer, workload->snapshot, &workload->machine->config);
	return workload->balancer->proposals.count;
}

static inline void workload_run_on(struct workload *workload, const struct nm_move *move)
{
	workload->machine->sampled[move->thread].stats.main_cpu = move->cpu_to;
	workload->machine->sampled[move->thread].stats.main_node = move->node_to;
}

#endif
