/* SPDX-License-Identifier: MIT */
/* kMAF through every stage of the daemon in simulated time: sharing threads are collocated, moves
 * that slow accesses are rolled back, and both are logged. */
#define SET_UP world_open
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "../support/sharing.h"
#include "daemon_fixture.h"

#define BLOCK(number) (0x7f0000000000ULL + (uint64_t)(number) * (1 << 20))

static void begin(void)
{
	struct nm_config *config = world.daemon.config;
	config->threads.policy = NM_POLICY_KMAF;
	nm_pipeline_configure_pages(&world.daemon, true);
	assert_non_null(world.daemon.pipeline.memory);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

/* Pairs of a process, each one node apart, with memory on the node of the first thread. */
static void part_pairs(unsigned pairs)
{
	for (unsigned i = 0; i < pairs; i++) {
		add_worker(1000, (int)(2 * i), i)->address = BLOCK(i);
		add_worker(1000, (int)((2 * i + 3) % CPUS), i)->address = BLOCK(i);
	}
}

static bool pairs_share_nodes(void)
{
	for (size_t i = 0; i < world.nr_workers; i += 2)
		if (node_of(&world.workers[i]) != node_of(&world.workers[i + 1]))
			return false;
	return true;
}

static unsigned settle(unsigned most)
{
	unsigned intervals = 0;
	for (; intervals < most && !pairs_share_nodes(); intervals++)
		live_one();
	assert_true(pairs_share_nodes());
	return intervals;
}

TEST(sharing_pairs_are_collocated)
{
	part_pairs(2);
	begin();
	print_message("settled after %u intervals\n", settle(15));
	live(15);
	assert_true(all_at_home());
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK], 0);
	assert_int_equal(world.daemon.tally.failed, 0);
	assert_true(world.daemon.tally.applied > 0);
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_IMPROVED],
			 world.daemon.tally.applied);
	size_t quiet = world.nr_entries;
	live(100);
	assert_int_equal(count_entries(quiet, NM_MESSAGE_DECISION), 0);
}

/* Four pairs on four nodes of two CPUs, each pair on two nodes; no CPU is idle. */
TEST(sharing_pairs_are_collocated_on_a_full_machine)
{
	part_pairs(4);
	begin();
	print_message("settled after %u intervals\n", settle(40));
	live_one();
	assert_int_equal(world.daemon.tally.failed, 0);
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(workers_on(cpu), 1);
}

TEST(the_journal_describes_decisions_completely)
{
	part_pairs(2);
	begin();
	settle(15);
	live(12);
	const struct nm_entry *move = find_entry(0, NM_MESSAGE_DECISION, "RESULT", "applied");
	assert_non_null(move);
	assert_true(has_field(move, "POLICY", "kmaf"));
	assert_true(number_of(move, "SHARING_COST_AFTER") < number_of(move, "SHARING_COST_BEFORE"));
	assert_true(number_of(move, "SHARED") > 9);
	assert_null(field_of(move, "TICKETS"));
	assert_null(field_of(move, "DRAW"));
	assert_non_null(strstr(move->text, ": sharing cost "));
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "DECISION", field_of(move, "DECISION"));
	assert_non_null(verdict);
	assert_true(has_field(verdict, "VERDICT", "improved"));
	assert_true(number_of(verdict, "SLOWDOWN_PERMILLE") < 1100);
	assert_true(number_of(verdict, "SHARING_COST_AFTER") <
		    number_of(verdict, "SHARING_COST_BEFORE"));
	assert_true(number_of(verdict, "LATENCY_AFTER_CYCLES") > 0);
	assert_non_null(strstr(verdict->text, " memory latency "));
}

/* A thread that moves to its partner is farther from its memory, which does not follow. */
TEST(moves_that_slow_accesses_are_rolled_back)
{
	struct worker *a = add_worker(1000, 0, 0), *b = add_worker(1000, 4, 2);
	a->address = b->address = BLOCK(0);
	world.homes = true; /* their pages differ in all but the address */
	begin();
	for (int i = 0; i < 40 && world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK] == 0; i++)
		live_one();
	assert_int_equal(world.daemon.tally.verdicts[NM_VERDICT_ROLLED_BACK],
			 2); /* and the bound thread is released */
	assert_int_equal(nm_assignments_count(world.daemon.pipeline.assignments), 1);
	const struct nm_entry *back = find_entry(0, NM_MESSAGE_DECISION, "KIND", "rollback");
	assert_non_null(back);
	assert_null(field_of(back, "SHARED"));
	assert_null(field_of(back, "SHARING_COST_BEFORE"));
	const struct nm_entry *verdict =
		find_entry(0, NM_MESSAGE_VERDICT, "VERDICT", "rolled-back");
	assert_non_null(verdict);
	assert_true(number_of(verdict, "SLOWDOWN_PERMILLE") > 1500);
	assert_int_equal(number_of(verdict, "INTERVALS"), NM_VERDICT_INTERVALS);
	/* The other thread does not move instead. */
	for (int i = 0; i < 60; i++) {
		live_one();
		assert_true(all_at_home());
	}
}

TEST(threads_without_sharing_are_left_alone)
{
	for (int i = 0; i < 4; i++)
		add_worker(1000, 2 * i, (unsigned)i)->address = BLOCK(i);
	begin();
	live(50);
	assert_int_equal(count_entries(0, NM_MESSAGE_DECISION), 0);
}

static bool is_held(void)
{
	const struct nm_memory_process *processes;
	assert_int_equal(nm_memory_processes(world.daemon.pipeline.memory, &processes), 1);
	return processes[0].held;
}

/* As soon as sharing threads are placed, or after a few periods without a mapping. */
TEST(pages_wait_for_the_first_mapping)
{
	part_pairs(1);
	begin();
	live(1);
	assert_true(is_held());
	for (int i = 0; i < 10 && world.daemon.tally.applied == 0; i++) {
		assert_true(is_held());
		live_one();
	}
	assert_true(world.daemon.tally.applied > 0);
	assert_false(is_held());
}

TEST(pages_of_unmapped_processes_wait_for_five_periods)
{
	add_worker(1000, 0, 0)->address = BLOCK(0);
	add_worker(1000, 2, 0)->address = BLOCK(1);
	begin();
	unsigned intervals = 0;
	live(1);
	for (; intervals < 20 && is_held(); intervals++)
		live_one();
	assert_in_range(intervals, 4, 7);
}

TEST(the_period_is_kept)
{
	struct nm_config *config = world.daemon.config;
	part_pairs(1);
	begin();
	config->rules.mapping_s = 0.5;
	assert_true(nm_interval_s(&world.daemon) == 0.5);
	config->rules.mapping_s = 4;
	assert_true(nm_interval_s(&world.daemon) == 1);
	live(8);
	world.workers[0].address = world.workers[1].address = 0;
	live(4);
	const struct nm_affinity *affinity = nm_memory_affinity(world.daemon.pipeline.memory);
	uint32_t tids[] = {world.workers[0].tid, world.workers[1].tid};
	unsigned aged = 0;
	for (int i = 0; i < 12; i++) {
		uint32_t before = sharing_between(affinity, tids[0], tids[1]);
		live_one();
		aged += sharing_between(affinity, tids[0], tids[1]) < before;
	}
	assert_int_equal(aged, 3);
}

/* The stage exists only if a policy uses it. */
TEST(the_memory_stage_follows_the_policies)
{
	struct nm_daemon *daemon = &world.daemon;
	daemon->config->threads.policy = NM_POLICY_KMAF;
	nm_pipeline_configure_pages(daemon, false);
	assert_non_null(daemon->pipeline.memory);
	daemon->config->threads.policy = NM_POLICY_IMAR2;
	nm_pipeline_configure_pages(daemon, false);
	assert_null(daemon->pipeline.memory);
	daemon->config->pages.policy = NM_PAGES_WATCH;
	nm_pipeline_configure_pages(daemon, false);
	assert_non_null(daemon->pipeline.memory);
}

RUN_TESTS()
