/* SPDX-License-Identifier: MIT */
/* The limits on calls of each sender on the bus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../src/report/callers.h"
#include "numa-migrd/base.h"

#define NOW (10 * NM_NSEC_PER_SEC)

static struct nm_callers callers;

static int set_up(void **state)
{
	(void)state;
	callers = (struct nm_callers){0};
	return 0;
}

static enum nm_admission admit(unsigned sender, uint64_t now_ns)
{
	char name[32];
	(void)snprintf(name, sizeof(name), ":1.%u", sender);
	return nm_callers_admit(&callers, name, now_ns);
}

/* Returns how many of N calls are answered. */
static unsigned answered(unsigned sender, unsigned calls, uint64_t now_ns)
{
	unsigned count = 0;
	while (calls-- > 0)
		count += admit(sender, now_ns) == NM_CALL_ANSWERED;
	return count;
}

/* SECURITY: bus */
static void an_excessive_sender_is_refused_then_dropped(void **state)
{
	(void)state;
	assert_int_equal(answered(1, NM_CALLS_MAX, NOW), NM_CALLS_MAX);
	for (unsigned i = 0; i < NM_REFUSALS_MAX; i++)
		assert_int_equal(admit(1, NOW), NM_CALL_REFUSED);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(admit(1, NOW), NM_CALL_DROPPED);
	assert_int_equal(admit(2, NOW), NM_CALL_ANSWERED);
}

static void a_refused_caller_may_retry_after_a_second(void **state)
{
	(void)state;
	(void)answered(1, 10000, NOW);
	assert_int_equal(answered(1, 1, NOW + NM_NSEC_PER_SEC - 1), 0);
	assert_int_equal(answered(1, 10000, NOW + NM_NSEC_PER_SEC), NM_CALLS_MAX);
}

/* SECURITY: bus */
static void long_lists_count_for_many_calls(void **state)
{
	(void)state;
	assert_int_equal(answered(1, 1, NOW), 1);
	nm_callers_charge(&callers, ":1.1", NM_CALLS_MAX);
	assert_int_equal(admit(1, NOW), NM_CALL_REFUSED);
	assert_int_equal(admit(2, NOW), NM_CALL_ANSWERED);
}

/* Callers of the previous second count too, so that the first caller of a second gets no more than
 * its share. */
/* SECURITY: bus */
static void many_senders_share_the_limit(void **state)
{
	(void)state;
	for (unsigned second = 0; second < 3; second++) {
		uint64_t now_ns = NOW + second * NM_NSEC_PER_SEC;
		unsigned all = 0;
		for (unsigned sender = 0; sender < 256; sender++)
			all += answered(sender, 1000, now_ns);
		if (second > 0)
			assert_int_equal(all, 256 * NM_CALLS_MIN);
		assert_int_equal(answered(1000, 1, now_ns), 1);
	}
}

/* SECURITY: bus */
static void a_new_caller_is_answered_among_many(void **state)
{
	(void)state;
	for (unsigned sender = 0; sender < 10 * NM_CALLERS_PLACES; sender++)
		assert_int_equal(admit(sender, NOW), NM_CALL_ANSWERED);
	assert_int_equal(callers.count, NM_CALLERS_PLACES / 2);
}

static void callers_expire_after_a_silence(void **state)
{
	(void)state;
	for (unsigned sender = 0; sender < 256; sender++)
		(void)admit(sender, NOW);
	assert_int_equal(answered(1, 10000, NOW + 60 * NM_NSEC_PER_SEC), NM_CALLS_MAX);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_excessive_sender_is_refused_then_dropped),
		TEST(a_refused_caller_may_retry_after_a_second),
		TEST(long_lists_count_for_many_calls),
		TEST(many_senders_share_the_limit),
		TEST(a_new_caller_is_answered_among_many),
		TEST(callers_expire_after_a_silence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
