/* SPDX-License-Identifier: MIT */
/* Two tenants, A and B, each in a cgroup of its own: what A does costs B no move and no restoration
 * of a thread. */
#define SET_UP set_up_tenants
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../../src/affinity/moves.h"
#include "move_fixture.h"

#define A 1001
#define B 1002
#define FIRST_OF_A 300
#define FIRST_OF_B 500

/* A's process 100 and B's process 200. */
static int set_up_tenants(void **state)
{
	(void)set_up(state);
	fake_get(fake, 100)->uid = A;
	fake_get(fake, 200)->uid = B;
	fake_move(fake, 100, "/a.slice");
	fake_move(fake, 200, "/b.slice");
	return 0;
}

static void clone_threads(uint32_t pid, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fake_clone(fake, pid, first + i);
	fake->nr_events = 0;
	world_tick(); /* a thread that has just been created is not moved */
}

/* Returns how many of these threads, which do not run, are moved. */
static unsigned move_threads(uint32_t first, uint32_t count)
{
	unsigned moved = 0;
	for (uint32_t i = 0; i < count; i++) {
		fake_get(fake, first + i)->stuck = true;
		moved += world_move(first + i, 1).applied;
	}
	return moved;
}

/* A third tenant uses the other slots. */
static void leave_slots(unsigned left)
{
	for (size_t i = 0; i < NM_MOVE_SLOTS - left; i++) {
		world->moves->slots[i].terms.tid = 100000 + (uint32_t)i;
		world->moves->slots[i].terms.domain = 7;
		world->moves->slots[i].terms.original = hwloc_bitmap_alloc_full();
		world->moves->slots[i].terms.target = hwloc_bitmap_alloc_full();
		world->moves->used++;
	}
}

/* SECURITY: ledger */
TEST(each_domain_has_a_share_of_the_slots)
{
	clone_threads(100, FIRST_OF_A, 60);
	clone_threads(200, FIRST_OF_B, 20);
	leave_slots(40);
	assert_int_equal(move_threads(FIRST_OF_A, 60), 20);
	assert_int_equal(move_threads(FIRST_OF_B, 20), 10);
}

/* Any number of users are one domain: with subordinate user ids, each thread of A has another one.
 */
/* SECURITY: ledger */
TEST(users_of_one_domain_share_its_slots)
{
	clone_threads(100, FIRST_OF_A, 60);
	for (uint32_t i = 0; i < 60; i++) {
		struct fake_thread *thread = fake_get(fake, FIRST_OF_A + i);
		thread->pid = thread->tid;
		thread->uid = 100000 + i;
	}
	leave_slots(40);
	assert_int_equal(move_threads(FIRST_OF_A, 60), 20);
}

/* ---- restoration ---- */

static void crash(void)
{
	nm_moves_free(NM_TAKE(world->moves));
}

/* Processes of A have parts of the target, each in a deep cgroup: the cost is constant. */
/* SECURITY: slow-restore, many-groups */
TEST(deep_cgroups_do_not_delay_others)
{
	struct nm_restoration found;
	char path[96];
	clone_threads(200, FIRST_OF_B, 1);
	assert_int_equal(move_threads(FIRST_OF_B, 1), 1);
	crash();
	for (uint32_t i = 0; i < 100; i++) {
		int length = snprintf(path, sizeof(path), "/a.slice/%u", i);
		while (length < 90)
			length += snprintf(path + length, sizeof(path) - (size_t)length, "/x");
		fake_fork(fake, 100, 600 + i);
		fake_pin(fake, 600 + i, 4);
		fake_move(fake, 600 + i, path);
	}
	fake->names_cpusets = true;
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(world_restore(&found), 1);
	assert_int_equal(world->events[0].pid, 200);
	/* Two rounds of the search would need twice as many. */
	assert_true(fake->calls[FAKE_OPS] - before <= 12 * (100 + 10));
	assert_no_trace();
	world_start();
}

/* The threads of A make a walk take 100 intervals. Meanwhile the move ends in which a child of B
 * was created. */
/* SECURITY: forks */
TEST(many_threads_hide_no_child)
{
	clone_threads(100, FIRST_OF_A, 100);
	clone_threads(200, FIRST_OF_B, 1);
	assert_int_equal(move_threads(FIRST_OF_B, 1), 1);
	fake_sleep(fake, 50);
	fake_fork(fake, FIRST_OF_B, 900);
	world_lose_records();
	world_poll(0);
	world->moves->turn_steps = 1;
	unsigned ticks = 0;
	for (; ticks < 300 && world_mask(900) != ALL; ticks++)
		world_tick();
	assert_in_range(ticks, 100, 299);
	assert_no_trace();
}

/* Progress is reported once a second, so that the time limit is extended. */
static void one_second_later(struct fake *f)
{
	fake_sleep(f, 600);
}

TEST(progress_is_reported)
{
	struct nm_restoration found;
	clone_threads(100, FIRST_OF_A, 40);
	assert_int_equal(move_threads(FIRST_OF_A, 40), 40);
	crash();
	for (unsigned i = 0; i < 4; i++)
		fake_at(fake, FAKE_SET, 5 + 5 * i, one_second_later);
	assert_int_equal(world_restore(&found), 40);
	assert_in_range(world_reported(NM_MOVE_PROGRESS, 0), 1, 2);
	world_start();
}

RUN_TESTS()
