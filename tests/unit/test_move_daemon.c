/* SPDX-License-Identifier: MIT */
/* Threads of processes with a home are moved, and their affinity is never narrow after a tick. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

#include "daemon_words.h"

#define ONE_APART "thread 1000 cpu0 node0; thread 1000 cpu5 node0; "

QUANTITY(open_moves, nm_moves_open(world.daemon.pipeline.moves))
QUANTITY(moves_asked, nm_moves_counts(world.daemon.pipeline.moves).asked)
QUANTITY(moves_arrived, nm_moves_counts(world.daemon.pipeline.moves).arrived)
KNOB(stuck, fake_get(world.fake, worker_at(step, U(0))->tid)->stuck)

SCRIPT(each_process_is_moved_to_a_node, "four_mixed_up; begin auto", "each 6: run 1s; narrow = 0",
       "strays = 0; open_moves = 0")

/* The scheduler takes a worker two nodes away. */
WORD(take_away)
{
	struct worker *worker = worker_at(step, U(0));
	fake_get(world.fake, worker->tid)->processor = (int)((2 * node_of(worker) + 2) % CPUS);
}

SCRIPT(a_thread_that_the_scheduler_takes_away_is_moved_again, ONE_APART "begin auto",
       "each 8: run 1s; narrow = 0", "keep home = node 1; take_away 1; node 1 != home",
       "each 3: run 1s; narrow = 0", "node 1 = home")

/* It returns each time that it is moved. */
WORD(take_away_from_home)
{
	if (node_of(&world.workers[1]) == node_of(&world.workers[0]))
		word_take_away(step);
}

/* SECURITY: managed */
SCRIPT(a_thread_that_moves_back_is_left_alone,
       ONE_APART "begin auto; run 8s; keep before = moves_asked",
       "each 120: take_away_from_home 1; run 1s; narrow = 0", "moves_asked in before+50..before+62")

/* thread_of 1000 1500 cpu1: a thread with its affinity, as runtimes create them */
WORD(thread_of)
{
	struct fake_thread *born = fake_clone(world.fake, U(0), U(1));
	born->processor = (int)N(2);
	born->mask = born->user = fake_get(world.fake, 1000)->mask;
}

/* Its runtime gives each new thread the affinity of the first one, which is not narrow. */
SCRIPT(a_runtime_that_copies_the_first_affinity_gets_all_cpus,
       ONE_APART "thread_of 1000 1500 cpu1; begin auto; run 3s; thread_of 1500 1501 cpu1; run 20s",
       "affinity 1501 = 255")

SCRIPT(the_end_leaves_nothing,
       "four_mixed_up; set stuck 1 = 1; set stuck 3 = 1; set stuck 5 = 1; set stuck 7 = 1",
       "begin auto; run 20; unreturned = 0; narrow = 0")

SCRIPT(a_release_ends_assignments,
       ONE_APART "begin auto; run 8s; release 1000; take_away 1; keep there = node 1; run 5s",
       "node 1 = there")

/* The lotteries, too. */
SCRIPT(a_thread_of_a_lottery_is_moved_and_kept_wide, "four_mixed_up; begin auto; set policy = lbma",
       "each 60: run 1; narrow = 0", "all_at_home = 1; moves_arrived > 0")

RUN_TESTS()
