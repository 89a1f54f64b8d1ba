/* SPDX-License-Identifier: MIT */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "numa-migrd/snapshot.h"

#define MOST 5

static struct nm_snap_process processes[MOST];
static struct nm_snap_thread threads[MOST];
static struct nm_column column;
static unsigned cleared;

static void clear(void *context, void *cell)
{
	(void)context;
	cleared += *(unsigned *)cell;
}

static int set_up(void **state)
{
	(void)state;
	column = (struct nm_column){.cell_bytes = sizeof(unsigned), .clear = clear};
	cleared = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_column_clear(&column);
	return 0;
}

/* The snapshot has these processes in this order from now on. */
static void follow(size_t count, const uint32_t *pids)
{
	struct nm_snapshot snapshot = {.processes = processes, .nr_processes = count};
	for (size_t i = 0; i < count; i++)
		processes[i] =
			(struct nm_snap_process){.pid = pids[i], .start_ticks = 7, .program_ns = 9};
	nm_column_follow_processes(&column, &snapshot);
	assert_int_equal(column.count, count);
}

static void set(uint32_t id, unsigned value)
{
	*(unsigned *)nm_column_find(&column, id) = value;
}

static unsigned at(size_t row)
{
	return ((unsigned *)column.cells)[row];
}

TEST(cells_follow_their_tasks)
{
	assert_null(nm_column_find(&column, 10));
	follow(3, (const uint32_t[]){10, 40, 30});
	set(10, 1);
	set(40, 2);
	set(30, 4);
	assert_true(at(0) == 1 && at(1) == 2 && at(2) == 4);
	follow(4, (const uint32_t[]){30, 20, 40, 50});
	assert_true(at(0) == 4 && at(1) == 0 && at(2) == 2 && at(3) == 0);
	assert_null(nm_column_find(&column, 10));
	assert_ptr_equal(nm_column_find(&column, 40), (unsigned *)column.cells + 2);
	assert_int_equal(cleared, 1);
	follow(0, NULL);
	assert_int_equal(cleared, 7);
}

/* No cell is copied while the tasks are unchanged; a new order of the same tasks is followed. */
TEST(cells_of_the_same_tasks_stay_in_place)
{
	follow(2, (const uint32_t[]){10, 20});
	const void *cells = column.cells;
	set(20, 2);
	follow(2, (const uint32_t[]){10, 20});
	assert_ptr_equal(column.cells, cells);
	assert_true(at(0) == 0 && at(1) == 2);
	follow(2, (const uint32_t[]){20, 10});
	assert_true(at(0) == 2 && at(1) == 0);
}

TEST(a_reused_number_is_another_task)
{
	follow(2, (const uint32_t[]){10, 11});
	set(10, 1);
	set(11, 2);
	struct nm_snapshot snapshot = {.processes = processes, .nr_processes = 2};
	processes[0].start_ticks++;
	nm_column_follow_processes(&column, &snapshot);
	assert_true(at(0) == 0 && at(1) == 2);
	processes[1].program_ns++;
	nm_column_follow_processes(&column, &snapshot);
	assert_true(at(0) == 0 && at(1) == 0);
	assert_int_equal(cleared, 3);
}

static void init(const struct nm_snapshot *snapshot, void *cell)
{
	(void)snapshot;
	*(unsigned *)cell = 32;
}

static void add(uint32_t pid, uint64_t start_ticks)
{
	struct nm_snap_process one = {.pid = pid, .start_ticks = start_ticks, .program_ns = 9};
	struct nm_snapshot snapshot = {.processes = &one, .nr_processes = 1};
	nm_column_add_process(&column, &snapshot, 0);
}

TEST(processes_are_added_between_snapshots)
{
	column.init = init;
	follow(2, (const uint32_t[]){30, 10});
	assert_true(at(0) == 32 && at(1) == 32);
	set(30, 1);
	set(10, 2);
	add(30, 7);
	assert_true(at(0) == 1 && at(1) == 2);
	add(20, 7);
	assert_true(column.count == 3 && at(0) == 2 && at(1) == 32 && at(2) == 1);
	add(30, 8);
	assert_true(column.count == 3 && at(0) == 2 && at(2) == 32);
	assert_int_equal(cleared, 1);
}

TEST(a_readopted_thread_is_a_new_task)
{
	struct nm_snapshot snapshot = {.threads = threads, .nr_threads = 2};
	threads[0] = (struct nm_snap_thread){.tid = 5, .start_ticks = 7, .adopted_ns = 9};
	threads[1] = (struct nm_snap_thread){.tid = 6, .start_ticks = 7, .adopted_ns = 9};
	nm_column_follow_threads(&column, &snapshot);
	set(5, 1);
	set(6, 2);
	threads[0].adopted_ns++;
	nm_column_follow_threads(&column, &snapshot);
	assert_true(at(0) == 0 && at(1) == 2);
	nm_column_clear(&column);
	assert_int_equal(cleared, 3);
	assert_null(nm_column_find(&column, 6));
}

RUN_TESTS()
