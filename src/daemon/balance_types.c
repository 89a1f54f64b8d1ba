/* SPDX-License-Identifier: MIT */
/* Dynamic task-aware scheduling: the threads that wait for memory, and the CPUs for them. */
#include <math.h>

#include "balance.h"

enum { TYPES = NM_DTAS_MEMORY + 1 };
#define PERSIST 2U /* intervals in a row after which the type of a thread changes */
#define SPLIT_NS (10 * NM_NSEC_PER_SEC) /* time after which CPUs are split again */
#define LINE_BYTES 64 /* bytes per miss */
/* Misses per 1000 instructions: a thread counts as memory-bound from MEMORY_FROM, and as
 * compute-bound below COMPUTE_BELOW. */
#define MEMORY_FROM 5
#define COMPUTE_BELOW 3

static void forget_split(struct nm_balancer *balancer)
{
	size_t cells = (size_t)balancer->topology->nr_nodes * TYPES;
	for (size_t i = 0; balancer->leasable && i < cells; i++)
		hwloc_bitmap_free(balancer->leasable[i]);
	free(balancer->leasable);
	free(balancer->cpu_types);
	balancer->leasable = NULL;
	balancer->cpu_types = NULL;
	balancer->split = false;
}

void nm_balance_types_clear(struct nm_balancer *balancer)
{
	forget_split(balancer);
}

/* ---- threads ---- */

static double mpki_of(const struct nm_figures *figures)
{
	return nm_dtas_mpki(figures->traffic / LINE_BYTES, figures->instructions);
}

static void classify(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		     const struct nm_figures *figures, size_t nr_figures)
{
	const struct nm_dtas_rules rules = {.memory_from = MEMORY_FROM,
					    .compute_below = COMPUTE_BELOW,
					    .persist = PERSIST};
	struct nm_known_thread *known = daemon->pipeline.balancer->known;
	size_t at = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		while (at < nr_figures && figures[at].tid < known[i].tid)
			at++;
		if (at < nr_figures && figures[at].tid == known[i].tid &&
		    snapshot->threads[i].active)
			(void)nm_dtas_classify(&known[i].behaviour, &rules, mpki_of(&figures[at]));
	}
}

/* ---- CPUs ---- */

static int list_leasable(struct nm_balancer *balancer)
{
	unsigned nr_nodes = balancer->topology->nr_nodes;
	balancer->leasable = calloc((size_t)nr_nodes * TYPES, sizeof(hwloc_bitmap_t));
	if (!balancer->leasable)
		return -ENOMEM;
	for (unsigned i = 0; i < nr_nodes * TYPES; i++) {
		balancer->leasable[i] = hwloc_bitmap_alloc();
		if (!balancer->leasable[i] ||
		    nm_dtas_cpus(balancer->topology, balancer->cpu_types, (int)(i / TYPES),
				 (enum nm_dtas_type)(i % TYPES), balancer->leasable[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns whether the type of one of the node's CPUs has changed. */
static bool is_changed(const struct nm_balancer *balancer, const enum nm_dtas_type *before,
		       int node)
{
	hwloc_const_bitmap_t cpus = balancer->topology->nodes[node].cpus;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		if (before[cpu] != balancer->cpu_types[cpu])
			return true;
	return false;
}

/* Ends leases of threads whose type, or the type of a CPU of whose node, has changed. */
static void return_leases(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  const enum nm_dtas_type *before)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct nm_known_thread *known = &balancer->known[i];
		int node =
			nm_topology_node_of_cpu(balancer->topology, snapshot->threads[i].main_cpu);
		if (known->leased_as == NM_DTAS_EITHER || node < 0)
			continue;
		if (known->leased_as == known->behaviour.type &&
		    !is_changed(balancer, before, node))
			continue;
		known->leased_as = NM_DTAS_EITHER;
		(void)nm_actuator_return_thread(daemon->pipeline.actuator, known->tid,
						snapshot->threads[i].start_ticks);
	}
}

static int split(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	uint64_t counts[TYPES] = {0};
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].active)
			counts[balancer->known[i].behaviour.type]++;
	nm_autofree enum nm_dtas_type *before = NM_TAKE(balancer->cpu_types);
	forget_split(balancer);
	if (counts[NM_DTAS_MEMORY] + counts[NM_DTAS_COMPUTE] == 0)
		return 0;
	balancer->cpu_types = calloc(balancer->topology->nr_cpus + 1U, sizeof(enum nm_dtas_type));
	if (!balancer->cpu_types)
		return -ENOMEM;
	int r = nm_dtas_split(balancer->topology, counts[NM_DTAS_MEMORY], counts[NM_DTAS_COMPUTE],
			      balancer->cpu_types);
	if (r == 0)
		r = list_leasable(balancer);
	if (r < 0) {
		forget_split(balancer);
		return r;
	}
	balancer->split = true;
	balancer->split_ns = snapshot->time_ns;
	if (before)
		return_leases(daemon, snapshot, before);
	return 0;
}

/* ---- both ---- */

static bool is_sampled(const struct nm_daemon *daemon)
{
	if (!daemon->pipeline.source)
		return false;
	const struct nm_source_status *status = nm_source_status(daemon->pipeline.source);
	return status->has_dram && status->has_instructions;
}

static void report_availability(struct nm_daemon *daemon, bool available)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	if (available != balancer->dtas_reported)
		return;
	balancer->dtas_reported = !available;
	if (available)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "All events that threads.dtas needs are sampled");
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "threads.dtas is off: it needs hardware samples of instructions and of "
			  "memory traffic");
}

int nm_balance_follow_types(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    const struct nm_figures *figures, size_t nr_figures)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	bool available = daemon->config->threads.dtas && is_sampled(daemon);
	if (daemon->config->threads.dtas)
		report_availability(daemon, available);
	if (!available) {
		forget_split(balancer);
		return 0;
	}
	classify(daemon, snapshot, figures, nr_figures);
	if (balancer->split && snapshot->time_ns - balancer->split_ns < SPLIT_NS)
		return 0;
	return split(daemon, snapshot);
}

/* If an idle CPU of the other type was chosen, it now serves the thread that runs there. */
hwloc_const_bitmap_t nm_balance_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				      int node, int cpu)
{
	if (!balancer->split || type == NM_DTAS_EITHER)
		return NULL;
	hwloc_const_bitmap_t cpus = balancer->leasable[node * TYPES + (int)type];
	return hwloc_bitmap_isset(cpus, (unsigned)cpu) ? cpus : NULL;
}
