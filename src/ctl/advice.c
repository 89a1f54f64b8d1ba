/* SPDX-License-Identifier: MIT */
#include "advice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "numa-migrd/proc.h"

#define PAGE_SUMMARY 0
#define PAGE_REGIONS 1

/* ---- values from the bus ---- */

static double real_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static uint64_t count_in(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

/* The bus uses the kernel's numbers. */
static int node_in(const struct nm_topology *topology, const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -1;
	return nm_topology_node_index(topology, (unsigned)json_integer_value(value));
}

static struct nm_advise_thread take_thread(const struct nm_topology *topology, const json_t *object)
{
	return (struct nm_advise_thread){
		.tid = (uint32_t)count_in(object, "tid"),
		.node = node_in(topology, object, "node"),
		.preferred = node_in(topology, object, "preferred_node"),
		.bound = -1,
		.leased = json_is_true(json_object_get(object, "leased")),
		.run_share = real_of(object, "run_share"),
		.local_share = real_of(object, "local_share"),
		.accesses = real_of(object, "accesses"),
	};
}

/* A range without known accesses has no kind. */
static bool take_region(const json_t *object, struct nm_advise_region *ret)
{
	static const char *const kinds[] = {
		[NM_ADVISE_EXCLUSIVE] = "exclusive",
		[NM_ADVISE_MIXED] = "mixed",
		[NM_ADVISE_SHARED] = "shared",
	};
	const char *kind = json_string_value(json_object_get(object, "kind"));

	for (size_t i = 0; kind && i < NM_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kind, kinds[i]) != 0)
			continue;
		*ret = (struct nm_advise_region){
			.start = count_in(object, "start"),
			.end = count_in(object, "end"),
			.bytes = count_in(object, "bytes"),
			.samples = (double)count_in(object, "samples"),
			.exclusivity = real_of(object, "exclusivity"),
			.kind = (enum nm_advise_kind)i,
		};
		return true;
	}
	return false;
}

static int take_threads(struct nm_advise_input *advice, const struct nm_topology *topology,
			const json_t *threads)
{
	size_t count = json_array_size(threads);

	advice->threads = calloc(count + 1, sizeof(*advice->threads));
	if (!advice->threads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		advice->threads[i] = take_thread(topology, json_array_get(threads, i));
	advice->nr_threads = count;
	return 0;
}

static int take_regions(struct nm_advise_input *advice, const json_t *regions)
{
	size_t count = json_array_size(regions);

	advice->regions = calloc(count + 1, sizeof(*advice->regions));
	if (!advice->regions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (take_region(json_array_get(regions, i), &advice->regions[advice->nr_regions]))
			advice->nr_regions++;
	return 0;
}

static int take_nodes(struct nm_advise_input *advice, const struct nm_topology *topology,
		      const json_t *by_node)
{
	advice->nodes = calloc(topology->nr_nodes, sizeof(*advice->nodes));
	if (!advice->nodes)
		return -ENOMEM;
	for (unsigned i = 0; i < topology->nr_nodes; i++)
		advice->nodes[i] = (struct nm_advise_node){
			.os_id = topology->nodes[i].os_id,
			.cpus = (unsigned)hwloc_bitmap_weight(topology->nodes[i].cpus),
			.memory_bytes = topology->nodes[i].memory_bytes,
			.pages = (uint64_t)json_integer_value(json_array_get(by_node, i)),
		};
	advice->nr_nodes = topology->nr_nodes;
	return 0;
}

/* Pages of the last step are used by one node alone, or almost. */
static double shared_page_share(const json_t *pages)
{
	const json_t *histogram = json_object_get(pages, "histogram");
	size_t steps = json_array_size(histogram);
	double all = 0;

	for (size_t i = 0; i < steps; i++)
		all += json_number_value(json_array_get(histogram, i));
	if (all <= 0)
		return (double)NAN;
	return 1 - json_number_value(json_array_get(histogram, steps - 1)) / all;
}

/* As for a process: the mean over its threads, weighted by accesses. */
static double local_share(const struct nm_advise_input *input)
{
	double local = 0, all = 0;

	for (size_t i = 0; i < input->nr_threads; i++) {
		const struct nm_advise_thread *thread = &input->threads[i];
		if (isnan(thread->local_share) || !(thread->accesses > 0))
			continue;
		local += thread->local_share * thread->accesses;
		all += thread->accesses;
	}
	return all > 0 ? local / all : (double)NAN;
}

int nm_advice_take(struct nm_advise_input *advice, uint32_t pid, const struct nm_topology *topology,
		   const json_t *threads, const json_t *pages)
{
	const json_t *summary = json_array_get(pages, PAGE_SUMMARY);

	advice->pid = pid;
	advice->exclusivity = real_of(summary, "exclusivity");
	advice->shared_page_share = shared_page_share(summary);
	advice->ping_pong = count_in(summary, "ping_pong");
	advice->balancing = -1;
	advice->hint_faults_per_s = advice->hint_local_share = advice->migrated_per_s = NAN;
	int r = take_threads(advice, topology, threads);
	if (r == 0)
		r = take_regions(advice, json_array_get(pages, PAGE_REGIONS));
	if (r == 0)
		r = take_nodes(advice, topology, json_object_get(summary, "by_node"));
	if (r == 0)
		advice->local_share = local_share(advice);
	return r;
}

/* ---- values from /proc ---- */

/* Returns the only node of a CPU affinity; -1: several, or none known. */
static int only_node(const struct nm_topology *topology, hwloc_const_bitmap_t mask)
{
	int only = -1;

	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		if (!hwloc_bitmap_intersects(mask, topology->nodes[i].cpus))
			continue;
		if (only >= 0)
			return -1;
		only = (int)i;
	}
	return only;
}

static void look_at_mask(struct nm_advise_thread *thread, struct nm_platform *platform,
			 const struct nm_topology *topology)
{
	nm_autobitmap mask = hwloc_bitmap_alloc();

	if (!thread->leased && mask &&
	    platform->ops->affinity_get(platform, (pid_t)thread->tid, mask) == 0)
		thread->bound = only_node(topology, mask);
}

void nm_advice_look(struct nm_advise_input *advice, struct nm_platform *platform,
		    const struct nm_topology *topology)
{
	struct nm_proc_status status;
	char text[32];

	if (nm_proc_status_of(platform, advice->pid, &status) == 0)
		advice->rss_bytes = status.rss_bytes;
	for (size_t i = 0; i < advice->nr_threads; i++)
		look_at_mask(&advice->threads[i], platform, topology);
	if (platform->ops->read_file(platform, NM_ROOT, "proc/sys/kernel/numa_balancing", text,
				     sizeof(text)) > 0)
		advice->balancing = atoi(text);
}

/* ---- the kernel's balancing ---- */

struct nm_hinting nm_hinting_read(struct nm_platform *platform)
{
	struct nm_hinting hinting = {0};
	char text[NM_VMSTAT_BYTES];

	nm_vmstat_read(platform, text);
	hinting.known = nm_vmstat_value(text, "numa_hint_faults", &hinting.faults) &&
			nm_vmstat_value(text, "numa_hint_faults_local", &hinting.local) &&
			nm_vmstat_value(text, "numa_pages_migrated", &hinting.migrated);
	return hinting;
}

void nm_advice_set_hinting(struct nm_advise_input *advice, const struct nm_hinting *before,
			   const struct nm_hinting *after, double seconds)
{
	double faults = (double)(after->faults - before->faults);

	if (!before->known || !after->known || seconds <= 0)
		return;
	advice->hint_faults_per_s = faults / seconds;
	advice->migrated_per_s = (double)(after->migrated - before->migrated) / seconds;
	if (faults > 0)
		advice->hint_local_share = (double)(after->local - before->local) / faults;
}

void nm_advice_clear(struct nm_advise_input *advice)
{
	free(advice->threads);
	free(advice->regions);
	free(advice->nodes);
	*advice = (struct nm_advise_input){0};
}
