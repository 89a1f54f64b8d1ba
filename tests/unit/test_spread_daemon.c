/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: threads of processes that are left on several nodes take part in the
 * lotteries, and change to a home and back only after some time. */
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

/* As the main loop does if no process waits to be examined. */
static void live_s(unsigned seconds)
{
	while (seconds-- > 0)
		live_interval(world.daemon.config->general.interval_s);
}

static struct nm_home_state *state_of(uint32_t pid)
{
	struct nm_home_state *state = nm_home_state_find(nm_placement_of(&world.daemon), pid);
	assert_non_null(state);
	return state;
}

/* Six threads with memory of their own on three nodes; the first and the last are two hops from
 * it. A node has two CPUs. */
static void begin_large(void)
{
	static const unsigned memory[] = {2, 0, 1, 1, 2, 0};
	for (int i = 0; i < 6; i++)
		add_worker(1000, i, memory[i]);
	begin_auto();
}

TEST(misplaced_threads_of_a_large_process_move)
{
	begin_large();
	live_s(30);
	assert_true(all_at_home());
	assert_int_equal(state_of(1000)->home, -1);
	assert_int_equal(state_of(1000)->reason, NM_PLACE_LARGER);
	assert_null(find_entry(0, NM_MESSAGE_DECISION, "KIND", "home"));
	assert_non_null(find_entry(0, NM_MESSAGE_DECISION, "POLICY", "imar2"));
	assert_non_null(find_entry(0, NM_MESSAGE_VERDICT, "VERDICT", "improved"));
	assert_true(nm_assignments_count(world.daemon.pipeline.assignments) > 0);
}

/* Returns -1 if no threads may be drawn. */
static int candidates(enum nm_candidacy kind)
{
	struct nm_statistics statistics;
	const struct nm_view view = nm_views_of(&world.daemon);
	nm_view_statistics(&view, &statistics);
	return statistics.parts & 1U << NM_PART_LOTTERY ? (int)statistics.candidates[kind] : -1;
}

/* Of the large process two threads are candidates until they move; the other one gets a home. */
TEST(status_counts_candidates_of_the_lottery)
{
	begin_large();
	add_worker(2000, 6, 2); /* no room there: the memory follows */
	add_worker(2000, 7, 2);
	for (unsigned i = 0; i < 30 && !(candidates(NM_CANDIDACY_YES) > 0); i++)
		live_s(1);
	assert_int_equal(candidates(NM_CANDIDACY_YES), 2);
	live_s(30);
	assert_int_equal(candidates(NM_CANDIDACY_YES), 0);
	assert_int_equal(candidates(NM_CANDIDACY_SETTLED), 6);
	assert_int_equal(candidates(NM_CANDIDACY_WHOLE), 2);
}

/* The kernel moves the same threads and pages. */
TEST(nothing_is_drawn_beside_kernel_balancing)
{
	begin_large();
	world.balancing = world.daemon.machine.balancing = 1;
	live_s(30);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
	assert_int_equal(candidates(NM_CANDIDACY_YES), -1);
}

TEST(nothing_is_drawn_by_first_touches)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	begin_large();
	live_s(30);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
}

/* No lottery moves them, because only first touches are sampled. */
TEST(computing_threads_of_a_large_process_stay)
{
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	begin_large();
	live_s(30);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 6);
	for (size_t i = 0; i < world.nr_workers; i++)
		assert_int_equal(fake_get(world.fake, world.workers[i].tid)->processor / 2, i / 2);
}

/* The kernel moves its threads and pages itself. */
TEST(beside_the_kernel_a_large_process_is_left_to_it)
{
	begin_large();
	world.balancing = world.daemon.machine.balancing = 1;
	live_s(30);
	assert_int_equal(state_of(1000)->reason, NM_PLACE_LARGER);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
}

/* Another program wants the same CPUs. */
TEST(held_threads_are_released_if_cpus_are_short)
{
	computing_threads_of_a_large_process_stay(NULL);
	for (int i = 6; i < 16; i++)
		add_worker(2000, i % CPUS, 0);
	live_s(15);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 0);
}

/* Two of seven share a CPU: they would queue where they are held. */
TEST(threads_without_a_cpu_of_their_own_are_not_held)
{
	for (int i = 0; i < 7; i++)
		add_worker(1000, i > 0 ? i - 1 : 0, i > 0 ? (unsigned)(i - 1) / 2 : 0);
	begin_auto();
	world.lazy = true;
	world.daemon.pipeline.source->status.memory = NM_MEMORY_NONE;
	live_s(30);
	assert_int_equal(state_of(1000)->reason, NM_PLACE_LARGER);
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 5);
}

/* A thread of a process with a home is no partner, although a swap would help the other one. */
TEST(threads_at_home_are_no_partners)
{
	begin_large();
	add_worker(2000, 6, 2); /* no room there: the memory follows */
	add_worker(2000, 7, 2);
	live_s(30);
	assert_int_equal(state_of(2000)->home, 3);
	for (size_t i = 0; i < world.nr_entries; i++)
		if (has_field(&world.entries[i], "POLICY", "imar2"))
			assert_false(has_field(&world.entries[i], "PID_2", "2000") ||
				     has_field(&world.entries[i], "PID", "2000"));
}

/* Its two threads are on two nodes and their memory on one: it would be given a home at once. */
TEST(a_drawn_process_gets_a_home_after_ten_intervals)
{
	for (unsigned i = 0; i < 4; i++) {
		add_worker(1000 + 100 * i, (int)(2 * i), i);
		add_worker(1000 + 100 * i, (int)((2 * i + 3) % CPUS), i);
	}
	begin_auto();
	live(4);
	assert_int_equal(state_of(1000)->home, -1); /* observed first */
	nm_placement_drawn(nm_placement_of(&world.daemon), 1000, world.daemon.tally.intervals);
	uint64_t from = world.daemon.tally.intervals;
	assert_int_equal(state_of(1000)->stays_until, from + NM_PLACE_STAYS_INTERVALS);
	while (state_of(1000)->home < 0 && world.daemon.tally.intervals < from + 30)
		live(1);
	assert_in_range(world.daemon.tally.intervals - from, 10, 20);
	assert_false(state_of(1000)->drawn);
	assert_true(state_of(1000)->stays_until > world.daemon.tally.intervals);
}

RUN_TESTS()
