/* SPDX-License-Identifier: MIT */
/* The feedback of IMAR² on a machine of two processes. */
#ifndef NM_FEEDBACK_FIXTURE_H
#define NM_FEEDBACK_FIXTURE_H

#include "../support/interval.h"
#include "policy/judge.h"

static struct machine *machine;
static struct nm_snapshot *snapshot;
static struct nm_feedback *feedback;
static struct nm_feedback_result result;

/* Processes 10 (threads 0, 1) and 20 (thread 2), each with P = 100. */
static inline int set_up_with_noise_gate(double noise_gate)
{
	machine = machine_new(4, 2);
	machine->config.threads.performance = NM_PERFORMANCE_INSTRUCTIONS;
	machine->config.rules.noise_gate = noise_gate;
	machine->config.rules.paper = true;
	for (int i = 0; i < 3; i++) {
		machine_thread(machine, i < 2 ? 10 : 20, i, 1);
		machine_perform(machine, (size_t)i, 100, 200, 1, 20);
	}
	feedback = nm_feedback_new();
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	nm_feedback_free(feedback);
	nm_snapshot_free(snapshot);
	snapshot = NULL;
	machine_free(machine);
	return 0;
}

static inline void speed(size_t i, double performance)
{
	machine_perform(machine, i, performance, 2 * performance, 1, 20);
}

static inline enum nm_feedback_outcome look(void)
{
	nm_snapshot_free(snapshot);
	machine->interval++;
	snapshot = machine_snapshot(machine);
	assert_non_null(snapshot);
	nm_imar2_feedback(feedback, snapshot, &machine->config, &result);
	return result.outcome;
}

#endif
