/* SPDX-License-Identifier: MIT */
#define SET_UP setup
#define TEAR_DOWN teardown
#include "../support/test.h"

#include <stdint.h>

#include "numa-migrd/base.h"

#define LARGEST ((1U << 22) - 1)

static int setup(void **state)
{
	*state = nm_tidmap_new();
	return 0;
}

static int teardown(void **state)
{
	nm_tidmap_free(*state);
	return 0;
}

TEST(test_empty)
{
	const struct nm_tidmap *map = *state;

	for (uint32_t tid = 0; tid <= LARGEST; tid++)
		assert_int_equal(nm_tidmap_get(map, tid), NM_TIDMAP_NONE);
}

TEST(test_set_get_replace_remove)
{
	struct nm_tidmap *map = *state;

	assert_int_equal(nm_tidmap_set(map, 4711, 0), 0);
	assert_int_equal(nm_tidmap_get(map, 4711), 0);
	assert_int_equal(nm_tidmap_set(map, 4711, NM_TIDMAP_NONE - 1), 0);
	assert_int_equal(nm_tidmap_get(map, 4711), NM_TIDMAP_NONE - 1);
	nm_tidmap_remove(map, 4711);
	assert_int_equal(nm_tidmap_get(map, 4711), NM_TIDMAP_NONE);
}

TEST(test_edges)
{
	static const uint32_t tids[] = {0, 1, 1023, 1024, 1025, LARGEST - 1024, LARGEST};
	struct nm_tidmap *map = *state;

	for (uint32_t i = 0; i < NM_ARRAY_SIZE(tids); i++)
		assert_int_equal(nm_tidmap_set(map, tids[i], i + 100), 0);
	for (uint32_t i = 0; i < NM_ARRAY_SIZE(tids); i++)
		assert_int_equal(nm_tidmap_get(map, tids[i]), i + 100);
	assert_int_equal(nm_tidmap_get(map, 2), NM_TIDMAP_NONE);
	assert_int_equal(nm_tidmap_get(map, 1026), NM_TIDMAP_NONE);
}

TEST(test_out_of_range)
{
	struct nm_tidmap *map = *state;

	assert_int_equal(nm_tidmap_set(map, LARGEST + 1, 1), -ERANGE);
	assert_int_equal(nm_tidmap_set(map, UINT32_MAX, 1), -ERANGE);
	assert_int_equal(nm_tidmap_get(map, LARGEST + 1), NM_TIDMAP_NONE);
	assert_int_equal(nm_tidmap_get(map, UINT32_MAX), NM_TIDMAP_NONE);
	nm_tidmap_remove(map, LARGEST + 1);
	nm_tidmap_remove(map, UINT32_MAX);
}

TEST(test_remove_unknown)
{
	struct nm_tidmap *map = *state;

	nm_tidmap_remove(map, 77);
	assert_int_equal(nm_tidmap_set(map, 78, 5), 0);
	nm_tidmap_remove(map, 77);
	assert_int_equal(nm_tidmap_get(map, 78), 5);
}

TEST(test_full_map)
{
	struct nm_tidmap *map = *state;

	for (uint32_t tid = 0; tid <= LARGEST; tid++)
		assert_int_equal(nm_tidmap_set(map, tid, LARGEST - tid), 0);
	for (uint32_t tid = 0; tid <= LARGEST; tid++)
		assert_int_equal(nm_tidmap_get(map, tid), LARGEST - tid);
}

TEST(test_next)
{
	static const uint32_t tids[] = {0, 7, 1023, 1024, 5000, LARGEST};
	struct nm_tidmap *map = *state;
	uint32_t from = 0;

	assert_int_equal(nm_tidmap_next(map, 0), NM_TIDMAP_NONE);
	for (size_t i = NM_ARRAY_SIZE(tids); i-- > 0;)
		assert_int_equal(nm_tidmap_set(map, tids[i], 0), 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(tids); i++) {
		assert_int_equal(nm_tidmap_next(map, from), tids[i]);
		from = tids[i] + 1;
	}
	assert_int_equal(nm_tidmap_next(map, from), NM_TIDMAP_NONE);
	nm_tidmap_remove(map, 5000);
	assert_int_equal(nm_tidmap_next(map, 1025), LARGEST);
}

TEST_BETWEEN(NULL, NULL, test_free_null)
{
	nm_tidmap_free(NULL);
	nm_auto(nm_tidmap_freep) struct nm_tidmap *none = NULL;
	assert_null(none);
}

RUN_TESTS()
