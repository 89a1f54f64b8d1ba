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
	for (size_t i = 0; balancer->cpus_of_type && i < cells; i++)
		hwloc_bitmap_free(balancer->cpus_of_type[i]);
	free(balancer->cpus_of_type);
	free(balancer->cpu_types);
	balancer->cpus_of_type = NULL;
	balancer->cpu_types = NULL;
	balancer->split = false;
}

/* Without threads of a type no CPU has one. */
static void update_split(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	uint64_t counts[TYPES] = {0};
	nm_balancer_clear_types(balancer);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].active)
			counts[nm_balancer_thread(balancer, i)->behaviour.type]++;
	if (counts[NM_DTAS_MEMORY] + counts[NM_DTAS_COMPUTE] == 0)
		return;
	/* Divides the CPUs by the numbers of threads of each type. */
	balancer->cpu_types =
		nm_must(calloc(balancer->topology->nr_cpus + 1U, sizeof(enum nm_dtas_type)));
	nm_dtas_split(balancer->topology, counts[NM_DTAS_MEMORY], counts[NM_DTAS_COMPUTE],
		      balancer->cpu_types);
	unsigned nr_nodes = balancer->topology->nr_nodes;
	balancer->cpus_of_type = nm_must(calloc((size_t)nr_nodes * TYPES, sizeof(hwloc_bitmap_t)));
	for (unsigned i = 0; i < nr_nodes * TYPES; i++) {
		balancer->cpus_of_type[i] = nm_must(hwloc_bitmap_alloc());
		nm_dtas_cpus(balancer->topology, balancer->cpu_types, (int)(i / TYPES),
			     (enum nm_dtas_type)(i % TYPES), balancer->cpus_of_type[i]);
	}
	balancer->split = true;
	balancer->split_ns = snapshot->time_ns;
}

void nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			      const struct nm_figures *figures, size_t nr_figures)
{
	size_t at = 0;
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
		update_split(balancer, snapshot);
}

/* If an idle CPU of the other type was chosen, it now serves the thread that runs there. */
hwloc_const_bitmap_t nm_balancer_within(const struct nm_balancer *balancer, enum nm_dtas_type type,
					int node, int cpu)
{
	if (!balancer->split || type == NM_DTAS_EITHER)
		return NULL;
	hwloc_const_bitmap_t cpus = balancer->cpus_of_type[node * TYPES + (int)type];
	return hwloc_bitmap_isset(cpus, (unsigned)cpu) ? cpus : NULL;
}
