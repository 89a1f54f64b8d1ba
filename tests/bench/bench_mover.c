/* SPDX-License-Identifier: MIT */
/*
 * move_pages_efficiency is the rate in pages per second of the mover divided by that of a bare loop
 * of move_pages(2), in wall-clock time. Both move the same pages of this process to another node
 * and back, in turns. Needs two nodes with memory; the program may be copied to another machine.
 * move_pages_us is the time of the bare loop per page, and where_pages_us the time to query the
 * location of a page, which the mover does before each move.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "../support/live_calls.h"
#include "bench.h"
#include "mover/mover.h"
#include "platform/page_jobs.h"
#include "numa-migrd/proc.h"

#define PAGES 8192U
#define PAGE_BYTES 4096U
#define BARE_CALL 512U /* pages in a call of a simple program */
#define ROUNDS 9U

static struct nm_platform *platform;
static struct nm_topology *topology;
static struct nm_config *config;
static struct nm_mover *mover;
static uint64_t addresses[PAGES], start_ticks;
static int statuses[PAGES];
static struct nm_units_order order;
static struct nm_units_moved outcome;

static void must(int r, const char *what)
{
	if (r < 0) {
		fprintf(stderr, "bench: %s: %s\n", what, strerror(-r));
		exit(EXIT_FAILURE);
	}
}

static double wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void find_start(void)
{
	struct nm_proc_stat stat;
	int self = nm_proc_open_thread(platform, 0, (uint32_t)getpid());

	must(self, "/proc");
	must(nm_proc_read_stat(platform, self, &stat), "stat");
	platform->ops->close(platform, self);
	start_ticks = stat.start_ticks;
}

static void make_pages(void)
{
	uint8_t *memory = mmap(NULL, (size_t)PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory == MAP_FAILED ? -errno : 0, "memory");
	must(madvise(memory, (size_t)PAGES * PAGE_BYTES, MADV_NOHUGEPAGE) < 0 ? -errno : 0,
	     "small pages");
	memset(memory, 1, (size_t)PAGES * PAGE_BYTES);
	for (size_t i = 0; i < PAGES; i++)
		addresses[i] = (uintptr_t)memory + i * PAGE_BYTES;
}

static double move_bare(int to)
{
	double before = wall_ns();

	int node = (int)topology->nodes[to].os_id;

	order.count = order.pages_most = BARE_CALL;
	order.nr_rooms = 1;
	order.slow_ns = UINT64_MAX;
	order.rooms[0] = (struct nm_page_room){.node = node, .memory = UINT64_MAX};
	for (size_t i = 0; i < PAGES; i += BARE_CALL) {
		for (size_t k = 0; k < BARE_CALL; k++)
			order.units[k] = (struct nm_page_unit){
				.address = addresses[i + k], .pages = 1, .from = -1, .to = node};
		must(live_result(platform,
				 platform->ops->units_move(platform, getpid(), start_ticks, &order,
							   &outcome)),
		     "move_pages");
	}
	return wall_ns() - before;
}

static double ask_where(void)
{
	double before = wall_ns();

	for (size_t i = 0; i < PAGES; i += BARE_CALL)
		must(live_where(platform, getpid(), 0, BARE_CALL, addresses + i, statuses + i),
		     "move_pages");
	return wall_ns() - before;
}

static struct nm_page_batch *make_batch(int from, int to)
{
	struct nm_page_batch *batch = calloc(1, sizeof(*batch));

	must(batch && (batch->steps = calloc(PAGES, sizeof(*batch->steps))) ? 0 : -ENOMEM, "batch");
	batch->pid = (uint32_t)getpid();
	batch->start_ticks = start_ticks;
	batch->count = PAGES;
	for (size_t i = 0; i < PAGES; i++)
		batch->steps[i] = (struct nm_page_step){.address = addresses[i],
							.bytes = PAGE_BYTES,
							.from = (int16_t)from,
							.to = (int16_t)to};
	return batch;
}

/* Submission, all checks, and collection of the result. */
static double move_with_mover(int from, int to)
{
	struct nm_page_batch *batch = make_batch(from, to), *done = NULL;
	double before = wall_ns();

	must(nm_mover_submit(mover, batch), "submit");
	while (nm_mover_work(mover), !(done = nm_mover_collect(mover, false)))
		live_wait(platform);
	double taken = wall_ns() - before;
	must(done->error, "batch");
	uint64_t moved = done->moved;
	nm_page_batch_free(done);
	if (moved < PAGES * 99 / 100) {
		fprintf(stderr, "bench: %" PRIu64 " of %u pages moved\n", moved, PAGES);
		exit(EXIT_FAILURE);
	}
	return taken;
}

/* No limits apply, so that only the overhead of the mover is measured. */
static void start_mover(void)
{
	must(nm_config_default(&config), "configuration");
	config->pages.max_mb_per_s = 1000000;
	config->pages.keep_free_percent = 0;
	config->rules.call_limit_ms = 1000; /* an emulated machine is slow */
	config->rules.maps_budget_ms = 1000;
	config->pages.also = NM_ALSO_ISOLATED;
	nm_mover_new(platform, topology, config, &mover);
}

/* Moves there and back alternate, so that other load affects both equally. */
static void measure(void)
{
	double bare[ROUNDS], ours[ROUNDS], where[ROUNDS];

	(void)move_bare(1);
	(void)move_bare(0);
	(void)move_with_mover(0, 1);
	(void)move_with_mover(1, 0); /* the cost of calls has been learned by now */
	for (unsigned i = 0; i < ROUNDS; i++) {
		ours[i] = move_with_mover(0, 1) + move_with_mover(1, 0);
		bare[i] = move_bare(1) + move_bare(0);
		where[i] = ask_where();
	}
	double bare_ns = bench_median(bare, ROUNDS), ours_ns = bench_median(ours, ROUNDS);
	bench_print("move_pages_efficiency", bare_ns / ours_ns, "ratio");
	bench_print("move_pages_us", bare_ns / (2.0 * PAGES) / 1e3, "us");
	bench_print("where_pages_us", bench_median(where, ROUNDS) / PAGES / 1e3, "us");
}

int main(void)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	char error[256];

	must(nm_platform_linux_new(&options, &platform), "platform");
	if (nm_topology_load(&(struct nm_topology_source){0}, error, sizeof(error), &topology) <
	    0) {
		fprintf(stderr, "bench: %s\n", error);
		return EXIT_FAILURE;
	}
	if (topology->nr_nodes < 2) {
		fprintf(stderr, "move_pages_efficiency is left out: this machine has one node\n");
	} else {
		find_start();
		make_pages();
		start_mover();
		measure();
	}
	nm_mover_free(mover);
	nm_config_free(config);
	nm_topology_free(topology);
	nm_platform_free(platform);
	return EXIT_SUCCESS;
}
