/* SPDX-License-Identifier: MIT */
/* Two tenants of one machine: leases of B and their restoration are unaffected by any action
 * of A. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/wait.h>

#include "../../src/lease/actuator.h"
#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)
#define A 1001
#define B 1002
#define FIRST_OF_A 300
#define FIRST_OF_B 500

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

static void clone_threads(uint32_t pid, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fake_clone(fake, pid, first + i);
	fake->nr_events = 0;
}

/* Returns how many of these threads get a lease. */
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
static void each_domain_has_a_share_of_the_ledger(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 60);
	clone_threads(200, FIRST_OF_B, 20);
	world->actuator->most_leases = 40;
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 20);
	assert_int_equal(lease_threads(FIRST_OF_B, 20), 10);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_null(fake_trace(fake));
	/* Once these expire there is space again. */
	for (int i = 0; i < 4; i++)
		world_tick(world);
	assert_int_equal(world->actuator->lease_shares.count, 0);
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 20);
}

/* The file stays short however often leases begin and end within an interval. */
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

/* ---- restoration ---- */

static int restore(void)
{
	struct nm_restoration found;
	world->nr_events = 0;
	int r = nm_restore(&fake->platform, world->topology, world->directory, WORLD_BOOT,
			   world_on_event, world, &found);
	assert_true(r < 0 || found.failed == 0);
	return r;
}

static void crash(void)
{
	nm_actuator_free(world->actuator);
	world->actuator = NULL;
}

/* With subordinate user ids, each thread of A has a different one. */
static void have_own_users(uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct fake_thread *thread = fake_get(fake, first + i);
		thread->pid = thread->tid;
		thread->uid = 100000 + i;
	}
}

/* Any number of users are one domain. */
/* SECURITY: ledger */
static void users_of_one_domain_share_its_quota(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 60);
	clone_threads(200, FIRST_OF_B, 3);
	have_own_users(FIRST_OF_A, 60);
	world->actuator->most_leases = 40;
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 20);
	assert_int_equal(lease_threads(FIRST_OF_B, 3), 3);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_null(fake_trace(fake));
	while (world->actuator->lease_shares.count > 0)
		world_tick(world);
	assert_int_equal(lease_threads(FIRST_OF_B, 3), 3);
	assert_int_equal(lease_threads(FIRST_OF_A, 60), 19);
	crash();
	assert_int_equal(restore(), 22);
	assert_null(fake_trace(fake));
}

/* Processes of A have parts of a target, each in a deep cgroup: the thread of B comes first, and
 * the cost is constant. */
/* SECURITY: slow-restore, many-groups */
static void deep_cgroups_do_not_delay_others(void **state)
{
	char path[96];
	(void)state;
	clone_threads(200, FIRST_OF_B, 1);
	assert_int_equal(lease_threads(FIRST_OF_B, 1), 1);
	crash();
	for (uint32_t i = 0; i < 100; i++) {
		int length = snprintf(path, sizeof(path), "/a.slice/%u", i);
		while (length < 90)
			length += snprintf(path + length, sizeof(path) - (size_t)length, "/x");
		fake_fork(fake, 100, 600 + i);
		fake_pin(fake, 600 + i, 4);
		fake_move(fake, 600 + i, path);
	}
	fake->names_cpusets = true;
	unsigned before = fake->calls[FAKE_OPS];
	assert_int_equal(restore(), 1);
	assert_int_equal(world->events[0].pid, 200);
	/* Two rounds of the search would need twice as many. */
	assert_true(fake->calls[FAKE_OPS] - before <= 12 * (100 + 10));
	assert_null(fake_trace(fake));
}

/* Each run is killed by a time limit: the next one resumes where it stopped. */
/* SECURITY: slow-restore */
static void a_crash_loop_ends_with_everything_restored(void **state)
{
	int status = 1;
	unsigned runs = 0;
	(void)state;
	clone_threads(100, FIRST_OF_A, 50);
	clone_threads(200, FIRST_OF_B, 20);
	assert_int_equal(lease_threads(FIRST_OF_A, 50), 50);
	assert_int_equal(lease_threads(FIRST_OF_B, 20), 20);
	crash();
	for (; status != 0; runs++) {
		assert_true(runs < 20);
		pid_t child = fork();
		if (child == 0) {
			fake->die_at = fake->calls[FAKE_OPS] + 200;
			(void)restore();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		fake->die_at = 0;
		memset(fake->open, 0, sizeof(fake->open));
	}
	assert_true(runs > 1);
	assert_null(fake_trace(fake));
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
}

/* A forks while records are lost: a child of B is found within a few intervals nevertheless. */
/* SECURITY: forks */
static void a_fork_storm_hides_no_child(void **state)
{
	(void)state;
	clone_threads(200, FIRST_OF_B, 1);
	world_adopt_thread(world, FIRST_OF_B);
	assert_true(world_lease(world, FIRST_OF_B, 1).applied);
	fake_sleep(fake, 50);
	world->actuator->turn_steps = 8192;
	fake_fork(fake, FIRST_OF_B, 900);
	for (uint32_t tick = 0; tick < 10 && world_mask(world, 900) != ALL; tick++) {
		for (uint32_t i = 0; i < 10; i++) {
			fake_fork(fake, 100, 600 + 10 * tick + i);
			fake_pin(fake, 600 + 10 * tick + i, world_node(1));
		}
		world_lose_records(world);
		world_tick(world);
	}
	assert_int_equal(world_mask(world, 900), ALL);
	assert_true(world_holds(world, FIRST_OF_B));
}

/* The threads of A make a walk take 100 intervals. Meanwhile the lease ends under which a child of
 * B was created. */
/* SECURITY: forks */
static void many_threads_hide_no_child(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 100);
	clone_threads(200, FIRST_OF_B, 1);
	world_adopt_thread(world, FIRST_OF_B);
	assert_true(world_lease(world, FIRST_OF_B, 1).applied);
	fake_sleep(fake, 50);
	fake_fork(fake, FIRST_OF_B, 900);
	world_lose_records(world);
	assert_int_equal(world_return(world, FIRST_OF_B), 0);
	world->actuator->turn_steps = 1;
	unsigned ticks = 0;
	for (; ticks < 200 && world_mask(world, 900) != ALL; ticks++)
		world_tick(world);
	assert_in_range(ticks, 100, 199);
	for (; ticks < 500; ticks++)
		world_tick(world);
	assert_int_equal(world->actuator->count, 0);
}

/* Progress is reported once a second, so that the time limit is extended. */
static void one_second_later(struct fake *f)
{
	fake_sleep(f, 600);
}

static void progress_is_reported(void **state)
{
	(void)state;
	clone_threads(100, FIRST_OF_A, 40);
	assert_int_equal(lease_threads(FIRST_OF_A, 40), 40);
	crash();
	for (unsigned i = 0; i < 4; i++)
		fake_at(fake, FAKE_SET, 5 + 5 * i, one_second_later);
	assert_int_equal(restore(), 40);
	assert_in_range(world_reported(world, NM_LEASE_PROGRESS, 0), 1, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_domain_has_a_share_of_the_ledger),
		TEST(the_ledger_is_compacted_in_time),
		TEST(users_of_one_domain_share_its_quota),
		TEST(deep_cgroups_do_not_delay_others),
		TEST(a_crash_loop_ends_with_everything_restored),
		TEST(a_fork_storm_hides_no_child),
		TEST(many_threads_hide_no_child),
		TEST(progress_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
