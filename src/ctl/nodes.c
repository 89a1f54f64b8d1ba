/* SPDX-License-Identifier: MIT */
/* The nodes as the kernel shows them, in the form of numactl -H and numastat. */
#include "nodes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/file.h"
#include "numa-migrd/topology.h"

#define NODES "sys/devices/system/node"
#define TEXT_BYTES 8192

static const char *const counters[] = {"numa_hit",	 "numa_miss",  "numa_foreign",
				       "interleave_hit", "local_node", "other_node"};

/* ---- reading ---- */

/* Returns the number behind the word in the text, or -1. */
static json_int_t number_behind(const char *text, const char *word)
{
	const char *found = strstr(text, word);
	return found ? strtoll(found + strlen(word), NULL, 10) : -1;
}

static void read_memory(int root, unsigned node, json_t *row)
{
	char path[96], text[TEXT_BYTES];
	(void)snprintf(path, sizeof(path), NODES "/node%u/meminfo", node);
	if (nm_read_text(root, path, text, sizeof(text)) < 0)
		return;
	json_int_t total = number_behind(text, "MemTotal:"), free = number_behind(text, "MemFree:");
	if (total >= 0)
		nm_must_do(json_object_set_new(row, "memory_bytes", json_integer(total * 1024)));
	if (free >= 0)
		nm_must_do(
			json_object_set_new(row, "memory_free_bytes", json_integer(free * 1024)));
}

static void read_counters(int root, unsigned node, json_t *row)
{
	char path[96], text[TEXT_BYTES];
	(void)snprintf(path, sizeof(path), NODES "/node%u/numastat", node);
	if (nm_read_text(root, path, text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < NM_ARRAY_SIZE(counters); i++) {
		json_int_t count = number_behind(text, counters[i]);
		if (count >= 0)
			nm_must_do(json_object_set_new(row, counters[i], json_integer(count)));
	}
}

static json_t *read_distances(int root, unsigned node)
{
	char path[96], text[TEXT_BYTES], *rest = text, *end;
	json_t *list = nm_must(json_array());
	(void)snprintf(path, sizeof(path), NODES "/node%u/distance", node);
	if (nm_read_text(root, path, text, sizeof(text)) < 0)
		return list;
	for (unsigned long value = strtoul(rest, &end, 10); end != rest;
	     value = strtoul(rest, &end, 10)) {
		nm_must_do(json_array_append_new(list, json_integer((json_int_t)value)));
		rest = end;
	}
	return list;
}

static json_t *read_cpus(int root, unsigned node)
{
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());
	char path[96], text[TEXT_BYTES];
	json_t *list = nm_must(json_array());
	int cpu;
	(void)snprintf(path, sizeof(path), NODES "/node%u/cpulist", node);
	if (nm_read_text(root, path, text, sizeof(text)) < 0 || nm_list_parse(text, cpus) < 0)
		return list; /* a node without CPUs has an empty list */
	hwloc_bitmap_foreach_begin(cpu, cpus)
		nm_must_do(json_array_append_new(list, json_integer(cpu)));
	hwloc_bitmap_foreach_end();
	return list;
}

int nm_ctl_read_nodes(int root, json_t **ret)
{
	nm_autobitmap online = nm_must(hwloc_bitmap_alloc());
	char text[TEXT_BYTES];
	int node, r = nm_read_text(root, NODES "/online", text, sizeof(text));
	if (r >= 0)
		r = nm_list_parse(text, online);
	if (r < 0)
		return r;
	json_t *nodes = nm_must(json_array());
	hwloc_bitmap_foreach_begin(node, online) json_t *row = nm_must(json_object());
	nm_must_do(json_object_set_new(row, "node", json_integer(node)));
	nm_must_do(json_object_set_new(row, "cpus", read_cpus(root, (unsigned)node)));
	read_memory(root, (unsigned)node, row);
	nm_must_do(json_object_set_new(row, "distances", read_distances(root, (unsigned)node)));
	read_counters(root, (unsigned)node, row);
	nm_must_do(json_array_append_new(nodes, row));
	hwloc_bitmap_foreach_end();
	*ret = nodes;
	return 0;
}

/* ---- printing ---- */

static json_int_t value_of(const json_t *nodes, size_t index, const char *name)
{
	return json_integer_value(json_object_get(json_array_get(nodes, index), name));
}

static void print_megabytes(FILE *out, const json_t *nodes, size_t i, const char *name,
			    const char *title)
{
	if (json_object_get(json_array_get(nodes, i), name))
		(void)fprintf(out, "node %lld %s: %lld MB\n", value_of(nodes, i, "node"), title,
			      value_of(nodes, i, name) >> 20);
}

static void print_distances(FILE *out, const json_t *nodes)
{
	size_t count = json_array_size(nodes);
	(void)fputs("node distances:\nnode", out);
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, " %3lld", value_of(nodes, i, "node"));
	for (size_t i = 0; i < count; i++) {
		const json_t *distances = json_object_get(json_array_get(nodes, i), "distances");
		(void)fprintf(out, "\n%3lld:", value_of(nodes, i, "node"));
		for (size_t k = 0; k < json_array_size(distances); k++)
			(void)fprintf(out, " %3lld",
				      json_integer_value(json_array_get(distances, k)));
	}
	(void)fputc('\n', out);
}

static void print_counters(FILE *out, const json_t *nodes)
{
	size_t count = json_array_size(nodes);
	(void)fprintf(out, "%16s", "");
	for (size_t i = 0; i < count; i++) {
		char name[24];
		(void)snprintf(name, sizeof(name), "node%lld", value_of(nodes, i, "node"));
		(void)fprintf(out, "%16s", name);
	}
	for (size_t k = 0; k < NM_ARRAY_SIZE(counters); k++) {
		(void)fprintf(out, "\n%-16s", counters[k]);
		for (size_t i = 0; i < count; i++)
			(void)fprintf(out, "%16lld", value_of(nodes, i, counters[k]));
	}
	(void)fputc('\n', out);
}

void nm_ctl_print_nodes(FILE *out, const json_t *nodes)
{
	size_t count = json_array_size(nodes);
	(void)fprintf(out, "available: %zu node%s (", count, nm_plural(count, "", "s"));
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, "%s%lld", i > 0 ? "," : "", value_of(nodes, i, "node"));
	(void)fputs(")\n", out);
	for (size_t i = 0; i < count; i++) {
		const json_t *cpus = json_object_get(json_array_get(nodes, i), "cpus");
		(void)fprintf(out, "node %lld cpus:", value_of(nodes, i, "node"));
		for (size_t k = 0; k < json_array_size(cpus); k++)
			(void)fprintf(out, " %lld", json_integer_value(json_array_get(cpus, k)));
		(void)fputc('\n', out);
		print_megabytes(out, nodes, i, "memory_bytes", "size");
		print_megabytes(out, nodes, i, "memory_free_bytes", "free");
	}
	print_distances(out, nodes);
	(void)fputc('\n', out);
	print_counters(out, nodes);
}

int nm_ctl_nodes(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	json_t *nodes = NULL;
	(void)words;
	int r = nm_ctl_read_nodes(root, &nodes);
	if (r < 0)
		return nm_ctl_fail("/" NODES, strerror(-r));
	if (ctl->json)
		return nm_ctl_print_document("nodes", nodes);
	nm_ctl_print_nodes(stdout, nodes);
	json_decref(nodes);
	return nm_ctl_close_output();
}
