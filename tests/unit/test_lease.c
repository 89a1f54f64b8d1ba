/* SPDX-License-Identifier: MIT */
/* Maintenance of leases, and the effect of cpusets on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)

static void assert_returned(void)
{
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

/* ---- nudges ---- */

static void test_nudge_seen(void **state)
{
	(void)state;
	fake_get(fake, 101)->stuck = true;
	world_adopt_thread(world, 101);
	assert_true(world_move(world, 101, 2, NM_STEP_NUDGE).applied);
	assert_int_equal(nm_actuator_nudges(world->actuator), 1);
	nm_actuator_poll_nudges(world->actuator, fake->now_ns);
	assert_int_equal(world_mask(world, 101), world_node(2));
	fake_get(fake, 101)->processor = 5;
	nm_actuator_poll_nudges(world->actuator, fake->now_ns);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_WIDENED, 101), 1);
	assert_int_equal(nm_actuator_nudges(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_nudge_unseen(void **state)
{
	(void)state;
	fake_get(fake, 101)->stuck = true;
	world_adopt_thread(world, 101);
	world_move(world, 101, 2, NM_STEP_NUDGE);
	world_lease(world, 102, 1);
	nm_actuator_poll_nudges(world->actuator, fake->now_ns + NM_NSEC_PER_SEC);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_UNSEEN, 101), 1);
	assert_int_equal(world_mask(world, 102), world_node(1));
	assert_returned();
}

static void test_nudge_dies(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_move(world, 101, 2, NM_STEP_NUDGE);
	fake_exit(fake, 101);
	nm_actuator_poll_nudges(world->actuator, fake->now_ns + NM_NSEC_PER_SEC);
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
	assert_int_equal(nm_actuator_nudges(world->actuator), 0);
}

/* ---- maintenance of leases ---- */

static void test_expiry(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	for (int i = 0; i < 60; i++)
		world_tick(world);
	assert_int_equal(world_mask(world, 101), world_node(1));
	world->idle = true;
	for (int i = 0; i < 30; i++)
		world_tick(world);
	assert_int_equal(world_mask(world, 101), world_node(1));
	world_tick(world);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_EXPIRED, 101), 1);
}

/* As in the paper. */
static void test_no_expiry(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	struct nm_actuator_input input = {.members = world->members,
					  .nr_members = world->nr_members};
	for (int i = 0; i < 100; i++) {
		fake_sleep(fake, 60000);
		input.now_ns = fake->now_ns;
		nm_actuator_update(world->actuator, &input);
	}
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(world_reported(world, NM_LEASE_EXPIRED, 101), 0);
}

/* It keeps running, but most of its accesses now go to another node. */
static void test_memory_moved_away(void **state)
{
	(void)state;
	double accesses[8] = {0};
	struct nm_figures figures = {.pid = 100,
				     .tid = 101,
				     .run_samples = 100,
				     .accesses = accesses,
				     .access_samples = 50};
	world_lease(world, 101, 1);
	struct nm_actuator_input input = {.figures = &figures,
					  .nr_figures = 1,
					  .members = world->members,
					  .nr_members = world->nr_members,
					  .expiry_ns = WORLD_EXPIRY_NS};
	accesses[1] = 30;
	accesses[0] = 50;
	for (int i = 0; i < 60; i++) {
		fake_sleep(fake, 1000);
		input.now_ns = fake->now_ns;
		nm_actuator_update(world->actuator, &input);
	}
	assert_int_equal(world_mask(world, 101), world_node(1));
	accesses[0] = 70;
	for (int i = 0; i < 31; i++) {
		fake_sleep(fake, 1000);
		input.now_ns = fake->now_ns;
		nm_actuator_update(world->actuator, &input);
	}
	assert_int_equal(world_mask(world, 101), ALL);
}

/* It keeps running, and all its accesses go to a memory-only node beside its own. */
static void test_memory_without_cpus(void **state)
{
	(void)state;
	double accesses[8] = {0};
	struct nm_figures figures = {.pid = 100,
				     .tid = 101,
				     .run_samples = 100,
				     .accesses = accesses,
				     .access_samples = 50};
	hwloc_bitmap_zero(world->topology->nodes[3].cpus);
	world->topology->nodes[3].nearest_with_cpus = 1;
	world_lease(world, 101, 1);
	struct nm_actuator_input input = {.figures = &figures,
					  .nr_figures = 1,
					  .members = world->members,
					  .nr_members = world->nr_members,
					  .expiry_ns = WORLD_EXPIRY_NS};
	accesses[1] = 5;
	accesses[3] = 50;
	for (int i = 0; i < 60; i++) {
		fake_sleep(fake, 1000);
		input.now_ns = fake->now_ns;
		nm_actuator_update(world->actuator, &input);
	}
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(world_reported(world, NM_LEASE_EXPIRED, 101), 0);
	world->topology->nodes[3].nearest_with_cpus = 2;
	for (int i = 0; i < 31; i++) {
		fake_sleep(fake, 1000);
		input.now_ns = fake->now_ns;
		nm_actuator_update(world->actuator, &input);
	}
	assert_int_equal(world_mask(world, 101), ALL);
}

static void test_left_targets(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	world_drop(world, 101);
	world_tick(world);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_RETURNED, 101), 1);
}

static void test_no_members(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	struct nm_actuator_input input = {.expiry_ns = WORLD_EXPIRY_NS, .now_ns = fake->now_ns};
	nm_actuator_update(world->actuator, &input);
	assert_int_equal(world_mask(world, 101), ALL);
}

static void test_externally_changed_affinity(void **state)
{
	static const uint64_t masks[] = {0x1, 0x0c, 0x3c, 0x7f};
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(masks); i++) {
		world->nr_events = 0;
		world_lease(world, 101, 2);
		fake_pin(fake, 101, masks[i]);
		world_tick(world);
		assert_int_equal(world_mask(world, 101), masks[i]);
		assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 1);
		assert_int_equal(nm_actuator_leases(world->actuator), 0);
		assert_returned();
		assert_int_equal(world_mask(world, 101), masks[i]);
		fake_pin(fake, 101, ALL);
	}
}

static void test_exit(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_exit(fake, 101);
	world_drain(world);
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_exit_record_lost(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_exit(fake, 101);
	fake->nr_events = 0;
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* The leader is a zombie whose affinity is still leased. */
static void test_exit_without_descriptors(void **state)
{
	(void)state;
	world_lease(world, 100, 1);
	fake_exit(fake, 100);
	fake_fail(fake, FAKE_READ, 1, 1, EMFILE);
	world_drain(world);
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 100), 0);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_int_equal(ledger_entries(true), 1);
	assert_returned();
}

/* A refusal is reported, kept in the ledger, and retried. */
/* SECURITY: stuck */
static void test_return_refused(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_fail(fake, FAKE_SET, 1, 2, EPERM);
	assert_int_equal(nm_actuator_return_all(world->actuator), 1);
	assert_int_equal(world_reported(world, NM_LEASE_FAILED, 101), 1);
	assert_int_equal(ledger_entries(true), 1);
	world_drop(world, 101);
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	world_tick(world);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

/* Refused once as if its cpuset excluded all its CPUs: the affinity of the owner is set again, not
 * all CPUs. */
static void test_return_refused_as_invalid(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 2));
	world_adopt_thread(world, 101);
	assert_true(world_lease(world, 101, 0).applied);
	fake_fail(fake, FAKE_SET, 1, 1, EINVAL);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 2));
}

/* Refused until the stop: the ledger stays, and the next run restores from it. */
static void test_refused_until_next_run(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	world_forget_members(world);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_int_equal(nm_actuator_return_all(world->actuator), 1);
	nm_actuator_free(world->actuator);
	assert_int_equal(ledger_entries(true), 1);
	world_start(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	world_tick(world);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_ledger_goes_with_the_last(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	assert_returned();
	nm_actuator_free(world->actuator);
	assert_int_equal(faccessat(world->directory, NM_LEDGER_NAME, F_OK, 0), -1);
	world_start(world);
}

/* Thousands of leases leave a short ledger and little memory. */
static void test_ledger_stays_short(void **state)
{
	(void)state;
	world_lease(world, 102, 3);
	for (int i = 0; i < 3000; i++) {
		world_lease(world, 101, (unsigned)i % 4);
		if (i % 3 == 0)
			(void)world_return(world, 101);
		if (i % 10 == 0)
			world_tick(world);
	}
	assert_true(ledger_entries(false) < 400);
	assert_int_equal(world_mask(world, 102), world_node(3));
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_mask(world, 102), ALL);
}

/* ---- cpusets ---- */

static void put_in_cpuset(uint64_t cpus)
{
	fake_cpuset(fake, "/job", cpus);
	fake_move(fake, 100, "/job");
}

/* Before Linux 6.2, turning on the controller sets all CPUs of the cpuset, also for a thread that
 * its owner had narrowed. */
static void test_controller_turned_on(void **state)
{
	(void)state;
	fake->remembers = false;
	fake_pin(fake, 102, fake_cpus(0, 5));
	world_lease(world, 101, 1);
	world_lease(world, 102, 2);
	put_in_cpuset(ALL);
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	for (uint32_t tid = 101; tid <= 102; tid++) {
		assert_int_equal(world_mask(world, tid), ALL);
		assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, tid), 0);
		assert_int_equal(world_reported(world, NM_LEASE_RESET, tid), 1);
	}
	assert_returned();
}

/* A cpuset that is written again without a change looks like an owner's choice, if repeated. */
static void test_cpuset_rewritten(void **state)
{
	(void)state;
	fake->remembers = false;
	put_in_cpuset(fake_cpus(0, 5));
	world_lease(world, 101, 1);
	put_in_cpuset(fake_cpus(0, 5));
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 5));
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_UNDONE, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_returned();
}

static void test_owner_sets_the_original(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 3));
	world_lease(world, 101, 1);
	fake_pin(fake, 101, fake_cpus(0, 3));
	world_tick(world);
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 3));
	assert_int_equal(world_reported(world, NM_LEASE_UNDONE, 101), 1);
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
	assert_returned();
}

/* A leased thread is restored after the first thread of its process has exited. */
static void test_first_thread_exits(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	world_lease(world, 100, 2);
	fake_exit(fake, 100);
	world_drop(world, 100);
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
}

/* Narrowed to a part of the target: the lease continues, and the restored affinity follows the
 * cpuset when it widens. */
static void check_narrowed(bool remembers)
{
	fake->remembers = remembers;
	put_in_cpuset(ALL);
	world_lease(world, 101, 1);
	fake_cpuset(fake, "/job", fake_cpus(3, 3));
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
	assert_returned();
	assert_int_equal(world_mask(world, 101), fake_cpus(3, 3));
	fake_cpuset(fake, "/job", ALL);
	assert_int_equal(world_mask(world, 101), ALL);
}

static void test_cpuset_narrowed(void **state)
{
	(void)state;
	check_narrowed(true);
}

static void test_cpuset_narrowed_old_kernel(void **state)
{
	(void)state;
	check_narrowed(false);
}

/*
 * Narrowed to exclude the target: the kernel sets the whole cpuset. A newer kernel would set our
 * affinity again when the cpuset widens, so it is restored, and the change does not count as
 * external.
 */
static void check_emptied(bool remembers)
{
	fake->remembers = remembers;
	put_in_cpuset(ALL);
	world_lease(world, 101, 1);
	fake_cpuset(fake, "/job", fake_cpus(6, 7));
	assert_int_equal(world_mask(world, 101), fake_cpus(6, 7));
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
	fake_cpuset(fake, "/job", ALL);
	assert_int_equal(world_mask(world, 101), ALL);
}

static void test_cpuset_emptied(void **state)
{
	(void)state;
	check_emptied(true);
}

static void test_cpuset_emptied_old_kernel(void **state)
{
	(void)state;
	check_emptied(false);
}

/* Widened under the lease: an old kernel sets all of it, which does not count as an external
 * change. */
static void check_widened(bool remembers)
{
	fake->remembers = remembers;
	put_in_cpuset(fake_cpus(0, 3));
	world_lease(world, 101, 1);
	fake_cpuset(fake, "/job", ALL);
	assert_int_equal(world_mask(world, 101), remembers ? world_node(1) : ALL);
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), remembers ? 1 : 0);
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
	fake_cpuset(fake, "/job", fake_cpus(0, 5));
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 5));
}

static void test_cpuset_widened(void **state)
{
	(void)state;
	check_widened(true);
}

static void test_cpuset_widened_old_kernel(void **state)
{
	(void)state;
	check_widened(false);
}

/* The affinity of the owner is restored unchanged, even if the cpuset narrowed the lease
 * meanwhile. */
static void test_cpuset_and_owner(void **state)
{
	(void)state;
	put_in_cpuset(ALL);
	fake_pin(fake, 101, fake_cpus(0, 3));
	world_lease(world, 101, 1);
	fake_cpuset(fake, "/job", fake_cpus(3, 7));
	assert_returned();
	fake_cpuset(fake, "/job", ALL);
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 3));
}

static void test_moved_to_other_cgroup(void **state)
{
	(void)state;
	put_in_cpuset(ALL);
	world_lease(world, 101, 1);
	fake_cpuset(fake, "/other", fake_cpus(2, 2) | fake_cpus(6, 7));
	fake_move(fake, 100, "/other");
	assert_int_equal(world_mask(world, 101), fake_cpus(2, 2));
	assert_returned();
	assert_int_equal(world_mask(world, 101), fake_cpus(2, 2) | fake_cpus(6, 7));
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 0);
}

/* CPUs of the target go offline. */
static void test_hotplug(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake->online &= ~fake_cpus(3, 3);
	world_tick(world);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	fake->online = ALL;
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two_processes, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nudge_seen),
		TEST(test_nudge_unseen),
		TEST(test_nudge_dies),
		TEST(test_expiry),
		TEST(test_no_expiry),
		TEST(test_memory_moved_away),
		TEST(test_memory_without_cpus),
		TEST(test_left_targets),
		TEST(test_no_members),
		TEST(test_externally_changed_affinity),
		TEST(test_exit),
		TEST(test_exit_record_lost),
		TEST(test_exit_without_descriptors),
		TEST(test_return_refused),
		TEST(test_return_refused_as_invalid),
		TEST(test_refused_until_next_run),
		TEST(test_ledger_goes_with_the_last),
		TEST(test_ledger_stays_short),
		TEST(test_controller_turned_on),
		TEST(test_cpuset_rewritten),
		TEST(test_owner_sets_the_original),
		TEST(test_first_thread_exits),
		TEST(test_cpuset_narrowed),
		TEST(test_cpuset_narrowed_old_kernel),
		TEST(test_cpuset_emptied),
		TEST(test_cpuset_emptied_old_kernel),
		TEST(test_cpuset_widened),
		TEST(test_cpuset_widened_old_kernel),
		TEST(test_cpuset_and_owner),
		TEST(test_moved_to_other_cgroup),
		TEST(test_hotplug),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
