/* SPDX-License-Identifier: MIT */
/* Threads known to be restored: bounded, shared among users, and dropped after a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../src/lease/settled.h"
#include "fake_platform.h"

#define ROUND 70000 /* more than the 16 bits that are stored */

static struct nm_settled *settled;
static struct fake *fake;

static int set_up(void **state)
{
	(void)state;
	fake = fake_new(8);
	settled = nm_settled_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_settled_free(settled);
	nm_platform_free(&fake->platform);
	return 0;
}

/* Adds threads of one user, from this number on. Returns how many were accepted. */
static unsigned fill(uint32_t uid, uint32_t first, uint32_t count)
{
	unsigned noted = 0;
	for (uint32_t i = 0; i < count; i++)
		noted += nm_settled_add(settled, uid, first + i, 5000 + i, ROUND) == 0;
	return noted;
}

/* SECURITY: forks */
static void a_thread_costs_16_bytes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct nm_settled_thread), 16);
	assert_int_equal(fill(1000, 1, 1000000), NM_SETTLED_MOST / 2);
	assert_true(settled->capacity <= NM_SETTLED_MOST);
}

/* SECURITY: forks */
static void each_domain_has_a_share(void **state)
{
	(void)state;
	assert_int_equal(fill(1000, 1, 100000), NM_SETTLED_MOST / 2);
	assert_int_equal(fill(1001, 200000, 100000), NM_SETTLED_MOST / 4);
	assert_int_equal(fill(1002, 400000, 10), 10);
	assert_true(fill(1003, 600000, 100000) > NM_SETTLED_MOST / 16);
	assert_true(fill(1004, 800000, 100000) > NM_SETTLED_MOST / 64);
	assert_true(settled->count < NM_SETTLED_MOST);
	assert_true(nm_settled_has(settled, 400009, 5009));
}

static void a_number_identifies_its_latest_thread(void **state)
{
	(void)state;
	assert_int_equal(nm_settled_add(settled, 1000, 7, 5000, ROUND), 0);
	assert_int_equal(nm_settled_add(settled, 1001, 7, 6000, ROUND), 0);
	assert_false(nm_settled_has(settled, 7, 5000));
	assert_true(nm_settled_has(settled, 7, 6000));
	assert_int_equal(settled->count, 1);
	assert_int_equal(settled->shares.count, 1);
	nm_settled_remove(settled, 7, 5000);
	assert_true(nm_settled_has(settled, 7, 6000));
	nm_settled_remove(settled, 7, 6000);
	assert_false(nm_settled_has(settled, 7, 6000));
	assert_int_equal(settled->shares.count, 0);
}

/* If a reused number cannot be stored for its new owner, the former entry stays. */
static void an_earlier_thread_stays_where_there_is_no_room(void **state)
{
	(void)state;
	assert_int_equal(nm_settled_add(settled, 1000, 7, 5000, ROUND), 0);
	assert_int_equal(fill(1001, 100000, NM_SETTLED_MOST), NM_SETTLED_MOST / 2);
	assert_int_equal(nm_settled_add(settled, 1001, 7, 5000, ROUND), -ENOSPC);
	assert_true(nm_settled_has(settled, 7, 5000));
	/* There is always space for the same owner. */
	assert_int_equal(nm_settled_add(settled, 1001, 100000, 6000, ROUND), 0);
	assert_true(nm_settled_has(settled, 100000, 6000));
	assert_int_equal(settled->count, NM_SETTLED_MOST / 2 + 1);
	assert_int_equal(settled->shares.count, 2);
}

static void old_entries_expire(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(nm_settled_add(settled, 1000, 100 + i, 5000 + 100 * i, ROUND + i),
				 0);
	nm_settled_forget(settled, &fake->platform, ROUND + 6, 5400);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(nm_settled_has(settled, 100 + i, 5000 + 100 * i), i >= 4);
	nm_settled_forget(settled, &fake->platform, ROUND + 6, UINT64_MAX);
	assert_int_equal(settled->count, 4);
}

/* They are evicted when space is short. */
static void exited_threads_are_evicted(void **state)
{
	(void)state;
	fake_process(fake, 300, 1);
	assert_int_equal(fill(1000, 300, NM_SETTLED_MOST), NM_SETTLED_MOST / 2);
	nm_settled_forget(settled, &fake->platform, ROUND, 0);
	assert_int_equal(settled->count, 1);
	assert_true(nm_settled_has(settled, 300, 5000));
	assert_int_equal(fill(1000, 20000, 10), 10);
	nm_settled_forget(settled, &fake->platform, ROUND, 0);
	assert_int_equal(settled->count, 11);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_costs_16_bytes),
		TEST(each_domain_has_a_share),
		TEST(a_number_identifies_its_latest_thread),
		TEST(an_earlier_thread_stays_where_there_is_no_room),
		TEST(old_entries_expire),
		TEST(exited_threads_are_evicted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
