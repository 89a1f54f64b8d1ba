/* SPDX-License-Identifier: MIT */
/* The model's shared caches, and the papers' kernels in its scheduler. */
#define SET_UP open_model
#define TEAR_DOWN close_model
#include "../support/test.h"

#include <stdint.h>

#include "sim_words.h"

/* all miss 10, or all hit 0: per 1,000 instructions, of every thread */
WORD(all)
{
	for (size_t i = 0; i < sim->nr_live; i++) {
		const double found = step_has(step, "hit") ? sim->live[i]->hits_per_kilo
							   : sim->live[i]->misses_per_kilo;
		if (!script_compare(found, "=", N(0)))
			script_fail(step, "thread %zu: found %.10g", i, found);
	}
}

SCRIPT(test_without_caches_misses_are_constant,
       "machine o6320-4x8; program stencil 20; begin 1; steps 10; all miss 10; all hit 0")

QUANTITY(half, 25 * sqrt(0.5))

/* Misses grow with what the other threads under the cache load, within the bounds of the rule:
 * apart they would be an eighth. */
SCRIPT(test_threads_compete_for_the_cache,
       "machine o6320-4x8-llc; program stream 4; begin 1; steps 1; bind 0-3 node0; steps 20",
       "keep half = half; all miss half; begin 1; steps 1; bind 0-0 node0; bind 1-1 node1",
       "bind 2-2 node2; bind 3-3 node3; steps 20; all miss 12.5")

QUANTITY(with_write_back, 25 * (1 + NM_SIM_WRITE_BACK))

/* A neighbour's line hits under the same cache; elsewhere it comes from the neighbour's node, and
 * its invalidation costs. */
SCRIPT(test_neighbours_pass_lines,
       "machine o6320-4x8-llc; program stream 2; set private_part = 0; set neighbour_part = 1",
       "begin 1; steps 1; bind 0-1 node2; steps 20; all miss 0; all hit 25",
       "keep first = speed 0; keep second = speed 1; begin 1; steps 1; bind 0-0 node2",
       "bind 1-1 node3; steps 20; keep misses = with_write_back; all miss misses; mix 0 node3 = 1",
       "mix 1 node2 = 1; speed 0 < first; speed 1 < second")

TEST(test_caches_of_a_node_are_separate)
{
	run_line("machine epyc-2x32-llc");
	assert_int_equal(machine->nr_caches, 16);
	for (unsigned cpu = 0; cpu < 64; cpu++)
		assert_int_equal(machine->topology->cpus[cpu].cache, cpu / 4);
}

/* Of two programs of one thread on one CPU, the kernel moves the one that its rule prefers. */
TEST(test_the_kernel_chooses_among_waiting_threads)
{
	static const struct {
		enum nm_sim_choice choice;
		size_t moves;
	} cases[] = {{NM_SIM_CHOOSE_TOTAL_MIN, 1}, {NM_SIM_CHOOSE_REMOTE_MIN, 1}};
	run_line("machine o6320-4x8; program stream 1; set footprint_mb = 400");
	run_line("program stream 1; set footprint_mb = 40");
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		run_line("begin 1; steps 1");
		nm_sim_move(sim, sim->live[0], 3);
		nm_sim_move(sim, sim->live[1], 3);
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 16), sim->live[0]);
		sim->options.choice = cases[i].choice;
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 4), sim->live[0]);
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 16), sim->live[cases[i].moves]);
	}
}

RUN_TESTS()
