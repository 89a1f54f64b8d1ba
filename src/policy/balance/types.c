/* SPDX-License-Identifier: MIT */
/* Dynamic task-aware scheduling: the threads that wait for memory, and the CPUs for them. */
#include <stdlib.h>

#include "numa-migrd/balance.h"

enum { TYPES = NM_DTAS_MEMORY + 1 };
#define SPLIT_NS (10 * NM_NSEC_PER_SEC) /* time after which CPUs are split again */
#define LINE_BYTES 64			/* bytes per miss */

void nm_balancer_clear_types(struct nm_balancer *balancer)
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

/* Lists the leased threads whose type, or the type of a CPU of whose node, has changed. Returns
 * their number. */
static size_t end_leases(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 const enum nm_dtas_type *before, uint32_t *ret)
{
	size_t count = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, i);
		int node =
			nm_topology_node_of_cpu(balancer->topology, snapshot->threads[i].main_cpu);
		if (known->leased_as == NM_DTAS_EITHER || node < 0)
			continue;
		if (known->leased_as == known->behaviour.type &&
		    !is_changed(balancer, before, node))
			continue;
		known->leased_as = NM_DTAS_EITHER;
		ret[count++] = (uint32_t)i;
	}
	return count;
}

/* Returns the number of leases that end. Without threads of a type no CPU has one. */
static size_t update_split(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			   uint32_t *ret_ended)
{
	uint64_t counts[TYPES] = {0};
	nm_autofree enum nm_dtas_type *before = NM_TAKE(balancer->cpu_types);
	nm_balancer_clear_types(balancer);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].active)
			counts[nm_balancer_thread(balancer, i)->behaviour.type]++;
	if (counts[NM_DTAS_MEMORY] + counts[NM_DTAS_COMPUTE] == 0)
		return 0;
	/* Divides the CPUs by the numbers of threads of each type. */
	balancer->cpu_types =
		nm_must(calloc(balancer->topology->nr_cpus + 1U, sizeof(enum nm_dtas_type)));
	nm_dtas_split(balancer->topology, counts[NM_DTAS_MEMORY], counts[NM_DTAS_COMPUTE],
		      balancer->cpu_types);
	unsigned nr_nodes = balancer->topology->nr_nodes;
	balancer->leasable = nm_must(calloc((size_t)nr_nodes * TYPES, sizeof(hwloc_bitmap_t)));
	for (unsigned i = 0; i < nr_nodes * TYPES; i++) {
		balancer->leasable[i] = nm_must(hwloc_bitmap_alloc());
		nm_dtas_cpus(balancer->topology, balancer->cpu_types, (int)(i / TYPES),
			     (enum nm_dtas_type)(i % TYPES), balancer->leasable[i]);
	}
	balancer->split = true;
	balancer->split_ns = snapshot->time_ns;
	return before ? end_leases(balancer, snapshot, before, ret_ended) : 0;
}

void nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			      const struct nm_figures *figures, size_t nr_figures,
			      uint32_t *ret_ended, size_t *ret_count)
{
	size_t count = 0, at = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		while (at < nr_figures && figures[at].tid < thread->tid)
			at++;
		if (at < nr_figures && figures[at].tid == thread->tid && thread->active)
			nm_dtas_classify(&nm_balancer_thread(balancer, i)->behaviour,
					 nm_dtas_mpki(figures[at].traffic / LINE_BYTES,
						      figures[at].instructions));
	}
	if (!balancer->split || snapshot->time_ns - balancer->split_ns >= SPLIT_NS)
		count = update_split(balancer, snapshot, ret_ended);
	*ret_count = count;
}

/* If an idle CPU of the other type was chosen, it now serves the thread that runs there. */
hwloc_const_bitmap_t nm_balancer_lease(const struct nm_balancer *balancer, enum nm_dtas_type type,
				       int node, int cpu)
{
	if (!balancer->split || type == NM_DTAS_EITHER)
		return NULL;
	hwloc_const_bitmap_t cpus = balancer->leasable[node * TYPES + (int)type];
	return hwloc_bitmap_isset(cpus, (unsigned)cpu) ? cpus : NULL;
}
