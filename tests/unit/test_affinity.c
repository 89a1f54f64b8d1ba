/* SPDX-License-Identifier: MIT */
/* The communication matrix: sharing, aging, creation and exit of threads, the graph for the
 * mapping. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <math.h>
#include <stdint.h>

#include "../../src/observe/pairs.h"
#include "../support/sharing.h"
#include "observe/memory.h"

static struct nm_config *config;
static struct nm_affinity *affinity;

static int set_up(void **state)
{
	(void)state;
	if (nm_config_default(&config) < 0)
		return -1;
	nm_affinity_new(config, &affinity);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_affinity_free(affinity);
	nm_config_free(config);
	return 0;
}

static uint16_t join(uint32_t tid)
{
	uint16_t id = 0;

	assert_int_equal(nm_affinity_join(affinity, tid, 0, &id), 0);
	return id;
}

/* Records `times` times that two threads (by TID) share. */
static void share(uint32_t a, uint32_t b, unsigned times)
{
	uint16_t id_a = join(a), id_b = join(b);

	while (times--)
		nm_affinity_share(affinity, id_a, id_b);
}

TEST(test_sharing_counts_for_both_threads)
{
	share(100, 103, 2);
	assert_int_equal(sharing_between(affinity, 100, 103), 2 * NM_SHARING_STEP);
	assert_int_equal(sharing_between(affinity, 103, 100), 2 * NM_SHARING_STEP);
	share(103, 100, 1);
	assert_int_equal(sharing_between(affinity, 100, 103), 3 * NM_SHARING_STEP);
	assert_int_equal(sharing_between(affinity, 100, 100), 0);
	assert_int_equal(sharing_between(affinity, 100, 999), 0);
	share(100, 100, 5);
	assert_int_equal(nm_affinity_counts(affinity).pairs, 1);
}

TEST(test_joining_twice_is_once)
{
	uint16_t id = join(7);

	assert_int_not_equal(id, 0);
	assert_int_equal(join(7), id);
	assert_int_equal(nm_affinity_id(affinity, 7), id);
	assert_int_equal(nm_affinity_id(affinity, 8), 0);
	assert_int_not_equal(join(8), id);
	assert_int_equal(nm_affinity_join(affinity, UINT32_MAX, 0, &id), -ERANGE);
	assert_int_equal(nm_affinity_counts(affinity).threads, 2);
}

/* M − (M >> 2), and gone below 4. */
TEST(test_aging)
{
	static const uint32_t expected[] = {12, 9, 7, 6, 5, 4, 0};
	share(1, 2, 1);
	assert_int_equal(sharing_between(affinity, 1, 2), 16);
	for (size_t i = 0; i < NM_ARRAY_SIZE(expected); i++) {
		nm_affinity_age(affinity);
		assert_int_equal(sharing_between(affinity, 1, 2), expected[i]);
	}
	assert_int_equal(nm_affinity_counts(affinity).pairs, 0);
}

TEST(test_counts_do_not_overflow)
{
	share(1, 2, 1);
	for (size_t i = 0; i < affinity->slots; i++)
		affinity->pairs[i].weight = UINT32_MAX - NM_SHARING_STEP;
	share(1, 2, 3);
	assert_int_equal(sharing_between(affinity, 1, 2), UINT32_MAX);
}

TEST(test_leaving_clears_row_and_column)
{
	uint16_t gone = join(1);

	share(1, 2, 5);
	share(2, 3, 5);
	nm_affinity_leave(affinity, 1, 0);
	nm_affinity_leave(affinity, 1, 0);
	nm_affinity_share(affinity, gone, join(2));
	assert_int_equal(sharing_between(affinity, 1, 2), 0);
	assert_int_equal(nm_affinity_counts(affinity).threads, 2);
	nm_affinity_age(affinity);
	assert_int_equal(nm_affinity_counts(affinity).pairs, 1);
}

/* Pages remember an id for 10 s, the sharing window. */
TEST(test_an_id_rests)
{
	uint16_t gone = join(1), next;

	share(1, 2, 5);
	nm_affinity_leave(affinity, 1, 100);
	nm_affinity_age(affinity);
	assert_int_equal(nm_affinity_join(affinity, 50, 110, &next), 0);
	assert_int_not_equal(next, gone);
	assert_int_equal(nm_affinity_join(affinity, 51, 111, &next), 0);
	assert_int_equal(next, gone);
	assert_int_equal(sharing_between(affinity, 51, 2), 0);
}

TEST(test_an_id_rests_until_its_pairs_are_cleared)
{
	uint16_t gone = join(1), next;

	share(1, 2, 5);
	nm_affinity_leave(affinity, 1, 100);
	assert_int_equal(nm_affinity_join(affinity, 50, 500, &next), 0);
	assert_int_not_equal(next, gone);
	nm_affinity_age(affinity);
	assert_int_equal(nm_affinity_join(affinity, 51, 500, &next), 0);
	assert_int_equal(next, gone);
}

TEST(test_ids_run_out)
{
	uint16_t id;

	for (uint32_t tid = 1; tid <= UINT16_MAX; tid++)
		join(tid);
	assert_int_equal(nm_affinity_join(affinity, 70000, 0, &id), -ENOSPC);
	nm_affinity_leave(affinity, 5, 0);
	nm_affinity_age(affinity);
	assert_int_equal(nm_affinity_join(affinity, 70000, 1000, &id), 0);
}

TEST(test_room_for_pairs_grows_with_aging)
{
	for (uint32_t a = 1; a <= 200; a++)
		for (uint32_t b = 1; b < a; b++)
			share(a, b, 4);
	assert_true(nm_affinity_counts(affinity).lost > 0); /* 19,900 pairs of 14,336 */
	nm_affinity_age(affinity);
	uint64_t lost = nm_affinity_counts(affinity).lost;
	for (uint32_t a = 1; a <= 200; a++)
		for (uint32_t b = 1; b < a; b++)
			share(a, b, 4);
	assert_int_equal(nm_affinity_counts(affinity).lost, lost);
	assert_int_equal(nm_affinity_counts(affinity).pairs, 19900);
	assert_int_equal(sharing_between(affinity, 2, 1), 7 * NM_SHARING_STEP);
}

/* ---- the graph ---- */

static struct nm_affinity_graph *graph_of(const uint32_t *tids, size_t nr_threads,
					  unsigned partners)
{
	struct nm_affinity_graph *graph = NULL;

	nm_affinity_graph(affinity, tids, nr_threads, partners, &graph);
	return graph;
}

TEST(test_graph)
{
	static const uint32_t tids[] = {10, 20, 30, 40};

	share(20, 10, 3);
	share(20, 40, 5);
	share(20, 99, 7);
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = graph_of(tids, 4, 16);
	const uint32_t first[] = {0, 1, 3, 3, 4}, partner[] = {1, 0, 3, 1},
		       weight[] = {48, 48, 80, 80};
	assert_memory_equal(graph->first, first, sizeof(first));
	assert_memory_equal(graph->partner, partner, sizeof(partner));
	assert_memory_equal(graph->weight, weight, sizeof(weight));
}

/* Thread 1 has all other threads as partners; each keeps its strongest ones. */
TEST(test_strongest_partners)
{
	static const uint32_t tids[] = {1, 2, 3, 4, 5, 6};

	for (uint32_t b = 2; b <= 6; b++)
		share(1, b, b);
	share(2, 3, 9);
	share(3, 4, 9);
	share(5, 6, 9);
	share(5, 2, 8);
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = graph_of(tids, 6, 1);
	const uint32_t first[] = {0, 1, 2, 4, 5, 6, 8}, partner[] = {5, 2, 1, 3, 2, 5, 0, 4};
	assert_memory_equal(graph->first, first, sizeof(first));
	assert_memory_equal(graph->partner, partner, sizeof(partner));
}

/* Thread 1 keeps one of two equal pairs, whichever is found first: that with the lower partner.
 * Their partners have stronger pairs. */
TEST(test_equal_partners)
{
	static const uint32_t tids[] = {1, 2, 3, 4, 5};

	share(3, 1, 4);
	share(2, 1, 4);
	share(2, 4, 9);
	share(3, 5, 9);
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = graph_of(tids, 5, 1);
	const uint32_t first[] = {0, 1, 3, 4, 5, 6}, partner[] = {1, 0, 3, 4, 1, 2};
	assert_memory_equal(graph->first, first, sizeof(first));
	assert_memory_equal(graph->partner, partner, sizeof(partner));
}

TEST(test_empty_graph)
{
	static const uint32_t tids[] = {1, 2};

	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *none = graph_of(tids, 0, 16);
	assert_int_equal(none->first[0], 0);
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *alone = graph_of(tids, 2, 16);
	assert_int_equal(alone->first[2], 0);
}

RUN_TESTS()
