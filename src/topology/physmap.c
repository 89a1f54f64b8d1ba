// SPDX-License-Identifier: MIT
/*
 * Maps physical addresses to nodes with two tables: memory blocks (exact, but a block may lie on
 * two nodes, for example with numa=fake) and the spans of zones (exact to the page, but spans of
 * two nodes may overlap). Blocks have priority; for addresses that they do not determine the spans
 * are used, unless these contradict each other.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "numa-migrd/topology.h"
#include "sysfs.h"

#define AMBIGUOUS (-2)

struct range {
	uint64_t start, end; /* bytes, [start, end) */
	int node;	     /* index, or AMBIGUOUS */
};

struct ranges {
	struct range *items;
	size_t count, capacity;
};

struct nm_physmap {
	bool single_node;
	struct ranges blocks, spans;
};

static void nm_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void add_range(struct ranges *ranges, struct range range)
{
	NM_RESERVE(ranges->items, ranges->capacity, ranges->count);
	ranges->items[ranges->count++] = range;
}

static int by_start(const void *a, const void *b)
{
	const struct range *left = a, *right = b;
	return NM_COMPARE(left->start, right->start) ?: NM_COMPARE(left->node, right->node);
}

/* Sorts the blocks and merges neighbours of one node. All have the same size and alignment, so that
 * a block of two nodes appears twice. */
static void normalise(struct ranges *blocks)
{
	size_t kept = 0;

	if (blocks->count == 0)
		return;
	qsort(blocks->items, blocks->count, sizeof(struct range), by_start);
	for (size_t i = 1; i < blocks->count; i++)
		if (blocks->items[i].start == blocks->items[i - 1].start)
			blocks->items[i].node = blocks->items[i - 1].node = AMBIGUOUS;
	for (size_t i = 1; i < blocks->count; i++) {
		struct range *last = &blocks->items[kept];
		const struct range *next = &blocks->items[i];
		if (next->node == last->node && next->start <= last->end)
			last->end = next->end;
		else
			blocks->items[++kept] = *next;
	}
	blocks->count = kept + 1;
}

static int block_node(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == ranges->count || address < ranges->items[low].start)
		return -1;
	return ranges->items[low].node;
}

/* There are few spans, and they may overlap. Returns -1 if zones of two nodes span the address. */
static int span_node(const struct ranges *spans, uint64_t address)
{
	int node = -1;

	for (size_t i = 0; i < spans->count; i++) {
		const struct range *span = &spans->items[i];
		if (address < span->start || address >= span->end || span->node == node)
			continue;
		if (node >= 0)
			return -1;
		node = span->node;
	}
	return node;
}

/* ---- /sys/devices/system/node/nodeN/memoryM ---- */

static bool block_size(int root, uint64_t *ret)
{
	char text[64];
	char *end;

	if (nm_sysfs_read(root, text, sizeof(text), "sys/devices/system/memory/block_size_bytes") <=
	    0)
		return false;
	errno = 0;
	uint64_t size = strtoull(text, &end, 16);
	if (errno || end == text || size == 0)
		return false;
	*ret = size;
	return true;
}

static bool block_number(const char *name, uint64_t *ret)
{
	char *end;

	if (strncmp(name, "memory", 6) != 0 || name[6] < '0' || name[6] > '9')
		return false;
	*ret = strtoull(name + 6, &end, 10);
	return *end == '\0';
}

static void add_node_blocks(struct ranges *blocks, int root, unsigned os_id, int node,
			    uint64_t size)
{
	nm_auto(nm_closedirp) DIR *directory = NULL;
	const struct dirent *entry;
	char path[64];
	uint64_t number;

	snprintf(path, sizeof(path), "sys/devices/system/node/node%u", os_id);
	int r = nm_open_listing(root, path, &directory);
	if (r < 0)
		return;
	while ((entry = readdir(directory))) {
		if (!block_number(entry->d_name, &number) || number >= UINT64_MAX / size)
			continue;
		add_range(blocks, (struct range){number * size, (number + 1) * size, node});
	}
}

static void load_blocks(struct ranges *blocks, const struct nm_topology *topology, int root)
{
	uint64_t size;

	if (!block_size(root, &size))
		return;
	for (unsigned i = 0; i < topology->nr_nodes; i++)
		add_node_blocks(blocks, root, topology->nodes[i].os_id, (int)i, size);
	normalise(blocks);
}

/* ---- /proc/zoneinfo ---- */

struct zone_parser {
	const struct nm_topology *topology;
	uint64_t page_bytes;
	int node; /* of the current zone; -1: not in the topology */
	uint64_t spanned;
};

/* Returns the number after a word at the beginning of the line; false for another word. */
static bool number_after(const char *line, const char *word, uint64_t *ret)
{
	char *end;

	line += strspn(line, " ");
	if (strncmp(line, word, strlen(word)) != 0)
		return false;
	line += strlen(word);
	uint64_t number = strtoull(line, &end, 10);
	if (end == line)
		return false;
	*ret = number;
	return true;
}

/* "spanned" comes before "start_pfn" in each zone (proc(5); mm/vmstat.c). */
static void parse_zone_line(struct zone_parser *zone, const char *line, struct ranges *spans)
{
	uint64_t number;

	if (number_after(line, "Node ", &number)) {
		zone->node = nm_topology_node_index(zone->topology, (unsigned)number);
		zone->spanned = 0;
		return;
	}
	if (number_after(line, "spanned ", &zone->spanned))
		return;
	if (!number_after(line, "start_pfn:", &number) || zone->node < 0 || !zone->spanned)
		return;
	add_range(spans, (struct range){number * zone->page_bytes,
					(number + zone->spanned) * zone->page_bytes, zone->node});
}

static void load_spans(struct ranges *spans, const struct nm_topology *topology, int root)
{
	struct zone_parser zone = {
		.topology = topology, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .node = -1};
	nm_auto(nm_fclosep) FILE *file = NULL;
	nm_autofree char *line = NULL;
	size_t size = 0;

	int fd = openat(root, "proc/zoneinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	file = nm_must(fdopen(fd, "r"));
	while (getline(&line, &size, file) > 0)
		parse_zone_line(&zone, line, spans);
}

/* ---- the map ---- */

void nm_physmap_free(struct nm_physmap *map)
{
	if (!map)
		return;
	free(map->blocks.items);
	free(map->spans.items);
	free(map);
}

int nm_physmap_load(const struct nm_topology *topology, const char *root_path,
		    struct nm_physmap **ret)
{
	nm_auto(nm_physmap_freep) struct nm_physmap *map = nm_must(calloc(1, sizeof(*map)));

	map->single_node = topology->nr_nodes == 1;
	if (!map->single_node) {
		nm_auto(nm_closep) int root = nm_sysfs_root(root_path);
		if (root < 0)
			return -ENODATA;
		load_blocks(&map->blocks, topology, root);
		load_spans(&map->spans, topology, root);
		if (map->blocks.count == 0 && map->spans.count == 0)
			return -ENODATA;
	}
	*ret = NM_TAKE(map);
	return 0;
}

void nm_physmap_empty(struct nm_physmap **ret)
{
	*ret = nm_must(calloc(1, sizeof(**ret)));
}

int nm_physmap_node(const struct nm_physmap *map, uint64_t physical_address)
{
	if (physical_address == 0)
		return -1;
	if (map->single_node)
		return 0;
	int node = block_node(&map->blocks, physical_address);
	if (node >= 0 || (map->blocks.count && node != AMBIGUOUS))
		return node;
	return span_node(&map->spans, physical_address);
}

int nm_topology_load_all(const struct nm_topology_source *source, char *error, size_t error_size,
			 struct nm_topology **ret_topology, struct nm_physmap **ret_physmap)
{
	struct nm_topology_source cpus = *source;
	struct nm_physmap *physmap = NULL;
	if (source->load) {
		int r = source->load(source->context, ret_topology);
		if (r == 0)
			nm_physmap_empty(ret_physmap);
		return r;
	}
	if (cpus.xml_path)
		cpus.root_path = NULL; /* the tree is then only used for the memory blocks */
	int r = nm_topology_load(&cpus, error, error_size, ret_topology);
	if (r < 0)
		return r;
	(void)nm_physmap_load(*ret_topology, source->root_path, &physmap);
	*ret_physmap = physmap;
	return 0;
}
