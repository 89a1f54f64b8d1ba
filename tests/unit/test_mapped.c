/* SPDX-License-Identifier: MIT */
/* Counts of pages per node in the lines of numa_maps. */
#define SET_UP begin
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include "platform/maps.h"

static struct nm_node_pages pages;

static int begin(void **state)
{
	(void)state;
	memset(&pages, 0, sizeof(pages));
	return 0;
}

static void add(const char *line)
{
	nm_node_pages_add(&pages, line, 4096);
}

TEST(pages_of_each_node_are_counted)
{
	add("7f2c4a000000 default anon=7 dirty=7 active=0 N0=3 N8=4 kernelpagesize_kB=4\n");
	assert_true(pages.own[0] == 3 && pages.own[1] == 0 && pages.own[8] == 4);
	assert_int_equal(pages.own_bytes, 7 * 4096);
	add("7ffd1000 default stack\n");
	add("7f2c4a000000 default anon=1 N1023=1 N1024=5 kernelpagesize_kB=4\n");
	assert_int_equal(pages.own[1023], 1);
	assert_true(pages.own[0] == 3 && pages.own[8] == 4);
}

/* Shared memory, data of files, and huge pages of files stay; programs and libraries do not
 * count. */
TEST(memory_that_stays_is_counted_apart)
{
	add("7f2c40000000 bind:1 file=/dev/hugepages/N1=5 huge dirty=2 N1=2 "
	    "kernelpagesize_kB=2048");
	assert_true(pages.staying[1] == 1024 && pages.own[1] == 0);
	add("7f2c50000000 default file=/dev/shm/x dirty=3 N2=3 kernelpagesize_kB=4");
	assert_int_equal(pages.staying[2], 3);
	add("7f2c60000000 default file=/usr/lib/x.so mapped=16384 N3=16384 kernelpagesize_kB=4");
	assert_int_equal(pages.staying[3], 0);
	add("7f2c60000000 default file=/data mapped=16385 N3=16385 kernelpagesize_kB=4");
	assert_int_equal(pages.staying[3], 16385);
	assert_true(pages.own_bytes == 0 && pages.huge_bytes == 0);
}

/* Huge pages count by their own size, regardless of the default of the machine. */
TEST(huge_pages_count_by_their_size)
{
	add("7f2c40000000 default file=/anon_hugepage\\040(deleted) huge anon=10 dirty=10 N0=4 "
	    "N1=6 kernelpagesize_kB=2048");
	add("7f3c40000000 default file=/anon_hugepage\\040(deleted) huge anon=1 dirty=1 N8=1 "
	    "kernelpagesize_kB=1048576");
	assert_true(pages.own[0] == 4 * 512 && pages.own[1] == 6 * 512 &&
		    pages.own[8] == 512 * 512);
	assert_int_equal(pages.huge_bytes, (UINT64_C(10) << 21) + (UINT64_C(1) << 30));
	assert_int_equal(pages.own_bytes, 0);
}

TEST(damaged_lines_add_nothing)
{
	const struct nm_node_pages none = {0};

	add("q default anon=3 N0=3 kernelpagesize_kB=4\n");
	add("7f2c default anon=3 N0=3 kernelpagesize_kB=four\n");
	add("7f2c default anon=3 N0=3 kernelpagesize_kB=\n");
	add("7f2c default anon=3 N1=q kernelpagesize_kB=4\n");
	add("");
	assert_memory_equal(&pages, &none, sizeof(none));
}

RUN_TESTS()
