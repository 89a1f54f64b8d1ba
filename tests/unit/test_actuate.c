/* SPDX-License-Identifier: MIT */
/* Operations of the actuator. Expiry of leases is tested in test_lease.c, inheritance in
 * test_inherit.c, and recovery after a crash in test_restore.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "actuate_fixture.h"

#define ALL UINT64_C(0xff)

static void assert_refused(const struct nm_receipt *receipt, int error, const char *what)
{
	assert_false(receipt->applied);
	assert_false(receipt->steps[0].applied);
	assert_int_equal(receipt->steps[0].error, error);
	assert_string_equal(receipt->steps[0].what, what);
}

static void assert_returned(void)
{
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

/* ---- leases ---- */

static void test_lease(void **state)
{
	struct nm_receipt receipt = world_lease(world, 101, 2);
	(void)state;
	assert_true(receipt.applied);
	assert_true(receipt.steps[0].tried && receipt.steps[0].applied);
	assert_int_equal(receipt.steps[0].error, 0);
	assert_int_equal(world_mask(world, 101), world_node(2));
	assert_int_equal(world_mask(world, 100), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_true(world_holds(world, 101));
	assert_false(world_holds(world, 100));
	assert_int_equal(ledger_entries(true), 1);
	assert_int_equal(world_return(world, 101), 0);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_RETURNED, 101), 1);
	assert_int_equal(ledger_entries(true), 0);
	/* A repeated lease changes nothing. */
	assert_int_equal(world_return(world, 101), 0);
	assert_int_equal(world_return(world, 999), 0);
	assert_int_equal(world->nr_events, 1);
}

static void test_restricted_original(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 3));
	assert_true(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_returned();
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 3));
	assert_int_equal(fake_get(fake, 101)->user, fake_cpus(0, 3));
}

static void test_move_again(void **state)
{
	(void)state;
	assert_true(world_lease(world, 101, 1).applied);
	assert_true(world_lease(world, 101, 3).applied);
	assert_true(world_lease(world, 101, 0).applied);
	assert_int_equal(world_mask(world, 101), world_node(0));
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_reported(world, NM_LEASE_RETURNED, 101), 1);
}

static void test_return_process(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	world_lease(world, 102, 2);
	world_lease(world, 200, 3);
	assert_int_equal(nm_actuator_return_process(world->actuator, 100), 0);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_mask(world, 102), ALL);
	assert_int_equal(world_mask(world, 200), world_node(3));
	assert_returned();
	assert_int_equal(world_mask(world, 200), ALL);
}

static void test_swap(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
	assert_true(receipt.applied);
	assert_int_equal(receipt.nr_steps, 2);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(world_mask(world, 200), world_node(2));
	assert_int_equal(nm_actuator_leases(world->actuator), 2);
	assert_returned();
}

/* ---- refusals: nothing changes, and the ledger has no entry in force ---- */

static void test_refuse_identity(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_exit(fake, 101);
	struct nm_receipt receipt = world_move(world, 101, 1, NM_STEP_LEASE);
	assert_refused(&receipt, -ESRCH, "identity");
	assert_false(receipt.steps[0].tried);
	fake_clone(fake, 100, 101); /* the number is reused later */
	receipt = world_move(world, 101, 1, NM_STEP_LEASE);
	assert_refused(&receipt, -ESRCH, "identity");
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(ledger_entries(false), 0);
}

/* SECURITY: cap-nice */
static void test_refuse_unfit(void **state)
{
	static const unsigned policies[] = {SCHED_FIFO, SCHED_RR, SCHED_DEADLINE};
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(policies); i++) {
		fake_get(fake, 101)->policy = policies[i];
		struct nm_receipt receipt = world_lease(world, 101, 1);
		assert_refused(&receipt, -EPERM, "scheduling policy");
	}
	fake_get(fake, 101)->policy = SCHED_BATCH;
	fake_get(fake, 101)->flags = FAKE_KTHREAD;
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -EPERM, "scheduling policy");
	assert_int_equal(world_mask(world, 101), ALL);
	fake_get(fake, 101)->flags = 0;
	assert_true(world_lease(world, 101, 1).applied);
	assert_returned();
}

static void test_refuse_changed_affinity(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_pin(fake, 101, fake_cpus(0, 2));
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ESTALE, "mask");
	assert_int_equal(world_mask(world, 101), fake_cpus(0, 2));
	/* The same thread while it is leased. */
	assert_true(world_lease(world, 102, 1).applied);
	fake_pin(fake, 102, fake_cpus(3, 4));
	receipt = world_lease(world, 102, 2);
	assert_refused(&receipt, -ESTALE, "mask");
	assert_int_equal(world_mask(world, 102), fake_cpus(3, 4));
	assert_returned();
	assert_int_equal(world_mask(world, 102), fake_cpus(3, 4));
}

static void test_refuse_set(void **state)
{
	static const int errors[] = {EPERM, EINVAL, ENOMEM, ESRCH, EROFS};
	(void)state;
	for (size_t i = 0; i < NM_ARRAY_SIZE(errors); i++) {
		fake_fail(fake, FAKE_SET, 1, 1, errors[i]);
		struct nm_receipt receipt = world_lease(world, 101, 1);
		assert_refused(&receipt, -errors[i], "sched_setaffinity");
		assert_true(receipt.steps[0].tried);
		assert_int_equal(world_mask(world, 101), ALL);
		assert_int_equal(nm_actuator_leases(world->actuator), 0);
		assert_int_equal(ledger_entries(true), 0);
	}
}

/* If the replacement of a lease is refused, the lease continues. */
static void test_refuse_replacement(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	assert_false(world_lease(world, 101, 2).applied);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
}

static void test_refuse_without_clock(void **state)
{
	(void)state;
	fake->no_uptime = true;
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ENODATA, "identity");
	assert_int_equal(world_mask(world, 101), ALL);
}

/* The owner of a thread is needed to recognize its inheritors. */
/* SECURITY: others-pins */
static void test_refuse_without_owner(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_fail(fake, FAKE_READ, 3, 1, EACCES); /* stat, uptime, cgroup */
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -EACCES, "identity");
	assert_false(receipt.steps[0].tried);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(ledger_entries(false), 0);
}

static void test_refuse_without_ledger(void **state)
{
	(void)state;
	nm_actuator_free(world->actuator);
	assert_int_equal(nm_actuator_new(&fake->platform, world->topology, -1, WORLD_BOOT, NULL,
					 NULL, &world->actuator),
			 0);
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -EROFS, "ledger");
	assert_int_equal(world_mask(world, 101), ALL);
	world_tick(world);
	assert_int_equal(nm_actuator_return_all(world->actuator), 0);
}

/* No affinity changes unless it can be recorded. */
/* SECURITY: full-disk */
static void test_refuse_full_disk(void **state)
{
	struct rlimit old;
	struct rlimit none;
	(void)state;
	world_lease(world, 101, 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	none = (struct rlimit){.rlim_cur = 10, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	struct nm_receipt fresh = world_lease(world, 102, 1);
	struct nm_receipt again = world_lease(world, 101, 2);
	unsigned failed = world_return(world, 101);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_refused(&fresh, -EFBIG, "ledger");
	assert_refused(&again, -EFBIG, "ledger");
	assert_false(fresh.steps[0].tried);
	assert_int_equal(world_mask(world, 102), ALL);
	/* Affinities are restored nevertheless. */
	assert_int_equal(failed, 0);
	assert_int_equal(world_mask(world, 101), ALL);
}

/* ---- partly applied ---- */

static void test_swap_first_refused(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	fake_fail(fake, FAKE_SET, 1, 1, EPERM);
	struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
	assert_refused(&receipt, -EPERM, "sched_setaffinity");
	assert_false(receipt.steps[1].tried);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_mask(world, 200), ALL);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_swap_second_refused(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
	assert_false(receipt.applied);
	assert_true(receipt.steps[0].undone);
	assert_false(receipt.steps[0].applied);
	assert_int_equal(receipt.steps[1].error, -EPERM);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(world_mask(world, 200), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_swap_unprepared(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	fake_kill(fake, 200);
	struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
	assert_false(receipt.applied);
	assert_false(receipt.steps[0].tried);
	assert_int_equal(receipt.steps[1].error, -ESRCH);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(ledger_entries(false), 0);
}

/* The first thread of the swap returns to its former lease. */
static void test_swap_back_to_lease(void **state)
{
	(void)state;
	world_lease(world, 101, 3);
	world_adopt_thread(world, 200);
	fake_fail(fake, FAKE_SET, 2, 1, EPERM);
	assert_false(world_swap(world, 101, 1, 200, 2).applied);
	assert_int_equal(world_mask(world, 101), world_node(3));
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
}

/* An affinity whose rollback failed stays in the ledger and is restored as soon as possible. */
static void test_swap_undo_refused(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	fake_fail(fake, FAKE_SET, 2, 2, EPERM);
	struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
	assert_false(receipt.applied);
	assert_false(receipt.steps[0].undone);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_int_equal(ledger_entries(true), 1);
	fake_get(fake, 101)->processor = 7;
	nm_actuator_poll_nudges(world->actuator, fake->now_ns);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(ledger_entries(true), 0);
}

/* The affinity was set, but the check afterwards fails: it is restored. */
static void test_look_fails(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_fail(fake, FAKE_GET, 2, 1, EIO);
	assert_false(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	/* stat, uptime, cgroup and two files of cpusets are read before, then stat again */
	fake_fail(fake, FAKE_READ, 6, 1, EIO);
	assert_false(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), ALL);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

/* For each call that can fail while a lease is granted: all or nothing. */
static void test_any_call_fails(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	world_adopt_thread(world, 200);
	for (unsigned nth = 1;; nth++) {
		unsigned before = fake->calls[FAKE_OPS];
		fake_fail(fake, FAKE_OPS, nth, 1, EIO);
		struct nm_receipt receipt = world_swap(world, 101, 1, 200, 2);
		bool met = fake->calls[FAKE_OPS] - before >= nth;
		fake_calm(fake);
		if (!receipt.applied)
			nm_actuator_poll_nudges(world->actuator, fake->now_ns + NM_NSEC_PER_SEC);
		assert_int_equal(world_mask(world, 101), receipt.applied ? world_node(1) : ALL);
		assert_int_equal(world_mask(world, 200), receipt.applied ? world_node(2) : ALL);
		assert_int_equal(nm_actuator_leases(world->actuator), receipt.applied ? 2 : 0);
		assert_returned();
		assert_int_equal(world_mask(world, 101), ALL);
		assert_int_equal(world_mask(world, 200), ALL);
		if (!met)
			break;
	}
}

/* ---- races with the owner ---- */

static void pin_101(struct fake *f)
{
	fake_pin(f, 101, fake_cpus(4, 6));
}

/* An affinity set externally right after ours stays. */
/* SECURITY: pin-meanwhile */
static void test_race_mask(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_GET, 3, pin_101);
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ESTALE, "sched_setaffinity");
	assert_int_equal(world_mask(world, 101), fake_cpus(4, 6));
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_returned();
	assert_int_equal(world_mask(world, 101), fake_cpus(4, 6));
}

/* An affinity set between the check and the ledger entry stays; ours is not set. */
/* SECURITY: pin-meanwhile */
static void test_race_mask_before(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_GET, 2, pin_101);
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ESTALE, "mask");
	assert_false(receipt.steps[0].tried);
	assert_int_equal(world_mask(world, 101), fake_cpus(4, 6));
	assert_returned();
	assert_int_equal(world_mask(world, 101), fake_cpus(4, 6));
}

/* The same during restoration. */
static void test_race_mask_on_return(void **state)
{
	(void)state;
	fake_pin(fake, 101, fake_cpus(0, 3));
	world_lease(world, 101, 1);
	fake_at(fake, FAKE_GET, 2, pin_101);
	assert_int_equal(world_return(world, 101), 0);
	assert_int_equal(world_mask(world, 101), fake_cpus(4, 6));
	assert_int_equal(world_reported(world, NM_LEASE_FOREIGN, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
}

static void reuse_in_process_200(struct fake *f)
{
	fake_exit(f, 101);
	fake_pin(f, 200, fake_cpus(2, 7));
	fake_clone(f, 200, 101);
}

static void reuse_as_process(struct fake *f)
{
	fake_exit(f, 101);
	fake_pin(f, 200, fake_cpus(1, 6));
	fake_fork(f, 200, 101);
}

/* The thread exits between check and operation, and a new thread gets its number and our
 * affinity. */
/* SECURITY: reuse */
static void test_reused_number(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_SET, 1, reuse_in_process_200);
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ESRCH, "sched_setaffinity");
	assert_int_equal(world_mask(world, 101), fake_cpus(2, 7));
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(ledger_entries(true), 0);
}

static void test_reused_number_of_process(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_SET, 1, reuse_as_process);
	assert_false(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), fake_cpus(1, 6));
}

static void reuse_from_outside(struct fake *f)
{
	fake_exit(f, 101);
	fake_process(f, 101, 0);
}

/* The parent is outside the PID namespace, so it cannot be queried; number 0 would be this
 * process. */
static void test_reused_number_without_parent(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_at(fake, FAKE_SET, 1, reuse_from_outside);
	struct nm_receipt receipt = world_lease(world, 101, 1);
	assert_refused(&receipt, -ESRCH, "sched_setaffinity");
}

/* The cpuset of the new owner narrows the affinity set, which is nevertheless rolled back. */
static void test_reused_number_in_cpuset(void **state)
{
	(void)state;
	world_adopt_thread(world, 101);
	fake_cpuset(fake, "/small", fake_cpus(3, 7));
	fake_move(fake, 200, "/small");
	fake_at(fake, FAKE_SET, 1, reuse_in_process_200);
	assert_false(world_lease(world, 101, 1).applied);
	assert_int_equal(world_mask(world, 101), fake_cpus(3, 7));
}

static void test_reused_number_on_return(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_at(fake, FAKE_SET, 1, reuse_in_process_200);
	assert_int_equal(world_return(world, 101), 0);
	assert_int_equal(world_mask(world, 101), fake_cpus(2, 7));
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
}

/* A lease whose thread exited unnoticed does not apply to the new owner of the number. */
static void test_stale_lease(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_exit(fake, 101);
	fake_clone(fake, 100, 101);
	fake->nr_events = 0;
	world_drop(world, 101);
	assert_true(world_lease(world, 101, 2).applied);
	world_tick(world);
	assert_int_equal(world_mask(world, 101), world_node(2));
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 1);
	assert_returned();
	assert_int_equal(world_mask(world, 101), ALL);
}

/* The same if the new owner is bound to the same CPUs and managed. */
static void test_stale_lease_on_a_neighbour(void **state)
{
	(void)state;
	world_lease(world, 101, 1);
	fake_exit(fake, 101);
	fake_clone(fake, 100, 101);
	fake_pin(fake, 101, world_node(1));
	fake->nr_events = 0;
	world_drop(world, 101);
	world_adopt_thread(world, 101);
	world_tick(world);
	assert_int_equal(world_reported(world, NM_LEASE_GONE, 101), 1);
	assert_int_equal(nm_actuator_leases(world->actuator), 0);
	assert_int_equal(world_mask(world, 101), world_node(1));
}

/* A verdict about an exited thread does not apply to the new owner of its number. */
static void test_return_to_another(void **state)
{
	(void)state;
	uint64_t earlier = world_start_of(world, 101);
	fake_exit(fake, 101);
	fake_sleep(fake, 1000);
	fake_clone(fake, 100, 101);
	world_drain(world);
	assert_true(world_lease(world, 101, 1).applied);
	assert_false(nm_actuator_holds(world->actuator, 101, earlier));
	assert_int_equal(nm_actuator_return_thread(world->actuator, 101, earlier), 0);
	assert_int_equal(world_mask(world, 101), world_node(1));
	assert_true(world_holds(world, 101));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_two_processes, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_return_to_another),
		TEST(test_lease),
		TEST(test_restricted_original),
		TEST(test_move_again),
		TEST(test_return_process),
		TEST(test_swap),
		TEST(test_refuse_identity),
		TEST(test_refuse_unfit),
		TEST(test_refuse_changed_affinity),
		TEST(test_refuse_set),
		TEST(test_refuse_without_owner),
		TEST(test_refuse_replacement),
		TEST(test_refuse_without_clock),
		TEST(test_refuse_without_ledger),
		TEST(test_refuse_full_disk),
		TEST(test_swap_first_refused),
		TEST(test_swap_second_refused),
		TEST(test_swap_unprepared),
		TEST(test_swap_back_to_lease),
		TEST(test_swap_undo_refused),
		TEST(test_look_fails),
		TEST(test_any_call_fails),
		TEST(test_race_mask),
		TEST(test_race_mask_before),
		TEST(test_race_mask_on_return),
		TEST(test_reused_number),
		TEST(test_reused_number_of_process),
		TEST(test_reused_number_without_parent),
		TEST(test_reused_number_in_cpuset),
		TEST(test_reused_number_on_return),
		TEST(test_stale_lease),
		TEST(test_stale_lease_on_a_neighbour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
