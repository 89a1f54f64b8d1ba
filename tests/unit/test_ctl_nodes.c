/* SPDX-License-Identifier: MIT */
/* numa-migrctl nodes and place: what they read, print and choose. */
#define SET_UP make
#define TEAR_DOWN drop
#include "../support/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/ctl/ctl.h"
#include "../../src/ctl/nodes.h"

static char folder[64];

/* Writes a file below the folder, and the directories above it. */
static void put_file(const char *path, const char *text)
{
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	for (char *slash = whole + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(whole, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/numa-migrctl-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *walk)
{
	(void)file, (void)type, (void)walk;
	return remove(path);
}

static int drop(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define NODE(n, file) "sys/devices/system/node/node" #n "/" file

static json_t *read_all(void)
{
	json_t *nodes = NULL;
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	assert_int_equal(nm_ctl_read_nodes(root, &nodes), 0);
	(void)close(root);
	return nodes;
}

/* Node 2 has only memory. */
static void put_machine(void)
{
	put_file("sys/devices/system/node/online", "0,2\n");
	put_file(NODE(0, "cpulist"), "0-2,8\n");
	put_file(NODE(0, "distance"), "10 21\n");
	put_file(NODE(0, "meminfo"),
		 "Node 0 MemTotal:       2097152 kB\nNode 0 MemFree:        1048576 kB\n");
	put_file(NODE(0, "numastat"), "numa_hit 7\nnuma_miss 6\nnuma_foreign 5\ninterleave_hit 4\n"
				      "local_node 3\nother_node 2\n");
	put_file(NODE(2, "cpulist"), "\n");
	put_file(NODE(2, "distance"), "21 10\n");
	put_file(NODE(2, "meminfo"),
		 "Node 2 MemTotal:       1024 kB\nNode 2 MemFree:        512 kB\n");
}

TEST(nodes_are_printed_as_by_numactl_and_numastat)
{
	char *text = NULL;
	size_t size;
	put_machine();
	json_t *nodes = read_all();
	FILE *out = open_memstream(&text, &size);
	nm_ctl_print_nodes(out, nodes);
	(void)fclose(out);
	assert_string_equal(text, "available: 2 nodes (0,2)\n"
				  "node 0 cpus: 0 1 2 8\n"
				  "node 0 size: 2048 MB\n"
				  "node 0 free: 1024 MB\n"
				  "node 2 cpus:\n"
				  "node 2 size: 1 MB\n"
				  "node 2 free: 0 MB\n"
				  "node distances:\n"
				  "node   0   2\n"
				  "  0:  10  21\n"
				  "  2:  21  10\n"
				  "\n"
				  "                           node0           node2\n"
				  "numa_hit                       7               0\n"
				  "numa_miss                      6               0\n"
				  "numa_foreign                   5               0\n"
				  "interleave_hit                 4               0\n"
				  "local_node                     3               0\n"
				  "other_node                     2               0\n");
	free(text);
	json_decref(nodes);
}

TEST(without_nodes_nothing_is_read)
{
	json_t *nodes = NULL;
	int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(nm_ctl_read_nodes(root, &nodes), -ENOENT);
	assert_null(nodes);
	(void)close(root);
}

/* ---- the choice ---- */

/* Four nodes of 8 CPUs in two pairs; the loads are those of the service. */
static json_t *machine(double load0, double load1, double load2, double load3)
{
	const double loads[] = {load0, load1, load2, load3};
	json_t *nodes = json_array();
	for (int i = 0; i < 4; i++) {
		json_t *cpus = json_array(), *distances = json_array();
		for (int k = 0; k < 8; k++)
			(void)json_array_append_new(cpus, json_integer(8 * i + k));
		for (int k = 0; k < 4; k++)
			(void)json_array_append_new(distances, json_integer(k == i	     ? 10
									    : k / 2 == i / 2 ? 15
											     : 30));
		(void)json_array_append_new(
			nodes, json_pack("{sisosfsIso}", "node", i, "cpus", cpus, "load", loads[i],
					 "memory_free_bytes", (json_int_t)16 << 30, "distances",
					 distances));
	}
	return nodes;
}

/* Takes over the nodes. */
static void assert_choice(json_t *nodes, double cpus, double gigabytes, bool fits,
			  const char *expected)
{
	bool found = !fits;
	json_t *numbers = nm_ctl_choose_nodes(nodes, cpus, gigabytes * (1 << 30), &found);
	char *text = json_dumps(numbers, JSON_COMPACT);
	assert_string_equal(text, expected);
	assert_int_equal(found, fits);
	free(text);
	json_decref(numbers);
	json_decref(nodes);
}

TEST(the_node_with_the_most_idle_cpus_is_chosen)
{
	assert_choice(machine(0.5, 0, 0.25, 0.5), 4, 8, true, "[1]");
}

TEST(nodes_that_are_near_each_other_are_chosen)
{
	assert_choice(machine(0, 0.6, 0.25, 0.25), 12, 8, true, "[2,3]");
}

TEST(memory_may_need_more_nodes_than_cpus)
{
	assert_choice(machine(0, 0, 0, 0), 1, 40, true, "[0,1,2]");
}

TEST(if_nothing_suffices_all_nodes_are_printed)
{
	assert_choice(machine(0, 0, 0, 0), 33, 1, false, "[0,1,2,3]");
}

TEST(a_node_without_cpus_only_adds_memory)
{
	put_machine();
	bool fits = false;
	json_t *nodes = read_all();
	json_t *numbers = nm_ctl_choose_nodes(nodes, 1, (double)(1024U << 20) + 1, &fits);
	assert_true(fits);
	assert_int_equal(json_array_size(numbers), 2);
	json_decref(numbers);
	json_decref(nodes);
}

/* ---- cgroups and drop-ins ---- */

TEST(processes_of_all_cgroups_below_are_found)
{
	struct nm_pids pids = {0};
	put_file("a.service/cgroup.procs", "11\n12\n");
	put_file("a.service/inner/cgroup.procs", "13\n");
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/a.service", folder);
	nm_ctl_cgroup_pids(path, &pids);
	assert_int_equal(pids.count, 3);
	assert_int_equal(pids.items[0], 11);
	assert_int_equal(pids.items[1], 12);
	assert_int_equal(pids.items[2], 13);
	free(pids.items);
}

TEST(a_permanent_value_is_a_drop_in)
{
	char path[128], text[512] = "";
	assert_int_equal(nm_ctl_write_drop_in(folder, "a.service", "observe"), 0);
	(void)snprintf(path, sizeof(path), "%s/a.service.d/numa-migrd.conf", folder);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	(void)fclose(file);
	assert_non_null(strstr(text, "[Service]\nExecStartPre=-+/bin/sh -c 'group=$$(sed -n "
				     "\"s/^0:://p\" /proc/self/cgroup) && setfattr -n "
				     "user.numa-migrd -v observe "
				     "\"/sys/fs/cgroup$${group%%/.control}\"'\n"));
	assert_int_equal(nm_ctl_write_drop_in(folder, "a.service", "reset"), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(nm_ctl_write_drop_in(folder, "a.service", "reset"), 0);
}

RUN_TESTS()
