/* SPDX-License-Identifier: MIT */
/* Dynamic task-aware scheduling: the threads that wait for memory, and the CPUs for them. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/balance.h"

/* Misses per 1000 instructions from which a thread counts as memory-bound, and below which as
 * compute-bound; in between it keeps its type. */
#define MEMORY_FROM 5
#define COMPUTE_BELOW 3
#define PERSIST 2U /* running intervals in a row that a change takes */
enum { TYPES = NM_DTAS_MEMORY + 1 };
#define SPLIT_NS (10 * NM_NSEC_PER_SEC) /* time after which CPUs are split again */
#define LINE_BYTES 64			/* bytes per miss */

double nm_dtas_mpki(double misses_per_s, double instructions_per_s)
{
	return instructions_per_s > 0 ? misses_per_s / (instructions_per_s / 1000) : (double)NAN;
}

static enum nm_dtas_type speaks_for(double mpki)
{
	if (mpki >= MEMORY_FROM)
		return NM_DTAS_MEMORY;
	return mpki < COMPUTE_BELOW ? NM_DTAS_COMPUTE : NM_DTAS_EITHER;
}

void nm_dtas_classify(struct nm_dtas_behaviour *behaviour, double mpki)
{
	if (isnan(mpki))
		return;
	enum nm_dtas_type leaning = speaks_for(mpki);
	if (leaning != behaviour->leaning)
		behaviour->intervals = 0;
	behaviour->leaning = leaning;
	if (leaning == NM_DTAS_EITHER || leaning == behaviour->type)
		return;
	if (++behaviour->intervals >= PERSIST)
		behaviour->type = leaning;
}

unsigned nm_dtas_memory_cpus(unsigned cpus, uint64_t memory, uint64_t compute)
{
	if (memory == 0 || cpus == 0)
		return 0;
	if (compute == 0)
		return cpus;
	double share = (double)memory / ((double)memory + (double)compute);
	unsigned wanted = (unsigned)round(cpus * share);
	if (wanted == 0)
		return 1;
	return wanted == cpus && cpus > 1 ? cpus - 1 : wanted;
}

/* A CPU with its cache, its core, and its positions in them. */
struct place {
	unsigned cpu;
	int cache, core;
	unsigned core_rank, sibling; /* of the core in its cache, of the CPU in its core */
};

static int by_sharing(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	return NM_COMPARE(a->cache, b->cache)
		       ?: NM_COMPARE(a->core, b->core) ?: NM_COMPARE(a->cpu, b->cpu);
}

/* Alternate cores first, because neighbours may share hardware that is not reported. */
static int by_turn(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	return NM_COMPARE(a->sibling, b->sibling)
		       ?: NM_COMPARE(a->core_rank % 2, b->core_rank % 2)
		       ?: NM_COMPARE(a->core_rank, b->core_rank)
		       ?: NM_COMPARE(a->cache, b->cache) ?: NM_COMPARE(a->cpu, b->cpu);
}

void nm_dtas_split(const struct nm_topology *topology, uint64_t memory, uint64_t compute,
		   enum nm_dtas_type *ret)
{
	nm_autofree struct place *places = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*places)));
	/* An unknown core counts as not shared; an unknown cache counts as shared by the node. */
	size_t count = 0;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		const struct nm_cpu *known = &topology->cpus[cpu];
		if (!hwloc_bitmap_isset(topology->usable, cpu))
			continue;
		places[count++] = (struct place){
			.cpu = cpu,
			.cache = known->cache >= 0 ? known->cache : -2 - known->node,
			.core = known->core >= 0 ? known->core : (int)(topology->nr_cpus + cpu)};
	}
	qsort(places, count, sizeof(*places), by_sharing);
	bool split = memory + compute > 0 && (count > 1 || memory == 0 || compute == 0);
	for (size_t i = 1; i < count; i++) {
		const struct place *before = &places[i - 1];
		if (places[i].cache != before->cache)
			continue;
		if (places[i].core == before->core) {
			places[i].core_rank = before->core_rank;
			places[i].sibling = before->sibling + 1;
		} else {
			places[i].core_rank = before->core_rank + 1;
		}
	}
	qsort(places, count, sizeof(*places), by_turn);
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		ret[cpu] = NM_DTAS_EITHER;
	size_t for_memory = nm_dtas_memory_cpus((unsigned)count, memory, compute);
	for (size_t i = 0; split && i < count; i++)
		ret[places[i].cpu] = i < for_memory ? NM_DTAS_MEMORY : NM_DTAS_COMPUTE;
}

bool nm_dtas_fits(enum nm_dtas_type cpu, enum nm_dtas_type thread, bool idle)
{
	return idle || cpu == thread || cpu == NM_DTAS_EITHER || thread == NM_DTAS_EITHER;
}

void nm_dtas_cpus(const struct nm_topology *topology, const enum nm_dtas_type *types, int node,
		  enum nm_dtas_type thread, hwloc_bitmap_t ret)
{
	hwloc_const_bitmap_t cpus = topology->nodes[node].cpus;
	hwloc_bitmap_zero(ret);
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		if (nm_dtas_fits(types[cpu], thread, false))
			nm_must_do(hwloc_bitmap_set(ret, (unsigned)cpu));
}

/* ---- of the policy ---- */

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
