/* SPDX-License-Identifier: MIT */
/* Threads of processes with a home are moved, and their affinity is never narrow after a tick. */
#define SET_UP open_pages
#define TEAR_DOWN world_close
#include "../support/test.h"

#include <math.h>

#include "page_daemon_fixture.h"

static void begin_auto(void)
{
	world.daemon.config->threads.policy = NM_POLICY_AUTO;
	world.balancing = -1;
	world.daemon.machine.balancing = -1;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static void assert_nothing_narrow(void)
{
	const struct fake_thread *thread = fake_trace(world.fake);
	if (thread)
		fail_msg("thread %u has %#" PRIx64, thread->tid, thread->mask);
}

/* Each second, of which the ticks are parts. */
static void live_s(unsigned seconds)
{
	while (seconds-- > 0) {
		live((unsigned)(1 / nm_loop_wakeup_s(&world.daemon)));
		assert_nothing_narrow();
	}
}

/* Four processes of two threads, each over two nodes with its memory on one. */
static void four_mixed_up(void)
{
	for (unsigned i = 0; i < 4; i++) {
		add_worker(1000 + 100 * i, (int)(2 * i), i);
		add_worker(1000 + 100 * i, (int)((2 * i + 3) % CPUS), i);
	}
}

static int home_of(uint32_t pid)
{
	const struct nm_home_state *state = nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(state);
	return state->home;
}

static void assert_all_at_home(void)
{
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(node_of(&world.workers[i]), home_of(1000 + 100 * (i / 2)));
}

TEST(each_process_is_moved_to_a_node)
{
	four_mixed_up();
	begin_auto();
	live_s(6);
	assert_all_at_home();
	assert_int_equal(nm_moves_open(world.daemon.pipeline.moves), 0);
}

static unsigned away(struct worker *worker)
{
	struct fake_thread *thread = fake_get(world.fake, worker->tid);
	unsigned home = node_of(worker);
	thread->processor = (int)((2 * home + 2) % CPUS);
	return home;
}

TEST(a_thread_that_the_scheduler_takes_away_is_moved_again)
{
	add_worker(1000, 0, 0);
	add_worker(1000, 5, 0);
	begin_auto();
	live_s(8);
	unsigned home = away(&world.workers[1]);
	assert_int_not_equal(node_of(&world.workers[1]), home);
	live_s(3);
	assert_int_equal(node_of(&world.workers[1]), home);
}

/* SECURITY: managed */
TEST(a_thread_that_moves_back_is_left_alone)
{
	add_worker(1000, 0, 0);
	add_worker(1000, 5, 0);
	begin_auto();
	live_s(8);
	uint64_t before = nm_moves_counts(world.daemon.pipeline.moves).asked;
	for (int i = 0; i < 120; i++) {
		if (node_of(&world.workers[1]) == node_of(&world.workers[0]))
			(void)away(&world.workers[1]);
		live_s(1);
	}
	assert_in_range(nm_moves_counts(world.daemon.pipeline.moves).asked - before, 50, 62);
}

/* Its runtime gives each new thread the affinity of the first one, which is not narrow. */
TEST(a_runtime_that_copies_the_first_affinity_gets_all_cpus)
{
	add_worker(1000, 0, 0);
	add_worker(1000, 5, 0);
	fake_clone(world.fake, 1000, 1500)->processor = 1;
	begin_auto();
	live_s(3);
	struct fake_thread *born = fake_clone(world.fake, 1500, 1501);
	born->mask = born->user = fake_get(world.fake, 1000)->mask;
	live_s(20);
	assert_int_equal(born->mask, 0xff);
}

TEST(the_end_leaves_nothing)
{
	four_mixed_up();
	for (unsigned i = 0; i < 8; i++)
		fake_get(world.fake, world.workers[i].tid)->stuck = i % 2;
	begin_auto();
	live(20);
	assert_int_equal(nm_moves_end(world.daemon.pipeline.moves), 0);
	assert_nothing_narrow();
}

TEST(a_release_ends_assignments)
{
	add_worker(1000, 0, 0);
	add_worker(1000, 5, 0);
	begin_auto();
	live_s(8);
	assert_int_equal(nm_command_release(&world.daemon, 1000), 0);
	(void)away(&world.workers[1]);
	unsigned there = node_of(&world.workers[1]);
	live_s(5);
	assert_int_equal(node_of(&world.workers[1]), there);
}

/* The lotteries, too. */
TEST(a_thread_of_a_lottery_is_moved_and_kept_wide)
{
	four_mixed_up();
	world.daemon.config->threads.policy = NM_POLICY_LBMA;
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
	for (int i = 0; i < 60 && !all_at_home(); i++) {
		live_one();
		assert_nothing_narrow();
	}
	assert_true(nm_moves_counts(world.daemon.pipeline.moves).arrived > 0);
}

RUN_TESTS()
