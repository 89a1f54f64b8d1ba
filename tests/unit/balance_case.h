/* SPDX-License-Identifier: MIT */
/* A workload of balance_fixture.h for each test. Include cmocka.h first. */
#ifndef NM_TEST_BALANCE_CASE_H
#define NM_TEST_BALANCE_CASE_H

#include "../support/balance_fixture.h"

static struct workload *workload;
static struct machine *machine;

static inline void use_machine(unsigned nodes, unsigned cpus)
{
	if (workload)
		workload_free(workload);
	workload = workload_new(nodes, cpus, 64);
	machine = workload->machine;
}

/* Two nodes: CPUs 0 and 1, CPUs 2 and 3. */
static inline int begin(void **state)
{
	(void)state;
	use_machine(2, 4);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	workload_free(workload);
	workload = NULL;
	return 0;
}

static inline const struct nm_proposal *proposal(size_t i)
{
	assert_true(i < workload->balancer->proposals.count);
	return &workload->balancer->proposals.items[i];
}

#endif
