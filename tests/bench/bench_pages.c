/* SPDX-License-Identifier: MIT */
/*
 * The table of sampled pages with one million pages on four nodes. page_update_ns: random accesses
 * by 64 threads of four processes to 10 % more pages than fit, so that one access in eleven misses
 * and evicts a page; with vector, sub-blocks and rule. page_hit_ns: all pages fit. page_evict_ns:
 * one access in three evicts. Accesses come in batches of 64, as rings are drained.
 */
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "numa-migrd/base.h"
#include "observe/memory.h"

#define PAGES 1000000U
#define NODES 4U
#define OWNERS 4U
#define THREADS 64U
#define BATCH 64U
#define ACCESSES (1U << 15) /* drawn in advance, few enough for the cache */
#define ROUNDS 64U
#define REPETITIONS 7U

static struct nm_rng rng;
static struct nm_page_touch *touches;
static uint16_t owners[OWNERS];

static void *checked(void *pointer)
{
	if (!pointer) {
		fprintf(stderr, "bench: out of memory\n");
		exit(EXIT_FAILURE);
	}
	return pointer;
}

static double resident_mb(void)
{
	long total = 0, resident = 0;
	FILE *file = checked(fopen("/proc/self/statm", "r"));

	if (fscanf(file, "%ld %ld", &total, &resident) != 2)
		exit(EXIT_FAILURE);
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

/* One access to page `number` by a thread of its owner, mostly from one node. */
static struct nm_page_touch touch_of(uint64_t number)
{
	uint64_t random = nm_rng_next(&rng);
	unsigned owner = (unsigned)(number % OWNERS);
	bool foreign = random % 10 == 0;

	return (struct nm_page_touch){
		.page = {.address = 0x7f0000000000ULL + number / OWNERS * 4096 + (random >> 52),
			 .owner = owners[owner]},
		.node = (uint16_t)((number + foreign) % NODES),
		.page_node = (int16_t)((number >> 8) % NODES),
		.thread = (uint16_t)(1 + owner * (THREADS / OWNERS) +
				     (random >> 8) % (THREADS / OWNERS)),
	};
}

static void choose(uint64_t universe)
{
	for (size_t i = 0; i < ACCESSES; i++)
		touches[i] = touch_of(nm_rng_below(&rng, universe));
}

/* Marks found pages as moved; returns ns. */
static double run(struct nm_pages *pages, uint32_t now_s)
{
	struct nm_page_finding findings[BATCH];
	double start = bench_cpu_ns();

	for (size_t i = 0; i < ACCESSES; i += BATCH) {
		nm_pages_touch(pages, now_s, touches + i, BATCH, findings);
		for (size_t j = 0; j < BATCH; j++)
			if (findings[j].target >= 0)
				(void)nm_pages_end_check(pages, now_s, &touches[i + j].page,
							 NM_PAGE_MOVED,
							 (unsigned)findings[j].target);
	}
	return bench_cpu_ns() - start;
}

/* Two million accesses in eight seconds of the clock of the table; returns ns per access. */
static double measure_once(struct nm_pages *pages, uint64_t universe, uint32_t *now_s)
{
	double ns = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		choose(universe);
		*now_s += round % (ROUNDS / 8) == 0;
		ns += run(pages, *now_s);
	}
	return ns / ROUNDS / ACCESSES;
}

static double measure(struct nm_pages *pages, uint64_t universe, uint32_t *now_s)
{
	double ns[REPETITIONS];

	for (size_t i = 0; i < REPETITIONS; i++)
		ns[i] = measure_once(pages, universe, now_s);
	return bench_median(ns, REPETITIONS);
}

static void fill(struct nm_pages *pages, uint32_t now_s)
{
	struct nm_page_finding finding;

	for (uint64_t number = 0; number < PAGES; number++) {
		struct nm_page_touch touch = touch_of(number);
		nm_pages_touch(pages, now_s, &touch, 1, &finding);
		if (number % 10000 == 0)
			nm_pages_update(pages, now_s, 0);
	}
}

int main(void)
{
	struct nm_config *config = NULL;
	struct nm_pages *pages = NULL;
	uint64_t key[4];
	uint32_t now_s = 100;

	nm_rng_seed(&rng, 20240601);
	for (size_t i = 0; i < 4; i++)
		key[i] = nm_rng_next(&rng);
	touches = checked(calloc(ACCESSES, sizeof(*touches)));
	choose(PAGES);
	if (nm_config_default(&config) < 0)
		return EXIT_FAILURE;
	config->rules.max_tracked = PAGES;
	double before = resident_mb();
	nm_pages_new(config, NODES, key, &pages);
	for (size_t i = 0; i < OWNERS; i++) {
		if (nm_pages_open(pages, &owners[i]) < 0)
			return EXIT_FAILURE;
		nm_pages_hold(pages, owners[i], false);
	}
	fill(pages, now_s);
	struct nm_pages_counts counts = nm_pages_counts(pages);
	fprintf(stderr, "%llu of %u pages tracked, %llu evicted\n",
		(unsigned long long)counts.tracked, PAGES, (unsigned long long)counts.evicted);
	bench_print("page_entry_bytes", (double)counts.bytes / PAGES, "B");
	bench_print("rss_mb_1m_pages", resident_mb() - before, "MB");
	bench_print("page_hit_ns", measure(pages, PAGES, &now_s), "ns");
	bench_print("page_update_ns", measure(pages, PAGES + PAGES / 10, &now_s), "ns");
	bench_print("page_evict_ns", measure(pages, PAGES + PAGES / 2, &now_s), "ns");
	counts = nm_pages_counts(pages);
	fprintf(stderr, "%llu evicted\n", (unsigned long long)counts.evicted);
	double start = bench_cpu_ns();
	nm_pages_update(pages, now_s, 1);
	bench_print("pages_round_ms_1m", (bench_cpu_ns() - start) / 1e6, "ms");
	nm_pages_free(pages);
	nm_config_free(config);
	free(touches);
	return EXIT_SUCCESS;
}
