/* SPDX-License-Identifier: MIT */
/* Affinities set by owners to the CPUs to which another thread is being moved. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "move_fixture.h"

static void tick_until_reported(void)
{
	for (int i = 0; i < 3; i++)
		world_tick();
}

static uint32_t neighbours[8];
static size_t nr_neighbours;

static void add_neighbour(uint32_t tid)
{
	fake_pin(fake, tid, world_node(1));
	neighbours[nr_neighbours++] = tid;
}

/* All are pinned by their owner to the node to which 101 is moved, some with
 * numa_run_on_node(3). */
static void add_neighbours(void)
{
	nr_neighbours = 0;
	add_neighbour(102); /* older, of the same process */
	add_neighbour(100); /* its leader */
	add_neighbour(200); /* another job of the shell, older */
	fake_fork(fake, 50, 201);
	add_neighbour(201); /* another one, younger, of the same session */
	fake_move(fake, 201, fake_get(fake, 100)->cgroup);
	fake_clone(fake, 201, 202);
	add_neighbour(202);
	fake_process(fake, 400, 1)->session = 400;
	add_neighbour(400); /* a service that has just started */
}

static void assert_neighbours(void)
{
	for (size_t i = 0; i < nr_neighbours; i++)
		assert_int_equal(world_mask(neighbours[i]), world_node(1));
}

TEST(test_neighbours_with_records_lost)
{
	world_narrow(101, 1);
	add_neighbours();
	world_lose_records();
	tick_until_reported();
	assert_neighbours();
	world_lose_records();
	assert_int_equal(nm_moves_end(world->moves), 0);
	assert_neighbours();
	assert_int_equal(world_mask(101), ALL);
}

/* Even if the moved thread or its whole process exits and its numbers are reused. */
TEST(test_neighbours_of_exited_threads)
{
	world_narrow(101, 1);
	add_neighbours();
	fake_exit(fake, 101);
	world_lose_records();
	tick_until_reported();
	assert_neighbours();
}

TEST(test_neighbour_under_dead_process_number)
{
	fake_move(fake, 100, "/job");
	fake_move(fake, 50, "/job");
	world_narrow(101, 1);
	fake_kill(fake, 100);
	fake_fork(fake, 50, 100);
	fake_clone(fake, 100, 101);
	fake_fork(fake, 100, 300);
	fake_pin(fake, 100, world_node(1));
	fake_pin(fake, 101, world_node(1));
	fake_pin(fake, 300, world_node(1));
	world_lose_records();
	world_tick();
	assert_int_equal(world_mask(100), world_node(1));
	assert_int_equal(world_mask(101), world_node(1));
	assert_int_equal(world_mask(300), world_node(1));
}

/* A younger thread of the moved process, created by another one: only records can distinguish it.
 */
TEST(test_neighbour_in_process)
{
	world_narrow(101, 1);
	fake_clone(fake, 102, 110);
	fake_pin(fake, 110, world_node(1));
	fake_fork(fake, 102, 300);
	fake_pin(fake, 300, world_node(1));
	world_drain();
	tick_until_reported();
	assert_int_equal(nm_moves_end(world->moves), 0);
	assert_int_equal(world_mask(110), world_node(1));
	assert_int_equal(world_mask(300), world_node(1));
	assert_int_equal(world_mask(101), ALL);
}

/* A parent that cannot be read for lack of a descriptor does not count as exited, so it has no
 * orphans. */
/* SECURITY: others-pins */
TEST(test_neighbour_with_unreadable_parent)
{
	for (unsigned nth = 1; nth <= 20; nth++) {
		(void)tear_down(NULL);
		(void)set_up(NULL);
		world_narrow(101, 1);
		fake_fork(fake, 50, 201);
		fake_pin(fake, 201, world_node(1));
		fake_fork(fake, 101, 300);
		fake_fork(fake, 300, 301);
		world_lose_records();
		fake_fail(fake, FAKE_OPEN, nth, 1, EMFILE);
		world_tick();
		fake_calm(fake);
		world_tick();
		assert_int_equal(world_mask(201), world_node(1));
		assert_int_equal(world_mask(300), ALL);
		assert_int_equal(world_mask(301), ALL);
	}
}

/* A descendant of an orphan of the moved process, but of another user, with another session and
 * cgroup. */
/* SECURITY: others-pins */
TEST(test_another_users_child_of_an_orphan)
{
	world_narrow(101, 1);
	fake_fork(fake, 101, 300);
	fake_fork(fake, 300, 301);
	fake_fork(fake, 301, 302);
	fake_kill(fake, 300);
	fake_get(fake, 302)->uid = 1001;
	fake_get(fake, 302)->session = 302;
	fake_move(fake, 302, "/elsewhere");
	fake_pin(fake, 302, world_node(1));
	world_lose_records();
	tick_until_reported();
	assert_int_equal(world_mask(301), ALL);
	assert_int_equal(world_mask(302), world_node(1));
}

/* The init of a container is younger than the move: its children are not orphans of the moved
 * process. */
TEST(test_neighbour_in_a_new_container)
{
	world_narrow(101, 1);
	fake_fork(fake, 50, 201);
	fake_get(fake, 201)->ns_pid = 1;
	fake_fork(fake, 201, 202);
	fake_pin(fake, 202, world_node(1));
	world_lose_records();
	tick_until_reported();
	assert_int_equal(world_mask(202), world_node(1));
}

RUN_TESTS()
