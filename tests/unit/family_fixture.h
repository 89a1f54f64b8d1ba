/* SPDX-License-Identifier: MIT */
/* A family of processes, for tests of inherited affinities. Include after cmocka.h. */
#ifndef NM_TEST_FAMILY_FIXTURE_H
#define NM_TEST_FAMILY_FIXTURE_H

#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)

/* A shell (50), its job (process 100 with the threads 100 to 102) and a neighbour (200). */
static inline int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake = world->fake;
	fake_process(fake, 50, 1);
	fake_fork(fake, 50, 100);
	fake_clone(fake, 100, 101);
	fake_clone(fake, 100, 102);
	fake_fork(fake, 50, 200);
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static inline void lease(uint32_t tid, unsigned node)
{
	assert_true(world_lease(world, tid, node).applied);
	fake_sleep(fake, 100);
}

#endif
