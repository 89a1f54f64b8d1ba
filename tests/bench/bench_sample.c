/* SPDX-License-Identifier: MIT */
/*
 * The sampling path on one core: from the rings of many CPUs through decoding to metrics per
 * thread. sample_path_ns (all hardware events) and sample_path_faults_ns measure full rings with
 * every kind of record and wraps, per sample, without closing the interval. replayed_cpu_percent is
 * the total for 256 CPUs with 1,000 samples each per interval of one second.
 */
#include <math.h>
#include <stdbool.h>

#include "../support/machine.h"
#include "../support/records.h"
#include "bench.h"
#include "numa-migrd/base.h"
#include "tasks/metrics.h"

#define SEED 20240601U
#define THREADS 10000U
#define FIRST_TID 3000U
#define THREADS_PER_PROCESS 20U
#define NODES 8U
#define REPETITIONS 15U
#define RING_BYTES ((size_t)512 * 1024)
#define RECORD_MOST 64U

enum {
	ID_CLOCK = 1,
	ID_FAULT_MIN,
	ID_FAULT_MAJ,
	ID_MEMORY,
	ID_STORE,
	ID_INSTRUCTIONS,
	ID_FLOPS,
	ID_DRAM = ID_FLOPS + 5,
	ID_SIDEBAND = ID_DRAM + 2,
	IDS
};

/* Source of the samples: page faults, or hardware with all events on. */
enum source_kind { FAULTS, HARDWARE };

struct world {
	unsigned cpus;
	enum source_kind source_kind;
	struct record_ring *rings;
	uint64_t *tails;
	struct nm_ring_layout *layouts;
	struct nm_topology *topology;
	struct nm_physmap *physmap;
	struct nm_metrics *metrics;
	double *zipf; /* cumulative chance of thread i */
	struct nm_rng rng;
};

static void *checked(void *pointer)
{
	if (!pointer) {
		fprintf(stderr, "bench: out of memory\n");
		exit(EXIT_FAILURE);
	}
	return pointer;
}

/* ---- the load ---- */

static uint32_t draw_thread(struct world *world)
{
	double draw = nm_rng_unit(&world->rng) * world->zipf[THREADS - 1];
	uint32_t low = 0, high = THREADS - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (world->zipf[middle] < draw)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Ranks are scattered over the numbers, as those of busy threads are on a real machine. */
static uint32_t tid_of(uint32_t rank)
{
	return FIRST_TID + (uint32_t)((uint64_t)rank * 7919 % THREADS) * 2;
}

static uint32_t pid_of(uint32_t tid)
{
	return tid - (tid - FIRST_TID) % (2 * THREADS_PER_PROCESS);
}

static uint64_t draw_physical(struct world *world, uint32_t tid)
{
	unsigned node = nm_rng_below(&world->rng, 10) < 7
				? tid / 2 % NODES
				: (unsigned)nm_rng_below(&world->rng, NODES);

	return machine_address(node, nm_rng_below(&world->rng, MACHINE_NODE_BYTES) | 8);
}

/* One in 33 records is of an unusual kind. */
static void put_odd_record(struct world *world, struct record_ring *ring, uint32_t cpu,
			   uint32_t pid, uint32_t tid)
{
	uint32_t newborn = FIRST_TID + 2 * THREADS + (uint32_t)nm_rng_below(&world->rng, 1000);
	uint64_t base = (uint64_t)cpu * IDS;

	switch (nm_rng_below(&world->rng, 7)) {
	case 0:
		record_fork_exit(ring, true, (const uint32_t[]){pid, pid, newborn, tid}, 1);
		break;
	case 1:
		record_fork_exit(ring, false, (const uint32_t[]){pid, pid, newborn, tid}, 1);
		break;
	case 2:
		record_comm(ring, nm_rng_below(&world->rng, 2), pid, newborn, "worker", 1);
		break;
	case 3:
		record_lost(ring, base + ID_FAULT_MIN, 1);
		break;
	case 4:
		record_lost_samples(ring, base + ID_FAULT_MIN, 1);
		break;
	case 5:
		record_throttle(ring, nm_rng_below(&world->rng, 2), base + ID_FAULT_MIN);
		break;
	default:
		record_run(ring, UINT64_MAX, pid, tid, 1); /* an unknown id */
		break;
	}
}

static void put_access(struct world *world, uint32_t cpu, uint32_t tid)
{
	static const uint64_t sources[] = {0x229080142, 0x629800842,   0x1a49081042, 0x229080144,
					   0x51088842,	0x11868100242, 0x49080442,   0x1a49081042};
	struct record_ring *ring = &world->rings[cpu];
	uint64_t draw = nm_rng_below(&world->rng, 8);

	record_memory(ring, &(struct record_access){.id = (uint64_t)cpu * IDS +
							  (draw ? ID_MEMORY : ID_STORE),
						    .pid = pid_of(tid),
						    .tid = tid,
						    .time = ring->head,
						    .address = 0x7f0000000000 + ring->head,
						    .weight = 30 + nm_rng_below(&world->rng, 500),
						    .data_src = sources[draw],
						    .physical = draw_physical(world, tid)});
}

static void put_hardware_record(struct world *world, uint32_t cpu, uint32_t tid)
{
	struct record_ring *ring = &world->rings[cpu];
	uint64_t base = (uint64_t)cpu * IDS, draw = nm_rng_below(&world->rng, 100);

	if (draw < 3)
		put_odd_record(world, ring, cpu, pid_of(tid), tid);
	else if (draw < 60)
		put_access(world, cpu, tid);
	else if (draw < 75)
		record_run(ring, base + ID_CLOCK, pid_of(tid), tid, ring->head);
	else
		record_run(ring, base + ID_INSTRUCTIONS + nm_rng_below(&world->rng, 8), pid_of(tid),
			   tid, ring->head);
}

static void put_record(struct world *world, uint32_t cpu, uint32_t tid)
{
	if (world->source_kind == HARDWARE) {
		put_hardware_record(world, cpu, tid);
		return;
	}
	struct record_ring *ring = &world->rings[cpu];
	uint64_t base = (uint64_t)cpu * IDS;
	uint32_t pid = pid_of(tid);
	uint64_t draw = nm_rng_below(&world->rng, 100);

	if (draw < 3)
		put_odd_record(world, ring, cpu, pid, tid);
	else if (draw < 50)
		record_run(ring, base + ID_CLOCK, pid, tid, ring->head);
	else
		record_fault(ring, base + (draw < 99 ? ID_FAULT_MIN : ID_FAULT_MAJ), pid, tid,
			     ring->head, 0x7f0000000000 + ring->head, draw_physical(world, tid));
}

/* Nine of ten records come from the home CPU of the thread, unless that ring is full. */
static uint32_t draw_cpu(struct world *world, uint32_t tid, size_t share)
{
	uint32_t cpu = nm_rng_below(&world->rng, 10)
			       ? tid / 2 % world->cpus
			       : (uint32_t)nm_rng_below(&world->rng, world->cpus);

	while (world->rings[cpu].head - world->tails[cpu] + RECORD_MOST > share)
		cpu = (cpu + 1) % world->cpus;
	return cpu;
}

/* Fills the rings from their current position, so that each wraps eventually. */
static void fill(struct world *world, size_t records, size_t share)
{
	for (size_t i = 0; i < records; i++) {
		uint32_t tid = tid_of(draw_thread(world));
		put_record(world, draw_cpu(world, tid, share), tid);
	}
}

/* ---- set-up ---- */

static void world_free(struct world *world)
{
	for (unsigned cpu = 0; cpu < world->cpus; cpu++)
		free(world->rings[cpu].bytes);
	free(world->rings);
	free(world->tails);
	free(world->layouts);
	free(world->zipf);
	nm_metrics_free(world->metrics);
	nm_physmap_free(world->physmap);
	nm_topology_free(world->topology);
}

static void layout_init(struct nm_ring_layout *layout, uint32_t cpu)
{
	static const struct {
		unsigned id;
		enum nm_event_kind kind;
	} events[] = {{ID_SIDEBAND, NM_EVENT_SIDEBAND},
		      {ID_CLOCK, NM_EVENT_CLOCK},
		      {ID_MEMORY, NM_EVENT_MEMORY},
		      {ID_STORE, NM_EVENT_STORE},
		      {ID_INSTRUCTIONS, NM_EVENT_INSTRUCTIONS},
		      {ID_FLOPS, NM_EVENT_FLOPS},
		      {ID_FLOPS + 1, NM_EVENT_FLOPS},
		      {ID_FLOPS + 2, NM_EVENT_FLOPS},
		      {ID_FLOPS + 3, NM_EVENT_FLOPS},
		      {ID_FLOPS + 4, NM_EVENT_FLOPS},
		      {ID_DRAM, NM_EVENT_DRAM},
		      {ID_DRAM + 1, NM_EVENT_DRAM},
		      {ID_FAULT_MIN, NM_EVENT_FAULT_MIN},
		      {ID_FAULT_MAJ, NM_EVENT_FAULT_MAJ}};

	layout->cpu = cpu;
	layout->count = NM_ARRAY_SIZE(events);
	for (unsigned i = 0; i < NM_ARRAY_SIZE(events); i++) {
		layout->events[i].id = (uint64_t)cpu * IDS + events[i].id;
		layout->events[i].kind = events[i].kind;
		layout->events[i].amount = 1000003;
	}
}

static void world_init(struct world *world, unsigned cpus, enum source_kind source_kind)
{
	*world = (struct world){.cpus = cpus, .source_kind = source_kind};
	nm_rng_seed(&world->rng, SEED);
	world->rings = checked(calloc(cpus, sizeof(*world->rings)));
	world->tails = checked(calloc(cpus, sizeof(*world->tails)));
	world->layouts = checked(calloc(cpus, sizeof(*world->layouts)));
	world->zipf = checked(calloc(THREADS, sizeof(*world->zipf)));
	for (unsigned i = 0; i < THREADS; i++)
		world->zipf[i] = (i ? world->zipf[i - 1] : 0.0) + 1.0 / (i + 1);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		uint64_t start = nm_rng_below(&world->rng, RING_BYTES / 8) * 8;
		world->rings[cpu] = (struct record_ring){
			.bytes = checked(malloc(RING_BYTES)), .size = RING_BYTES, .head = start};
		world->tails[cpu] = start;
		layout_init(&world->layouts[cpu], cpu);
	}
	world->topology = checked(machine_topology(NODES, cpus));
	if (machine_physmap(world->topology, &world->physmap) < 0)
		checked(NULL);
	nm_metrics_new(world->topology, true, &world->metrics);
}

/* ---- measurements ---- */

static void on_sample(void *context, struct nm_sample *sample)
{
	const struct world *world = context;
	if (sample->physical_address)
		sample->page_node =
			(uint32_t)(nm_physmap_node(world->physmap, sample->physical_address) + 1);
	nm_metrics_add(world->metrics, sample);
}

static void on_task(void *context, const struct nm_task_event *event)
{
	const struct world *world = context;
	if (event->kind == NM_TASK_EXIT)
		nm_metrics_forget(world->metrics, event->tid);
}

static struct nm_ring_counts drain(struct world *world)
{
	const struct nm_sample_sink sink = {
		.context = world, .on_sample = on_sample, .on_task = on_task};
	struct nm_ring_counts counts = {0};

	for (unsigned cpu = 0; cpu < world->cpus; cpu++) {
		const struct record_ring *ring = &world->rings[cpu];
		(void)nm_ring_decode(&world->layouts[cpu], ring->bytes, ring->size,
				     world->tails[cpu], ring->head, &sink, &counts);
	}
	return counts;
}

static int close_interval(struct world *world)
{
	const struct nm_sampled_thread *sampled;

	const struct nm_metrics_interval interval = {
		.length_ns = NM_NSEC_PER_SEC, .run_sample_ns = 1e6, .keep = 0.933};
	return nm_metrics_close(world->metrics, &interval, &sampled);
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench: %s\n", what);
	exit(EXIT_FAILURE);
}

static void bench_sample_path(const char *name, enum source_kind source_kind)
{
	enum { CPUS = 64, RECORDS = 500000 };
	double per_sample[REPETITIONS];
	struct world world;

	world_init(&world, CPUS, source_kind);
	fill(&world, RECORDS, RING_BYTES);
	for (unsigned i = 0; i < REPETITIONS; i++) {
		double begin = bench_cpu_ns();
		struct nm_ring_counts counts = drain(&world);
		per_sample[i] = (bench_cpu_ns() - begin) / (double)counts.samples;
		check(counts.corrupt == 0 && counts.samples > RECORDS * 9 / 10, "wrong counts");
		check(close_interval(&world) > 1000, "too few threads were seen");
	}
	bench_print(name, bench_median(per_sample, REPETITIONS), "ns");
	world_free(&world);
}

static void bench_replay(void)
{
	enum { CPUS = 256, PER_CPU = 1000 };
	double percent[REPETITIONS], close_ms[REPETITIONS];
	struct world world;

	world_init(&world, CPUS, FAULTS);
	for (unsigned i = 0; i < REPETITIONS; i++) {
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			world.tails[cpu] = world.rings[cpu].head;
		fill(&world, (size_t)CPUS * PER_CPU, RING_BYTES / 4);
		double begin = bench_cpu_ns();
		struct nm_ring_counts counts = drain(&world);
		double drained = bench_cpu_ns();
		int threads = close_interval(&world);
		double end = bench_cpu_ns();
		percent[i] = (end - begin) / 1e9 * 100.0;
		close_ms[i] = (end - drained) / 1e6;
		check(counts.corrupt == 0 && threads > 1000, "wrong counts");
	}
	bench_print("replayed_cpu_percent", bench_median(percent, REPETITIONS), "%");
	bench_print("replayed_close_ms", bench_median(close_ms, REPETITIONS), "ms");
	world_free(&world);
}

int main(void)
{
	bench_sample_path("sample_path_ns", HARDWARE);
	bench_sample_path("sample_path_faults_ns", FAULTS);
	bench_replay();
	return 0;
}
