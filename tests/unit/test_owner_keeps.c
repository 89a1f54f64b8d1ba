/* SPDX-License-Identifier: MIT */
/* An affinity set by its owner stays, even if it equals that of a move of an ancestor; and
 * restoration sets exactly the original affinity. */
#define SET_UP set_up_small
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "move_words.h"

/* Its children are created at once. */
static int set_up_small(void **state)
{
	(void)set_up(state);
	fake_get(fake, 50)->rss_kb = 4096;
	for (uint32_t tid = 100; tid <= 102; tid++)
		fake_get(fake, tid)->rss_kb = 4096;
	return 0;
}

/* ---- affinities of owners that look like those of moves ---- */

SCRIPT(a_restored_child_may_be_pinned_to_that_node,
       "narrow 101 node1; fork 101 300; drain; is 300 all; pin 300 node1",
       "each 4: tick; is 300 node1")

/* If a CPU has no ring, records are lost in every interval. */
/* SECURITY: others-pins */
SCRIPT(an_owner_keeps_its_affinity_while_records_are_lost,
       "narrow 101 node1; fork 101 300; fork 101 301; drain; fork 101 302; lose; tick; is 302 all",
       "pin 300 node1; pin 302 node1", "each 5: lose; tick; is 300 node1; is 302 node1",
       "end = 0; is 300 node1; is 302 node1; no_trace")

SCRIPT(later_children_keep_their_affinity,
       "narrow 101 node1; fork 101 300; drain; pin 300 node1; sleep_ms 100; fork 300 301; tick",
       "is 301 node1")

/* After restoration it executes a program that pins itself before its record is read. */
SCRIPT(a_started_program_pins_itself,
       "narrow 101 node1; fork 101 300; drain; sleep_ms 500; fork 300 301; pin 301 node1; tick",
       "is 301 node1")

/* Its siblings, which have exited, exceed the limit: there is a walk. */
/* SECURITY: forks */
SCRIPT(an_owner_keeps_its_affinity_beyond_the_remembered_limit,
       "narrow 101 node1; report_children 101 10000; fork 101 300; drain; is 300 all; tick",
       "pin 300 node1", "each 12: tick; is 300 node1")

/* Children of one user leave room for those of another: a parent that exited is known from records,
 * without a walk. */
/* SECURITY: forks */
SCRIPT(one_users_forks_leave_room_for_others,
       "set uid 200 = 1001; narrow 101 node1; narrow 200 node2; report_children 101 10000",
       "fork 200 300; fork 300 301; kill 300; drain; is 301 all")

/* In the session and cgroup of the moved process, left by its parent, but of another user. */
/* SECURITY: others-pins */
SCRIPT(an_orphan_of_another_user_keeps_its_affinity,
       "group 100 /job; narrow 101 node1; process 400 50; set uid 400 = 1001; group 400 /job",
       "pin 400 node1", "each 3: lose; tick; is 400 node1", "lose; end = 0; is 400 node1")

/* The number of an inheritor is reused by an unrelated process, which has children too. */
/* SECURITY: others-pins */
SCRIPT(children_of_a_reused_number_are_not_inheritors,
       "narrow 101 node1; fork 101 300; kill 300; sleep_ms 100; fork 50 300; pin 300 node1",
       "fork 300 310; tick; is 310 node1; is 300 node1")

/* The same if the records of its exit and fork are lost. */
SCRIPT(a_reused_number_after_lost_records_is_not_an_inheritor,
       "narrow 101 node1; fork 101 300; drain; kill 300; sleep_ms 100; fork 50 300; lose",
       "pin 300 node1; fork 300 310; tick; is 310 node1")

/* ---- an exec without a record ---- */

/* The moved thread exited; its leader, known to another thread, is pinned by its owner. */
#define LEADER_STAYS "narrow 101 node1; pin 100 node1; exit 101; lose; tick; tick; is 100 node1"

SCRIPT(a_pinned_leader_is_not_taken_for_an_exec, LEADER_STAYS)

/* No other thread is left that could show this, but the leader has used less CPU time. */
SCRIPT(an_idle_leader_is_not_taken_for_an_exec, "exit 102; set ran_ticks 101 = 500; " LEADER_STAYS)

SCRIPT(an_exec_is_detected_without_its_record, "narrow 101 node1; exec 101; lose; tick; is 100 all")

/* ---- what is restored ---- */

static void take_number(struct fake *f)
{
	fake_exit(f, 101);
	fake_clone(f, 200, 101);
}

ACTION(reuse_meanwhile, fake_at(fake, FAKE_SET, 1, take_number))

/* In a cpuset that its threads do not narrow further: they widen with it. */
/* SECURITY: reuse */
SCRIPT(a_misfire_resets_the_affinity_kept_by_the_kernel,
       "cpuset /part 0-5; group 200 /part; reuse_meanwhile; move 101 node1 != 0; is 101 0-5",
       "cpuset /part all; no_trace")

WORD(online)
{
	fake->online = cpus_of(step);
	fake_to_bitmap(fake->online, world->topology->online);
}

ACTION(apply_cpuset, fake_apply_cpuset(fake, fake_get(fake, U(0))))

/* sched_getaffinity(2) omits offline CPUs. */
SCRIPT(offline_cpus_are_restored,
       "pin 101 2-7; online 0-6; narrow 101 node2; poll 20; online all; user 101 = 252",
       "apply_cpuset 101; no_trace")

RUN_TESTS()
