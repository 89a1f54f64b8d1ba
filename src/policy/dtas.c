/* SPDX-License-Identifier: MIT */
/* Dynamic task-aware scheduling: the threads that wait for memory, and the CPUs for them. */
#include <math.h>
#include <stdlib.h>

#include "policy/balance.h"

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

/* By main CPUs: a thread may have run on other CPUs, too. */
static void count_elsewhere(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; balancer->split && i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		enum nm_dtas_type type = nm_balancer_thread(balancer, i)->behaviour.type;
		if (type == NM_DTAS_EITHER || thread->stats.main_cpu < 0 ||
		    !(thread->stats.run_share > 0))
			continue;
		balancer->tally.typed += thread->stats.run_share;
		if (!nm_dtas_fits(balancer->cpu_types[thread->stats.main_cpu], type, false))
			balancer->tally.elsewhere += thread->stats.run_share;
	}
}

void nm_balancer_follow_types(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	count_elsewhere(balancer, snapshot);
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->active)
			nm_dtas_classify(&nm_balancer_thread(balancer, i)->behaviour,
					 nm_dtas_mpki(thread->stats.traffic / LINE_BYTES,
						      thread->stats.instructions));
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

/* ---- confinement ---- */

struct confinement {
	struct nm_balancer *balancer;
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	double *load; /* per CPU: of its threads, after the moves of this interval; others are
			 ignored */
	bool *moves;  /* per thread: in this interval */
};

static void confinement_clear(struct confinement *confinement)
{
	free(confinement->load);
	free(confinement->moves);
}

static double load_of(const struct confinement *confinement, uint32_t thread)
{
	double load = nm_balancer_load(confinement->balancer, confinement->snapshot, thread);
	return isnan(load) ? 1 : load;
}

static void note_move(struct confinement *confinement, const struct nm_move *move)
{
	double load = load_of(confinement, move->thread);
	confinement->moves[move->thread] = true;
	confinement->load[move->cpu_from] -= load;
	confinement->load[move->cpu_to] += load;
}

static void confinement_init(struct confinement *confinement)
{
	const struct nm_snapshot *snapshot = confinement->snapshot;
	const struct nm_proposals *proposals = &confinement->balancer->proposals;
	size_t nr_cpus = snapshot->topology->nr_cpus;
	confinement->load = nm_must(calloc(nr_cpus + 1, sizeof(*confinement->load)));
	confinement->moves = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*confinement->moves)));
	for (uint32_t i = 0; i < snapshot->nr_threads; i++)
		if (snapshot->threads[i].stats.main_cpu >= 0)
			confinement->load[snapshot->threads[i].stats.main_cpu] +=
				load_of(confinement, i);
	for (size_t i = 0; i < proposals->count; i++)
		note_move(confinement, &proposals->items[i].moves[0]);
}

static bool must_return(const struct confinement *confinement, uint32_t i)
{
	const struct nm_balancer *balancer = confinement->balancer;
	const struct nm_snap_thread *thread = &confinement->snapshot->threads[i];
	enum nm_dtas_type type = nm_balancer_thread(balancer, i)->behaviour.type;
	if (confinement->moves[i] || !thread->movable || !thread->active ||
	    thread->stats.main_node < 0 ||
	    nm_dtas_fits(balancer->cpu_types[thread->stats.main_cpu], type, false))
		return false;
	double others = confinement->load[thread->stats.main_cpu] - load_of(confinement, i);
	return !(others < confinement->config->rules.balance_idle_max);
}

/* Returns the CPU with the lowest load of those of its type on its node, or -1. */
static int find_cpu(const struct confinement *confinement, uint32_t i)
{
	const struct nm_balancer *balancer = confinement->balancer;
	const struct nm_snap_thread *thread = &confinement->snapshot->threads[i];
	enum nm_dtas_type type = nm_balancer_thread(balancer, i)->behaviour.type;
	hwloc_const_bitmap_t cpus =
		balancer->cpus_of_type[thread->stats.main_node * TYPES + (int)type];
	int best = -1;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
		if (confinement->snapshot->cpus[cpu].usable &&
		    hwloc_bitmap_isset(thread->allowed, (unsigned)cpu) &&
		    (best < 0 || confinement->load[cpu] < confinement->load[best]))
			best = cpu;
	return best;
}

static struct nm_proposal return_to(const struct confinement *confinement, uint32_t i, int cpu)
{
	const struct nm_snap_thread *thread = &confinement->snapshot->threads[i];
	const struct nm_balancer_thread_state *known = nm_balancer_thread(confinement->balancer, i);
	return (struct nm_proposal){
		.kind = NM_PROPOSAL_MIGRATE,
		.moves[0] = {.thread = i,
			     .cpu_from = thread->stats.main_cpu,
			     .cpu_to = cpu,
			     .node_from = thread->stats.main_node,
			     .node_to = thread->stats.main_node,
			     .record = NAN,
			     .within = nm_balancer_within(confinement->balancer,
							  known->behaviour.type,
							  thread->stats.main_node, cpu)},
		.draw = NAN,
		.gain = NAN,
		.cost_before = NAN,
		.cost_after = NAN,
		.shared = {NAN, NAN},
		.balance = {.given = true,
			    .selection = confinement->config->threads.selection,
			    .by = NM_SELECTED_BY_TYPE,
			    .metric = NAN,
			    .load = load_of(confinement, i),
			    .load_from = confinement->load[thread->stats.main_cpu],
			    .load_to = confinement->load[cpu],
			    .gap = confinement->balancer->state.gap,
			    .gain = NAN,
			    .resident = NAN,
			    .age_s = NAN},
	};
}

void nm_balancer_confine(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 const struct nm_config *config)
{
	nm_auto(confinement_clear) struct confinement confinement = {
		.balancer = balancer, .snapshot = snapshot, .config = config};
	struct nm_proposals *proposals = &balancer->proposals;
	if (!balancer->split)
		return;
	confinement_init(&confinement);
	proposals->items = nm_must(reallocarray(
		proposals->items, config->rules.moves_per_interval + 1, sizeof(*proposals->items)));
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		if (proposals->count >= config->rules.moves_per_interval)
			break;
		int cpu = must_return(&confinement, i) ? find_cpu(&confinement, i) : -1;
		if (cpu < 0)
			continue;
		proposals->items[proposals->count++] = return_to(&confinement, i, cpu);
		note_move(&confinement, &proposals->items[proposals->count - 1].moves[0]);
		balancer->tally.returned++;
	}
}
