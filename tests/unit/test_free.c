/* SPDX-License-Identifier: MIT */
/* How many CPUs of a node are free, and which ones. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/interval.h"
#include "policy/policy.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;

/* Two nodes of four CPUs. */
static int set_up(void **state)
{
	(void)state;
	machine = machine_new(2, 4);
	snapshot = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_snapshot_free(snapshot);
	machine_free(machine);
	return 0;
}

/* Sets the load of the CPUs of the second node; checks which of them are free. */
static void assert_free(const double busy[4], const char *expected)
{
	char found[5] = "....";
	for (int cpu = 0; cpu < 4; cpu++)
		machine->busy[4 + cpu] = busy[cpu];
	nm_snapshot_free(snapshot);
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	for (int cpu = 0; cpu < 4; cpu++)
		if (snapshot->cpus[4 + cpu].free)
			found[cpu] = (char)(snapshot->cpus[4 + cpu].idle ? 'i' : 'f');
	assert_string_equal(found, expected);
}

#define BUSY(...) ((const double[4]){__VA_ARGS__})

/* Its home is a CPU, regardless of the load of that CPU. */
static void at_home(int cpu)
{
	machine_thread(machine, 10, cpu, 1);
}

TEST(a_wandering_thread_occupies_only_one_cpu)
{
	at_home(4);
	assert_free(BUSY(0.52, 0.48, 1, 1), ".f..");
	/* The home CPU of a thread is not chosen while there is another one. */
	assert_free(BUSY(0.48, 0.52, 1, 1), ".f..");
}

TEST(three_migrating_threads_leave_one_cpu_of_four)
{
	at_home(4);
	at_home(5);
	at_home(7);
	assert_free(BUSY(0.8, 0.8, 0.6, 0.8), "..f.");
}

TEST(idle_cpus_rank_first)
{
	at_home(4);
	assert_free(BUSY(0.5, 0.5, 0.01, 0), ".fii");
	assert_free(BUSY(1, 0.01, 1, 1), ".i..");
	assert_free(BUSY(0, 0, 0, 0), ".iii");
}

TEST(less_than_one_cpu_is_not_free)
{
	assert_free(BUSY(0.55, 0.55, 1, 1), "....");
	assert_free(BUSY(0.52, 0.52, 1, 1), "f...");
	machine->config.rules.free_max = 0.01;
	assert_free(BUSY(0.52, 0.52, 1, 1), "....");
}

TEST(a_thread_home_is_not_a_free_cpu)
{
	at_home(4);
	at_home(5);
	assert_free(BUSY(0.5, 0.5, 1, 1), "f...");
	at_home(6);
	at_home(7);
	assert_free(BUSY(0.5, 0.5, 0.5, 0.5), "....");
}

TEST(partly_idle_cpus_do_not_add_up)
{
	assert_free(BUSY(0.7, 0.7, 0.7, 0.7), "....");
	assert_free(BUSY(0.66, 0.7, 0.7, 0.7), "f...");
}

TEST(an_unknown_load_counts_as_busy)
{
	assert_free(BUSY(NAN, 0.5, 1, 1), "....");
	assert_free(BUSY(NAN, 0.5, 0.5, NAN), ".f..");
}

TEST(an_unusable_cpu_is_not_free)
{
	hwloc_bitmap_clr(machine->topology->usable, 4);
	assert_free(BUSY(0, 0.5, 0.9, 1), "....");
}

TEST(the_paper_profile_judges_each_batch)
{
	machine_paper(&machine->config);
	machine->config.rules.free_max = 0.05;
	assert_free(BUSY(0.5, 0.5, 0.01, 0.5), "..i.");
}

TEST(a_narrow_affinity_is_judged_by_its_cpus)
{
	machine_thread(machine, 10, 0, 1);
	assert_free(BUSY(0.5, 0.5, 1, 1), "f...");
	machine_allow(machine, 0, "0-3,4,6");
	assert_false(nm_snapshot_is_free_for(snapshot, 4, machine->masks[0]));
	machine_allow(machine, 0, "0-3,4-5");
	assert_true(nm_snapshot_is_free_for(snapshot, 4, machine->masks[0]));
	assert_false(nm_snapshot_is_free_for(snapshot, 5, machine->masks[0]));
	machine_allow(machine, 0, "0-3,5");
	assert_false(nm_snapshot_is_free_for(snapshot, 4, machine->masks[0]));
	assert_free(BUSY(0, 1, 1, 1), "i...");
	machine_allow(machine, 0, "0-4");
	assert_true(nm_snapshot_is_free_for(snapshot, 4, machine->masks[0]));
}

/* The second thread moves to its memory, beside the first one that changes its CPU there. */
TEST(a_second_thread_follows_its_memory)
{
	struct nm_proposals proposals = {0};
	struct nm_rng rng;
	nm_rng_seed(&rng, 7);
	at_home(4);
	machine_thread(machine, 20, 0, 1);
	assert_free(BUSY(0.55, 0.45, 1, 1), ".f..");
	machine_propose(machine, &nm_lbma_policy, NULL, snapshot, &rng, &proposals);
	assert_int_equal(proposals.count, 1);
	assert_int_equal(proposals.items[0].kind, NM_PROPOSAL_MIGRATE);
	assert_int_equal(proposals.items[0].moves[0].thread, 1);
	assert_int_equal(proposals.items[0].moves[0].cpu_to, 5);
	nm_proposals_clear(&proposals);
}

RUN_TESTS()
