// SPDX-License-Identifier: MIT
/* Builds a struct nm_topology from hwloc and a few files of /sys. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "numa-migrd/topology.h"
#include "stderr_capture.h"
#include "sysfs.h"

#define DISTANCE_REMOTE 20U

struct loader {
	hwloc_topology_t hwloc;
	int root; /* the root of the tree, or -1 if there is only an XML file */
	hwloc_bitmap_t isolated, nohz_full, scratch;
	const char *also_isolated; /* a list, or NULL */
	struct nm_topology *topology;
	char *error;
	size_t error_size;
};

__attribute__((format(printf, 3, 4))) static int fail(struct loader *loader, int error,
						      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(loader->error, loader->error_size, format, arguments);
	va_end(arguments);
	return error;
}

/* ---- hwloc ---- */

struct variable {
	const char *name;
	char *old;
};

static void variable_set(struct variable *variable, const char *name, const char *value)
{
	const char *old = getenv(name);
	char *copy = old ? nm_must(strdup(old)) : NULL;

	nm_must_do(setenv(name, value, 1));
	*variable = (struct variable){.name = name, .old = copy};
}

static void variable_restore(struct variable *variable)
{
	if (!variable->name)
		return;
	if (variable->old)
		setenv(variable->name, variable->old, 1);
	else
		unsetenv(variable->name);
	free(variable->old);
}

/*
 * Neither the x86 component (it binds its caller to each CPU in turn, including isolated ones) nor
 * plugins (they would load graphics and accelerator libraries into a privileged process) provide
 * more information. INCLUDE_DISALLOWED: the daemon's cpuset does not determine where other
 * processes may run.
 */
static int configure(hwloc_topology_t hwloc, const char *xml_path)
{
	if (hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
	    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE) < 0 ||
	    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE) < 0)
		return -EINVAL;
	(void)hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if (xml_path && hwloc_topology_set_xml(hwloc, xml_path) < 0)
		return errno == ENOENT ? -ENOENT : -EINVAL;
	return 0;
}

static int discover_xml(struct loader *loader, const char *path)
{
	struct nm_stderr_capture capture;
	char why[NM_STDERR_MESSAGE_BYTES];

	nm_stderr_capture_begin(&capture);
	int r = configure(loader->hwloc, path);
	if (r == 0 && hwloc_topology_load(loader->hwloc) < 0)
		r = -EINVAL;
	nm_stderr_capture_end(&capture, path, why);
	if (r < 0)
		return fail(loader, r,
			    "%s: cannot be read as an hwloc XML topology (%s); make one with "
			    "'lstopo FILE.xml'.",
			    path, r == -EINVAL && why[0] ? why : strerror(-r));
	return 0;
}

static int discover(struct loader *loader, const char *xml_path)
{
	nm_must_do(hwloc_topology_init(&loader->hwloc));
	if (xml_path)
		return discover_xml(loader, xml_path);
	int r = configure(loader->hwloc, NULL);
	if (r == 0 && hwloc_topology_load(loader->hwloc) < 0)
		r = -EINVAL;
	if (r < 0)
		return fail(loader, r,
			    "hwloc cannot read the topology from /sys (%s); compare with the "
			    "output of 'lstopo-no-graphics'.",
			    strerror(-r));
	return 0;
}

/* hwloc reads these only from the environment: they are set for the load, and restored. It would
 * print opinions about the firmware to stderr, which a library should not write to. */
static int discover_with_environment(struct loader *loader, const struct nm_topology_source *source)
{
	nm_auto(variable_restore) struct variable quiet = {0};
	nm_auto(variable_restore) struct variable reasons = {0};
	nm_auto(variable_restore) struct variable plugins = {0};
	nm_auto(variable_restore) struct variable fsroot = {0};
	bool other_root = source->root_path && strcmp(source->root_path, "/") != 0;

	variable_set(&quiet, "HWLOC_HIDE_ERRORS", "2");
	if (source->xml_path)
		variable_set(&reasons, "HWLOC_XML_VERBOSE", "1");
	variable_set(&plugins, "HWLOC_PLUGINS_PATH", "/dev/null");
	if (other_root)
		variable_set(&fsroot, "HWLOC_FSROOT", source->root_path);
	return discover(loader, source->xml_path);
}

static int open_tree(struct loader *loader, const struct nm_topology_source *source)
{
	const char *path = source->root_path ? source->root_path : "/";

	if (source->xml_path && !source->root_path)
		return 0;
	loader->root = nm_sysfs_root(path);
	if (loader->root < 0)
		return fail(loader, loader->root, "%s: cannot be opened as a directory (%s).", path,
			    strerror(-loader->root));
	if (faccessat(loader->root, "sys/devices/system/cpu", F_OK, 0) < 0)
		return fail(loader, -ENOENT,
			    "%s: holds no sys/devices/system/cpu; give the root "
			    "directory of a tree with /sys and /proc.",
			    path);
	return 0;
}

/* ---- CPUs ---- */

/* Memory-side cache, which hwloc shows as level 3 on Knights Landing: it does not belong to the
 * CPUs. */
static bool is_memory_side(hwloc_obj_t cache)
{
	return cache->subtype && strcmp(cache->subtype, "MemorySideCache") == 0;
}

static void number_core_and_cache(struct nm_topology *topology, hwloc_topology_t hwloc,
				  hwloc_obj_t *caches, unsigned *nr_caches, hwloc_obj_t pu)
{
	struct nm_cpu *cpu = &topology->cpus[pu->os_index];
	hwloc_obj_t cache = NULL, core = NULL;

	for (hwloc_obj_t up = pu->parent; up; up = up->parent) {
		if (hwloc_obj_type_is_dcache(up->type) && !is_memory_side(up))
			cache = up;
		if (up->type == HWLOC_OBJ_CORE)
			core = up;
	}
	/*
	 * Without information about cores, each CPU counts as one, numbered after the known cores.
	 */
	cpu->core = core ? (int)core->logical_index
			 : hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) + (int)pu->logical_index;
	if (!cache)
		return;
	unsigned i = 0;
	while (i < *nr_caches && caches[i] != cache)
		i++;
	if (i == *nr_caches)
		caches[(*nr_caches)++] = cache;
	cpu->cache = (int)i;
	if (cache->attr->cache.size > topology->llc_bytes)
		topology->llc_bytes = cache->attr->cache.size;
}

static void read_cpu_sets(struct loader *loader, hwloc_bitmap_t present)
{
	struct nm_topology *topology = loader->topology;

	nm_must_do(hwloc_bitmap_copy(present, hwloc_topology_get_complete_cpuset(loader->hwloc)));
	nm_must_do(hwloc_bitmap_copy(topology->online,
				     hwloc_topology_get_topology_cpuset(loader->hwloc)));
	if (loader->root >= 0) {
		nm_sysfs_add_list(loader->root, "sys/devices/system/cpu/present", present);
		nm_sysfs_add_list(loader->root, "sys/devices/system/cpu/possible",
				  topology->possible);
		nm_sysfs_add_list(loader->root, "sys/devices/system/cpu/isolated",
				  loader->isolated);
		nm_sysfs_add_list(loader->root, "sys/fs/cgroup/cpuset.cpus.isolated",
				  loader->isolated);
		nm_sysfs_add_list(loader->root, "sys/devices/system/cpu/nohz_full",
				  loader->nohz_full);
		if (nm_sysfs_add_list(loader->root, "sys/devices/system/cpu/online",
				      loader->scratch))
			hwloc_bitmap_and(topology->online, topology->online, loader->scratch);
	}
	if (loader->also_isolated && nm_list_parse(loader->also_isolated, loader->scratch) == 0)
		hwloc_bitmap_or(loader->isolated, loader->isolated, loader->scratch);
	hwloc_bitmap_or(topology->possible, topology->possible, present);
	hwloc_bitmap_andnot(topology->usable, topology->online, loader->isolated);
	hwloc_bitmap_andnot(topology->usable, topology->usable, loader->nohz_full);
}

static int fill_cpus(struct loader *loader)
{
	struct nm_topology *topology = loader->topology;
	nm_autobitmap present = nm_must(hwloc_bitmap_alloc());

	read_cpu_sets(loader, present);
	int last = hwloc_bitmap_last(present);
	if (last < 0)
		return fail(loader, -EINVAL, "The topology names no CPU.");
	if ((unsigned)last > NM_LIST_MAX)
		return fail(loader, -EINVAL, "The topology has a CPU %d; the last may be %u.", last,
			    NM_LIST_MAX);
	topology->nr_cpus = (unsigned)last + 1;
	topology->cpus = nm_must(calloc(topology->nr_cpus, sizeof(*topology->cpus)));
	for (unsigned i = 0; i < topology->nr_cpus; i++)
		topology->cpus[i] = (struct nm_cpu){
			.present = hwloc_bitmap_isset(present, i),
			.online = hwloc_bitmap_isset(topology->online, i),
			.isolated = hwloc_bitmap_isset(loader->isolated, i),
			.nohz_full = hwloc_bitmap_isset(loader->nohz_full, i),
			.node = -1,
			.core = -1,
			.cache = -1,
		};
	nm_autofree hwloc_obj_t *caches = nm_must(calloc(topology->nr_cpus, sizeof(hwloc_obj_t)));
	unsigned nr_caches = 0;
	hwloc_obj_t pu = NULL;
	while ((pu = hwloc_get_next_obj_by_type(loader->hwloc, HWLOC_OBJ_PU, pu)))
		if (pu->os_index < topology->nr_cpus)
			number_core_and_cache(topology, loader->hwloc, caches, &nr_caches, pu);
	return 0;
}

/* ---- nodes ---- */

static int by_os_index(const void *a, const void *b)
{
	unsigned left = (*(const hwloc_obj_t *)a)->os_index;
	unsigned right = (*(const hwloc_obj_t *)b)->os_index;

	return NM_COMPARE(left, right);
}

/* The kernel's own cpumap decides if it can be read: hwloc assigns nearby CPUs to memory-only
 * nodes. From XML the smallest set that contains a CPU wins, then the lowest node number. */
static void assign_cpus(struct nm_topology *topology, int node, hwloc_const_bitmap_t cpus,
			int *weights)
{
	int weight = hwloc_bitmap_weight(cpus);

	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		if (!hwloc_bitmap_isset(cpus, cpu) || (weights[cpu] && weights[cpu] <= weight))
			continue;
		weights[cpu] = weight;
		topology->cpus[cpu].node = node;
	}
}

static void fill_nodes(struct loader *loader, hwloc_obj_t *objects)
{
	struct nm_topology *topology = loader->topology;
	nm_autofree int *weights = nm_must(calloc(topology->nr_cpus, sizeof(int)));

	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		struct nm_node *node = &topology->nodes[i];
		node->os_id = objects[i]->os_index;
		node->memory_bytes = objects[i]->attr->numanode.local_memory;
		node->cpus = nm_must(hwloc_bitmap_alloc());
		bool has_list = loader->root >= 0 &&
				nm_sysfs_node_cpus(loader->root, node->os_id, loader->scratch) == 0;
		assign_cpus(topology, (int)i, has_list ? loader->scratch : objects[i]->cpuset,
			    weights);
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		int node = topology->cpus[cpu].node;
		if (node >= 0 && hwloc_bitmap_isset(topology->usable, cpu))
			nm_must_do(hwloc_bitmap_set(topology->nodes[node].cpus, cpu));
	}
}

static void fill_distances(struct loader *loader)
{
	struct nm_topology *topology = loader->topology;
	struct hwloc_distances_s *matrix = NULL;
	unsigned n = topology->nr_nodes, matrices = 1;

	for (unsigned i = 0; i < n * n; i++)
		topology->distance[i] = i % (n + 1) == 0 ? NM_DISTANCE_LOCAL : DISTANCE_REMOTE;
	if (hwloc_distances_get_by_type(loader->hwloc, HWLOC_OBJ_NUMANODE, &matrices, &matrix,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) < 0 ||
	    !matrix)
		return;
	for (unsigned i = 0; i < matrix->nbobjs * matrix->nbobjs; i++) {
		int from = nm_topology_node_index(topology,
						  matrix->objs[i / matrix->nbobjs]->os_index);
		int to = nm_topology_node_index(topology,
						matrix->objs[i % matrix->nbobjs]->os_index);
		if (from >= 0 && to >= 0 && matrix->values[i] > 0)
			topology->distance[(unsigned)from * n + (unsigned)to] =
				(unsigned)matrix->values[i];
	}
	hwloc_distances_release(loader->hwloc, matrix);
}

/* ---- representatives of nodes without CPUs ---- */

/* Returns the nearest node with usable CPUs, among those in os_ids or with CPUs in the set; -1:
 * none. */
static int nearest_by_distance(const struct nm_topology *topology, int node,
			       hwloc_const_bitmap_t os_ids, hwloc_const_bitmap_t cpus)
{
	unsigned shortest = UINT32_MAX;
	int nearest = -1;

	for (unsigned k = 0; k < topology->nr_nodes; k++) {
		const struct nm_node *other = &topology->nodes[k];
		unsigned distance = nm_topology_distance(topology, node, (int)k);
		if (hwloc_bitmap_iszero(other->cpus) || distance >= shortest ||
		    (os_ids && !hwloc_bitmap_isset(os_ids, other->os_id)) ||
		    (cpus && !hwloc_bitmap_intersects(cpus, other->cpus)))
			continue;
		shortest = distance;
		nearest = (int)k;
	}
	return nearest;
}

/*
 * Uses the firmware's best initiators (Linux, admin-guide/mm/numaperf): class 1 contains only CPUs,
 * class 0 also devices. Without them hwloc is used, which knows machines whose firmware has no such
 * table. Distances come last: they are often equal for all memory without CPUs.
 */
static int find_stand_in(struct loader *loader, int node, hwloc_const_bitmap_t near)
{
	const struct nm_topology *topology = loader->topology;
	int found = -1;

	for (int class = 1; class >= 0 && loader->root >= 0 && found < 0; class--) {
		nm_sysfs_initiators(loader->root, topology->nodes[node].os_id, (unsigned)class,
				    loader->scratch);
		found = nearest_by_distance(topology, node, loader->scratch, NULL);
	}
	if (found < 0)
		found = nearest_by_distance(topology, node, NULL, near);
	return found < 0 ? nearest_by_distance(topology, node, NULL, NULL) : found;
}

/* If no node has a usable CPU, threads cannot be moved, and each node represents itself. */
static void fill_nearest(struct loader *loader, hwloc_obj_t *objects)
{
	struct nm_topology *topology = loader->topology;

	for (int i = 0; i < (int)topology->nr_nodes; i++) {
		struct nm_node *node = &topology->nodes[i];
		int found = i;
		if (hwloc_bitmap_iszero(node->cpus))
			found = find_stand_in(loader, i, objects[i]->cpuset);
		node->nearest_with_cpus = found < 0 ? i : found;
	}
}

static int fill_memory(struct loader *loader)
{
	struct nm_topology *topology = loader->topology;
	int count = hwloc_get_nbobjs_by_type(loader->hwloc, HWLOC_OBJ_NUMANODE);

	if (count < 1)
		return fail(loader, -EINVAL, "The topology names no memory node.");
	nm_autofree hwloc_obj_t *objects = nm_must(calloc((size_t)count, sizeof(hwloc_obj_t)));
	topology->nodes = nm_must(calloc((size_t)count, sizeof(*topology->nodes)));
	topology->distance =
		nm_must(calloc((size_t)count * (size_t)count, sizeof(*topology->distance)));
	topology->nr_nodes = (unsigned)count;
	for (unsigned i = 0; i < topology->nr_nodes; i++)
		objects[i] = hwloc_get_obj_by_type(loader->hwloc, HWLOC_OBJ_NUMANODE, i);
	qsort(objects, (size_t)count, sizeof(hwloc_obj_t), by_os_index);
	fill_nodes(loader, objects);
	fill_distances(loader);
	fill_nearest(loader, objects);
	return 0;
}

/* ---- interface ---- */

static void loader_clear(struct loader *loader)
{
	if (loader->hwloc)
		hwloc_topology_destroy(loader->hwloc);
	nm_closep(&loader->root);
	hwloc_bitmap_free(loader->isolated);
	hwloc_bitmap_free(loader->nohz_full);
	hwloc_bitmap_free(loader->scratch);
	nm_topology_free(loader->topology);
}

int nm_topology_load(const struct nm_topology_source *source, char *error, size_t error_size,
		     struct nm_topology **ret)
{
	struct nm_topology *topology = nm_must(calloc(1, sizeof(*topology)));
	nm_auto(loader_clear) struct loader loader = {.root = -1,
						      .isolated = nm_must(hwloc_bitmap_alloc()),
						      .nohz_full = nm_must(hwloc_bitmap_alloc()),
						      .scratch = nm_must(hwloc_bitmap_alloc()),
						      .also_isolated = source->isolated,
						      .topology = topology,
						      .error = error,
						      .error_size = error_size};

	topology->usable = nm_must(hwloc_bitmap_alloc());
	topology->online = nm_must(hwloc_bitmap_alloc());
	topology->possible = nm_must(hwloc_bitmap_alloc());
	int r = open_tree(&loader, source);
	if (r == 0)
		r = discover_with_environment(&loader, source);
	if (r == 0)
		r = fill_cpus(&loader);
	if (r == 0)
		r = fill_memory(&loader);
	if (r < 0)
		return r;
	fail(&loader, 0, "%s", "");
	*ret = NM_TAKE(loader.topology);
	return 0;
}

int nm_topology_load_cpus(const char *root_path, struct nm_topology **ret)
{
	nm_auto(nm_closep) int root = nm_sysfs_root(root_path);
	nm_auto(nm_topology_freep) struct nm_topology *topology =
		nm_must(calloc(1, sizeof(*topology)));

	topology->online = nm_must(hwloc_bitmap_alloc());
	topology->possible = nm_must(hwloc_bitmap_alloc());
	if (root < 0 ||
	    !nm_sysfs_add_list(root, "sys/devices/system/cpu/online", topology->online) ||
	    !nm_sysfs_add_list(root, "sys/devices/system/cpu/possible", topology->possible))
		return -ENOENT;
	*ret = NM_TAKE(topology);
	return 0;
}
