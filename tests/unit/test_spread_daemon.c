/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon: threads of processes that are left on several nodes take part in the
 * lotteries, and change to a home and back only after some time. */
#define SET_UP open_words
#define TEAR_DOWN world_close
#include "../support/test.h"

/* As the main loop does if no process waits to be examined. */
#define SCRIPT_SECOND() live_interval(world.daemon.config->general.interval_s)

#include "daemon_words.h"

WORD(whole)
{
	for (unsigned i = 0; i < U(0); i++)
		SCRIPT_SECOND();
}

/* Six threads with memory of their own on three nodes; the first and the last are two hops from
 * it. A node has two CPUs. */
#define LARGE                                                                                      \
	"thread 1000 cpu0 node2; thread 1000 cpu1 node0; thread 1000 cpu2 node1; "                 \
	"thread 1000 cpu3 node1; thread 1000 cpu4 node2; thread 1000 cpu5 node0; begin auto; "
/* There is no room on the node of its memory, which follows. */
#define OTHER "thread 2000 cpu6 node2; thread 2000 cpu7 node2; "
#define KERNEL_BALANCES "set numa_balancing = 1; set seen_balancing = 1; "

SCRIPT(misplaced_threads_of_a_large_process_move,
       LARGE "whole 30; all_at_home = 1; home 1000 = none; reason 1000 = larger",
       "none decision KIND=home; journal decision POLICY=imar2; journal verdict VERDICT=improved",
       "assignments > 0")

/* Of the large process two threads are candidates until they move; the other one gets a home. */
SCRIPT(status_counts_candidates_of_the_lottery, LARGE OTHER,
       "until candidates > 0 within 30s; candidates = 2; whole 30; candidates = 0; settled = 6",
       "candidates_with_home = 2")

/* The kernel moves the same threads and pages. */
SCRIPT(nothing_is_drawn_beside_kernel_balancing,
       LARGE KERNEL_BALANCES "whole 30; entries decision = 0; candidates = -1")

SCRIPT(nothing_is_drawn_by_first_touches,
       "set samples_from = faults; " LARGE "whole 30; entries decision = 0")

#define COMPUTING                                                                                  \
	"set samples_from = faults; " LARGE "whole 30; assignments = 6; node 0 = 0; node 1 = 0; "  \
	"node 2 = 1; node 3 = 1; node 4 = 2; node 5 = 2; "

/* No lottery moves them, because only first touches are sampled. */
SCRIPT(computing_threads_of_a_large_process_stay, COMPUTING)

/* The kernel moves its threads and pages itself. */
SCRIPT(beside_the_kernel_a_large_process_is_left_to_it,
       LARGE KERNEL_BALANCES "whole 30; reason 1000 = larger; assignments = 0")

WORD(ten_others)
{
	for (int i = 6; i < 16; i++)
		add_worker(2000, i % CPUS, 0);
}

/* Another program wants the same CPUs. */
SCRIPT(held_threads_are_released_if_cpus_are_short, COMPUTING "ten_others; whole 15",
       "assignments = 0")

/* Two of seven share a CPU: they would queue where they are held. */
SCRIPT(threads_without_a_cpu_of_their_own_are_not_held,
       "thread 1000 cpu0 node0; thread 1000 cpu0 node0; thread 1000 cpu1 node0",
       "thread 1000 cpu2 node1; thread 1000 cpu3 node1; thread 1000 cpu4 node2",
       "thread 1000 cpu5 node2; begin auto; set lazy = 1; set samples_from = faults; whole 30",
       "reason 1000 = larger; assignments = 5")

/* A thread of a process with a home is no partner, although a swap would help the other one. */
SCRIPT(threads_at_home_are_no_partners,
       LARGE OTHER "whole 30; home 2000 = 3; journal decision POLICY=imar2",
       "none decision POLICY=imar2 PID=2000; none decision POLICY=imar2 PID_2=2000")

WORD(draw)
{
	nm_placement_drawn(nm_placement_of(&world.daemon.pipeline), U(0), world.daemon.tally.intervals);
}

QUANTITY(stays_until, state_of(step)->stays_until)
QUANTITY(drawn, state_of(step)->drawn)

/* Its two threads are on two nodes and their memory on one: it would be given a home at once, and
 * is observed first. */
SCRIPT(a_drawn_process_gets_a_home_after_ten_intervals,
       "four_mixed_up; begin auto; run 4; home 1000 = none; keep n = intervals; draw 1000",
       "stays_until 1000 = n+10; until home 1000 >= 0 within 20; intervals >= n+10",
       "drawn 1000 = 0; keep n = intervals; stays_until 1000 > n")

RUN_TESTS()
