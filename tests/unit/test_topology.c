/* SPDX-License-Identifier: MIT */
/* Topologies of directories, of files of hwloc, and of recorded machines, as lines of text. */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include "../support/script.h"
#include "../support/topology_equal.h"
#include "fixture.h"
#include "numa-migrd/topology.h"

static char root[FIXTURE_PATH], from[FIXTURE_PATH + 64], xml[FIXTURE_PATH + 16];
static struct nm_topology *t, *before;
static char error[256], shown[1024];

static int set_up(void **state)
{
	(void)state;
	fixture_make(root, sizeof(root));
	snprintf(from, sizeof(from), "%s", root);
	snprintf(xml, sizeof(xml), "%s/made.xml", root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nm_topology_free(t);
	nm_topology_free(before);
	t = before = NULL;
	fixture_remove(root);
	return 0;
}

/* ---- directories ---- */

/* "cpu/online" and "node/online" are in this directory; a path that begins otherwise is not. */
static void put(const char *path, const char *text)
{
	char whole[FIXTURE_PATH], line[256];
	const bool is_device = strncmp(path, "cpu/", 4) == 0 || strncmp(path, "node/", 5) == 0;
	snprintf(whole, sizeof(whole), "%s%s", is_device ? "sys/devices/system/" : "", path);
	snprintf(line, sizeof(line), "%s\n", text);
	fixture_file(root, whole, line);
}

/* file cpu/isolated 4-5 */
ACTION(file, put(step->word[0], strchr(step_rest(step), ' ') + 1))

/* cpu 2 core 1 siblings 0c of 0f: the last set of CPUs has the same package and last-level cache */
WORD(cpu)
{
	const char *siblings = step->word[4], *sharing = step->word[6];
	const struct {
		const char *name, *text;
	} files[] = {
		{"online", "1"},
		{"topology/core_id", step->word[2]},
		{"topology/physical_package_id", U(0) < 4 ? "0" : "1"},
		{"topology/core_cpus", siblings},
		{"topology/thread_siblings", siblings},
		{"topology/core_siblings", sharing},
		{"topology/package_cpus", sharing},
		{"cache/index0/level", "3"},
		{"cache/index0/type", "Unified"},
		{"cache/index0/size", "8192K"},
		{"cache/index0/shared_cpu_map", sharing},
	};
	EACH_ROW(file, files)
	{
		char path[64];
		snprintf(path, sizeof(path), "cpu/cpu%u/%s", U(0), file->name);
		put(path, file->text);
	}
}

/* node 3 b0 17 10 14: its CPUs and distances */
WORD(node)
{
	const char *const names[] = {"cpumap", "distance", "meminfo"};
	char path[64], meminfo[128];
	snprintf(meminfo, sizeof(meminfo), "Node %u MemTotal:       1048576 kB", U(0));
	const char *const texts[] = {step->word[1], strstr(step->text, step->word[1]) + 3, meminfo};
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "node/node%u/%s", U(0), names[i]);
		put(path, texts[i]);
	}
}

/* initiator 9 class 0 node 8 */
WORD(initiator)
{
	char path[64];
	snprintf(path, sizeof(path), "node/node%u/access%u/initiators/node%u/uevent", U(0), U(1),
		 U(2));
	put(path, "");
}

/* Of hwloc, in the file. */
WORD(synthetic)
{
	hwloc_topology_t made;
	assert_int_equal(hwloc_topology_init(&made), 0);
	assert_int_equal(hwloc_topology_set_synthetic(made, step_rest(step)), 0);
	assert_int_equal(hwloc_topology_load(made), 0);
	assert_int_equal(hwloc_topology_export_xml(made, xml, 0), 0);
	hwloc_topology_destroy(made);
}

/* edit s/A/B/: the file */
WORD(edit)
{
	char command[PATH_MAX * 2];
	snprintf(command, sizeof(command), "sed -i '%s' '%s'", step_rest(step), xml);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own command */
}

/* ---- what is loaded ---- */

/* Invariants of any machine. */
static void assert_consistent(void)
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

/* load; load xml; load /path; load default */
static int load(const struct step *step)
{
	const bool is_xml = step_has(step, "xml");
	const char *path = is_xml ? xml : step_has(step, "default") ? NULL : from;
	for (unsigned i = 0; i < step->count; i++)
		if (step->word[i][0] == '/')
			path = step->word[i];
	const struct nm_topology_source source = {.root_path = is_xml ? NULL : path,
						  .xml_path = is_xml ? path : NULL};
	nm_topology_free(t);
	t = NULL;
	int r = nm_topology_load(&source, error, sizeof(error), &t);
	if (r < 0)
		assert_null(t);
	else
		assert_consistent();
	return r;
}

static const char *show_set(hwloc_const_bitmap_t set)
{
	hwloc_bitmap_list_snprintf(shown, sizeof(shown), set);
	return *shown ? shown : NULL;
}

__attribute__((format(printf, 1, 2))) static void show(const char *format, ...)
{
	const size_t used = strlen(shown);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(shown + used, sizeof(shown) - used, format, arguments);
	va_end(arguments);
}

/* In rows of nodes. */
static const char *show_distances(void)
{
	shown[0] = '\0';
	for (unsigned i = 0; i < t->nr_nodes * t->nr_nodes; i++)
		show("%s%u", i == 0 ? "" : i % t->nr_nodes ? " " : ", ", t->distance[i]);
	return shown;
}

/* The nearest node with CPUs of each node. */
static const char *show_nearest(void)
{
	shown[0] = '\0';
	for (unsigned i = 0; i < t->nr_nodes; i++)
		show("%s%d", i ? " " : "", t->nodes[i].nearest_with_cpus);
	return shown;
}

/* A letter for each CPU: equal ones share a core, or a cache. */
static const char *show_groups(bool of_caches)
{
	unsigned groups = 0;
	for (unsigned i = 0; i < t->nr_cpus; i++) {
		const struct nm_cpu *cpu = &t->cpus[i];
		shown[i] = cpu->online ? 0 : '-';
		for (unsigned k = 0; k < i && !shown[i]; k++)
			if (t->cpus[k].online && (of_caches ? t->cpus[k].cache == cpu->cache
							    : t->cpus[k].core == cpu->core))
				shown[i] = shown[k];
		if (!shown[i])
			shown[i] = (char)('a' + groups++);
	}
	shown[t->nr_cpus] = '\0';
	return shown;
}

QUANTITY(load, load(step))
QUANTITY(load_cpus, nm_topology_load_cpus(root, &t))
TEXT(error, error)
TEXT(online, show_set(t->online))
TEXT(usable, show_set(t->usable))
TEXT(possible, show_set(t->possible))
TEXT(cpus, show_set(t->nodes[U(0)].cpus))
TEXT(distances, show_distances())
TEXT(nearest, show_nearest())
TEXT(cores, show_groups(false))
TEXT(caches, show_groups(true))
QUANTITY(nodes, t->nr_nodes)
QUANTITY(nr_cpus, t->nr_cpus)
QUANTITY(os_id, t->nodes[U(0)].os_id)
QUANTITY(index, nm_topology_node_index(t, U(0)))
QUANTITY(node_of, nm_topology_node_of_cpu(t, (int)N(0)))
QUANTITY(distance, nm_topology_distance(t, (int)U(0), (int)U(1)))
QUANTITY(memory, t->nodes[U(0)].memory_bytes)
QUANTITY(llc, t->llc_bytes)
QUANTITY(isolated, t->cpus[U(0)].isolated)
QUANTITY(nohz_full, t->cpus[U(0)].nohz_full)
QUANTITY(present, t->cpus[U(0)].present)
QUANTITY(same, topology_equal(before, t))

WORD(remember)
{
	nm_topology_free(before);
	before = NM_TAKE(t);
}

SCRIPT(this_machine_loads, "load default = 0; remember; load / = 0; same = 1")

/* Nodes 0, 3 (memory only) and 8; CPUs 0-7 of which 6 is offline, 5 isolated, 4 nohz_full; 0+1 and
 * 2+3 are SMT siblings; 9-11 are possible but absent. */
#define ODD                                                                                        \
	"file cpu/present 0-7; file cpu/possible 0-11; file cpu/online 0-5,7; file cpu/isolated "  \
	"5",                                                                                       \
		"file cpu/nohz_full 4; cpu 0 core 0 siblings 03 of 0f; cpu 1 core 0 siblings 03 "  \
		"of 0f",                                                                           \
		"cpu 2 core 1 siblings 0c of 0f; cpu 3 core 1 siblings 0c of 0f; file "            \
		"cpu/cpu6/online 0",                                                               \
		"cpu 4 core 4 siblings 10 of b0; cpu 5 core 5 siblings 20 of b0",                  \
		"cpu 7 core 7 siblings 80 of b0; file node/online 0,3,8; file node/possible 0-15", \
		"node 0 0f 10 17 21; node 3 00 17 10 14; node 8 b0 21 14 10",                      \
		"file proc/cpuinfo processor : 0"

SCRIPT(an_odd_machine_loads, ODD,
       "load = 0; nodes = 3; nr_cpus = 8; online = 0-5,7; usable = 0-3,7",
       "possible = 0-11; llc = 8M; index 0 = 0; index 3 = 1; index 8 = 2; index 1 = -1; index 9 = "
       "-1",
       "cpus 0 = 0-3; cpus 1 = none; cpus 2 = 7; memory 2 = 1G; cores = aabbcd-e; caches = "
       "aaaabb-b",
       "isolated 5 = 1; nohz_full 5 = 0; isolated 4 = 0; nohz_full 4 = 1; present 6 = 1",
       "node_of 6 = -1; node_of 7 = 2; node_of 8 = -1; node_of -1 = -1",
       "nearest = 0 2 2; distances = 10 17 21, 17 10 14, 21 14 10")

/* Nodes 0 and 8 with CPUs, and 3, 9 and 10 without, all at the same distance. */
#define TIED                                                                                       \
	ODD, "file node/online 0,3,8-10; node 0 0f 10 20 20 20 20; node 3 00 20 10 20 20 20",      \
		"node 8 b0 20 20 10 20 20; node 9 00 20 20 20 10 20; node 10 00 20 20 20 20 10"

SCRIPT(initiators_come_before_distances, TIED, "initiator 9 class 0 node 8; load = 0",
       "nearest = 0 0 2 2 0")

/* Class 0 may name a device, or a node without a usable CPU. */
SCRIPT(initiators_have_cpus, TIED,
       "initiator 9 class 0 node 0; initiator 9 class 1 node 8; initiator 10 class 0 node 3",
       "initiator 10 class 1 node 77; load = 0; nearest = 0 0 2 2 0",
       "file cpu/isolated 4-5,7; load = 0; nearest = 0 0 0 0 0")

/* Of several initiators the nearest is used, if distances are known. */
SCRIPT(initiators_by_distance, TIED,
       "node 9 00 31 20 28 10 20; initiator 9 class 1 node 0; initiator 9 class 1 node 8; load = 0",
       "nearest = 0 0 2 2 0")

SCRIPT(nowhere_to_go, ODD, "file cpu/isolated 0-7; load = 0; usable = none; nearest = 0 1 2")

SCRIPT(isolated_partitions_count, ODD, "file cpu/isolated ; file cpu/nohz_full  (null)",
       "file sys/fs/cgroup/cpuset.cpus.isolated 1-2; load = 0; usable = 0,3-5,7",
       "isolated 1 = 1; isolated 2 = 1; isolated 5 = 0")

SCRIPT(without_nodes_there_is_one,
       "file cpu/present 0-1; file cpu/possible 0-1; file cpu/online 0-1",
       "cpu 0 core 0 siblings 01 of 03; cpu 1 core 1 siblings 02 of 03",
       "file proc/meminfo MemTotal: 1048576 kB; file proc/cpuinfo processor : 0; load = 0",
       "nodes = 1; cpus 0 = 0-1; distances = 10")

WORD(copy)
{
	before = NM_TAKE(t);
	nm_topology_copy(before, &t);
}

QUANTITY(same_nodes, nm_topology_has_same_nodes(before, t))
QUANTITY(keeps, nm_topology_keeps_node(before, t, (int)N(0)))
QUANTITY(cpu_nodes, nm_topology_cpu_nodes(t))

SCRIPT(a_copy_is_equal, ODD, "load = 0; copy; same = 1; same_nodes = 1; keeps 0 = 1")

/* An isolated CPU goes offline, then one of node 0, and then all others of node 8. */
SCRIPT(changes_are_seen, ODD, "load = 0; remember; load = 0; same = 1; same_nodes = 1",
       "keeps 0 = 1; keeps 2 = 1; keeps 3 = 0; keeps -1 = 0; cpu_nodes = 2",
       "file cpu/online 0-4,7; load = 0; same = 0; same_nodes = 1; keeps 0 = 1",
       "file cpu/online 0,2-5,7; load = 0; same = 0; same_nodes = 1; keeps 0 = 0; keeps 2 = 1",
       "file cpu/online 0-5; load = 0; same_nodes = 0; cpu_nodes = 1; file cpu/online 0-5,7",
       "node 8 b0 31 14 10; load = 0; same = 0; same_nodes = 1", TIED,
       "load = 0; same = 0; same_nodes = 0; keeps 3 = 0")

ACTION(setenv, setenv(step->word[0], step->word[1], 1))
ACTION(unsetenv, unsetenv(step->word[0]))
TEXT(env, getenv(step->word[0]))

SCRIPT(the_environment_is_restored, ODD,
       "setenv HWLOC_FSROOT /mine; unsetenv HWLOC_PLUGINS_PATH; load = 0; nodes = 3",
       "env HWLOC_FSROOT = /mine; env HWLOC_PLUGINS_PATH = none; unsetenv HWLOC_FSROOT")

SCRIPT(bad_sources_are_explained, "load /nonexistent = ENOENT; error ~ /nonexistent",
       "load = ENOENT; error ~ sys/devices/system/cpu; load xml /nonexistent.xml = ENOENT",
       "error ~ /nonexistent.xml; file made.xml no xml; load xml = EINVAL; error ~ made.xml")

/* Restoration needs neither nodes nor memory for them. */
SCRIPT(cpus_load_without_a_topology, "file cpu/online 0-2,4; load_cpus = ENOENT",
       "file cpu/possible 0-7; load_cpus = 0; online = 0-2,4; possible = 0-7; nodes = 0")

/* ---- files of hwloc ---- */

SCRIPT(a_file_loads, "synthetic pack:4 [numa] l3:2 core:3 pu:2; load xml = 0; nodes = 4",
       "nr_cpus = 48; cpus 1 = 12-23; distance 2 2 = 10; distance 2 1 = 20",
       "cores = aabbccddeeffgghhiijjkkllmmnnooppqqrrssttuuvvwwxx",
       "caches = aaaaaabbbbbbccccccddddddeeeeeeffffffgggggghhhhhh")

/* Two memories with the same CPUs, as with HBM: the CPUs belong to one of them. Without distances
 * the cpusets of hwloc determine the package of a memory. */
SCRIPT(memories_are_assigned_to_packages,
       "synthetic pack:2 [numa] [numa] core:2 pu:1; load xml = 0; nodes = 4; nearest = 0 0 2 2",
       "synthetic pack:4 [numa] [numa] core:2 pu:1; load xml = 0; nodes = 8",
       "nearest = 0 0 2 2 4 4 6 6")

/* Memory of Knights Landing in cache mode, as shown by hwloc. */
SCRIPT(a_memory_side_cache_is_no_last_level,
       "synthetic pack:1 [numa] l3:1(size=17179869184) l2:2(size=1048576) core:2 pu:1",
       "load xml = 0; llc = 16G; caches = aaaa",
       "edit s/type=\"L3Cache\"/& subtype=\"MemorySideCache\"/",
       "load xml = 0; llc = 1M; caches = aabb")

TEST_BETWEEN(NULL, NULL, nothing_to_free)
{
	nm_topology_free(NULL);
}

/* ---- recorded machines ---- */

/* Unpacks one machine below the root of the test; skips the test without data or tools. */
WORD(recorded)
{
	const char *data = recorded_machines_directory();
	char command[PATH_MAX * 3];

	if (!data) {
		print_message(
			"no recorded machines beside this checkout (NUMA_MIGRD_DATA): skipped\n");
		skip();
	}
	snprintf(command, sizeof(command), "tar -xjf '%s/topology/sysfs/%s.tar.bz2' -C '%s'", data,
		 step->word[0], root);
	if (system(command) != 0) { /* NOLINT(cert-env33-c): a test's own command */
		print_message("tar cannot unpack .bz2 here: skipped\n");
		skip();
	}
	snprintf(from, sizeof(from), "%s/%s", root, step->word[step->count - 1]);
	assert_int_equal(load(step), 0);
}

SCRIPT(recorded_machines_load,
       "recorded 16amd64-8n2c; nodes = 8; nr_cpus = 16; usable = 0-15; os_id 0 = 0; cpus 0 = 0-1",
       "distance 0 7 = 20; recorded 32amd64-4s2n4c-cgroup2 32amd64-4s2n4c-cgroup; nodes = 8",
       "nr_cpus = 32; usable = 0-31; os_id 0 = 0; cpus 0 = 0-3; distance 0 7 = 22",
       "recorded 64amd64-4s2n4ca2co; nodes = 8; nr_cpus = 64; usable = 0-63; os_id 0 = 0",
       "recorded 32intel64-2p8co2t+8ve; nodes = 2; nr_cpus = 32; usable = 0-31; os_id 0 = 0",
       "cpus 0 = 0-7,16-23; distance 0 1 = 21; recorded offline-cpu0-node0; nodes = 1; nr_cpus = "
       "24",
       "usable = 4-20; os_id 0 = 1; cpus 0 = 5,7,9,11,13,15,17,19; distance 0 0 = 10")

SCRIPT(recorded_memory_only_nodes,
       "recorded fakememinitiators-1np2c+1npp+gi; nodes = 11; nr_cpus = 8; usable = 0-7",
       "os_id 0 = 0; distance 0 10 = 28; cpus 0 = 0-1; cpus 1 = 2-3; cpus 2 = 4-5; cpus 3 = 6-7",
       "nearest = 0 1 2 3 0 0 2 0 1 3 1")

RUN_TESTS()
