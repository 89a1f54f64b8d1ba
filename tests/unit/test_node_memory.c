/* SPDX-License-Identifier: MIT */
/* The memory of a node that is available for migrated pages. */
#include "../support/test.h"

#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/proc.h"

#define MIB (UINT64_C(1) << 20)

TEST(test_node_memory)
{
	static const char text[] = "\nNode 1 MemTotal:       12937420 kB\n"
				   "Node 1 MemFree:         1000 kB\n"
				   "Node 1 Inactive:        9999 kB\n"
				   "Node 1 Inactive(anon):  9999 kB\n"
				   "Node 1 Inactive(file):   266 kB\n"
				   "Node 1 Dirty:               16 kB\n"
				   "Node 1 Writeback:           50 kB\n"
				   "Node 1 WritebackTmp:        9999 kB\n";
	struct nm_node_memory memory;

	assert_int_equal(nm_node_memory_parse(text, &memory), 0);
	assert_int_equal(memory.total_bytes, 12937420ULL * 1024);
	assert_int_equal(memory.free_bytes, 1000 * 1024);
	assert_int_equal(memory.clean_bytes, 200 * 1024);
	assert_int_equal(nm_node_memory_parse("Node 1 MemTotal: 5 kB\nNode 1 MemFree: 3 kB\n"
					      "Node 1 Inactive(file): 1 kB\nNode 1 Dirty: 2 kB\n",
					      &memory),
			 0);
	assert_int_equal(memory.clean_bytes, 0);
	assert_int_equal(nm_node_memory_parse("", &memory), -EINVAL);
	assert_int_equal(nm_node_memory_parse("Node 1 MemTotal: 5 kB\n", &memory), -EINVAL);
	assert_int_equal(nm_node_memory_parse("MemTotal: 5 kB\nMemFree: 5 kB\n", &memory), -EINVAL);
}

TEST(clean_cache_counts_and_watermarks_do_not)
{
	const struct nm_node_memory memory = {
		.total_bytes = 1000 * MIB, .free_bytes = 30 * MIB, .clean_bytes = 600 * MIB};
	const struct nm_watermarks none = {0}, usual = {.min_free_bytes = 11 * MIB, .scale = 0.002};

	assert_int_equal(nm_node_memory_available(&memory, &none, 0), 630 * MIB);
	assert_int_equal(nm_node_memory_available(&memory, &usual, 0), 615 * MIB);
	assert_int_equal(nm_node_memory_available(&memory, &usual, 0.5), 115 * MIB);
	assert_int_equal(nm_node_memory_available(&memory, &usual, 1), 0);
}

TEST(counters_are_found_by_their_names)
{
	static const char text[] = "nr_free_pages 5\npgscan_direct_throttle 7\npgscan_direct 12\n"
				   "xpswpout 3\npswpout 99\nlast";
	uint64_t value = 1;

	assert_true(nm_vmstat_value(text, "pgscan_direct", &value));
	assert_int_equal(value, 12);
	assert_true(nm_vmstat_value(text, "pswpout", &value));
	assert_int_equal(value, 99);
	assert_false(nm_vmstat_value(text, "pgsteal_direct", &value));
	assert_false(nm_vmstat_value(text, "last", &value));
	assert_false(nm_vmstat_value("", "last", &value));
	assert_int_equal(nm_reclaim_parse(text).direct_scanned, 12);
	assert_int_equal(nm_reclaim_parse(text).direct_reclaimed, 0);
}

static bool hurts(uint64_t scanned, uint64_t reclaimed, uint64_t background, uint64_t swapped)
{
	const struct nm_reclaim before = {1000, 1000, 1000, 1000};
	const struct nm_reclaim now = {1000 + scanned, 1000 + reclaimed, 1000 + background,
				       1000 + swapped};

	return nm_reclaim_hurts(&before, &now);
}

TEST(reclaim_of_clean_cache_is_harmless)
{
	assert_false(hurts(0, 0, 0, 0));
	assert_false(hurts(0, 0, 5000, 0));
	assert_false(hurts(100, 90, 5000, 0));
	assert_true(hurts(100, 30, 0, 0));
	assert_true(hurts(0, 0, 10, 1));
	assert_true(hurts(10, 10, 0, 1));
	/* A cgroup that swaps at its own limit does not affect the machine. */
	assert_false(hurts(0, 0, 0, 500));
}

/* ---- reading ---- */

static unsigned swapped_out, vmstat_reads;
static bool vmstat_fails;

static ssize_t read_file(struct nm_platform *platform, int directory, const char *path, char *text,
			 size_t size)
{
	(void)platform;
	if (directory != NM_ROOT)
		return -EBADF;
	if (strcmp(path, "proc/sys/vm/min_free_kbytes") == 0)
		return snprintf(text, size, "1024\n");
	if (strcmp(path, "proc/sys/vm/watermark_scale_factor") == 0)
		return snprintf(text, size, "1000\n");
	if (strcmp(path, "proc/vmstat") == 0 && vmstat_fails)
		return -EMFILE;
	if (strcmp(path, "proc/vmstat") == 0 && ++vmstat_reads)
		return snprintf(text, size, "nr_free_pages 1\npgscan_kswapd %u\npswpout %u\n",
				swapped_out, swapped_out);
	if (strcmp(path, "sys/devices/system/node/node2/meminfo") == 0)
		return snprintf(text, size, "Node 2 MemTotal: 10240 kB\nNode 2 MemFree: 2048 kB\n");
	if (strcmp(path, "sys/devices/system/node/node3/meminfo") == 0)
		return snprintf(text, size, "Node 3 MemTotal: 10240 kB\nNode 3 MemFree: 8192 kB\n");
	return -ENOENT;
}

static const struct nm_platform_ops ops = {.read_file = read_file};
static struct nm_platform platform = {.ops = &ops};

TEST(files_are_read)
{
	struct nm_watermarks watermarks = nm_watermarks_read(&platform);
	uint64_t bytes = 7;

	assert_int_equal(nm_node_available_read(&platform, 1, &watermarks, 0, &bytes), -ENOENT);
	assert_int_equal(bytes, 7);
	/* 8 MiB free, minus 1 MiB and two times 10 % of 10 MiB. */
	assert_int_equal(nm_node_available_read(&platform, 3, &watermarks, 0, &bytes), 0);
	assert_int_equal(bytes, 5 * MIB);
}

/* The first read, before any change. Returns the time. */
static uint64_t begin_watch(struct nm_reclaim_watch *watch)
{
	uint64_t now = 5 * NM_NSEC_PER_SEC;

	*watch = (struct nm_reclaim_watch){0};
	swapped_out = 7;
	assert_false(nm_node_is_reclaimed(&platform, watch, 2, now));
	return now;
}

/* Node 2 has less free memory than its high watermark, 3 MiB; node 3 has more. */
TEST(swapping_is_seen_until_it_stops)
{
	struct nm_reclaim_watch watch;
	uint64_t now = begin_watch(&watch);

	swapped_out = 8;
	assert_false(nm_node_is_reclaimed(&platform, &watch, 2, now + NM_RECLAIM_AGE_NS / 2));
	assert_int_equal(vmstat_reads, 1);
	now += NM_RECLAIM_AGE_NS;
	assert_true(nm_node_is_reclaimed(&platform, &watch, 2, now));
	assert_false(nm_node_is_reclaimed(&platform, &watch, 3, now));
	assert_int_equal(vmstat_reads, 2);
	assert_true(nm_node_is_reclaimed(&platform, &watch, 2, now + NM_RECLAIM_QUIET_NS - 1));
	assert_false(nm_node_is_reclaimed(&platform, &watch, 2, now + NM_RECLAIM_QUIET_NS));
}

/* A temporary read error does not count as reclaim. */
TEST(a_failed_read_is_not_reclaim)
{
	struct nm_reclaim_watch watch;
	uint64_t now = begin_watch(&watch);

	for (unsigned i = 0; i < 4; i++) {
		vmstat_fails = i % 2 == 0;
		now += NM_RECLAIM_AGE_NS;
		assert_false(nm_node_is_reclaimed(&platform, &watch, 2, now));
	}
}

RUN_TESTS()
