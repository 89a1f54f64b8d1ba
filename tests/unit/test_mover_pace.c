/* SPDX-License-Identifier: MIT */
/* The size of calls, pauses between them, and free memory according to files of the kernel. */
#include "../support/test.h"

#include <stdint.h>

#include "../../src/mover/mover_internal.h"
#include "../../src/mover/pace.h"

#define MS NM_NSEC_PER_MSEC
#define US 1000ULL
#define HERE 1	/* a domain */
#define THERE 2 /* another one */

static void begin(struct nm_pace *pace, uint64_t max_mb_per_s)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;

	assert_int_equal(nm_config_default(&config), 0);
	config->pages.max_mb_per_s = max_mb_per_s;
	nm_pace_init(pace, 0);
	nm_pace_configure(pace, config);
}

/* N calls of a given cost; returns the duration of the last one. */
static uint64_t settle(struct nm_pace *pace, uint64_t fixed_ns, uint64_t page_ns)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < 60; i++) {
		unsigned pages = nm_pace_pages(pace, NM_PACE_SMALL, false);
		taken = fixed_ns + page_ns * pages;
		(void)nm_pace_learn(pace, NM_PACE_SMALL, false, HERE, pages, taken, 0);
	}
	return taken;
}

/* 25 % of the limit of 10 ms at any cost per page, unless the maximum number of pages takes
 * less. */
TEST(test_calls_use_a_quarter_of_the_limit)
{
	static const uint64_t fixed[] = {0, 10 * US, 300 * US, 1000 * US};
	static const uint64_t page[] = {1 * US, 2 * US, 10 * US, 100 * US};

	for (size_t i = 0; i < NM_ARRAY_SIZE(fixed); i++) {
		for (size_t j = 0; j < NM_ARRAY_SIZE(page); j++) {
			struct nm_pace pace;
			begin(&pace, 1000000);
			assert_in_range(settle(&pace, fixed[i], page[j]), 2000 * US, 3200 * US);
		}
	}
}

/* On a slow machine too, since calls of one page each would never end. */
TEST(test_whole_processes_in_long_calls)
{
	struct nm_pace pace;

	begin(&pace, 1000000);
	for (unsigned i = 0; i < 20; i++) {
		unsigned pages = nm_pace_pages(&pace, NM_PACE_SMALL, true);
		assert_in_range(pages, 1024, 4096);
		assert_false(nm_pace_learn(&pace, NM_PACE_SMALL, true, HERE, pages,
					   pages * 200 * US, 0));
	}
	assert_true(nm_pace_pages(&pace, NM_PACE_SMALL, false) < 64);
	assert_true(nm_pace_learn(&pace, NM_PACE_SMALL, true, HERE, 256, 1001000 * US, 0));
	assert_true(nm_pace_resume_ns(&pace, HERE) > 0);
}

TEST(test_chunk_has_bounds)
{
	struct nm_pace pace;

	begin(&pace, 1000000);
	settle(&pace, 0, 1);
	assert_int_equal(nm_pace_pages(&pace, NM_PACE_SMALL, false), NM_PACE_PAGES_MOST);
	settle(&pace, 0, 50 * MS);
	/* The batch size does not shrink, as the cost may be that of the call. */
	assert_int_equal(nm_pace_pages(&pace, NM_PACE_SMALL, false), 64);
	assert_int_equal(nm_pace_pages(&pace, NM_PACE_HUGE, false), 1); /* learned separately */
}

/* If calls exceed the limit with any number of pages, for example because every CPU is busy, they
 * carry more pages. */
TEST(test_slow_calls_carry_many_pages)
{
	struct nm_pace pace;

	begin(&pace, 1000000);
	settle(&pace, 30 * MS, 2 * US);
	assert_in_range(nm_pace_pages(&pace, NM_PACE_SMALL, false), 300, 4096);
}

/* A single call of 0.5 s does not shrink later ones for long. */
TEST(test_outlier)
{
	struct nm_pace pace;

	begin(&pace, 1000000);
	settle(&pace, 10 * US, 2 * US);
	unsigned before = nm_pace_pages(&pace, NM_PACE_SMALL, false);
	assert_true(nm_pace_learn(&pace, NM_PACE_SMALL, false, HERE, before, 500 * MS, 0));
	assert_true(nm_pace_pages(&pace, NM_PACE_SMALL, false) > before / 3);
	settle(&pace, 10 * US, 2 * US);
	assert_in_range(nm_pace_pages(&pace, NM_PACE_SMALL, false), before * 8 / 10,
			before * 12 / 10);
}

/* A domain rests for ten times as long as its slow calls took, and not after others. */
TEST(test_rest_after_slow_calls)
{
	struct nm_pace pace;
	uint64_t now = 1000 * MS;

	begin(&pace, 1000000);
	assert_false(nm_pace_learn(&pace, NM_PACE_SMALL, false, HERE, 1, 10 * MS, now));
	assert_int_equal(nm_pace_resume_ns(&pace, HERE), 0);
	for (unsigned i = 0; i < 20; i++) {
		assert_true(nm_pace_learn(&pace, NM_PACE_SMALL, false, HERE, 1, 11 * MS, now));
		assert_int_equal(nm_pace_resume_ns(&pace, HERE), now + 110 * MS);
		now += 110 * MS;
	}
	(void)nm_pace_wait_ns(&pace, now - 1);
	assert_int_equal(nm_pace_resume_ns(&pace, HERE), now);
	assert_false(nm_pace_learn(&pace, NM_PACE_SMALL, false, HERE, 1, MS, now));
	assert_int_equal(nm_pace_resume_ns(&pace, HERE), 0);
}

/* A process that holds the lock of its own memory makes calls slow for its own domain only, and
 * more such domains than are remembered do not stop others. */
/* SECURITY: slow-calls */
TEST(test_others_do_not_pause)
{
	struct nm_pace pace;

	begin(&pace, 1000000);
	assert_true(nm_pace_learn(&pace, NM_PACE_SMALL, true, HERE, 256, 1100 * MS, 1));
	assert_true(nm_pace_resume_ns(&pace, HERE) > 1);
	assert_int_equal(nm_pace_resume_ns(&pace, THERE), 0);
	assert_int_equal(nm_pace_wait_ns(&pace, 1), 0);
	for (uint64_t domain = 10; domain < 10 + 2 * NM_QUOTA_DOMAINS; domain++)
		assert_true(nm_pace_learn(&pace, NM_PACE_SMALL, true, domain, 256, 1100 * MS, 1));
	assert_int_equal(nm_pace_resume_ns(&pace, THERE), 0);
	assert_true(nm_pace_resume_ns(&pace, 9 + 2 * NM_QUOTA_DOMAINS) > 1);
}

/* Over ten seconds at most ten times the rate and a burst. */
TEST(test_rate)
{
	struct nm_pace pace;
	uint64_t moved = 0;

	begin(&pace, 8);
	for (uint64_t now = 0; now < 10 * NM_NSEC_PER_SEC;) {
		uint64_t wait = nm_pace_wait_ns(&pace, now);
		if (wait > 0) {
			now += wait;
			continue;
		}
		assert_true(nm_pace_bytes(&pace) > 0);
		nm_pace_spend(&pace, HERE, 65536);
		moved += 65536;
	}
	assert_in_range(moved, 79ULL << 20, 82ULL << 20);
}

TEST(test_reload_keeps_what_is_owed)
{
	nm_auto(nm_config_freep) struct nm_config *config = NULL;
	struct nm_pace pace;

	assert_int_equal(nm_config_default(&config), 0);
	config->pages.max_mb_per_s = 256;
	begin(&pace, 256);
	nm_pace_spend(&pace, HERE, 1 << 30);
	nm_pace_configure(&pace, config);
	assert_true(nm_pace_wait_ns(&pace, 0) > 3 * NM_NSEC_PER_SEC);
}

/* ---- free memory ---- */

TEST(test_huge_free)
{
	static const char text[] = "Node 0, zone      DMA      0      0      0      0      0      "
				   "0      0      0      1 "
				   "     1      2 \n"
				   "Node 0, zone    DMA32      9      9      9      9      9      "
				   "9      9      9      9 "
				   "     1      3 \n"
				   "Node 1, zone   Normal      9      9      9      9      9      "
				   "9      9      9      9 "
				   "     0      0 \n"
				   "Node 12, zone   Normal      9      9      9      9      9      "
				   "9      9      9     9 "
				   "     7      0 \n";

	assert_int_equal(nm_huge_free_parse(text, 0), 12ULL << 21); /* 1 + 2×2 + 1 + 2×3 */
	assert_int_equal(nm_huge_free_parse(text, 1), 0);
	assert_int_equal(nm_huge_free_parse(text, 12), 7ULL << 21);
	assert_int_equal(nm_huge_free_parse(text, 2), 0);
	assert_int_equal(nm_huge_free_parse("", 0), 0);
	assert_int_equal(nm_huge_free_parse("Node 0, zone", 0), 0);
}

RUN_TESTS()
