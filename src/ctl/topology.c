/* SPDX-License-Identifier: MIT */
/* The machine as numa-migrd sees it; without numa-migrd. */
#include <inttypes.h>
#include <string.h>

#include "cell.h"
#include "ctl.h"
#include "numa-migrd/topology.h"

static const struct nm_column columns[] = {
	{.key = "node", .head = "NODE"},
	{.key = "memory_bytes", .head = "MEMORY", .kind = NM_CELL_BYTES},
	{.key = "cpus", .head = "CPUS", .left = true},
	{.key = "distances", .head = "DISTANCES", .left = true},
};

static json_t *cpu_list(hwloc_const_bitmap_t cpus)
{
	nm_autofree char *text = NULL;
	if (hwloc_bitmap_list_asprintf(&text, cpus) < 0)
		return NULL;
	return json_string(text);
}

/* To every node in the order of the list. */
static json_t *distances(const struct nm_topology *topology, unsigned from)
{
	json_t *array = json_array();
	for (unsigned to = 0; to < topology->nr_nodes; to++)
		(void)json_array_append_new(
			array, json_integer(nm_topology_distance(topology, (int)from, (int)to)));
	return array;
}

static json_t *nodes_of(const struct nm_topology *topology)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		const struct nm_node *node = &topology->nodes[i];
		(void)json_array_append_new(array,
					    json_pack("{siso?sIso?}", "node", (int)node->os_id,
						      "cpus", cpu_list(node->cpus), "memory_bytes",
						      (json_int_t)node->memory_bytes, "distances",
						      distances(topology, i)));
	}
	return array;
}

/* An absent number is left out. */
static void set_number(json_t *object, const char *name, int number)
{
	if (number >= 0)
		(void)json_object_set_new(object, name, json_integer(number));
}

static json_t *cpu_object(const struct nm_topology *topology, unsigned number)
{
	const struct nm_cpu *cpu = &topology->cpus[number];
	json_t *object = json_pack("{sisbsbsb}", "cpu", (int)number, "online", cpu->online,
				   "isolated", cpu->isolated, "nohz_full", cpu->nohz_full);
	if (cpu->node >= 0)
		set_number(object, "node", (int)topology->nodes[cpu->node].os_id);
	set_number(object, "core", cpu->core);
	set_number(object, "cache", cpu->cache);
	return object;
}

static json_t *cpus_of(const struct nm_topology *topology)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < topology->nr_cpus; i++)
		if (topology->cpus[i].present)
			(void)json_array_append_new(array, cpu_object(topology, i));
	return array;
}

static void print_left_out(FILE *out, const struct nm_topology *topology)
{
	nm_autobitmap rest = hwloc_bitmap_alloc();
	nm_autofree char *text = NULL;
	if (!rest || hwloc_bitmap_andnot(rest, topology->online, topology->usable) < 0 ||
	    hwloc_bitmap_iszero(rest) || hwloc_bitmap_list_asprintf(&text, rest) < 0)
		return;
	(void)fprintf(out, "\nisolated or nohz_full, never used: %s\n", text);
}

static int print_topology(const struct nm_ctl *ctl, const struct nm_topology *topology)
{
	nm_auto(json_decrefp) json_t *nodes = nodes_of(topology);
	nm_table_print(stdout, &ctl->style, columns, NM_ARRAY_SIZE(columns), nodes);
	print_left_out(stdout, topology);
	if (topology->nr_nodes == 1)
		(void)fputs("\none node: there is nothing for numa-migrd to do\n", stdout);
	return nm_ctl_close_output();
}

int nm_ctl_show_topology(const struct nm_ctl *ctl, const struct nm_topology *topology)
{
	if (!ctl->json)
		return print_topology(ctl, topology);
	nm_auto(json_decrefp) json_t *document =
		json_pack("{sisoso}", "version", NM_CTL_JSON_VERSION, "nodes", nodes_of(topology),
			  "cpus", cpus_of(topology));
	return nm_ctl_print_json(document);
}

int nm_ctl_topology(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	const struct nm_topology_source this_machine = {0};
	char error[512];
	(void)words;
	int r = nm_topology_load(&this_machine, error, sizeof(error), &topology);
	if (r >= 0)
		return nm_ctl_show_topology(ctl, topology);
	(void)fprintf(stderr, "numa-migrctl: %s\n", error);
	return EXIT_FAILURE;
}
