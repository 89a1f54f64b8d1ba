/* SPDX-License-Identifier: MIT */
/* What it costs to find out who inherited: in proportion to what there is to be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../src/actuate/descent.h"
#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)

static struct world *world;
static struct fake *fake;

/* A shell, 50, and its job, process 100 with the threads 100 to 102. */
static int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake = world->fake;
	fake_process(fake, 50, 1);
	fake_fork(fake, 50, 100);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	world_free(world);
	assert_int_equal(open_fds, 0);
	return 0;
}

static void lease(uint32_t tid, unsigned node)
{
	assert_true(world_lease(world, tid, node).applied);
	fake_sleep(fake, 100);
}

static void tell_fork(uint32_t parent, uint32_t child)
{
	const struct nm_task_event event = {.kind = NM_TASK_FORK,
					    .pid = child,
					    .tid = child,
					    .parent_pid = parent,
					    .parent_tid = parent,
					    .time_ns = fake->now_ns};
	nm_actuator_task_event(world->actuator, &event);
}

/* Children of children, all gone when the records are read, and their numbers given anew. */
/* SECURITY: forks */
static void forks_cost_what_they_are(void **state)
{
	(void)state;
	lease(101, 1);
	unsigned before = fake->calls[FAKE_OPS];
	for (uint32_t i = 0; i < 2000; i++)
		tell_fork(i ? 1000 + (i - 1) % 1000 : 101, 1000 + i % 1000);
	assert_true(fake->calls[FAKE_OPS] - before < 10 * 2000);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
}

/* Others' forks and execs are nobody's children: nothing is read for them. */
static void strangers_cost_nothing(void **state)
{
	(void)state;
	lease(101, 1);
	unsigned before = fake->calls[FAKE_OPS];
	for (uint32_t i = 0; i < 2000; i++) {
		const struct nm_task_event exec = {
			.kind = NM_TASK_EXEC, .pid = 2000 + i, .tid = 2000 + i};
		tell_fork(50, 2000 + i);
		nm_actuator_task_event(world->actuator, &exec);
	}
	assert_int_equal(fake->calls[FAKE_OPS], before);
}

/* A chain of processes, and threads that carry the target without having inherited it. */
/* SECURITY: forks */
static void lines_do_not_multiply_the_search(void **state)
{
	unsigned calls[2];
	struct nm_ledger_entry *lines = calloc(256, sizeof(*lines));
	const struct nm_ledger_entry *entries[256];
	(void)state;
	for (uint32_t pid = 300; pid < 320; pid++)
		fake_fork(fake, pid == 300 ? 50 : pid - 1, pid);
	for (uint32_t tid = 400; tid < 440; tid++) {
		fake_clone(fake, 319, tid);
		fake_pin(fake, tid, world_node(1));
	}
	for (uint32_t i = 0; i < 256; i++) {
		lines[i] = (struct nm_ledger_entry){
			.tid = 5000 + i,
			.pid = 5000 + i,
			.start_ticks = 100,
			.given_ticks = 101,
			.session = 4000 + i,
			.uid = 1000,
			.original = world->topology->possible,
			.target = world->topology->nodes[1].cpus,
			.cgroup = (char *)(uintptr_t) "/elsewhere",
		};
		entries[i] = &lines[i];
	}
	for (int many = 0; many < 2; many++) {
		nm_auto(nm_descent_freep) struct nm_descent *descent = NULL;
		assert_int_equal(nm_descent_new(&fake->platform, entries, many ? 256 : 1, &descent),
				 0);
		struct nm_descent_walk walk = {.descent = descent};
		unsigned before = fake->calls[FAKE_OPS];
		assert_int_equal(nm_descent_walk(&fake->platform, &walk), 0);
		assert_int_equal(walk.found, 0);
		calls[many] = fake->calls[FAKE_OPS] - before;
	}
	assert_int_equal(calls[0], calls[1]);
	free(lines);
}

static unsigned walked; /* what the walks below found */

static bool count_found(void *context, const struct nm_descendant *found)
{
	(void)context, (void)found;
	walked++;
	return true;
}

/* With a budget it takes several turns, and leaves nobody out. */
static void a_walk_goes_on_where_it_stopped(void **state)
{
	nm_auto(nm_descent_freep) struct nm_descent *descent = NULL;
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 30; i++)
		fake_fork(fake, 101, 300 + i);
	struct nm_ledger_contents contents;
	assert_int_equal(nm_ledger_read(world->directory, WORLD_BOOT, &contents), 0);
	assert_int_equal(contents.count, 1);
	const struct nm_ledger_entry *entry = &contents.entries[0];
	assert_int_equal(nm_descent_new(&fake->platform, &entry, 1, &descent), 0);
	struct nm_descent_walk walk = {.descent = descent, .budget = 4, .each = count_found};
	unsigned turns = 0;
	walked = 0;
	do {
		unsigned before = walked;
		assert_int_equal(nm_descent_walk(&fake->platform, &walk), 0);
		assert_true(walked - before <= 4);
		turns++;
	} while (walk.next_pid);
	assert_int_equal(walked, 30);
	assert_true(turns >= 30 / 4);
	nm_ledger_contents_clear(&contents);
}

/* Where a CPU has no ring: one look at every process in an interval, whatever is found. */
static void proc_is_walked_once_an_interval(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 10; i++) {
		fake_fork(fake, 101, 300 + i);
		fake_clone(fake, 300 + i, 400 + i);
		world_lose_records(world);
		unsigned before = fake->calls[FAKE_LIST];
		world_tick(world);
		assert_int_equal(world_mask(world, 300 + i), ALL);
		assert_int_equal(world_mask(world, 400 + i), ALL);
		assert_true(fake->calls[FAKE_LIST] - before <= 1 + 3 + 1 + i);
	}
}

/* Hundreds of one moment stay as they were read, and a number's later birth is seen. */
static void records_of_one_moment_keep_their_order(void **state)
{
	struct nm_task_event events[300], *order[300];
	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		events[i] = (struct nm_task_event){
			.kind = NM_TASK_FORK, .tid = 1000 + i % 200, .time_ns = i < 250 ? 7 : 5};
	assert_int_equal(nm_task_events_order(events, 300, order), 0);
	for (uint32_t i = 0; i < 300; i++) {
		assert_ptr_equal(order[i], &events[i < 50 ? 250 + i : i - 50]);
		assert_int_equal(order[i]->reused, i < 50 || (i >= 50 && i < 100));
	}
}

/* Those for whom there is no room are restored all the same. */
static void more_children_than_are_remembered(void **state)
{
	(void)state;
	lease(101, 1);
	for (uint32_t i = 0; i < 10000; i++)
		tell_fork(101, 10000 + i);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	world_tick(world);
	assert_int_equal(world_mask(world, 300), ALL);
	assert_int_equal(world_mask(world, 301), ALL);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(forks_cost_what_they_are),
		TEST(strangers_cost_nothing),
		TEST(lines_do_not_multiply_the_search),
		TEST(a_walk_goes_on_where_it_stopped),
		TEST(proc_is_walked_once_an_interval),
		TEST(records_of_one_moment_keep_their_order),
		TEST(more_children_than_are_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
