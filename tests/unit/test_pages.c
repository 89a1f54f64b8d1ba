/* SPDX-License-Identifier: MIT */
/* The table of pages: counting, sharing, bounds, owners. */
#define SET_UP set_up_pages
#define TEAR_DOWN tear_down_pages
#include "../support/test.h"

#include "numa-migrd/base.h"
#include "pages_fixture.h"

/* ---- counting ---- */

TEST(test_counts_by_node)
{
	times_from_node(3, PAGE(1), 0);
	times_from_node(2, PAGE(1) + 4095, 3);
	from_node(PAGE(2), 1);
	assert_int_equal(look(PAGE(1)).accesses[0], 3);
	assert_int_equal(look(PAGE(1)).accesses[3], 2);
	assert_int_equal(look(PAGE(1)).accesses[1], 0);
	assert_int_equal(nm_pages_counts(pages).tracked, 2);
}

TEST(test_overflow_halves_all)
{
	times_from_node(255, PAGE(1), 0);
	times_from_node(101, PAGE(1), 1);
	assert_int_equal(look(PAGE(1)).accesses[0], 255);
	from_node(PAGE(1), 0);
	assert_int_equal(look(PAGE(1)).accesses[0], 128);
	assert_int_equal(look(PAGE(1)).accesses[1], 50);
}

TEST(test_decay)
{
	config->rules.page_decay_s = 10;
	renew_pages(4);
	now_s = 1009;
	times_from_node(40, PAGE(1), 0);
	now_s = 1010; /* one multiple of ten */
	from_node(PAGE(1), 0);
	assert_int_equal(look(PAGE(1)).accesses[0], 21);
	now_s = 1019;
	from_node(PAGE(1), 0);
	assert_int_equal(look(PAGE(1)).accesses[0], 22);
	now_s = 1030; /* two more */
	from_node(PAGE(1), 0);
	assert_int_equal(look(PAGE(1)).accesses[0], 6);
	now_s = 1400;
	from_node(PAGE(1), 0);
	assert_int_equal(look(PAGE(1)).accesses[0], 1);
}

static void check_many_nodes(unsigned nr_nodes)
{
	renew_pages(nr_nodes);
	for (unsigned number = 0; number < 500; number++)
		for (unsigned i = 0; i < 3; i++)
			from_node(PAGE(number), number % nr_nodes);
	for (unsigned number = 0; number < 500; number++) {
		const uint8_t *accesses = look(PAGE(number)).accesses;
		for (unsigned k = 0; k < nr_nodes; k++)
			assert_int_equal(accesses[k], k == number % nr_nodes ? 3 : 0);
	}
}

TEST(test_any_number_of_nodes)
{
	check_many_nodes(1);
	check_many_nodes(5);
	check_many_nodes(6);
	check_many_nodes(64);
	check_many_nodes(1024);
}

TEST(test_strange_accesses_are_ignored)
{
	struct nm_page_touch access = {.page = {.address = PAGE(1), .owner = owner}, .node = 4};

	assert_int_equal(touch(&access).target, -1);
	access.node = 0;
	access.page.owner = 77;
	assert_int_equal(touch(&access).target, -1);
	access.page.owner = 0;
	assert_int_equal(touch(&access).target, -1);
	assert_int_equal(nm_pages_counts(pages).tracked, 0);
}

TEST(test_batches_are_as_single_accesses)
{
	struct nm_page_touch accesses[300];
	struct nm_page_finding findings[300];
	unsigned targets = 0;

	for (unsigned i = 0; i < 300; i++)
		accesses[i] = (struct nm_page_touch){
			.page = {.address = PAGE(i % 100), .owner = owner}, .node = 1};
	nm_pages_touch(pages, now_s, accesses, 300, findings);
	for (unsigned i = 0; i < 300; i++)
		targets += findings[i].target == 1 && i / 100 == 1;
	assert_int_equal(targets, 100); /* each page at its second access */
	assert_int_equal(look(PAGE(99)).accesses[1], 3);
}

/* ---- sharing ---- */

static unsigned by_thread(uint64_t address, uint16_t thread)
{
	struct nm_page_touch access = {.page = {.address = address, .owner = owner},
				       .thread = thread};

	return touch(&access).partner;
}

/* Figure 5: {1}, then thread 3 → {3, 1}, one sharing; and the reverse. */
TEST(test_sharing)
{
	assert_int_equal(by_thread(PAGE(1), 1), 0);
	assert_int_equal(by_thread(PAGE(1), 3), 1);
	assert_int_equal(by_thread(PAGE(1), 3), 0);
	assert_int_equal(by_thread(PAGE(1), 1), 3);
	assert_int_equal(by_thread(PAGE(1), 2), 1);
}

/* kMAF, 3.1.1: threads share the physical page, wherever their processes have mapped it. */
TEST(test_sharing_by_physical_page)
{
	struct nm_page_touch first = {.page = {.address = PAGE(1), .owner = owner},
				      .thread = 1,
				      .physical_address = PAGE(700)};
	struct nm_page_touch second = first;

	assert_int_equal(touch(&first).partner, 0);
	second.thread = 2;
	assert_int_equal(nm_pages_open(pages, &second.page.owner), 0);
	second.page.address = PAGE(9);
	assert_int_equal(touch(&second).partner, 1);
	second = first;
	second.thread = 3;
	second.physical_address = PAGE(701); /* the page was replaced */
	assert_int_equal(touch(&second).partner, 0);
}

TEST(test_subblocks_are_apart)
{
	by_thread(PAGE(1), 1);
	assert_int_equal(by_thread(PAGE(1) + 1024, 2), 0);
	assert_int_equal(by_thread(PAGE(1) + 4095, 3), 0);
	assert_int_equal(by_thread(PAGE(2), 4), 0);
	assert_int_equal(by_thread(PAGE(1) + 1023, 5), 1);
}

TEST(test_sharing_window)
{
	by_thread(PAGE(1), 1);
	now_s += 10;
	assert_int_equal(by_thread(PAGE(1), 2), 1);
	now_s += 11;
	assert_int_equal(by_thread(PAGE(1), 3), 0);
}

/* Stamps have eight bits: a sub-block must not look recent again after 256 s. */
TEST(test_sharing_window_over_the_turn)
{
	by_thread(PAGE(1), 1);
	for (unsigned i = 0; i < 256 / 8; i++) {
		now_s += 8;
		by_thread(PAGE(1) + 2048, 1);
	}
	assert_int_equal(by_thread(PAGE(1), 2), 0);
	now_s += 65536 - 5;
	assert_int_equal(by_thread(PAGE(1) + 2048, 2), 0);
}

static unsigned huge(uint64_t address, uint8_t size, uint16_t thread)
{
	struct nm_page_touch access = {.page = {.address = address, .owner = owner, .size = size},
				       .node = 2,
				       .thread = thread};

	return touch(&access).partner;
}

/* Detection does not depend on the page size (3.1.1), the counts do. */
static void check_huge(uint8_t size, uint64_t bytes)
{
	struct nm_page_id page = {.address = bytes * 7, .owner = owner, .size = size};
	struct nm_page_view view;

	assert_int_equal(huge(bytes * 7, size, 1), 0);
	assert_int_equal(huge(bytes * 7 + 1024, size, 2), 0);
	assert_int_equal(huge(bytes * 7 + 4096, size, 3), 0);
	assert_int_equal(huge(bytes * 8 - 1, size, 4), 0);
	assert_int_equal(huge(bytes * 7 + 4097, size, 5), 3);
	assert_int_equal(nm_pages_look(pages, now_s, &page, &view), 0);
	assert_int_equal(view.accesses[2], 5);
}

TEST(test_huge_pages)
{
	check_huge(NM_PAGE_2M, 2ULL << 20);
	check_huge(NM_PAGE_1G, 1ULL << 30);
	assert_false(is_tracked((2ULL << 20) * 7, owner)); /* as one of 4 KiB */
}

/* ---- bounds ---- */

static void touch_many(uint64_t first, uint64_t count, uint16_t whose)
{
	struct nm_page_touch access = {.page = {.owner = whose}};

	for (uint64_t i = 0; i < count; i++) {
		access.page.address = PAGE(first + i);
		touch(&access);
	}
}

static uint64_t count_tracked(uint64_t first, uint64_t count, uint16_t whose)
{
	uint64_t tracked = 0;

	for (uint64_t i = 0; i < count; i++)
		tracked += is_tracked(PAGE(first + i), whose);
	return tracked;
}

static void grow(void)
{
	for (unsigned i = 0; i < 10; i++) {
		touch_many(0, 4096, owner);
		nm_pages_update(pages, now_s, 0);
	}
}

/* SECURITY: many-pages */
TEST(test_grows_to_the_bound)
{
	struct nm_pages_counts counts = nm_pages_counts(pages);

	assert_true(counts.limit < 4096);
	grow();
	assert_int_equal(nm_pages_counts(pages).limit, 4096);
	touch_many(0, 4096, owner);
	counts = nm_pages_counts(pages);
	assert_true(counts.tracked > 4096 - 4096 / 100);
	assert_int_equal(counts.tracked, count_tracked(0, 4096, owner));
	touch_many(4096, 20000, owner);
	counts = nm_pages_counts(pages);
	assert_in_range(counts.tracked, 4096 - 4096 / 100, 4096);
	assert_int_equal(counts.tracked, count_tracked(0, 24096, owner));
}

TEST(test_growing_keeps_all_of_a_page)
{
	touch_many(0, 700, owner);
	times_from_node(9, PAGE(1), 2);
	by_thread(PAGE(1), 5);
	settle(PAGE(1), NM_PAGE_DROPPED, 0);
	touch_many(700, 300, owner);
	nm_pages_update(pages, now_s, 0);
	assert_true(nm_pages_counts(pages).limit > 1024);
	assert_true(look(PAGE(1)).accesses[2] == 9 && look(PAGE(1)).page_node == 0);
	assert_int_equal(by_thread(PAGE(1), 6), 5);
}

TEST(test_a_lower_bound_shrinks)
{
	grow();
	config->rules.max_tracked = 1000;
	nm_pages_configure(pages, config);
	nm_pages_update(pages, now_s, 0);
	struct nm_pages_counts counts = nm_pages_counts(pages);
	assert_int_equal(counts.limit, 1000);
	assert_in_range(counts.tracked, 980, 1000);
	assert_int_equal(counts.tracked, count_tracked(0, 4096, owner));
}

TEST(test_the_coldest_page_is_evicted)
{
	grow();
	nm_pages_free(pages);
	pages = NULL;
	config->rules.max_tracked = 1000;
	renew_pages(4);
	for (uint64_t hot = 0; hot < 100; hot++)
		times_from_node(50, PAGE(hot), 0);
	touch_many(1000, 20000, owner);
	assert_true(count_tracked(0, 100, owner) > 95);
	now_s += 120; /* their heat has decayed */
	touch_many(30000, 20000, owner);
	assert_true(count_tracked(0, 100, owner) < 5);
}

TEST(test_unsampled_regions_expire)
{
	touch_many(0, 100, owner);
	now_s += NM_PAGE_FORGET_S;
	touch_many(0, 50, owner);
	nm_pages_update(pages, now_s, 1);
	assert_int_equal(nm_pages_counts(pages).tracked, 100);
	now_s += 1;
	nm_pages_update(pages, now_s, 1);
	assert_int_equal(nm_pages_counts(pages).tracked, 50);
}

/* ---- owners ---- */

TEST(test_closed_owner_has_no_pages)
{
	uint16_t second;

	touch_many(0, 300, owner);
	assert_int_equal(nm_pages_open(pages, &second), 0);
	touch_many(0, 100, second);
	nm_pages_close(pages, owner);
	assert_int_equal(nm_pages_counts(pages).tracked, 100);
	assert_int_equal(count_tracked(0, 300, owner), 0);
	assert_int_equal(count_tracked(0, 100, second), 100);
	nm_pages_close(pages, owner);
	assert_int_equal(nm_pages_counts(pages).tracked, 100);
}

/* A number is reused only when no entries of its former owner are left. */
TEST(test_numbers_of_owners)
{
	uint16_t next;

	touch_many(0, 10, owner);
	nm_pages_close(pages, owner);
	assert_int_equal(nm_pages_open(pages, &next), 0);
	assert_int_not_equal(next, owner);
	nm_pages_update(pages, now_s, 1);
	uint16_t again;
	assert_int_equal(nm_pages_open(pages, &again), 0);
	assert_int_equal(again, owner);
	assert_int_equal(count_tracked(0, 10, again), 0);
}

TEST(test_growing_frees_numbers)
{
	uint16_t first = owner, second;

	touch_many(0, 10, first);
	assert_int_equal(nm_pages_open(pages, &second), 0);
	nm_pages_close(pages, first);
	touch_many(0, 1000, second);
	nm_pages_update(pages, now_s, 0);
	assert_true(nm_pages_counts(pages).limit > 1024);
	assert_int_equal(nm_pages_open(pages, &owner), 0);
	assert_int_equal(owner, first);
}

TEST(test_pages_of_exited_processes_are_evicted)
{
	uint16_t second;

	grow();
	nm_pages_close(pages, owner);
	assert_int_equal(nm_pages_open(pages, &second), 0);
	uint64_t evicted = nm_pages_counts(pages).evicted;
	touch_many(9000, 3000, second);
	assert_true(count_tracked(9000, 3000, second) > 2900);
	assert_true(nm_pages_counts(pages).evicted < evicted + 100);
}

/* A process with many pages cannot displace those of a process with few. */
TEST(test_shares)
{
	uint16_t few;

	grow();
	assert_int_equal(nm_pages_open(pages, &few), 0);
	touch_many(0, 400, few);
	uint64_t before = count_tracked(0, 400, few);
	assert_true(before > 380);
	now_s += 300; /* the coldest by far */
	touch_many(10000, 100000, owner);
	assert_int_equal(count_tracked(0, 400, few), before);
	assert_true(nm_pages_counts(pages).tracked > 4000);
}

TEST(test_equals_share_equally)
{
	uint16_t second;
	struct nm_rng rng;

	grow();
	nm_rng_seed(&rng, 5);
	assert_int_equal(nm_pages_open(pages, &second), 0);
	for (unsigned i = 0; i < 100000; i++)
		touch_many(nm_rng_below(&rng, 20000), 1, i % 10 ? owner : second);
	assert_in_range(count_tracked(0, 20000, second), 1500, 2600);
}

TEST(test_exclusivity_of_an_owner)
{
	uint16_t second;

	times_from_node(8, PAGE(1), 1);
	times_from_node(4, PAGE(2), 0);
	times_from_node(4, PAGE(2), 3);
	huge(2ULL << 20, NM_PAGE_2M, 3); /* its parts count only for sharing */
	assert_int_equal(nm_pages_open(pages, &second), 0);
	touch_many(0, 50, second);
	assert_int_equal(nm_pages_exclusivity(pages, owner).pages, 0);
	for (unsigned i = 0; i < 4; i++)
		nm_pages_update(pages, now_s, 0.25);
	struct nm_exclusivity sums = nm_pages_exclusivity(pages, owner);
	assert_int_equal(sums.pages, 3);
	assert_int_equal(sums.accesses, 17);
	assert_int_equal(sums.most, 13);
	assert_int_equal(nm_pages_exclusivity(pages, second).pages, 50);
}

/* Values of the last complete round; a page of unknown location counts for no node. */
TEST(test_homes_of_an_owner)
{
	uint64_t homes[4] = {9, 9, 9, 9};

	for (unsigned i = 0; i < 6; i++) {
		struct nm_page_touch access = {.page = {.address = PAGE(i), .owner = owner},
					       .page_node = i < 5 ? (int16_t)(i % 2) : -1};
		(void)touch(&access);
	}
	nm_pages_homes(pages, owner, homes);
	assert_true(homes[0] == 0 && homes[1] == 0 && homes[3] == 0);
	for (unsigned round = 0; round < 2; round++) {
		nm_pages_update(pages, now_s, 1);
		nm_pages_homes(pages, owner, homes);
		assert_true(homes[0] == 3 && homes[1] == 2 && homes[2] == 0 && homes[3] == 0);
	}
	nm_pages_close(pages, owner);
	nm_pages_homes(pages, owner, homes);
	assert_true(homes[0] == 0 && homes[1] == 0);
	/* Owners beyond the initial rows of the table. */
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(nm_pages_open(pages, &owner), 0);
	struct nm_page_touch access = {.page = {.address = PAGE(1), .owner = owner},
				       .page_node = 3};
	(void)touch(&access);
	nm_pages_update(pages, now_s, 1);
	nm_pages_homes(pages, owner, homes);
	assert_true(homes[3] == 1 && homes[0] == 0);
}

TEST(test_another_key_places_differently)
{
	static const uint64_t other[4] = {1, 2, 3, 4};
	struct nm_pages *twin = NULL;
	uint16_t whose;
	unsigned differ = 0;

	nm_pages_new(config, 4, other, &twin);
	assert_int_equal(nm_pages_open(twin, &whose), 0);
	for (unsigned i = 0; i < 3000; i++) {
		struct nm_page_touch access = {.page = {.address = PAGE(i), .owner = whose}};
		struct nm_page_finding finding;
		nm_pages_touch(twin, now_s, &access, 1, &finding);
		touch(&access);
	}
	for (unsigned i = 0; i < 3000; i++) {
		struct nm_page_id page = {.address = PAGE(i), .owner = whose};
		struct nm_page_view view;
		differ += (nm_pages_look(twin, now_s, &page, &view) == 0) !=
			  is_tracked(PAGE(i), whose);
	}
	nm_pages_free(twin);
	assert_true(differ > 300);
}

RUN_TESTS()
