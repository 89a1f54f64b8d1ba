/* SPDX-License-Identifier: MIT */
/* Ranges of a process as values: when counts end, and when pages wait for threads. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/page_choice.h"

#define PAGE 4096ULL
#define START (UINT64_C(1) << 30)
enum { PAGES = 1024, TOUCHES = 4096, INTERVAL = 20 };

static struct machine *machine;
static struct nm_page_process process;
static struct nm_contention contention;
static struct nm_memory *memory;

/* One range, used by the threads of node 1, with its pages on node 0. */
static int set_up(void **state)
{
	const struct nm_range range = {START, START + PAGES * PAGE, .page_bytes = PAGE};
	(void)state;
	const uint64_t key[4] = {1, 2, 3, 4};
	machine = machine_new(2, 2);
	nm_memory_new(machine->topology, &machine->config, key, &memory);
	contention = (struct nm_contention){.busiest = -1};
	process = (struct nm_page_process){.nr_threads = 8};
	process.seen = nm_must(calloc(NM_PAGE_ACCESSES, sizeof(*process.seen)));
	nm_regions_new(2, 64, &process.regions);
	assert_int_equal(nm_regions_set_ranges(process.regions, &range, 1), 0);
	for (unsigned i = 0; i < TOUCHES; i++)
		nm_regions_touch(process.regions, START + i % PAGES * PAGE, 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_regions_free(process.regions);
	nm_memory_free(memory);
	free(process.seen);
	machine_free(machine);
	return 0;
}

static double accesses(void)
{
	double sum = 0;
	for (size_t i = 0; i < nm_regions_count(process.regions); i++)
		sum += nm_regions_at(process.regions, i).samples;
	return sum;
}

/* Their counts are those of the nodes on which the threads were. */
TEST(counts_end_when_a_quarter_of_the_threads_moved)
{
	process.nr_moved_threads = 1;
	nm_page_ranges_age(&process, &machine->config, MACHINE_SECOND);
	assert_true(accesses() > 0.9 * TOUCHES);
	assert_int_equal(process.nr_moved_threads, 0);
	process.nr_moved_threads = 2;
	nm_page_ranges_age(&process, &machine->config, MACHINE_SECOND);
	assert_true(accesses() == 0);
}

/* Of the last accesses to the range, `passing` are by threads that may leave their node. */
static size_t choose(unsigned seen, unsigned passing)
{
	static struct nm_page_step steps[PAGES];
	const struct nm_page_input input = {.topology = machine->topology,
					    .config = &machine->config,
					    .memory = memory,
					    .contention = &contention,
					    .interval = INTERVAL};
	struct nm_page_budget room = {.pages = PAGES, .bytes = PAGES * PAGE};
	struct nm_page_choices choices = {.items = steps, .most = PAGES};
	process.nr_seen = seen;
	for (unsigned i = 0; i < seen; i++)
		process.seen[i] = (struct nm_page_access){.address = START + i % PAGES * PAGE,
							  .interval = INTERVAL,
							  .page_node = 0,
							  .settled = i >= passing};
	process.cursor = (struct nm_range_cursor){0};
	nm_page_ranges_choose(&input, &process, &room, &choices);
	return choices.count;
}

TEST(pages_wait_for_threads_that_settle)
{
	assert_int_equal(choose(100, 100), 0);
	assert_int_equal(choose(100, 11), 0);
	assert_int_equal(choose(100, 9), PAGES);
}

RUN_TESTS()
