/* SPDX-License-Identifier: MIT */
/* The model's shared caches, and the papers' kernels in its scheduler. */
#include "../support/test.h"

#include <stdint.h>

#include "sim_fixture.h"

#include "../model/model.h"

static double misses_of(struct nm_sim *sim, size_t thread)
{
	return sim->live[thread]->misses_per_kilo;
}

/* Runs the program with thread i bound to node_of[i], and returns the model after a while. */
static struct nm_sim *run_bound(const struct nm_sim_machine *machine,
				const struct nm_sim_workload *workload, const unsigned *node_of)
{
	struct nm_sim *sim = begin(machine, workload, 1);
	steps(sim, 1);
	for (size_t i = 0; i < nm_sim_nr_threads(sim); i++)
		bind(sim, machine, nm_sim_thread(sim, i).tid, node_of[i]);
	steps(sim, 20);
	return sim;
}

TEST(test_without_caches_misses_are_constant)
{
	struct nm_sim_machine *machine = machine_named("o6320-4x8");
	struct nm_sim_workload workload = {0};
	(void)add_program(&workload, "stencil", 20);
	struct nm_sim *sim = begin(machine, &workload, 1);
	steps(sim, 10);
	for (size_t i = 0; i < nm_sim_nr_threads(sim); i++) {
		assert_true(misses_of(sim, i) == 10);
		assert_true(sim->live[i]->hits_per_kilo == 0);
	}
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* Misses grow with what the other threads under the cache load, within the bounds of the rule. */
TEST(test_threads_compete_for_the_cache)
{
	static const unsigned gathered[] = {0, 0, 0, 0}, spread[] = {0, 1, 2, 3};
	struct nm_sim_machine *machine = machine_named("o6320-4x8-llc");
	struct nm_sim_workload workload = {0};
	(void)add_program(&workload, "stream", 4);
	struct nm_sim *together = run_bound(machine, &workload, gathered);
	struct nm_sim *apart = run_bound(machine, &workload, spread);
	for (size_t i = 0; i < 4; i++) {
		alike(misses_of(together, i), 25 * sqrt(0.5));
		alike(misses_of(apart, i), 25 * sqrt(0.25)); /* an eighth, but for the bound */
	}
	nm_sim_free(together);
	nm_sim_free(apart);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

/* A neighbour's line hits under the same cache; elsewhere it comes from the neighbour's node, and its
 * invalidation costs. */
TEST(test_neighbours_pass_lines)
{
	static const unsigned gathered[] = {2, 2}, spread[] = {2, 3};
	struct nm_sim_machine *machine = machine_named("o6320-4x8-llc");
	struct nm_sim_workload workload = {0};
	struct nm_sim_program *program = add_program(&workload, "stream", 2);
	program->phases[0].private_part = 0;
	program->phases[0].neighbour_part = 1;
	struct nm_sim *together = run_bound(machine, &workload, gathered);
	struct nm_sim *apart = run_bound(machine, &workload, spread);
	for (size_t i = 0; i < 2; i++) {
		assert_true(misses_of(together, i) == 0);
		alike(together->live[i]->hits_per_kilo, 25);
		alike(misses_of(apart, i), 25 * (1 + NM_SIM_WRITE_BACK));
		alike(nm_sim_thread(apart, i).mix[i == 0 ? 3 : 2], 1);
		assert_true(together->live[i]->rate > apart->live[i]->rate);
	}
	nm_sim_free(together);
	nm_sim_free(apart);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

TEST(test_caches_of_a_node_are_separate)
{
	struct nm_sim_machine *machine = machine_named("epyc-2x32-llc");
	assert_int_equal(machine->nr_caches, 16);
	for (unsigned cpu = 0; cpu < 64; cpu++)
		assert_int_equal(machine->topology->cpus[cpu].cache, cpu / 4);
	nm_sim_machine_free(machine);
}

/* Of two programs of one thread on one CPU, the kernel moves the one that its rule prefers. */
TEST(test_the_kernel_chooses_among_waiting_threads)
{
	static const struct {
		enum nm_sim_choice choice;
		size_t moves;
	} cases[] = {{NM_SIM_CHOOSE_TOTAL_MIN, 1}, {NM_SIM_CHOOSE_REMOTE_MIN, 1}};
	struct nm_sim_machine *machine = machine_named("o6320-4x8");
	struct nm_sim_workload workload = {0};
	add_program(&workload, "stream", 1)->footprint_mb = 400;
	add_program(&workload, "stream", 1)->footprint_mb = 40;
	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_sim *sim = begin(machine, &workload, 1);
		steps(sim, 1);
		nm_sim_move(sim, sim->live[0], 3);
		nm_sim_move(sim, sim->live[1], 3);
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 16), sim->live[0]);
		sim->options.choice = cases[i].choice;
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 4), sim->live[0]);
		assert_ptr_equal(nm_sim_choose(sim, sim->live[0], 16), sim->live[cases[i].moves]);
		nm_sim_free(sim);
	}
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
}

RUN_TESTS()
