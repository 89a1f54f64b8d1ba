/* SPDX-License-Identifier: MIT */
/* Two tenants of one machine: whatever A does, B's leases and their restoration go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "../../src/actuate/actuator.h"
#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)
#define A 1001
#define B 1002
#define FIRST_OF_A 300
#define FIRST_OF_B 500

static struct world *world;
static struct fake *fake;

/* A's process 100 and B's process 200. */
static int set_up(void **state)
{
	(void)state;
	world = world_new();
	fake = world->fake;
	fake_process(fake, 100, 1)->uid = A;
	fake_process(fake, 200, 1)->uid = B;
	fake_move(fake, 100, "/a.slice");
	fake_move(fake, 200, "/b.slice");
	fake_sleep(fake, 5000);
	fake->nr_events = 0;
	return 0;
}

static int tear_down(void **state)
{
	unsigned open_fds = fake_open_fds(fake);
	(void)state;
	world_free(world);
	assert_int_equal(open_fds, 0);
	return 0;
}

static void clone_threads(uint32_t pid, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fake_clone(fake, pid, first + i);
	fake->nr_events = 0;
}

/* How many of these threads get a lease. */
static unsigned lease_threads(uint32_t first, uint32_t count)
{
	unsigned leased = 0;
	for (uint32_t i = 0; i < count; i++) {
		leased += world_lease(world, first + i, 1).applied;
		world_drop(world, first + i);
	}
	fake_sleep(fake, 50);
	return leased;
}

/* SECURITY: ledger */
static void each_user_has_a_share_of_the_ledger(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 60);
	clone_threads(200, FIRST_OF_B, 20);
	world->actuator->most_leases = 40;
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 30);
	assert_int_equal(lease_threads(FIRST_OF_B, 20), 10);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_null(fake_trace(fake));
	/* Once these are forgotten there is room again. */
	for (int i = 0; i < 4; i++)
		world_tick(world);
	assert_int_equal(world->actuator->lease_shares.count, 0);
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 30);
}

/* The file stays short however often leases come and go within an interval. */
/* SECURITY: ledger */
static void the_ledger_is_compacted_in_time(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 1);
	for (unsigned i = 0; i < 2000; i++) {
		assert_int_equal(lease_threads(FIRST_OF_A, 1), 1);
		assert_int_equal(world_return(world, FIRST_OF_A), 0);
		if (i % 100 == 0)
			world_tick(world);
		assert_true(nm_ledger_lines(world->actuator->ledger) <= 1000);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_user_has_a_share_of_the_ledger),
		TEST(the_ledger_is_compacted_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
