/* SPDX-License-Identifier: MIT */
/* Counts of pages per node in the lines of numa_maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/machine.h"
#include "numa-migrd/base.h"
#include "numa-migrd/regions.h"

enum { NODES = 3 };

static double pages[NODES];

static struct nm_topology *topology;

/* Nodes 0, 1 and 8, as the kernel numbers them. */
static int begin(void **state)
{
	(void)state;
	memset(pages, 0, sizeof(pages));
	topology = machine_topology(NODES, NODES);
	if (topology)
		topology->nodes[2].os_id = 8;
	return topology ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	nm_topology_free(topology);
	return 0;
}

static int read_line(const char *line)
{
	return nm_mapped_count_pages(line, topology, 4096, pages);
}

static void test_numa_maps(void **state)
{
	(void)state;
	assert_int_equal(read_line("7f2c4a000000 default anon=7 dirty=7 active=0 N0=3 N8=4 "
				   "kernelpagesize_kB=4\n"),
			 0);
	assert_true(pages[0] == 3 && pages[1] == 0 && pages[2] == 4);
	assert_int_equal(read_line("7f2c40000000 bind:1 file=/dev/hugepages/N1=5 huge dirty=2 "
				   "N1=2 kernelpagesize_kB=2048"),
			 0);
	assert_true(pages[0] == 3 && pages[1] == 1024 && pages[2] == 4);
	assert_int_equal(read_line("7ffd1000 default stack\n"), 0);
	assert_true(pages[0] == 3 && pages[1] == 1024 && pages[2] == 4);
}

/* Huge pages count by their own size, regardless of the default of the machine. */
static void test_sizes_of_huge_pages(void **state)
{
	(void)state;
	assert_int_equal(read_line("7f2c40000000 default file=/anon_hugepage\\040(deleted) huge "
				   "anon=10 dirty=10 N0=4 N1=6 kernelpagesize_kB=2048"),
			 0);
	assert_int_equal(read_line("7f3c40000000 default file=/anon_hugepage\\040(deleted) huge "
				   "anon=1 dirty=1 N8=1 kernelpagesize_kB=1048576"),
			 0);
	assert_true(pages[0] == 4 * 512 && pages[1] == 6 * 512 && pages[2] == 512 * 512);
}

static void test_damaged_numa_maps(void **state)
{
	(void)state;
	assert_int_equal(read_line("q default N0=3 kernelpagesize_kB=4\n"), -EINVAL);
	assert_int_equal(read_line("7f2c default N0=3 kernelpagesize_kB=four\n"), 0);
	assert_int_equal(read_line("7f2c default N0=3 kernelpagesize_kB=\n"), 0);
	assert_int_equal(read_line("7f2c default N1=q kernelpagesize_kB=4\n"), 0);
	assert_true(pages[0] == 0 && pages[1] == 0 && pages[2] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numa_maps, begin, end),
		cmocka_unit_test_setup_teardown(test_sizes_of_huge_pages, begin, end),
		cmocka_unit_test_setup_teardown(test_damaged_numa_maps, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
