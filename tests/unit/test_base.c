/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "numa-migrd/base.h"

/* Used by AddressSanitizer, if linked: the overflow below must fail instead of aborting. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

struct thing {
	unsigned *freed;
};

static void thing_free(struct thing *thing)
{
	if (thing)
		(*thing->freed)++;
}
NM_DEFINE_CLEANUP(struct thing, thing_free);

static void run_scope(struct thing *thing)
{
	nm_auto(thing_freep) struct thing *owned = thing;
	assert_ptr_equal(owned, thing);
}

static struct thing *hand_over(struct thing *thing)
{
	nm_auto(thing_freep) struct thing *owned = thing;
	return NM_TAKE(owned);
}

TEST(test_cleanup_and_take)
{
	unsigned freed = 0;
	struct thing thing = {&freed};

	run_scope(&thing);
	assert_int_equal(freed, 1);
	run_scope(NULL);
	assert_int_equal(freed, 1);
	assert_ptr_equal(hand_over(&thing), &thing);
	assert_int_equal(freed, 1);
}

TEST(test_take_leaves_null)
{
	int value = 3, *pointer = &value;

	assert_ptr_equal(NM_TAKE(pointer), &value);
	assert_null(pointer);
	assert_null(NM_TAKE(pointer));
}

TEST(test_autofree)
{
	nm_autofree char *none = NULL;
	nm_autofree char *some = malloc(16); /* checked by the leak checker of the asan build */
	assert_non_null(some);
	assert_null(none);
}

TEST(test_container_of)
{
	struct outer {
		int before;
		struct thing inner;
	} outer = {0};

	assert_ptr_equal(NM_CONTAINER_OF(&outer.inner, struct outer, inner), &outer);
}

TEST(test_array_size)
{
	uint64_t numbers[7];

	assert_int_equal(NM_ARRAY_SIZE(numbers), 7);
}

TEST(test_reserve_grows_and_keeps)
{
	nm_autofree uint32_t *array = NULL;
	size_t capacity = 0;

	for (uint32_t used = 0; used < 1000; used++) {
		void *grown = array;

		nm_reserve(&grown, &capacity, used, sizeof(*array));
		array = grown;
		assert_true(capacity > used);
		if (!array) {
			fail();
			return;
		}
		array[used] = used * 3;
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(array[i], i * 3);
}

TEST(test_reserve_leaves_alone)
{
	char one;
	void *array = &one;
	size_t capacity = 4;

	nm_reserve(&array, &capacity, 3, 1);
	assert_ptr_equal(array, &one);
	assert_int_equal(capacity, 4);
}

/* Also a size that overflows. */
TEST(a_failed_allocation_aborts)
{
	void *array = NULL;
	size_t capacity = SIZE_MAX / 4;
	int status;

	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)signal(SIGABRT, SIG_DFL); /* not cmocka's */
		nm_reserve(&array, &capacity, SIZE_MAX / 4, 1024);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

RUN_TESTS()
