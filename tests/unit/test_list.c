/* SPDX-License-Identifier: MIT */
/* Sets of CPUs as text: only the format of the kernel is accepted. */
#include "../support/test.h"

#include <stdio.h>
#include <string.h>

#include "numa-migrd/topology.h"

typedef int (*parse_fn)(const char *text, hwloc_bitmap_t ret);

static void assert_parsed(parse_fn parse, const char *text, const char *expected)
{
	nm_autobitmap set = hwloc_bitmap_alloc();
	char found[256];

	assert_int_equal(parse(text, set), 0);
	hwloc_bitmap_list_snprintf(found, sizeof(found), set);
	assert_string_equal(found, expected);
}

static void assert_refused(parse_fn parse, const char *const *texts, size_t count)
{
	nm_autobitmap set = hwloc_bitmap_alloc();

	hwloc_bitmap_only(set, 7);
	for (size_t i = 0; i < count; i++) {
		if (parse(texts[i], set) != -EINVAL)
			fail_msg("\"%s\" was taken", texts[i]);
		assert_true(hwloc_bitmap_first(set) == 7 && hwloc_bitmap_weight(set) == 1);
	}
}

TEST(lists_of_the_kernel_are_accepted)
{
	assert_parsed(nm_list_parse, "0", "0");
	assert_parsed(nm_list_parse, "0-3,8,10-11\n", "0-3,8,10-11");
	assert_parsed(nm_list_parse, "0-4095\nnext line", "0-4095");
	assert_parsed(nm_list_parse, "65535", "65535");
}

/* Endless and huge lists made the parser of hwloc use hundreds of megabytes. */
/* SECURITY: proc-sys */
TEST(other_lists_are_refused)
{
	static const char *const texts[] = {
		"",	 "\n", "-",   "5-",   "0-4294967295", "4000000000",
		"65536", "-1", "3-1", "0,,1", "0,",	      "0 1",
		" 0",	 "+1", "0x",  "a",    "0-3;",	      "99999999999999999999999999"};
	assert_refused(nm_list_parse, texts, NM_ARRAY_SIZE(texts));
}

TEST(maps_of_the_kernel_are_accepted)
{
	assert_parsed(nm_map_parse, "f", "0-3");
	assert_parsed(nm_map_parse, "00000000,0000ffff\n", "0-15");
	assert_parsed(nm_map_parse, "00000001,80000000,00000000\n", "63-64");
	assert_parsed(nm_map_parse, "0", "");
}

/* The parser of hwloc terminates the program on the first of these. */
/* SECURITY: proc-sys */
TEST(other_maps_are_refused)
{
	static const char *const texts[] = {"N,144", "",  "\n",	 ",",	"0,",
					    ",0",    "g", "0xf", "0 1", "000000001"};
	assert_refused(nm_map_parse, texts, NM_ARRAY_SIZE(texts));
}

TEST(overlong_maps_are_refused)
{
	const size_t groups = (NM_LIST_MAX + 1) / 32 + 1;
	nm_autobitmap set = hwloc_bitmap_alloc();
	nm_autofree char *text = calloc(groups, 2);

	assert_non_null(text);
	memset(text, '1', groups * 2 - 1);
	for (size_t i = 1; i < groups; i++)
		text[2 * i - 1] = ',';
	assert_int_equal(nm_map_parse(text, set), -EINVAL);
	assert_int_equal(nm_map_parse(text + 2, set), 0);
}

RUN_TESTS()
