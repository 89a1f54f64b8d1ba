/* SPDX-License-Identifier: MIT */
/* A thread is moved, and keeps its affinity. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <sched.h>

#include "move_words.h"

/* ---- the window ---- */

SCRIPT(a_running_thread_is_moved_at_once,
       "move 101 node2 = 0; node 101 = 2; is 101 all; open_moves = 0; arrived = 1")

SCRIPT(a_sleeping_thread_is_restored_when_it_runs,
       "narrow 101 node2; open_moves = 1; set stuck 101 = 0; settle 101; poll 5; node 101 = 2",
       "is 101 all")

/* SECURITY: stuck */
SCRIPT(a_thread_that_does_not_run_is_restored_after_the_window,
       "narrow 101 node2; poll 19; affinity 101 != 255; poll 1; is 101 all; node 101 = 0",
       "open_moves = 0; missed = 1; reported_missed 101 = 1")

SCRIPT(a_thread_that_is_there_is_not_narrowed, "keep n = sets; move 101 node0 = 0; sets = n")

SCRIPT(a_pinned_thread_gets_its_own_affinity_back,
       "pin 101 0-5; move 101 node2 = 0; is 101 0-5; user 101 = 63")

/* ---- where to ---- */

KNOB(busy_share, world->busy_share[U(0)])

SCRIPT(a_thread_goes_to_the_idle_cpu, "set busy_share 4 = 1; move 101 node2 = 0; processor 101 = 5")

SCRIPT(two_threads_get_different_cpus,
       "move 101 node2 = 0; move 102 node2 = 0; keep cpu = processor 101; processor 102 != cpu")

/* ---- refusals ---- */

#define REFUSED(error) "move 101 node2 = " error "; node 101 = 0; no_trace; "

NAMES(scheduler, {"fifo", SCHED_FIFO}, {"rr", SCHED_RR}, {"deadline", SCHED_DEADLINE}, {"ext", 7})

/* SECURITY: cap-nice */
SCRIPT(a_thread_of_another_policy_is_not_moved,
       "set scheduler 101 = fifo; " REFUSED("EPERM") "set scheduler 101 = rr; " REFUSED("EPERM"),
       "set scheduler 101 = deadline; " REFUSED("EPERM"),
       "set scheduler 101 = ext; " REFUSED("EPERM"))

SCRIPT(a_thread_that_creates_tasks_is_not_moved,
       "fork 101 300; drain; " REFUSED("EAGAIN") "move 102 node2 = 0; tick; move 101 node2 = 0")

SCRIPT(nothing_is_moved_beside_another_scheduler,
       "set sched_ext = 1; tick; " REFUSED("EAGAIN") "barred = 1; set sched_ext = 0; tick",
       "move 101 node2 = 0")

static void take_long(struct fake *f)
{
	fake_sleep(f, 25);
}

ACTION(slow_call, fake_at(fake, FAKE_SET, 1, take_long))

/* A hundred times as long as the call. */
SCRIPT(a_thread_whose_call_takes_long_rests,
       "slow_call; move 101 node2 = 0; longest_ns >= 25e6; move 101 node0 = EAGAIN",
       "move 102 node2 = 0; sleep_ms 2000; move 101 node0 = EAGAIN; sleep_ms 1000",
       "move 101 node0 = 0")

SCRIPT(nothing_is_moved_if_records_were_lost, "lose; " REFUSED("EAGAIN") "tick; move 101 node2 = 0")

static void pin_101(struct fake *f)
{
	fake_pin(f, 101, world_node(1));
}

ACTION(pin_meanwhile, fake_at(fake, FAKE_GET, 2, pin_101))

/* SECURITY: pin-meanwhile */
SCRIPT(an_affinity_set_meanwhile_is_not_replaced,
       "pin_meanwhile; move 101 node2 = ESTALE; no_trace")

WORD(swap_fails)
{
	struct nm_decision decision = {.kind = NM_DECISION_SWAP,
				       .nr_steps = 2,
				       .steps = {world_step(101, 2), world_step(102, 0)}};
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	assert_false(world_run(&decision).applied);
}

SCRIPT(a_refused_half_ends_a_swap, "set processor 102 = 4; swap_fails; poll 20; no_trace")

/* SECURITY: stuck */
SCRIPT(a_restoration_that_fails_is_tried_again,
       "fail_set 2 2; move 101 node2 = 0; reported_failed 101 = 1; open_moves = 0; tick",
       "affinity 101 != 255; tick; is 101 all; reported_failed 101 = 1")

/* ---- the owner ---- */

/* SECURITY: pin-meanwhile */
SCRIPT(an_affinity_set_within_the_window_stays,
       "narrow 101 node2; pin 101 node3; poll 20; is 101 node3; reported_foreign 101 = 1")

/* SECURITY: groups-vanish */
SCRIPT(a_cpuset_that_shrinks_and_grows_leaves_nothing,
       "set remembers = 1; cpuset /job all; group 100 /job; narrow 101 node2; cpuset /job 0-1",
       "poll 20; cpuset /job all; no_trace")

/* ---- slots ---- */

QUANTITY(has_file, faccessat(world->directory, NM_MOVES_NAME, F_OK, 0) == 0)

SCRIPT(the_file_is_removed_at_the_end, "narrow 101 node2; end = 0; no_trace", "each 12: tick",
       "close; has_file = 0")

WORD(use_all_slots)
{
	for (unsigned i = 0; i < NM_MOVE_SLOTS; i++)
		(void)world_move(101, 2 + i % 2);
}

QUANTITY(slots, NM_MOVE_SLOTS)

/* One domain uses half of the slots. */
SCRIPT(a_domain_leaves_slots_for_others,
       "use_all_slots; keep all = slots; asked = all*0.5; set uid 200 = 1001; move 200 node2 = 0",
       "each 11: tick", "move 101 node1 = 0")

/* SECURITY: runtime-directory */
TEST(a_file_of_another_kind_is_refused)
{
	struct nm_moves *second = NULL;
	nm_moves_free(NM_TAKE(world->moves));
	fixture_file(world->root, NM_MOVES_NAME, "something else\n");
	assert_int_equal(nm_moves_new(&fake->platform, world->topology, world->directory,
				      WORLD_BOOT, world_on_event, world, &second),
			 -EBADMSG);
	assert_null(second);
}

RUN_TESTS()
