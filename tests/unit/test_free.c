/* SPDX-License-Identifier: MIT */
/* How many CPUs of a node are free, and which ones. */
#define SET_UP open_machine
#define TEAR_DOWN close_machine
#include "../support/test.h"

#define SNAPSHOT_MACHINE 2, 4
#include "machine_words.h"
#include "policy/policy.h"

static void propose_with(const struct nm_snapshot *snapshot)
{
	machine_propose(machine, &nm_lbma_policy, NULL, snapshot, &rng, &proposals);
}

/* CPUs 4 to 7, those of the second node: a letter for each one, f for free, i also for idle. */
static const char *show_free(void)
{
	static char found[5];
	const struct nm_snap_cpu *cpus = take()->cpus;
	for (unsigned i = 0; i < 4; i++)
		found[i] = !cpus[4 + i].free ? '.' : cpus[4 + i].idle ? 'i' : 'f';
	return found;
}

static uint32_t main_thread_of(const struct nm_snapshot *snapshot, unsigned cpu, unsigned place)
{
	return snapshot->main_threads[snapshot->cpus[cpu].first_main_thread + place];
}

WORD(load)
{
	for (unsigned i = 0; i < 4; i++)
		machine->busy[4 + i] = N(i);
}

/* home 4: a thread whose home is this CPU, regardless of the load of that CPU */
ACTION(home, machine_thread(machine, 10, (int)N(0), 1))
KNOB(free_max, machine->config.rules.free_max)
TEXT(free, show_free())
QUANTITY(sibling_busy, take()->cpus[U(0)].sibling_busy)
QUANTITY(capacity, nm_core_capacity(take(), machine->topology->usable))
/* main_thread cpu4 1 = 2: the second thread whose main CPU it is */
QUANTITY(main_thread, main_thread_of(take(), U(0), U(1)))
QUANTITY(free_for_0, nm_snapshot_is_free_for(take(), (int)N(0), machine->masks[0]))

/* The home CPU of a thread is not chosen while there is another one. */
SCRIPT(a_wandering_thread_occupies_only_one_cpu,
       "home 4; load 0.52 0.48 1 1; free = .f..; load 0.48 0.52 1 1; free = .f..")

SCRIPT(three_migrating_threads_leave_one_cpu_of_four,
       "home 4; home 5; home 7; load 0.8 0.8 0.6 0.8; free = ..f.")

SCRIPT(idle_cpus_rank_first,
       "home 4; load 0.5 0.5 0.01 0; free = .fii; load 1 0.01 1 1; free = .i..",
       "load 0 0 0 0; free = .iii")

SCRIPT(less_than_one_cpu_is_not_free,
       "load 0.55 0.55 1 1; free = ....; load 0.52 0.52 1 1; free = f...",
       "set free_max = 0.01; free = ....")

SCRIPT(a_thread_home_is_not_a_free_cpu, "home 4; home 5; load 0.5 0.5 1 1; free = f...",
       "home 6; home 7; load 0.5 0.5 0.5 0.5; free = ....")

SCRIPT(partly_idle_cpus_do_not_add_up,
       "load 0.7 0.7 0.7 0.7; free = ....; load 0.66 0.7 0.7 0.7; free = f...")

SCRIPT(an_unknown_load_counts_as_busy,
       "load nan 0.5 1 1; free = ....; load nan 0.5 0.5 nan; free = .f..")

SCRIPT(an_unusable_cpu_is_not_free, "unusable 4; load 0 0.5 0.9 1; free = ....")

SCRIPT(the_paper_profile_judges_each_batch,
       "paper; set free_max = 0.05; load 0.5 0.5 0.01 0.5; free = ..i.")

SCRIPT(a_narrow_affinity_is_judged_by_its_cpus,
       "thread 10 cpu0 node1; load 0.5 0.5 1 1; free = f...",
       "allow 0 0-3,4,6; free_for_0 cpu4 = 0; allow 0 0-3,4-5; free_for_0 cpu4 = 1",
       "free_for_0 cpu5 = 0; allow 0 0-3,5; free_for_0 cpu4 = 0",
       "load 0 1 1 1; free = i...; free_for_0 cpu4 = 0; allow 0 0-4; free_for_0 cpu4 = 1")

/* The second thread moves to its memory, beside the first one that changes its CPU there. */
SCRIPT(a_second_thread_follows_its_memory,
       "home 4; thread 20 cpu0 node1; load 0.55 0.45 1 1; free = .f..",
       "count = 1; migrates = 1; moved 0 = 1; cpu_to 0 = 5")

/* Each is worth 0.25 cores at least: its part of the load that exceeds the cores. */
SCRIPT(siblings_are_worth_what_is_used,
       "capacity = 8; machine 2 4 2; load 1 1 1 1; set busy cpu0 = 1; capacity = 5",
       "set busy cpu2 = 1; capacity = 6; sibling_busy cpu3 = 1; sibling_busy cpu2 = 0")

SCRIPT(threads_are_listed_by_their_cpus,
       "home 4; home 5; home 4; main_thread cpu4 0 = 0; main_thread cpu4 1 = 2",
       "main_thread cpu5 0 = 1")

RUN_TESTS()
