/* SPDX-License-Identifier: MIT */
/*
 * The words of script.h for models. Each test begins with the machine ring-4x10. Include cmocka.h
 * first.
 *
 *	machine ring-4x10; regular 2 2; odd	a built-in machine, or nodes and CPUs
 *	program stream 10			of a user of its own, with ten threads
 *	set giga = 20; set placement = direct	of the program and the user added last
 *	begin 4; begin 4 balancing		a model with this seed, from the start
 *	steps 50; finish
 *	mark; local_share > 0.5			accesses since then
 *	set giga 1 = 20				of its second phase; of the first without a number
 *	bind 0-7 node2				threads, through the ops, as any program would
 */
#ifndef NM_TEST_SIM_WORDS_H
#define NM_TEST_SIM_WORDS_H

#include "sim_fixture.h"

#include "../model/model.h"

static struct nm_sim *sim;

#define SCRIPT_STEP() steps(sim, 1)
#include "../support/script.h"

static struct nm_sim_machine *machine;
static struct nm_sim_workload workload;
static struct nm_sim_options options;
static struct nm_sim_figures marked;
static unsigned nodes_seen; /* on which threads have run, as bits */
static bool ran_without;    /* on a CPU without a node */

static inline int close_model(void **state)
{
	(void)state;
	nm_sim_free(sim);
	nm_sim_workload_clear(&workload);
	nm_sim_machine_free(machine);
	sim = NULL;
	machine = NULL;
	workload = (struct nm_sim_workload){0};
	options = (struct nm_sim_options){0};
	return 0;
}

static inline int open_model(void **state)
{
	(void)state;
	machine = machine_named("ring-4x10");
	return 0;
}

/* Instead of the one before, with all that was on it. */
static inline void replace_machine(struct nm_sim_machine *by)
{
	(void)close_model(NULL);
	machine = by;
}

__attribute__((format(printf, 1, 2))) static inline void run_line(const char *format, ...)
{
	char line[400];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	script_run_line(1, line);
}

static inline struct nm_sim_user *user(void)
{
	return &workload.users[workload.nr_users - 1];
}

static inline struct nm_sim_program *program(void)
{
	return &user()->programs[0];
}

static inline struct nm_sim_phase *phase(const struct step *step)
{
	const unsigned which = step->nr_numbers > 0 ? U(0) : 0;
	assert_true(which < program()->nr_phases);
	return &program()->phases[which];
}

static inline struct nm_sim_machine *regular(unsigned nodes, unsigned cpus)
{
	struct nm_sim_machine *ret = NULL;
	assert_int_equal(nm_sim_machine_regular(nodes, cpus, &ret), 0);
	return ret;
}

/* Four nodes of two CPUs, the last two CPUs without a node; nodes 1 and 3 are memory-only. */
static inline struct nm_sim_machine *odd_machine(void)
{
	struct nm_sim_machine *ret = regular(4, 8);
	struct nm_topology *topology = ret->topology;
	for (unsigned node = 1; node < 4; node += 2) {
		hwloc_bitmap_zero(topology->nodes[node].cpus);
		topology->nodes[node].nearest_with_cpus = (int)node - 1;
	}
	topology->cpus[2].node = topology->cpus[3].node = 0;
	hwloc_bitmap_set_range(topology->nodes[0].cpus, 2, 3);
	topology->cpus[6].node = topology->cpus[7].node = -1;
	topology->cpus[6].cache = topology->cpus[7].cache = topology->cpus[5].cache;
	return ret;
}

static inline int start_model(const struct step *step)
{
	nm_sim_free(NM_TAKE(sim));
	options.seed = U(0);
	options.numa_balancing = step_has(step, "balancing");
	marked = (struct nm_sim_figures){0};
	nodes_seen = 0;
	ran_without = false;
	return nm_sim_new(machine, &workload, &options, &sim);
}

WORD(begin)
{
	int r = start_model(step);
	if (r < 0)
		script_fail(step, "found %s", script_show("error", r));
}

WORD(finish)
{
	for (steps(sim, 1); !nm_sim_is_finished(sim); steps(sim, 1))
		for (size_t i = 0; i < nm_sim_nr_threads(sim); i++) {
			const struct nm_sim_thread_view view = nm_sim_thread(sim, i);
			nodes_seen |= 1U << view.node;
			ran_without |= machine->topology->cpus[view.cpu].node < 0;
		}
}

WORD(bind)
{
	for (unsigned i = U(0); i <= U(1); i++)
		bind(sim, machine, nm_sim_thread(sim, i).tid, U(2));
}

WORD(on_node)
{
	for (unsigned i = U(0); i <= U(1); i++)
		if (nm_sim_thread(sim, i).node != (int)U(2))
			script_fail(step, "thread %u is on node %d", i, nm_sim_thread(sim, i).node);
}

static inline double sum_threads(double (*of)(struct nm_sim_thread_view view))
{
	double sum = 0;
	for (size_t i = 0; i < nm_sim_nr_threads(sim); i++)
		sum += of(nm_sim_thread(sim, i));
	return sum;
}

static inline double work_of(struct nm_sim_thread_view view)
{
	return view.done_giga;
}

static inline double local_share(void)
{
	const struct nm_sim_figures now = nm_sim_figures(sim);
	return (now.local_accesses - marked.local_accesses) / (now.accesses - marked.accesses);
}

ACTION(machine, replace_machine(machine_named(step->word[0])))
ACTION(regular, replace_machine(regular(U(0), U(1))))
ACTION(odd, replace_machine(odd_machine()))
ACTION(offline, hwloc_bitmap_zero(machine->topology->online))
ACTION(program, add_program(&workload, step->word[0], U(step->nr_numbers - 1)))
ACTION(steps, steps(sim, U(0)))
ACTION(mark, marked = nm_sim_figures(sim))
KNOB(giga, phase(step)->giga)
KNOB(misses, phase(step)->misses_per_kilo)
KNOB(shared_part, phase(step)->shared_part)
KNOB(private_part, phase(step)->private_part)
KNOB(neighbour_part, phase(step)->neighbour_part)
KNOB(team, phase(step)->threads)
KNOB(touched, phase(step)->touched)
KNOB(start_s, user()->start_s)
KNOB(spread_s, user()->spread_s)
KNOB(full_page_cache, workload.full_page_cache)
KNOB(cache_aware, options.cache_aware)
KNOB(no_pmu, options.no_pmu)
KNOB(footprint_mb, program()->footprint_mb)
KNOB(touch, program()->touch)
NAMES(touch, {"master", NM_SIM_TOUCH_MASTER})
KNOB(placement, user()->placement)
NAMES(placement, {"system", NM_SIM_PLACE_SYSTEM}, {"interleave", NM_SIM_PLACE_INTERLEAVE},
      {"oracle", NM_SIM_PLACE_ORACLE}, {"direct", NM_SIM_PLACE_DIRECT})
KNOB(memory, user()->node)
QUANTITY(time_s, nm_sim_figures(sim).time_s)
QUANTITY(accesses, nm_sim_figures(sim).accesses)
QUANTITY(moves, nm_sim_figures(sim).moves)
QUANTITY(programs_ended, nm_sim_figures(sim).programs_ended)
QUANTITY(pages_balanced, nm_sim_figures(sim).pages_balanced)
QUANTITY(local_share, local_share())
QUANTITY(nodes_seen, nodes_seen)
QUANTITY(ran_without, ran_without)
QUANTITY(done_giga, sum_threads(work_of))
QUANTITY(threads, nm_sim_nr_threads(sim))
QUANTITY(done, nm_sim_thread(sim, U(0)).done_giga)
QUANTITY(mix, nm_sim_thread(sim, U(0)).mix[U(1)])
QUANTITY(miss, sim->live[U(0)]->misses_per_kilo)
QUANTITY(speed, sim->live[U(0)]->rate)

#endif
