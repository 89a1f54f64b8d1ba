/* SPDX-License-Identifier: MIT */
/* Models for tests: small workloads on built-in machines. Include cmocka.h first. */
#ifndef NM_TEST_SIM_FIXTURE_H
#define NM_TEST_SIM_FIXTURE_H

#include <math.h>
#include <string.h>

#include "../model/sim.h"
#include "numa-migrd/proc.h"

#define SIM_TOLERANCE 1e-9

static inline void alike(double a, double b)
{
	assert_true(fabs(a - b) <= SIM_TOLERANCE * fmax(fabs(a), fabs(b)));
}

static inline struct nm_sim_machine *machine_named(const char *name)
{
	struct nm_sim_machine *machine = NULL;
	assert_int_equal(nm_sim_machine_by_name(name, &machine), 0);
	return machine;
}

/* Adds a user with one program; the phase may be changed until the model begins. */
static inline struct nm_sim_program *add_program(struct nm_sim_workload *workload, const char *name,
						 unsigned threads)
{
	struct nm_sim_user *user = nm_sim_workload_add(workload, "user");
	assert_non_null(user);
	struct nm_sim_program *program = nm_sim_user_add(user, name, threads);
	assert_non_null(program);
	return program;
}

static inline struct nm_sim *begin(const struct nm_sim_machine *machine,
				   const struct nm_sim_workload *workload, uint64_t seed)
{
	struct nm_sim_options options = {.seed = seed};
	struct nm_sim *sim = NULL;
	assert_int_equal(nm_sim_new(machine, workload, &options, &sim), 0);
	return sim;
}

static inline void steps(struct nm_sim *sim, unsigned count)
{
	while (count-- > 0)
		assert_int_equal(nm_sim_step(sim), 0);
}

static inline void to_the_end(struct nm_sim *sim)
{
	while (!nm_sim_is_finished(sim))
		assert_int_equal(nm_sim_step(sim), 0);
}

/* Binds a thread to a node through the ops, as any program would. */
static inline void bind(struct nm_sim *sim, const struct nm_sim_machine *machine, uint32_t tid,
			unsigned node)
{
	struct nm_platform *platform = nm_sim_platform(sim);
	assert_int_equal(platform->ops->affinity_set(platform, (pid_t)tid,
						     machine->topology->nodes[node].cpus),
			 0);
}

static inline uint64_t start_of(struct nm_platform *platform, pid_t pid)
{
	struct nm_proc_stat stat;
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)pid, (uint32_t)pid, &stat), 0);
	return stat.start_ticks;
}

#endif
