/* SPDX-License-Identifier: MIT */
/* The jobs that move pages, on a machine of pages in words; and what neither side accepts of the
 * other. */
#define SET_UP set_up
#include "../support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "platform/page_jobs.h"

#define PAGES 2048U /* from address 0 on */
#define BLOCK 512U
#define MIB ((uint64_t)1 << 20)

/* The node of each page; pages of whole blocks move together. `repeats`: behind them there are the
 * same pages, which do not move. */
static struct machine {
	int on[PAGES];
	bool whole[PAGES / BLOCK];
	int refuses[PAGES]; /* an error for which it does not move */
	unsigned wheres, moves, calls_left;
	uint64_t held_ns;
	bool repeats;
} machine;

static int where(void *context, unsigned count, const uint64_t *addresses, int *ret)
{
	(void)context;
	machine.wheres++;
	for (unsigned i = 0; i < count; i++) {
		uint64_t page = addresses[i] / 4096;
		ret[i] = page < PAGES	   ? machine.on[page]
			 : machine.repeats ? (page % 2 && page % BLOCK != BLOCK - 1 ? -ENOENT : 0)
					   : -EFAULT;
	}
	return 0;
}

static int move(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		int *statuses, uint64_t *ret_held_ns)
{
	(void)context;
	machine.moves++;
	*ret_held_ns = machine.held_ns;
	for (unsigned i = 0; i < count; i++) {
		size_t page = addresses[i] / 4096, first = page - page % BLOCK;
		if (page >= PAGES) {
			statuses[i] = nodes[i];
			continue;
		}
		statuses[i] = machine.refuses[page] ? machine.refuses[page] : nodes[i];
		if (machine.refuses[page])
			continue;
		machine.on[page] = nodes[i];
		for (size_t k = first; machine.whole[page / BLOCK] && k < first + BLOCK; k++)
			machine.on[k] = nodes[i];
	}
	return 0;
}

static bool has_time(void *context)
{
	(void)context;
	return machine.calls_left > 0 && machine.calls_left-- > 0;
}

static const struct nm_page_calls calls = {where, move, has_time, NULL};

static struct nm_units_order order;
static struct nm_units_moved moved;

static int set_up(void **state)
{
	(void)state;
	machine = (struct machine){.calls_left = 1000, .held_ns = 1};
	order = (struct nm_units_order){
		.pages_most = 1024,
		.nr_rooms = 1,
		.slow_ns = 10,
		.rooms = {{.node = 1, .memory = 64 * MIB, .huge = 64 * MIB, .pool = 64 * MIB}},
	};
	return 0;
}

static void add(enum nm_unit_kind kind, uint64_t page, uint32_t pages)
{
	order.units[order.count++] = (struct nm_page_unit){page * 4096, pages, kind, 0, 1};
}

static void perform(void)
{
	assert_true(nm_units_order_is_valid(&order));
	assert_int_equal(nm_units_move(&order, &calls, &moved), 0);
}

/* Compares outcomes, as "moved; split moved; left; -13; undone", and runs, as "0+512 0>1". */
static void expect(const char *outcomes, const char *runs)
{
	char text[512] = "";

	for (unsigned i = 0; i < moved.count; i++) {
		const struct nm_unit_outcome *outcome = &moved.outcomes[i];
		size_t used = strlen(text);
		char error[16];
		snprintf(error, sizeof(error), "%d", outcome->error);
		snprintf(text + used, sizeof(text) - used, "%s%s%s%s", used ? "; " : "",
			 outcome->split ? "split " : "",
			 outcome->moved	  ? "moved"
			 : outcome->error ? error
					  : "left",
			 outcome->done ? "" : " undone");
	}
	assert_string_equal(text, outcomes);
	text[0] = '\0';
	for (unsigned i = 0; i < moved.nr_runs; i++) {
		const struct nm_moved_run *run = &moved.runs[i];
		size_t used = strlen(text);
		snprintf(text + used, sizeof(text) - used, "%s%u+%u %d>%d", used ? "; " : "",
			 (unsigned)(run->address / 4096), run->pages, run->was_on, run->now_on);
	}
	assert_string_equal(text, runs);
}

/* ---- units ---- */

TEST(a_huge_page_moves_whole_and_another_block_page_by_page)
{
	machine.whole[0] = true;
	machine.on[512 + 7] = 2;
	machine.on[1024 + 511] = -ENOENT;
	add(NM_UNIT_BLOCK, 0, BLOCK);
	add(NM_UNIT_BLOCK, 512, BLOCK);
	add(NM_UNIT_BLOCK, 1024, BLOCK);
	perform();
	expect("moved; split moved; split moved", "0+519 0>1; 520+1015 0>1");
	assert_int_equal(moved.tried_bytes, (3 * 512 - 2) * 4096 + 512 * 4096);
}

TEST(each_outcome_has_its_reason)
{
	machine.on[0] = 2;
	machine.on[1] = 1;
	machine.on[2] = -ENOENT;
	machine.refuses[3] = -EACCES;
	for (unsigned page = 0; page < 5; page++)
		add(NM_UNIT_BASE, page, 1);
	order.units[5] = (struct nm_page_unit){5 * 4096, 1, NM_UNIT_BASE, -1, 1};
	order.count = 6;
	machine.on[5] = 3;
	perform();
	expect("left; left; -2; -13; moved; moved", "4+1 0>1; 5+1 3>1");
	assert_int_equal(moved.outcomes[0].found_on, 2);
	assert_int_equal(moved.outcomes[1].found_on, 1);
}

TEST(a_full_node_takes_what_fits)
{
	order.rooms[0].memory = 4 * 4096;
	add(NM_UNIT_BASE, 0, 1);
	add(NM_UNIT_BASE, 1, 5);
	perform();
	expect("moved; moved", "0+4 0>1");
	assert_int_equal(moved.outcomes[1].error, -ENOSPC);
}

/* A block takes free blocks; a page of a pool takes from its pool. */
TEST(each_kind_has_room_of_its_own)
{
	machine.whole[0] = machine.whole[1] = machine.whole[2] = true;
	order.rooms[0].huge = 2 * MIB;
	order.rooms[0].pool = 0;
	add(NM_UNIT_BLOCK, 0, BLOCK);
	add(NM_UNIT_BLOCK, 512, BLOCK);
	add(NM_UNIT_POOL, 1024, BLOCK);
	perform();
	expect("moved; -28; -28", "0+512 0>1");
}

/* SECURITY: slow-calls */
TEST(a_slow_call_ends_the_job)
{
	machine.held_ns = 11;
	order.pages_most = 100;
	add(NM_UNIT_BASE, 0, 300);
	add(NM_UNIT_BASE, 300, 1);
	perform();
	expect("moved undone; left undone", "0+100 0>1");
	assert_int_equal(moved.outcomes[0].next, 100);
	assert_int_equal(machine.moves, 1);
}

/* The first page of the block has moved, and the others have not. */
TEST(a_job_without_time_reports_its_progress)
{
	machine.calls_left = 0;
	add(NM_UNIT_POOL, 512, BLOCK);
	machine.whole[1] = true;
	add(NM_UNIT_BLOCK, 0, BLOCK);
	perform();
	expect("moved; split moved undone", "512+512 0>1; 0+1 0>1");
	assert_int_equal(moved.outcomes[1].next, 1);
	assert_int_equal(machine.on[0], 1);
	assert_int_equal(machine.on[1], 0);
	machine.calls_left = 1000;
	order.units[0] = order.units[1];
	order.units[0].first = 1;
	order.count = 1;
	perform();
	expect("split moved", "1+511 0>1");
}

/* Repeats what is not done, from where it ended, as the mover does. */
static void repeat(unsigned most)
{
	for (unsigned jobs = 0; order.count > 0; jobs++) {
		unsigned kept = 0;
		assert_true(jobs < most);
		perform();
		assert_true(moved.nr_runs <= NM_UNITS_MOST);
		for (unsigned i = 0; i < order.count; i++) {
			order.units[kept] = order.units[i];
			order.units[kept].first = moved.outcomes[i].next;
			kept += !moved.outcomes[i].done;
		}
		order.count = kept;
	}
}

/* Each job advances, regardless of the reason for slow calls and for pages that stay. */
/* SECURITY: slow-calls, held-lock */
TEST(no_unit_is_tried_for_ever)
{
	static const struct {
		const char *name;
		enum nm_unit_kind kind;
		unsigned pages_most;
		uint64_t held_ns;
		int refuses; /* the first pages of it */
		unsigned calls_left;
	} rows[] = {
		{"its first pages are pinned, and calls are slow", NM_UNIT_BLOCK, 64, 11, -EBUSY,
		 99},
		{"small calls, and all pages are pinned", NM_UNIT_BLOCK, 3, 1, -EBUSY, 999},
		{"no time", NM_UNIT_BLOCK, 512, 1, 0, 0},
		{"base pages, and no time", NM_UNIT_BASE, 64, 1, -EACCES, 0},
	};

	EACH_ROW(row, rows)
	{
		(void)set_up(NULL);
		order.count = 0;
		order.pages_most = row->pages_most;
		machine.held_ns = row->held_ns;
		for (unsigned page = 0; page < 64; page++)
			machine.refuses[page] = row->refuses;
		machine.on[511] = 2; /* no huge page */
		add(row->kind, 0, BLOCK);
		for (unsigned jobs = 0; !moved.outcomes[0].done || jobs == 0; jobs++) {
			machine.calls_left = row->calls_left;
			CHECK(row, jobs <= BLOCK);
			perform();
			order.units[0].first = moved.outcomes[0].next;
		}
		CHECK(row, machine.on[100] == 1 && machine.on[510] == 1);
	}
}

/* The first pages of all blocks move alone, and every second page of the rest is elsewhere: there
 * are more runs than an answer contains. */
/* SECURITY: worker-socket */
TEST(no_more_runs_are_made_than_an_answer_contains)
{
	const unsigned blocks = 50;

	for (unsigned page = 0; page < PAGES; page++)
		machine.on[page] = page % 2 && page % BLOCK != BLOCK - 1 ? -ENOENT : 0;
	order.pages_most = NM_UNITS_MOST;
	order.rooms[0].memory = order.rooms[0].huge = UINT64_MAX;
	for (unsigned i = 0; i < blocks; i++)
		add(NM_UNIT_BLOCK, (uint64_t)i * BLOCK, BLOCK);
	machine.repeats = true;
	repeat(20);
}

/* ---- ranges ---- */

static struct nm_ranges_order ranges;

static struct nm_ranges_moved search(uint64_t first, uint64_t end)
{
	struct nm_ranges_moved ret;

	ranges.count = 1;
	ranges.page_bytes = 4096;
	ranges.slow_ns = 10;
	ranges.room.node = 1;
	ranges.stays[0] = 1 << 1 | 1 << 3;
	ranges.ranges[0] = (struct nm_page_range){first * 4096, end * 4096, 0};
	assert_true(nm_ranges_order_is_valid(&ranges));
	assert_int_equal(nm_ranges_move(&ranges, &calls, &ret), 0);
	return ret;
}

static unsigned pages_on(int node)
{
	unsigned count = 0;

	for (unsigned page = 0; page < PAGES; page++)
		count += machine.on[page] == node;
	return count;
}

TEST(a_search_leaves_nodes_that_pages_stay_on)
{
	ranges = (struct nm_ranges_order){
		.pages_most = 4096, .bytes_most = UINT64_MAX, .room.memory = UINT64_MAX};
	for (unsigned page = 0; page < PAGES; page++)
		machine.on[page] = page % 2 ? 3 : -ENOENT;
	machine.on[100] = 2;
	struct nm_ranges_moved ret = search(0, PAGES);
	assert_int_equal(ret.pages, 1);
	assert_int_equal(ret.next, PAGES * 4096);
	assert_int_equal(machine.on[100], 1);
	assert_int_equal(pages_on(3), PAGES / 2);
}

/* A block that might be one huge page needs room for all of its pages. */
TEST(a_search_fills_a_node_block_by_block)
{
	ranges = (struct nm_ranges_order){
		.pages_most = 4096, .bytes_most = UINT64_MAX, .room.memory = 600 * 4096};
	machine.whole[1] = true;
	struct nm_ranges_moved ret = search(256, PAGES);
	assert_int_equal(ret.pages, 256);
	assert_true(ret.full);
	assert_int_equal(pages_on(1), 256);
}

TEST(a_search_goes_on_where_it_ended)
{
	ranges = (struct nm_ranges_order){
		.pages_most = 700, .bytes_most = UINT64_MAX, .room.memory = UINT64_MAX};
	struct nm_ranges_moved ret = search(0, PAGES);
	assert_int_equal(ret.pages, 700);
	assert_int_equal(ret.next, 700 * 4096);
	ranges.bytes_most = 100 * 4096;
	ret = search(700, PAGES);
	assert_int_equal(ret.pages, 100);
	assert_int_equal(ret.next, 800 * 4096);
	assert_int_equal(pages_on(1), 800);
}

/* ---- what is not accepted ---- */

static int units_error(void)
{
	return nm_units_order_is_valid(&order) ? 0 : -EINVAL;
}

/* SECURITY: worker-socket */
TEST(orders_out_of_range_are_refused)
{
	static const struct nm_page_unit bad[] = {
		{0, 0, NM_UNIT_BASE, 0, 1},		    /* no page */
		{0, 513, NM_UNIT_BASE, 0, 1},		    /* more than a block */
		{4095, 1, NM_UNIT_BASE, 0, 1},		    /* not at a page */
		{4096, 512, NM_UNIT_BLOCK, 0, 1},	    /* not at a block */
		{0, 256, NM_UNIT_BLOCK, 0, 1},		    /* half a block */
		{0, 1 << 23, NM_UNIT_POOL, 0, 1},	    /* 32 GiB */
		{0, 1, 3, 0, 1},			    /* no such kind */
		{UINT64_MAX - 4095, 1, NM_UNIT_BASE, 0, 1}, /* in kernel space */
		{0, 1, NM_UNIT_BASE, -2, 1},		    /* no such nodes */
		{0, 1, NM_UNIT_BASE, NM_NODE_NUMBERS, 1},
		{0, 1, NM_UNIT_BASE, 0, -1},
		{0, 1, NM_UNIT_BASE, 0, NM_NODE_NUMBERS},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++) {
		order.count = 1;
		order.units[0] = bad[i];
		assert_int_equal(units_error(), -EINVAL);
	}
	order.units[0] = (struct nm_page_unit){0, 1, NM_UNIT_BASE, -1, NM_NODE_NUMBERS - 1};
	assert_int_equal(units_error(), 0);
	order.nr_rooms = NM_ROOMS_MOST + 1;
	assert_int_equal(units_error(), -EINVAL);
	order.nr_rooms = 0;
	assert_int_equal(units_error(), -EINVAL);
	order.nr_rooms = 1;
	order.pages_most = 0;
	assert_int_equal(units_error(), -EINVAL);
	order.pages_most = NM_UNITS_MOST + 1;
	assert_int_equal(units_error(), -EINVAL);
}

/* Each block is queried by two of its pages. */
/* SECURITY: worker-socket */
TEST(more_blocks_than_a_query_takes_are_refused)
{
	for (unsigned i = 0; i <= NM_UNITS_MOST / 2; i++)
		add(NM_UNIT_BLOCK, (uint64_t)i * BLOCK, BLOCK);
	assert_int_equal(units_error(), -EINVAL);
	order.count--;
	assert_int_equal(units_error(), 0);
}

/* SECURITY: worker-socket */
TEST(ranges_that_are_no_pages_are_refused)
{
	static const struct {
		uint64_t page_bytes;
		struct nm_page_range ranges[2];
	} bad[] = {
		{4096, {{0, 0, 0}, {4096, 8192, 0}}},			/* empty */
		{4096, {{4096, 8192, 0}, {4096, 12288, 0}}},		/* not ascending */
		{4095, {{0, 4095, 0}, {4095, 8190, 0}}},		/* no page size */
		{0, {{0, 4096, 0}, {4096, 8192, 0}}},			/* none */
		{12288, {{0, 12288, 0}, {12288, 24576, 0}}},		/* no power of two */
		{2 << 20, {{4096, 2 << 20, 0}, {2 << 20, 4 << 20, 0}}}, /* not at a boundary */
		{4096, {{0, 4097, 0}, {8192, 12288, 0}}},		/* part of a page */
		{4096, {{0, 4096, 0}, {4096, UINT64_MAX - 4095, 0}}},	/* in kernel space */
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++) {
		ranges = (struct nm_ranges_order){.count = 2,
						  .pages_most = 1,
						  .page_bytes = bad[i].page_bytes,
						  .ranges = {bad[i].ranges[0], bad[i].ranges[1]}};
		assert_false(nm_ranges_order_is_valid(&ranges));
	}
}

/* SECURITY: worker-socket */
TEST(mappings_out_of_order_are_refused)
{
	static struct nm_mappings_piece piece;
	static const struct {
		const char *what;
		struct nm_mapping mapping;
		bool valid;
	} cases[] = {
		{"good", {.start = 8192, .end = 12288, .page_bytes = 4096}, true},
		{"before the last piece", {.start = 0, .end = 4096, .page_bytes = 4096}, false},
		{"empty", {.start = 8192, .end = 8192, .page_bytes = 4096}, false},
		{"no page size", {.start = 8192, .end = 12288}, false},
		{"no such rule",
		 {.start = 8192, .end = 12288, .page_bytes = 4096, .rule = 99},
		 false},
		{"no such kind",
		 {.start = 8192, .end = 12288, .page_bytes = 4096, .pool = 2},
		 false},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		piece.count = 1;
		piece.items[0] = cases[i].mapping;
		if (nm_mappings_piece_is_valid(&piece, 8192) != cases[i].valid)
			fail_msg("%s", cases[i].what);
	}
	piece.count = NM_MAPPINGS_PIECE + 1;
	assert_false(nm_mappings_piece_is_valid(&piece, 0));
}

/* SECURITY: worker-socket */
TEST(an_answer_has_the_size_that_it_names)
{
	add(NM_UNIT_BLOCK, 0, BLOCK);
	add(NM_UNIT_BASE, 600, 1);
	machine.on[3] = 2;
	perform();
	expect("split moved; moved", "600+1 0>1; 0+3 0>1; 4+508 0>1");
	size_t size = nm_units_moved_pack(&moved);
	static struct nm_units_moved packed;
	packed = moved;
	for (size_t wrong = 0; wrong < size; wrong++)
		assert_int_equal(nm_units_moved_unpack(&moved, wrong, &order), -EPROTO);
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), 0);
	expect("split moved; moved", "600+1 0>1; 0+3 0>1; 4+508 0>1");
	moved = packed;
	moved.nr_runs = NM_UNITS_MOST + 1;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
	moved = packed;
	moved.nr_tries = NM_TRIES_MOST + 1;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
	static const struct {
		const char *name;
		struct nm_moved_run run;
	} runs[] = {
		{"none", {600 * 4096, 0, 0, 1}},
		{"before the first", {UINT64_MAX - 4095, 1, 0, 1}},
		{"behind the last", {600 * 4096, 2, 0, 1}},
		{"more than the units", {0, 514, 0, 1}},
		{"no node", {600 * 4096, 1, 0, -1}},
		{"a number that wraps", {4096, UINT32_MAX, 0, 1}},
	};
	EACH_ROW(row, runs)
	{
		moved = packed;
		((struct nm_moved_run *)(moved.outcomes + 2))[0] = row->run;
		CHECK(row, nm_units_moved_unpack(&moved, size, &order) == -EPROTO);
	}
	moved = packed;
	moved.tried_bytes = 3 * 513 * 4096;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
	moved = packed;
	moved.outcomes[0].error = 5;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
	moved = packed;
	moved.outcomes[1].next = 2;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
	moved = packed;
	moved.count = 3;
	assert_int_equal(nm_units_moved_unpack(&moved, size, &order), -EPROTO);
}

RUN_TESTS()
