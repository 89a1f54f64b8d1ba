/* SPDX-License-Identifier: MIT */
/* The table of pages: counting, sharing, bounds, owners. Words are about the pages of `owner`. */
#define SET_UP set_up_pages
#define TEAR_DOWN tear_down_pages
#include "../support/test.h"

#include "../support/script.h"
#include "numa-migrd/base.h"
#include "pages_fixture.h"

/* ---- words ---- */

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

static uint16_t open_owner(void)
{
	uint16_t ret;
	assert_int_equal(nm_pages_open(pages, &ret), 0);
	return ret;
}

/* The target of an access by a process that does not exist, or from a node. */
static int touch_strangely(uint16_t whose, uint16_t node)
{
	struct nm_page_touch access = {.page = {.address = PAGE(1), .owner = whose}, .node = node};
	return touch(&access).target;
}

/* by 3 page1 1024 = 2: the partner of a thread that accesses this byte of a page */
static unsigned by_thread(const struct step *step)
{
	struct nm_page_touch access = {.page = {.address = PAGE(U(1)), .owner = owner},
				       .thread = (uint16_t)U(0)};
	if (step->nr_numbers > 2)
		access.page.address += U(2);
	return touch(&access).partner;
}

/* physical 3 page1 page700 = 2: the same for a page and its physical page */
static unsigned by_thread_at(const struct step *step)
{
	struct nm_page_touch access = {.page = {.address = PAGE(U(1)), .owner = owner},
				       .thread = (uint16_t)U(0),
				       .physical_address = PAGE(U(2))};
	return touch(&access).partner;
}

static struct nm_page_id huge_page(bool is_1g)
{
	return (struct nm_page_id){.address = (is_1g ? 1ULL << 30 : 2ULL << 20) * 7,
				   .owner = owner,
				   .size = is_1g ? NM_PAGE_1G : NM_PAGE_2M};
}

/* huge 3 2M 1024 = 2: the partner of a thread on node 2 that accesses this byte of a huge page */
static unsigned by_thread_huge(const struct step *step)
{
	struct nm_page_touch access = {
		.page = huge_page(step_has(step, "1G")), .node = 2, .thread = (uint16_t)U(0)};
	access.page.address += (uint64_t)N(2);
	return touch(&access).partner;
}

static unsigned count_huge(const struct step *step)
{
	const struct nm_page_id page = huge_page(step_has(step, "1G"));
	struct nm_page_view view;
	assert_int_equal(nm_pages_look(pages, now_s, &page, &view), 0);
	return view.accesses[2];
}

static uint64_t home_of(unsigned node)
{
	uint64_t homes[4] = {9, 9, 9, 9};
	nm_pages_homes(pages, owner, homes);
	return homes[node];
}

/* at 0-4 node1: one access to each page, which is on a node, or at 5-5 -1 */
WORD(at)
{
	for (unsigned i = U(0); i <= U(1); i++) {
		struct nm_page_touch access = {.page = {.address = PAGE(i), .owner = owner},
					       .page_node = (int16_t)N(2)};
		(void)touch(&access);
	}
}

/* from node3 page1 2: the number of accesses */
ACTION(from, times_from_node(step->nr_numbers > 2 ? U(2) : 1, PAGE(U(1)), U(0)))
ACTION(touch_many, touch_many(U(0), U(1), owner))
ACTION(settle, settle(PAGE(U(0)), NM_PAGE_DROPPED, U(1)))
ACTION(nodes, renew_pages(U(0)))
ACTION(update, nm_pages_update(pages, now_s, step->nr_numbers ? N(0) : 0))
ACTION(pass, now_s += U(0))
ACTION(close, nm_pages_close(pages, (uint16_t)U(0)))
ACTION(owner, owner = (uint16_t)U(0))
KNOB(now, now_s)
KNOB(decay_s, config->rules.page_decay_s)
KNOB(max_tracked, config->rules.max_tracked)
ACTION(configure, nm_pages_configure(pages, config))
QUANTITY(is, owner)
QUANTITY(opened, open_owner())
QUANTITY(accesses, look(PAGE(U(0))).accesses[U(1)])
QUANTITY(page_node, look(PAGE(U(0))).page_node)
QUANTITY(by, by_thread(step))
QUANTITY(physical, by_thread_at(step))
QUANTITY(huge, by_thread_huge(step))
QUANTITY(accesses_huge, count_huge(step))
QUANTITY(strange, touch_strangely((uint16_t)U(0), (uint16_t)U(1)))
QUANTITY(tracked, nm_pages_counts(pages).tracked)
QUANTITY(tracked_among, count_tracked(U(0), U(1), owner))
QUANTITY(limit, nm_pages_counts(pages).limit)
QUANTITY(evicted, nm_pages_counts(pages).evicted)
QUANTITY(pages, nm_pages_exclusivity(pages, owner).pages)
QUANTITY(sum, nm_pages_exclusivity(pages, owner).accesses)
QUANTITY(most, nm_pages_exclusivity(pages, owner).most)
QUANTITY(home, home_of(U(0)))

/* ---- counting ---- */

SCRIPT(accesses_are_counted_by_node,
       "from node0 page1 3; from node3 page1 2; from node1 page2; accesses page1 node0 = 3",
       "accesses page1 node3 = 2; accesses page1 node1 = 0; tracked = 2; by 0 page1 4095 = 0",
       "accesses page1 node0 = 4; tracked = 2")

SCRIPT(an_overflow_halves_all,
       "from node0 page1 255; from node1 page1 101; accesses page1 node0 = 255; from node0 page1",
       "accesses page1 node0 = 128; accesses page1 node1 = 50")

/* At every multiple of ten. */
SCRIPT(accesses_decay,
       "set decay_s = 10; nodes 4; set now = 1009; from node0 page1 40; set now = 1010",
       "from node0 page1; accesses page1 node0 = 21; set now = 1019; from node0 page1",
       "accesses page1 node0 = 22; set now = 1030; from node0 page1; accesses page1 node0 = 6",
       "set now = 1400; from node0 page1; accesses page1 node0 = 1")

static void check_many_nodes(unsigned nr_nodes)
{
	renew_pages(nr_nodes);
	for (unsigned number = 0; number < 500; number++)
		times_from_node(3, PAGE(number), number % nr_nodes);
	for (unsigned number = 0; number < 500; number++) {
		const uint8_t *accesses = look(PAGE(number)).accesses;
		for (unsigned k = 0; k < nr_nodes; k++)
			assert_int_equal(accesses[k], k == number % nr_nodes ? 3 : 0);
	}
}

TEST(any_number_of_nodes_is_counted)
{
	static const unsigned numbers[] = {1, 5, 6, 64, 1024};
	for (size_t i = 0; i < NM_ARRAY_SIZE(numbers); i++)
		check_many_nodes(numbers[i]);
}

SCRIPT(strange_accesses_are_ignored, "keep a = is",
       "strange a 4 = -1; strange 77 0 = -1; strange 0 0 = -1; tracked = 0")

/* Each page has its target at its second access. */
TEST(batches_are_as_single_accesses)
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
	assert_int_equal(targets, 100);
	assert_int_equal(look(PAGE(99)).accesses[1], 3);
}

/* ---- sharing ---- */

/* Figure 5: {1}, then thread 3 → {3, 1}, one sharing; and the reverse. */
SCRIPT(threads_share_pages,
       "by 1 page1 = 0; by 3 page1 = 1; by 3 page1 = 0; by 1 page1 = 3; by 2 page1 = 1")

/* kMAF, 3.1.1: threads share the physical page, wherever their processes have mapped it. In the
 * end the page was replaced. */
SCRIPT(threads_share_physical_pages,
       "keep a = is; physical 1 page1 page700 = 0; keep b = opened; owner b",
       "physical 2 page9 page700 = 1; owner a; physical 3 page1 page701 = 0")

SCRIPT(subblocks_are_apart,
       "by 1 page1 = 0; by 2 page1 1024 = 0; by 3 page1 4095 = 0; by 4 page2 = 0",
       "by 5 page1 1023 = 1")

SCRIPT(sharing_has_a_window, "by 1 page1 = 0; pass 10; by 2 page1 = 1; pass 11; by 3 page1 = 0")

/* Stamps have eight bits: a sub-block must not look recent again after 256 s. */
SCRIPT(the_window_survives_a_turn_of_its_stamps, "by 1 page1 = 0",
       "each 32: pass 8; by 1 page1 2048 = 0", "by 2 page1 = 0; pass 65531; by 2 page1 2048 = 0")

#define HUGE_PAGE(size, last)                                                                      \
	"huge 1 " size " 0 = 0; huge 2 " size " 1024 = 0; huge 3 " size " 4096 = 0; "              \
	"huge 4 " size " " last " = 0; huge 5 " size " 4097 = 3; accesses_huge " size " = 5"

/* Detection does not depend on the page size (3.1.1), the counts do. */
SCRIPT(parts_of_huge_pages_are_shared, HUGE_PAGE("2M", "2097151"), HUGE_PAGE("1G", "1073741823"))

TEST(a_huge_page_is_not_tracked_as_a_base_page)
{
	struct nm_page_touch access = {.page = huge_page(false)};
	touch(&access);
	assert_false(is_tracked(huge_page(false).address, owner));
}

/* ---- bounds ---- */

WORD(grow)
{
	for (unsigned i = 0; i < 10; i++) {
		touch_many(0, 4096, owner);
		nm_pages_update(pages, now_s, 0);
	}
}

/* SECURITY: many-pages */
SCRIPT(the_table_grows_to_the_bound,
       "limit < 4096; grow; limit = 4096; touch_many 0 4096; tracked > 4056; keep n = tracked",
       "tracked_among 0 4096 = n; touch_many 4096 20000; tracked in 4056..4096; keep n = tracked",
       "tracked_among 0 24096 = n")

SCRIPT(growing_keeps_all_of_a_page,
       "touch_many 0 700; from node2 page1 9; by 5 page1 = 0; settle page1 node0",
       "touch_many 700 300; update; limit > 1024; accesses page1 node2 = 9; page_node page1 = 0",
       "by 6 page1 = 5")

SCRIPT(a_lower_bound_shrinks,
       "grow; set max_tracked = 1000; configure; update; limit = 1000; tracked in 980..1000",
       "keep n = tracked; tracked_among 0 4096 = n")

#define HUNDRED_HOT "keep p = tracked", "each 100: from node0 p 50; keep p = p+1"

/* In the end the heat of the hot pages has decayed. */
SCRIPT(the_coldest_page_is_evicted, "grow; set max_tracked = 1000; nodes 4", HUNDRED_HOT,
       "touch_many 1000 20000; tracked_among 0 100 > 95; pass 120; touch_many 30000 20000",
       "tracked_among 0 100 < 5")

SCRIPT(unsampled_regions_expire,
       "touch_many 0 100; pass_expiry; touch_many 0 50; update 1; tracked = 100; pass 1; update 1",
       "tracked = 50")

ACTION(pass_expiry, now_s += NM_PAGE_FORGET_S)

/* ---- owners ---- */

SCRIPT(a_closed_owner_has_no_pages,
       "keep a = is; touch_many 0 300; keep b = opened; owner b; touch_many 0 100; close a",
       "tracked = 100; tracked_among 0 100 = 100; close a; tracked = 100; owner a",
       "tracked_among 0 300 = 0")

/* A number is reused only when no entries of its former owner are left. */
SCRIPT(numbers_are_reused_without_entries,
       "keep a = is; touch_many 0 10; close a; opened != a; update 1; opened = a",
       "tracked_among 0 10 = 0")

SCRIPT(growing_frees_numbers,
       "keep a = is; touch_many 0 10; keep b = opened; close a; owner b; touch_many 0 1000",
       "update; limit > 1024; opened = a")

SCRIPT(pages_of_exited_processes_are_evicted,
       "grow; keep a = is; close a; keep b = opened; owner b; keep n = evicted",
       "touch_many 9000 3000; tracked_among 9000 3000 > 2900; evicted < n+100")

/* A process with many pages cannot displace those of a process with few, which are the coldest by
 * far. */
SCRIPT(many_pages_do_not_displace_few,
       "grow; keep a = is; keep b = opened; owner b; touch_many 0 400; keep n = tracked_among 0 "
       "400",
       "tracked_among 0 400 > 380; pass 300; owner a; touch_many 10000 100000; tracked > 4000",
       "owner b; tracked_among 0 400 = n")

WORD(touch_nine_to_one)
{
	struct nm_rng rng;
	nm_rng_seed(&rng, 5);
	for (unsigned i = 0; i < 100000; i++)
		touch_many(nm_rng_below(&rng, 20000), 1, (uint16_t)(i % 10 ? U(0) : U(1)));
}

SCRIPT(equals_share_equally, "grow; keep a = is; keep b = opened; touch_nine_to_one a b; owner b",
       "tracked_among 0 20000 in 1500..2600")

/* Parts of a huge page count only for sharing. */
SCRIPT(the_exclusivity_of_an_owner_is_summed_up,
       "keep a = is; from node1 page1 8; from node0 page2 4; from node3 page2 4; huge 3 2M 0 = 0",
       "keep b = opened; owner b; touch_many 0 50; owner a; pages = 0", "each 4: update 0.25",
       "pages = 3; sum = 17; most = 13; owner b; pages = 50")

/* Values of the last complete round; a page of unknown location counts for no node. */
SCRIPT(the_homes_of_an_owner_are_counted,
       "keep a = is; at 0-0 0; at 1-1 1; at 2-2 0; at 3-3 1; at 4-4 0; at 5-5 -1; home 0 = 0",
       "home 1 = 0; home 3 = 0", "each 2: update 1; home 0 = 3; home 1 = 2; home 2 = 0; home 3 = 0",
       "close a; home 0 = 0; home 1 = 0",
       /* Owners beyond the initial rows of the table. */
       "each 100: keep b = opened", "owner b; at 1-1 3; update 1; home 3 = 1; home 0 = 0")

TEST(another_key_places_differently)
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
