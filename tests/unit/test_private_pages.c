/* SPDX-License-Identifier: MIT */
/* The pages that are queried to locate the memory of a process. */
#include "../support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../../src/platform/private_pages.h"

#define PAGE UINT64_C(4096)

static unsigned choose(const char *maps, unsigned count, uint64_t *ret)
{
	struct nm_private_pages pages = {0};
	char text[4096];

	(void)snprintf(text, sizeof(text), "%s", maps);
	const char *last = strrchr(maps, '\n');
	assert_int_equal(nm_private_pages_add(&pages, text, strlen(text)),
			 last ? last + 1 - maps : 0);
	unsigned chosen = nm_extents_choose(&pages.own, count, ret);
	nm_private_pages_clear(&pages);
	return chosen;
}

/* In pieces of `size` bytes, the rest of one before the next. */
static unsigned choose_in_pieces(const char *maps, size_t size, unsigned count, uint64_t *ret)
{
	struct nm_private_pages pages = {0};
	char text[4096];
	size_t used = 0, length = strlen(maps);

	for (size_t at = 0; at < length; at += size) {
		size_t piece = length - at < size ? length - at : size;
		memcpy(text + used, maps + at, piece);
		used += piece;
		ssize_t taken = nm_private_pages_add(&pages, text, used);
		assert_true(taken >= 0);
		used -= (size_t)taken;
		memmove(text, text + taken, used);
	}
	unsigned chosen = nm_extents_choose(&pages.own, count, ret);
	nm_private_pages_clear(&pages);
	return chosen;
}

TEST(its_own_memory_is_queried)
{
	static const char maps[] =
		"00400000-00500000 r-xp 00000000 08:01 42 /bin/program\n"
		"00600000-00700000 rw-p 00000000 08:01 42 /bin/program\n"
		"01000000-01100000 rw-p 00000000 00:00 0 [heap]\n"
		"7f0000000000-7f0000100000 rw-s 00000000 00:01 43 /dev/shm/x\n"
		"7f1000000000-7f1000100000 rw-p 00000000 00:00 0\n"
		"7f2000000000-7f2000100000 ---p 00000000 00:00 0\n"
		"7f3000000000-7f3000200000 rw-p 00000000 00:0f 44 /anon_hugepage (deleted)\n"
		"no mapping at all\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]";
	uint64_t addresses[512];
	unsigned heap = 0, anonymous = 0, huge = 0;

	assert_int_equal(choose(maps, 512, addresses), 512);
	for (unsigned i = 0; i < 512; i++) {
		assert_int_equal(addresses[i] % PAGE, 0);
		assert_true(i == 0 || addresses[i] > addresses[i - 1]);
		heap += addresses[i] - 0x1000000 < 0x100000;
		anonymous += addresses[i] - 0x7f1000000000 < 0x100000;
		huge += addresses[i] - 0x7f3000000000 < 0x200000;
	}
	assert_int_equal(heap, 128);
	assert_int_equal(anonymous, 128);
	assert_int_equal(huge, 256);
}

/* Shared memory, and data of files; neither programs and libraries nor what cannot be read. */
TEST(memory_that_stays_is_queried)
{
	static const char maps[] =
		"00400000-20400000 r-xp 00000000 08:01 42 /bin/program\n"
		"30000000-30001000 rw-s 00000000 00:01 43 /memfd:ram (deleted)\n"
		"40000000-44000000 r--p 00000000 08:01 44 /lib/of-64-MiB\n"
		"50000000-54001000 r--p 00000000 08:01 45 /model\n"
		"60000000-70000000 ---s 00000000 00:01 46 /reserved\n"
		"7f3000000000-7f3000200000 rw-p 00000000 00:0f 47 /anon_hugepage (deleted)\n";
	struct nm_private_pages pages = {0};
	char text[4096];

	(void)snprintf(text, sizeof(text), "%s", maps);
	assert_true(nm_private_pages_add(&pages, text, strlen(text)) > 0);
	assert_int_equal(pages.staying.count, 2);
	assert_int_equal(pages.staying.items[0].start, 0x30000000);
	assert_int_equal(pages.staying.items[1].start, 0x50000000);
	assert_int_equal(pages.own.count, 1);
	assert_int_equal(pages.own_huge_bytes, 0x200000);
	nm_private_pages_clear(&pages);
}

TEST(each_page_is_asked_for_once)
{
	static const char maps[] = "1000-4000 rw-p 0 00:00 0\n8000-9000 rw-p 0 00:00 0\n";
	uint64_t addresses[512];

	assert_int_equal(choose(maps, 512, addresses), 4);
	assert_int_equal(addresses[0], 0x1000);
	assert_int_equal(addresses[2], 0x3000);
	assert_int_equal(addresses[3], 0x8000);
	assert_int_equal(choose("", 512, addresses), 0);
	assert_int_equal(choose("1000-2000 r--p 0 00:00 0\n", 512, addresses), 0);
	assert_int_equal(choose("2000-1000 rw-p 0 00:00 0\n", 512, addresses), 0);
}

TEST(pieces_give_the_same_result)
{
	static const char maps[] = "1000-4000 rw-p 0 00:00 0\n5000-6000 r--p 0 00:00 0\n"
				   "8000-9000 rw-p 0 00:00 0\n";
	uint64_t whole[512], addresses[512];

	assert_int_equal(choose(maps, 512, whole), 4);
	for (size_t size = 1; size < sizeof(maps); size++) {
		assert_int_equal(choose_in_pieces(maps, size, 512, addresses), 4);
		assert_memory_equal(addresses, whole, 4 * sizeof(*whole));
	}
}

/* Mappings of any size, up to the whole address space. */
TEST(any_mapping_size_works)
{
	uint64_t addresses[512];

	assert_int_equal(choose("1000-7ffffffff000 rw-p 0 00:00 0\n", 512, addresses), 512);
	assert_true(addresses[511] < UINT64_C(0x7ffffffff000));
	assert_true(addresses[511] > UINT64_C(0x7f0000000000));
	assert_int_equal(choose("0-fffffffffffff000 rw-p 0 00:00 0\n", 512, addresses), 512);
}

RUN_TESTS()
