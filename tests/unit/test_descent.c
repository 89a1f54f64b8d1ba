/* SPDX-License-Identifier: MIT */
/* The cost of a walk to tasks with inherited affinities. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/affinity/moves.h"
#include "move_fixture.h"

/* A move of thread 101 to node 1, which began just before. */
static struct nm_narrowing move_of_101(void)
{
	return (struct nm_narrowing){
		.tid = 101,
		.pid = 100,
		.start_ticks = fake_get(fake, 101)->start_ticks,
		.given_ticks = fake_ticks(fake) - 100,
		.session = 50,
		.uid = 1000,
		.original = world->topology->possible,
		.target = world->topology->nodes[1].cpus,
	};
}

/* One turn of a walk. Returns 1 if it is not finished. */
static int walk_on(const struct nm_narrowing *terms, struct nm_descent_walk *walk)
{
	walk->entries = &terms;
	walk->nr_entries = 1;
	int r = nm_descent_walk(world->moves->descent, walk);
	assert_in_range(r, 0, 1);
	assert_int_equal(walk->error, 0);
	return r;
}

static unsigned walked;

static int count_found(void *context, const struct nm_descendant *found)
{
	(void)context, (void)found;
	walked++;
	return 1;
}

TEST(a_walk_resumes_where_it_stopped)
{
	const struct nm_narrowing terms = move_of_101();
	struct nm_descent_walk walk = {.budget = 3000, .each = count_found};
	unsigned turns = 0;
	for (uint32_t i = 0; i < 30; i++)
		fake_pin(fake, fake_fork(fake, 101, 300 + i)->tid, world_node(1));
	walked = 0;
	for (int r = 1; r > 0; turns++) {
		unsigned before = walked;
		r = walk_on(&terms, &walk);
		assert_true(walked - before <= 8);
	}
	assert_int_equal(walked, 30);
	assert_true(turns >= 30 / 8);
}

/* It examines no thread twice. */
TEST(a_walk_stops_inside_a_process)
{
	const struct nm_narrowing terms = move_of_101();
	struct nm_descent_walk walk = {.budget = 640, .each = count_found};
	for (uint32_t i = 0; i < 60; i++)
		fake_clone(fake, 100, 400 + i);
	unsigned before = fake->calls[FAKE_GET], turns = 0;
	for (int r = 1; r > 0; turns++) {
		unsigned got = fake->calls[FAKE_GET];
		r = walk_on(&terms, &walk);
		assert_true(fake->calls[FAKE_GET] - got <= 10);
	}
	assert_true(turns >= 6);
	assert_int_equal(fake->calls[FAKE_GET] - before, 2 + 3 + 1 + 60);
}

/* Whether a thread that is gone has called exec: the threads of one process may be many. */
/* SECURITY: forks */
TEST(some_siblings_are_enough)
{
	uint64_t start_ticks;
	const struct nm_narrowing terms = move_of_101();
	for (uint32_t i = 0; i < 140; i++)
		fake_clone(fake, 100, 300 + i);
	fake_pin(fake, 100, world_node(1));
	fake_exit(fake, 101);
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(nm_descent_follow_exec(world->moves->descent, &terms, &start_ticks), 0);
	assert_true(fake->calls[FAKE_OPS] - before <= 64 * 3 + 12);
}

/* A process in 65536 groups takes a thousand times as long to read. */
/* SECURITY: many-groups-of-a-process */
TEST(long_statuses_of_a_domain_are_read_once)
{
	struct nm_descent_walk walk = {.each = count_found};
	const struct nm_narrowing terms = move_of_101();
	for (uint32_t i = 0; i < 50; i++) {
		fake_fork(fake, 50, 300 + i)->many_groups = true;
		fake_move(fake, 300 + i, i % 2 ? "/machine/one" : "/machine/two");
		fake_fork(fake, 300 + i, 400 + i);
		fake_pin(fake, 400 + i, world_node(1));
	}
	assert_int_equal(walk_on(&terms, &walk), 0);
	assert_in_range(fake->long_statuses, 1, 2);
}

/* Without cgroups that distinguish the users. */
/* SECURITY: many-groups-of-a-process */
TEST(long_statuses_hide_no_child_of_another_user)
{
	world_narrow(101, 1);
	for (uint32_t i = 0; i < 50; i++) {
		struct fake_thread *thread = fake_fork(fake, 50, 300 + i);
		thread->many_groups = true;
		thread->uid = 1001;
		fake_fork(fake, 300 + i, 400 + i);
		fake_pin(fake, 400 + i, world_node(1));
	}
	fake_fork(fake, 101, 500);
	world_lose_records();
	world_tick();
	assert_int_equal(fake->long_statuses, 1);
	assert_no_trace();
}

RUN_TESTS()
