/* SPDX-License-Identifier: MIT */
/* kMAF through every stage of the daemon in simulated time: sharing threads are collocated, moves
 * that slow accesses are rolled back, and both are logged. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "../support/sharing.h"
#include "daemon_words.h"

/* share cpu0 node0 block 1: a thread of process 1000 */
ACTION(share, add_worker(1000, (int)N(0), U(1))->address = 0x7f0000000000ULL + U(2) * (1 << 20))

WORD(begin_kmaf)
{
	world.daemon.config->threads.policy = NM_POLICY_KMAF;
	nm_pipeline_configure_pages(&world.daemon, true);
	fake_sleep(world.fake, 60000);
	world.daemon.last_tick_ns = world.fake->now_ns;
}

static unsigned parted_pairs(void)
{
	unsigned count = 0;
	for (size_t i = 0; i < world.nr_workers; i += 2)
		count += node_of(&world.workers[i]) != node_of(&world.workers[i + 1]);
	return count;
}

static bool is_held(void)
{
	const struct nm_memory_process *processes;
	assert_int_equal(nm_memory_processes(world.daemon.pipeline.memory, &processes), 1);
	return processes[0].held;
}

static uint32_t sharing_of_first_two(void)
{
	return sharing_between(nm_memory_affinity(world.daemon.pipeline.memory),
			       world.workers[0].tid, world.workers[1].tid);
}

QUANTITY(parted, parted_pairs())
QUANTITY(pages_held, is_held())
KNOB(address, worker_at(step, U(0))->address)
KNOB(mapping_s, world.daemon.config->rules.mapping_s)
KNOB(homes_sampled, world.homes)
QUANTITY(has_memory_stage, world.daemon.pipeline.memory != NULL)

/* Pairs, each one node apart, with memory on the node of the first thread. */
#define PAIR "share cpu0 node0 block 0; share cpu3 node0 block 0; "
#define TWO_PAIRS PAIR "share cpu2 node1 block 1; share cpu5 node1 block 1; "

SCRIPT(sharing_pairs_are_collocated,
       TWO_PAIRS "begin_kmaf; until parted = 0 within 15; run 15; all_at_home = 1; failed = 0",
       "verdicts_rolled_back = 0; applied > 0; keep n = applied; verdicts_improved = n; mark",
       "run 100; entries decision = 0")

/* Four pairs on four nodes of two CPUs, each pair on two nodes; no CPU is idle, or shared. */
SCRIPT(sharing_pairs_are_collocated_on_a_full_machine,
       TWO_PAIRS "share cpu4 node2 block 2; share cpu7 node2 block 2",
       "share cpu6 node3 block 3; share cpu1 node3 block 3; begin_kmaf",
       "until parted = 0 within 40; run 1; failed = 0; shared_cpus = 0")

SCRIPT(the_journal_describes_decisions_completely,
       TWO_PAIRS "begin_kmaf; until parted = 0 within 15; run 12",
       "journal decision RESULT=applied POLICY=kmaf SHARING_COST_AFTER<$SHARING_COST_BEFORE "
       "SHARED>9 TICKETS=- DRAW=-",
       "text : sharing cost ",
       "journal verdict DECISION=$DECISION VERDICT=improved SLOWDOWN_PERMILLE<1100 "
       "SHARING_COST_AFTER<$SHARING_COST_BEFORE LATENCY_AFTER_CYCLES>0",
       "text  memory latency ")

/* A thread that moves to its partner is farther from its memory, which does not follow. Their pages
 * differ in all but the address. The bound thread is released, too, and does not move instead. */
SCRIPT(moves_that_slow_accesses_are_rolled_back,
       "share cpu0 node0 block 0; share cpu4 node2 block 0; set homes_sampled = 1; begin_kmaf",
       "until verdicts_rolled_back > 0 within 40; verdicts_rolled_back = 2; assignments = 1",
       "journal decision KIND=rollback SHARED=- SHARING_COST_BEFORE=-",
       "journal verdict VERDICT=rolled-back SLOWDOWN_PERMILLE>1500 INTERVALS=10",
       "each 60: run 1; all_at_home = 1")

SCRIPT(threads_without_sharing_are_left_alone,
       "share cpu0 node0 block 0; share cpu2 node1 block 1; share cpu4 node2 block 2",
       "share cpu6 node3 block 3; begin_kmaf; run 50; entries decision = 0")

/* A wake-up would bring them anywhere; the second of a pair is left, too. */
SCRIPT(threads_that_rest_are_left_alone,
       TWO_PAIRS "set resting 0 = 0.5; set resting 3 = 0.5; begin_kmaf; run 50",
       "entries decision = 0; parted = 2; pages_held = 0")

SCRIPT(threads_that_rest_a_little_are_placed,
       TWO_PAIRS "set resting 0 = 0.2; set resting 3 = 0.2; begin_kmaf",
       "until parted = 0 within 15")

/* In the paper, threads are pinned. */
SCRIPT(threads_that_rest_are_placed_in_the_paper,
       TWO_PAIRS "set resting 0 = 0.5; set resting 3 = 0.5; set paper = 1; begin_kmaf",
       "until parted = 0 within 40")

/* As soon as sharing threads are placed, or after a few periods without a mapping. */
SCRIPT(pages_wait_for_the_first_mapping,
       PAIR "begin_kmaf; run 1; pages_held = 1; until pages_held = 0 within 10; applied > 0")

SCRIPT(pages_of_unmapped_processes_wait_for_five_periods,
       "share cpu0 node0 block 0; share cpu2 node0 block 1; begin_kmaf; run 1",
       "until pages_held = 0 within 7; waited >= 4; applied = 0")

/* Sharing is halved every four intervals. */
SCRIPT(the_period_is_kept, PAIR "begin_kmaf; set mapping_s = 0.5; interval_s = 0.5",
       "set mapping_s = 4; interval_s = 1; run 8; set address 0 = 0; set address 1 = 0; run 4",
       "aged_in 12 = 3")

static unsigned count_aged(unsigned intervals)
{
	unsigned aged = 0;
	while (intervals-- > 0) {
		const uint32_t before = sharing_of_first_two();
		live_one();
		aged += sharing_of_first_two() < before;
	}
	return aged;
}

QUANTITY(aged_in, count_aged(U(0)))

/* The stage exists only if a policy uses it. */
SCRIPT(the_memory_stage_follows_the_policies,
       "set policy = kmaf; configure; has_memory_stage = 1; set policy = imar2; configure",
       "has_memory_stage = 0; set page_policy = watch; configure; has_memory_stage = 1")

RUN_TESTS()
