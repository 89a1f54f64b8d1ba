/* SPDX-License-Identifier: MIT */
/*
 * Tests that register themselves, in the order of the file:
 *
 *	#define SET_UP open_world
 *	#define TEAR_DOWN close_world
 *	#include "../support/test.h"
 *
 *	TEST(a_node_gets_no_more_threads_than_cpus)
 *	{
 *	}
 *
 *	RUN_TESTS()
 *
 * Each runs between SET_UP and TEAR_DOWN, if the file defines these, or between the functions that
 * TEST_BETWEEN() names. `state` is cmocka's.
 */
#ifndef NM_TEST_H
#define NM_TEST_H

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifndef SET_UP
#define SET_UP NULL
#endif
#ifndef TEAR_DOWN
#define TEAR_DOWN NULL
#endif

#define NM_TESTS_MOST 200

static struct CMUnitTest nm_tests[NM_TESTS_MOST];
static size_t nr_nm_tests;

#define TEST_BETWEEN(begin, end, name)                                                             \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		assert(nr_nm_tests < NM_TESTS_MOST);                                               \
		nm_tests[nr_nm_tests++] =                                                          \
			(struct CMUnitTest)cmocka_unit_test_setup_teardown(name, begin, end);      \
	}                                                                                          \
	static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_BETWEEN(SET_UP, TEAR_DOWN, name)

/* The rows of a table, and a condition of one: a failure prints the row's `name`. */
#define EACH_ROW(row, table)                                                                       \
	for (__typeof__(&(table)[0]) row = table;                                                  \
	     row < (table) + sizeof(table) / sizeof(*(table)); row++)
#define CHECK(row, condition)                                                                      \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s: not so: %s", (row)->name, #condition);                       \
	} while (0)

/* The tests that have registered, in a main() of a file's own. */
#define RUN_REGISTERED(begin, end)                                                                 \
	_cmocka_run_group_tests(__FILE__, nm_tests, nr_nm_tests, begin, end)

#define RUN_TESTS()                                                                                \
	int main(void)                                                                             \
	{                                                                                          \
		return RUN_REGISTERED(NULL, NULL);                                                 \
	}

#endif
