/* SPDX-License-Identifier: MIT */
/* numa-migrctl nodes and place: what they read, print and choose. */
#define SET_UP make
#define TEAR_DOWN drop
#include "../support/test.h"

#include <jansson.h>

#include "../../src/ctl/ctl.h"
#include "../../src/ctl/nodes.h"
#include "fixture.h"

static char folder[64];

static int make(void **state)
{
	(void)state;
	fixture_make(folder, sizeof(folder));
	return 0;
}

static int drop(void **state)
{
	(void)state;
	fixture_remove(folder);
	return 0;
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
	fixture_file(folder, "sys/devices/system/node/online", "0,2\n");
	fixture_file(folder, NODE(0, "cpulist"), "0-2,8\n");
	fixture_file(folder, NODE(0, "distance"), "10 21\n");
	fixture_file(folder, NODE(0, "meminfo"),
		     "Node 0 MemTotal:       2097152 kB\nNode 0 MemFree:        1048576 kB\n");
	fixture_file(folder, NODE(0, "numastat"),
		     "numa_hit 7\nnuma_miss 6\nnuma_foreign 5\ninterleave_hit 4\n"
		     "local_node 3\nother_node 2\n");
	fixture_file(folder, NODE(2, "cpulist"), "\n");
	fixture_file(folder, NODE(2, "distance"), "21 10\n");
	fixture_file(folder, NODE(2, "meminfo"),
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
static json_t *machine(const double loads[4])
{
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

static const struct {
	const char *name;
	double loads[4], cpus, gigabytes;
	bool fits;
	const char *nodes;
} choices[] = {
	{"the most idle CPUs", {0.5, 0, 0.25, 0.5}, 4, 8, true, "[1]"},
	{"two that are near each other", {0, 0.6, 0.25, 0.25}, 12, 8, true, "[2,3]"},
	{"more nodes for memory than for CPUs", {0}, 1, 40, true, "[0,1,2]"},
	{"if nothing suffices, all", {0}, 33, 1, false, "[0,1,2,3]"},
};

/* Takes over the nodes. */
static void check_choice(const char *name, json_t *nodes, double cpus, double bytes, bool fits,
			 const char *expected)
{
	bool found = !fits;
	json_t *numbers = nm_ctl_choose_nodes(nodes, cpus, bytes, &found);
	nm_autofree char *text = json_dumps(numbers, JSON_COMPACT);
	if (strcmp(text, expected) != 0 || found != fits)
		fail_msg("%s: %s, %s, expected %s", name, text, found ? "fits" : "does not fit",
			 expected);
	json_decref(numbers);
	json_decref(nodes);
}

TEST(idle_and_near_nodes_are_chosen)
{
	EACH_ROW(row, choices)
	check_choice(row->name, machine(row->loads), row->cpus, row->gigabytes * (1 << 30),
		     row->fits, row->nodes);
}

TEST(a_node_without_cpus_only_adds_memory)
{
	put_machine();
	check_choice("memory of node 2", read_all(), 1, (double)(1024U << 20) + 1, true, "[0,2]");
}

/* ---- cgroups and drop-ins ---- */

TEST(processes_of_all_cgroups_below_are_found)
{
	static const pid_t expected[] = {11, 12, 13};
	struct nm_pids pids = {0};
	char path[128];
	fixture_file(folder, "a.service/cgroup.procs", "11\n12\n");
	fixture_file(folder, "a.service/inner/cgroup.procs", "13\n");
	(void)snprintf(path, sizeof(path), "%s/a.service", folder);
	nm_ctl_cgroup_pids(path, &pids);
	assert_int_equal(pids.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pids.items[i], expected[i]);
	free(pids.items);
}

TEST(a_permanent_value_is_a_drop_in)
{
	static const char file[] = "a.service.d/numa-migrd.conf";
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/%s", folder, file);
	assert_int_equal(nm_ctl_write_drop_in(folder, "a.service", "observe"), 0);
	assert_non_null(strstr(fixture_read(folder, file),
			       "[Service]\nExecStartPre=-+/bin/sh -c 'group=$$(sed -n "
			       "\"s/^0:://p\" /proc/self/cgroup) && setfattr -n user.numa-migrd -v "
			       "observe \"/sys/fs/cgroup$${group%%/.control}\"'\n"));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(nm_ctl_write_drop_in(folder, "a.service", "reset"), 0);
		assert_int_equal(access(path, F_OK), -1);
	}
}

RUN_TESTS()
