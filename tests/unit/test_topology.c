/* SPDX-License-Identifier: MIT */
#define SET_UP make_root
#define TEAR_DOWN remove_root
#include "../support/test.h"

#include <stdint.h>

#include "../support/topology_equal.h"
#include "fixture.h"
#include "numa-migrd/topology.h"

#define CPU_DIRECTORY "sys/devices/system/cpu"
#define NODE_DIRECTORY "sys/devices/system/node"

static int make_root(void **state)
{
	char *root = malloc(FIXTURE_PATH);

	fixture_make(root, FIXTURE_PATH);
	*state = root;
	return 0;
}

static int remove_root(void **state)
{
	fixture_remove(*state);
	free(*state);
	return 0;
}

__attribute__((format(printf, 3, 4))) static void put(const char *root, const char *text,
						      const char *format, ...)
{
	char path[FIXTURE_PATH];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	fixture_file(root, path, text);
}

/* A CPU with the id and siblings of its core; `sharing`: the CPUs of its package and last-level
 * cache. */
static void put_cpu(const char *root, unsigned cpu, const char *core, const char *siblings,
		    const char *sharing)
{
	put(root, core, CPU_DIRECTORY "/cpu%u/topology/core_id", cpu);
	put(root, cpu < 4 ? "0\n" : "1\n", CPU_DIRECTORY "/cpu%u/topology/physical_package_id",
	    cpu);
	put(root, siblings, CPU_DIRECTORY "/cpu%u/topology/core_cpus", cpu);
	put(root, siblings, CPU_DIRECTORY "/cpu%u/topology/thread_siblings", cpu);
	put(root, sharing, CPU_DIRECTORY "/cpu%u/topology/core_siblings", cpu);
	put(root, sharing, CPU_DIRECTORY "/cpu%u/topology/package_cpus", cpu);
	put(root, "3\n", CPU_DIRECTORY "/cpu%u/cache/index0/level", cpu);
	put(root, "Unified\n", CPU_DIRECTORY "/cpu%u/cache/index0/type", cpu);
	put(root, "8192K\n", CPU_DIRECTORY "/cpu%u/cache/index0/size", cpu);
	put(root, sharing, CPU_DIRECTORY "/cpu%u/cache/index0/shared_cpu_map", cpu);
}

static void put_node(const char *root, unsigned node, const char *cpumap, const char *distance)
{
	char meminfo[128];

	snprintf(meminfo, sizeof(meminfo), "Node %u MemTotal:       1048576 kB\n", node);
	put(root, cpumap, NODE_DIRECTORY "/node%u/cpumap", node);
	put(root, distance, NODE_DIRECTORY "/node%u/distance", node);
	put(root, meminfo, NODE_DIRECTORY "/node%u/meminfo", node);
}

/*
 * Nodes 0, 3 (memory only) and 8; CPUs 0-7 of which 6 is offline, 5 isolated, 4 nohz_full; 0+1 and
 * 2+3 are SMT siblings; 9-11 are possible but absent.
 */
static void put_odd_machine(const char *root)
{
	static const char *const siblings[] = {"03\n", "03\n", "0c\n", "0c\n",
					       "10\n", "20\n", NULL,   "80\n"};

	put(root, "0-7\n", CPU_DIRECTORY "/present");
	put(root, "0-11\n", CPU_DIRECTORY "/possible");
	put(root, "0-5,7\n", CPU_DIRECTORY "/online");
	put(root, "5\n", CPU_DIRECTORY "/isolated");
	put(root, "4\n", CPU_DIRECTORY "/nohz_full");
	for (unsigned cpu = 0; cpu < 8; cpu++) {
		char core[8];
		snprintf(core, sizeof(core), "%u\n", cpu < 4 ? cpu / 2 : cpu);
		put(root, cpu == 6 ? "0\n" : "1\n", CPU_DIRECTORY "/cpu%u/online", cpu);
		if (siblings[cpu])
			put_cpu(root, cpu, core, siblings[cpu], cpu < 4 ? "0f\n" : "b0\n");
	}
	put(root, "0,3,8\n", NODE_DIRECTORY "/online");
	put(root, "0-15\n", NODE_DIRECTORY "/possible");
	put_node(root, 0, "0f\n", "10 17 21\n");
	put_node(root, 3, "00\n", "17 10 14\n");
	put_node(root, 8, "b0\n", "21 14 10\n");
	put(root, "processor : 0\n", "proc/cpuinfo");
}

static struct nm_topology *load_from(const char *root, const char *xml)
{
	const struct nm_topology_source source = {.root_path = root, .xml_path = xml};
	struct nm_topology *topology = NULL;
	char error[256];
	int r = nm_topology_load(&source, error, sizeof(error), &topology);

	if (r < 0)
		fail_msg("%d: %s", r, error);
	assert_string_equal(error, "");
	return topology;
}

static void assert_set(hwloc_const_bitmap_t set, const char *expected)
{
	char text[256];

	hwloc_bitmap_list_snprintf(text, sizeof(text), set);
	assert_string_equal(text, expected);
}

/* Invariants of any machine. */
static void assert_consistent(const struct nm_topology *t)
{
	assert_true(t->nr_nodes >= 1 && t->nr_cpus >= 1);
	assert_true(hwloc_bitmap_isincluded(t->usable, t->online));
	assert_true(hwloc_bitmap_isincluded(t->online, t->possible));
	assert_true(hwloc_bitmap_last(t->online) < (int)t->nr_cpus);
	for (unsigned i = 0; i < t->nr_cpus; i++) {
		const struct nm_cpu *cpu = &t->cpus[i];
		assert_int_equal(cpu->online, hwloc_bitmap_isset(t->online, i));
		assert_int_equal(hwloc_bitmap_isset(t->usable, i),
				 cpu->online && !cpu->isolated && !cpu->nohz_full);
		assert_true(cpu->node >= -1 && cpu->node < (int)t->nr_nodes);
		assert_true(!cpu->online || (cpu->present && cpu->core >= 0));
		assert_int_equal(nm_topology_node_of_cpu(t, (int)i), cpu->node);
	}
	for (unsigned i = 0; i < t->nr_nodes; i++) {
		const struct nm_node *node = &t->nodes[i];
		assert_int_equal(nm_topology_node_index(t, node->os_id), i);
		assert_true(i == 0 || t->nodes[i - 1].os_id < node->os_id);
		assert_true(hwloc_bitmap_isincluded(node->cpus, t->usable));
		assert_true(node->nearest_with_cpus < (int)t->nr_nodes);
		for (unsigned j = 0; j < t->nr_nodes; j++)
			assert_true(nm_topology_distance(t, (int)i, (int)j) > 0);
	}
}

TEST_BETWEEN(NULL, NULL, this_machine_loads)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = load_from(NULL, NULL);
	nm_auto(nm_topology_freep) struct nm_topology *again = load_from("/", NULL);

	assert_consistent(topology);
	assert_true(topology_equal(topology, again));
}

TEST(odd_machine_loads)
{
	put_odd_machine(*state);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_consistent(t);
	assert_int_equal(t->nr_nodes, 3);
	assert_int_equal(t->nr_cpus, 8);
	assert_set(t->online, "0-5,7");
	assert_set(t->usable, "0-3,7");
	assert_set(t->possible, "0-11");
	assert_int_equal(t->llc_bytes, 8192 * 1024);
	assert_int_equal(nm_topology_node_index(t, 0), 0);
	assert_int_equal(nm_topology_node_index(t, 3), 1);
	assert_int_equal(nm_topology_node_index(t, 8), 2);
	assert_int_equal(nm_topology_node_index(t, 1), -1);
	assert_int_equal(nm_topology_node_index(t, 9), -1);
	assert_set(t->nodes[0].cpus, "0-3");
	assert_set(t->nodes[1].cpus, "");
	assert_set(t->nodes[2].cpus, "7");
	assert_int_equal(t->nodes[2].memory_bytes, 1ULL << 30);
}

TEST(odd_machine_has_its_cpus)
{
	put_odd_machine(*state);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->cpus[0].core, t->cpus[1].core);
	assert_int_not_equal(t->cpus[0].core, t->cpus[2].core);
	assert_int_equal(t->cpus[0].cache, t->cpus[3].cache);
	assert_int_equal(t->cpus[4].cache, t->cpus[7].cache);
	assert_int_not_equal(t->cpus[0].cache, t->cpus[7].cache);
	assert_true(t->cpus[5].isolated && !t->cpus[5].nohz_full);
	assert_true(t->cpus[4].nohz_full && !t->cpus[4].isolated);
	assert_true(t->cpus[6].present && !t->cpus[6].online);
	assert_int_equal(t->cpus[6].node, -1);
	assert_int_equal(nm_topology_node_of_cpu(t, 7), 2);
	assert_int_equal(nm_topology_node_of_cpu(t, 8), -1);
	assert_int_equal(nm_topology_node_of_cpu(t, -1), -1);
}

TEST(memory_only_node_has_a_neighbour)
{
	put_odd_machine(*state);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->nodes[0].nearest_with_cpus, 0);
	assert_int_equal(t->nodes[1].nearest_with_cpus, 2);
	assert_int_equal(t->nodes[2].nearest_with_cpus, 2);
	assert_int_equal(nm_topology_distance(t, 0, 0), 10);
	assert_int_equal(nm_topology_distance(t, 0, 1), 17);
	assert_int_equal(nm_topology_distance(t, 1, 2), 14);
	assert_int_equal(nm_topology_distance(t, 2, 0), 21);
}

/* Nodes 0 and 8 with CPUs, and 3, 9 and 10 without, all at the same distance. */
static void put_tied_machine(const char *root)
{
	put_odd_machine(root);
	put(root, "0,3,8-10\n", NODE_DIRECTORY "/online");
	put_node(root, 0, "0f\n", "10 20 20 20 20\n");
	put_node(root, 3, "00\n", "20 10 20 20 20\n");
	put_node(root, 8, "b0\n", "20 20 10 20 20\n");
	put_node(root, 9, "00\n", "20 20 20 10 20\n");
	put_node(root, 10, "00\n", "20 20 20 20 10\n");
}

static void put_initiator(const char *root, unsigned node, unsigned class, unsigned initiator)
{
	put(root, "", NODE_DIRECTORY "/node%u/access%u/initiators/node%u/uevent", node, class,
	    initiator);
}

TEST(initiators_come_before_distances)
{
	put_tied_machine(*state);
	put_initiator(*state, 9, 0, 8);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->nodes[1].nearest_with_cpus, 0);
	assert_int_equal(t->nodes[3].nearest_with_cpus, 2);
}

/* Class 0 may name a device, or a node without a usable CPU. */
TEST(initiators_have_cpus)
{
	put_tied_machine(*state);
	put_initiator(*state, 9, 0, 0);
	put_initiator(*state, 9, 1, 8);
	put_initiator(*state, 10, 0, 3);
	put_initiator(*state, 10, 1, 77);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->nodes[3].nearest_with_cpus, 2);
	assert_int_equal(t->nodes[4].nearest_with_cpus, 0);
	put(*state, "4-5,7\n", CPU_DIRECTORY "/isolated");
	nm_auto(nm_topology_freep) struct nm_topology *isolated = load_from(*state, NULL);
	assert_int_equal(isolated->nodes[3].nearest_with_cpus, 0);
}

/* Of several initiators the nearest is used, if distances are known. */
TEST(initiators_by_distance)
{
	put_tied_machine(*state);
	put_node(*state, 9, "00\n", "31 20 28 10 20\n");
	put_initiator(*state, 9, 1, 0);
	put_initiator(*state, 9, 1, 8);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->nodes[3].nearest_with_cpus, 2);
}

TEST(nowhere_to_go)
{
	put_odd_machine(*state);
	put(*state, "0-7\n", CPU_DIRECTORY "/isolated");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_consistent(t);
	assert_set(t->usable, "");
	for (unsigned i = 0; i < t->nr_nodes; i++)
		assert_int_equal(t->nodes[i].nearest_with_cpus, i);
}

TEST(isolated_partitions_count)
{
	put_odd_machine(*state);
	put(*state, "\n", CPU_DIRECTORY "/isolated");
	put(*state, " (null)\n", CPU_DIRECTORY "/nohz_full");
	put(*state, "1-2\n", "sys/fs/cgroup/cpuset.cpus.isolated");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_set(t->usable, "0,3-5,7");
	assert_true(t->cpus[1].isolated && t->cpus[2].isolated && !t->cpus[5].isolated);
}

TEST(without_nodes_there_is_one)
{
	put(*state, "0-1\n", CPU_DIRECTORY "/present");
	put(*state, "0-1\n", CPU_DIRECTORY "/possible");
	put(*state, "0-1\n", CPU_DIRECTORY "/online");
	put_cpu(*state, 0, "0\n", "01\n", "03\n");
	put_cpu(*state, 1, "1\n", "02\n", "03\n");
	put(*state, "MemTotal: 1048576 kB\n", "proc/meminfo");
	put(*state, "processor : 0\n", "proc/cpuinfo");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_consistent(t);
	assert_int_equal(t->nr_nodes, 1);
	assert_set(t->nodes[0].cpus, "0-1");
	assert_int_equal(nm_topology_distance(t, 0, 0), 10);
}

TEST(changes_are_seen)
{
	put_odd_machine(*state);
	nm_auto(nm_topology_freep) struct nm_topology *before = load_from(*state, NULL);
	nm_auto(nm_topology_freep) struct nm_topology *same = load_from(*state, NULL);
	put(*state, "0-4,7\n", CPU_DIRECTORY "/online");
	nm_auto(nm_topology_freep) struct nm_topology *fewer = load_from(*state, NULL);
	put_odd_machine(*state);
	put_node(*state, 8, "b0\n", "31 14 10\n");
	nm_auto(nm_topology_freep) struct nm_topology *farther = load_from(*state, NULL);

	assert_true(topology_equal(before, same));
	assert_false(topology_equal(before, fewer));
	assert_false(topology_equal(before, farther));
}

TEST(environment_is_restored)
{
	put_odd_machine(*state);
	setenv("HWLOC_FSROOT", "/mine", 1);
	unsetenv("HWLOC_PLUGINS_PATH");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(*state, NULL);

	assert_int_equal(t->nr_nodes, 3);
	assert_string_equal(getenv("HWLOC_FSROOT"), "/mine");
	assert_null(getenv("HWLOC_PLUGINS_PATH"));
	unsetenv("HWLOC_FSROOT");
}

static void write_synthetic(const char *path, const char *description)
{
	hwloc_topology_t made;

	assert_int_equal(hwloc_topology_init(&made), 0);
	assert_int_equal(hwloc_topology_set_synthetic(made, description), 0);
	assert_int_equal(hwloc_topology_load(made), 0);
	assert_int_equal(hwloc_topology_export_xml(made, path, 0), 0);
	hwloc_topology_destroy(made);
}

TEST(xml_loads)
{
	char path[FIXTURE_PATH];

	snprintf(path, sizeof(path), "%s/made.xml", (const char *)*state);
	write_synthetic(path, "pack:4 [numa] l3:2 core:3 pu:2");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(NULL, path);

	assert_consistent(t);
	assert_int_equal(t->nr_nodes, 4);
	assert_int_equal(t->nr_cpus, 48);
	assert_set(t->nodes[1].cpus, "12-23");
	assert_int_equal(t->cpus[12].core, t->cpus[13].core);
	assert_int_not_equal(t->cpus[12].core, t->cpus[14].core);
	assert_int_equal(t->cpus[12].cache, t->cpus[17].cache);
	assert_int_not_equal(t->cpus[12].cache, t->cpus[18].cache);
	assert_int_equal(nm_topology_distance(t, 2, 2), 10);
	assert_int_equal(nm_topology_distance(t, 2, 1), 20);
}

/* Two memories with the same CPUs, as with HBM: the CPUs belong to one of them. */
TEST(xml_with_two_memories_loads)
{
	char path[FIXTURE_PATH];

	snprintf(path, sizeof(path), "%s/made.xml", (const char *)*state);
	write_synthetic(path, "pack:2 [numa] [numa] core:2 pu:1");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(NULL, path);

	assert_consistent(t);
	assert_int_equal(t->nr_nodes, 4);
	unsigned with_cpus = 0;
	for (unsigned i = 0; i < t->nr_nodes; i++)
		with_cpus += !hwloc_bitmap_iszero(t->nodes[i].cpus);
	assert_int_equal(with_cpus, 2);
}

/* Without distances the cpusets of hwloc determine the package of a memory. */
TEST(xml_assigns_memory_to_packages)
{
	char path[FIXTURE_PATH];

	snprintf(path, sizeof(path), "%s/made.xml", (const char *)*state);
	write_synthetic(path, "pack:4 [numa] [numa] core:2 pu:1");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(NULL, path);

	unsigned stands_for[8] = {0};
	assert_int_equal(t->nr_nodes, 8);
	for (unsigned i = 0; i < t->nr_nodes; i++)
		stands_for[t->nodes[i].nearest_with_cpus]++;
	for (unsigned i = 0; i < t->nr_nodes; i++)
		assert_int_equal(stands_for[i], hwloc_bitmap_iszero(t->nodes[i].cpus) ? 0 : 2);
}

static void edit(const char *path, const char *from, const char *to)
{
	char command[PATH_MAX * 2];

	snprintf(command, sizeof(command), "sed -i 's/%s/%s/' '%s'", from, to, path);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own command */
}

/* Memory of Knights Landing in cache mode, as shown by hwloc. */
TEST(memory_side_cache_is_no_last_level)
{
	char path[FIXTURE_PATH];

	snprintf(path, sizeof(path), "%s/made.xml", (const char *)*state);
	write_synthetic(path,
			"pack:1 [numa] l3:1(size=17179869184) l2:2(size=1048576) core:2 pu:1");
	nm_auto(nm_topology_freep) struct nm_topology *before = load_from(NULL, path);
	edit(path, "type=\"L3Cache\"", "type=\"L3Cache\" subtype=\"MemorySideCache\"");
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(NULL, path);

	assert_int_equal(before->llc_bytes, 17179869184ULL);
	assert_int_equal(t->llc_bytes, 1048576);
	assert_int_equal(t->cpus[0].cache, t->cpus[1].cache);
	assert_int_not_equal(t->cpus[0].cache, t->cpus[2].cache);
}

static void assert_refused(const char *root, const char *xml, int expected, const char *named)
{
	const struct nm_topology_source source = {.root_path = root, .xml_path = xml};
	struct nm_topology *topology = NULL;
	char error[256] = "";

	assert_int_equal(nm_topology_load(&source, error, sizeof(error), &topology), expected);
	assert_null(topology);
	assert_non_null(strstr(error, named));
}

TEST(bad_sources_are_explained)
{
	char path[FIXTURE_PATH];

	assert_refused("/nonexistent", NULL, -ENOENT, "/nonexistent");
	assert_refused(*state, NULL, -ENOENT, "sys/devices/system/cpu");
	assert_refused(NULL, "/nonexistent.xml", -ENOENT, "/nonexistent.xml");
	put(*state, "no xml\n", "bad.xml");
	snprintf(path, sizeof(path), "%s/bad.xml", (const char *)*state);
	assert_refused(NULL, path, -EINVAL, "bad.xml");
}

TEST_BETWEEN(NULL, NULL, nothing_to_free)
{
	nm_topology_free(NULL);
}

/* ---- recorded machines ---- */

struct recorded {
	const char *archive, *directory;
	unsigned nr_nodes, nr_cpus;
	const char *usable, *first_cpus; /* all CPUs, and those of the first node */
	unsigned first_os_id, distance_to_last;
};

static const struct recorded machines[] = {
	{"16amd64-8n2c", "16amd64-8n2c", 8, 16, "0-15", "0-1", 0, 20},
	{"32amd64-4s2n4c-cgroup2", "32amd64-4s2n4c-cgroup", 8, 32, "0-31", "0-3", 0, 22},
	{"64amd64-4s2n4ca2co", "64amd64-4s2n4ca2co", 8, 64, "0-63", NULL, 0, 0},
	{"32intel64-2p8co2t+8ve", "32intel64-2p8co2t+8ve", 2, 32, "0-31", "0-7,16-23", 0, 21},
	{"offline-cpu0-node0", "offline-cpu0-node0", 1, 24, "4-20", "5,7,9,11,13,15,17,19", 1, 10},
	{"fakememinitiators-1np2c+1npp+gi", "fakememinitiators-1np2c+1npp+gi", 11, 8, "0-7", "0-1",
	 0, 28},
};

static void check_recorded(const char *root, const struct recorded *machine)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, machine->directory);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(path, NULL);

	assert_consistent(t);
	assert_int_equal(t->nr_nodes, machine->nr_nodes);
	assert_int_equal(t->nr_cpus, machine->nr_cpus);
	assert_set(t->usable, machine->usable);
	assert_int_equal(t->nodes[0].os_id, machine->first_os_id);
	if (machine->first_cpus)
		assert_set(t->nodes[0].cpus, machine->first_cpus);
	if (machine->distance_to_last)
		assert_int_equal(nm_topology_distance(t, 0, (int)t->nr_nodes - 1),
				 machine->distance_to_last);
}

/* Unpacks one machine below the root of the test; skips the test without data or tools. */
static void unpack(const char *root, const char *archive)
{
	const char *data = recorded_machines_directory();
	char command[PATH_MAX * 3];

	if (!data) {
		print_message(
			"no recorded machines beside this checkout (NUMA_MIGRD_DATA): skipped\n");
		skip();
	}
	snprintf(command, sizeof(command), "tar -xjf '%s/topology/sysfs/%s.tar.bz2' -C '%s'", data,
		 archive, root);
	if (system(command) != 0) { /* NOLINT(cert-env33-c): a test's own command */
		print_message("tar cannot unpack .bz2 here: skipped\n");
		skip();
	}
}

TEST(recorded_machines_load)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(machines); i++) {
		unpack(*state, machines[i].archive);
		check_recorded(*state, &machines[i]);
	}
}

TEST(recorded_memory_only_nodes)
{
	char path[FIXTURE_PATH];

	unpack(*state, "fakememinitiators-1np2c+1npp+gi");
	snprintf(path, sizeof(path), "%s/fakememinitiators-1np2c+1npp+gi", (const char *)*state);
	nm_auto(nm_topology_freep) struct nm_topology *t = load_from(path, NULL);

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(hwloc_bitmap_weight(t->nodes[i].cpus), 2);
	for (unsigned i = 4; i < t->nr_nodes; i++)
		assert_set(t->nodes[i].cpus, "");
	assert_int_equal(t->nodes[6].nearest_with_cpus, 2);
	assert_int_equal(t->nodes[9].nearest_with_cpus, 3);
	assert_int_equal(t->nodes[10].nearest_with_cpus, 1);
}

/* Restoration needs neither nodes nor memory for them. */
TEST(cpus_load_without_a_topology)
{
	const char *root = *state;
	nm_auto(nm_topology_freep) struct nm_topology *t = NULL;

	put(root, "0-2,4\n", CPU_DIRECTORY "/online");
	assert_int_equal(nm_topology_load_cpus(root, &t), -ENOENT);
	assert_null(t);
	put(root, "0-7\n", CPU_DIRECTORY "/possible");
	assert_int_equal(nm_topology_load_cpus(root, &t), 0);
	assert_set(t->online, "0-2,4");
	assert_set(t->possible, "0-7");
	assert_int_equal(t->nr_nodes, 0);
}

RUN_TESTS()
