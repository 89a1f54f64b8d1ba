/* SPDX-License-Identifier: MIT */
/* The machines of the papers, and machines of any topology. */
#include <string.h>

#include "model.h"

#define GIB (1ULL << 30)
#define MIB (1ULL << 20)

enum shape { RING, MESH };

/*
 * Sources of the values: latencies of idle machines and sustained bandwidths, measured by others on
 * machines like these, with Intel MLC unless another tool is named.
 *
 * ring-4x10: 4 x Xeon E5-4620 v4 in a ring, one memory channel per node (LBMA/IMAR2 paper, section
 * 5).
 *
 *   Latency: 80 and 140 ns, as two-socket Broadwell (74 to 77, 85/136). The rates of a single
 *   thread in table 1 of the paper have the same ratio (triad 11.3 to 6.4 GB/s), so that latency
 *   limits them, and fall over the second hop to 0.83 (copy) and 0.93 (triad): 150 to 169 ns,
 *   taken as 160.
 *
 *   Channel: the same table has 10.4 GB/s for copy and 11.3 for triad: including the lines read
 *   before they are written 15.6 and 15.1, of 17.1 that DDR4-2133 has; taken as 15.3.
 *
 *   Link: QPI with 8 GT/s has 16 GB/s in each direction. Two links with 9.6 GT/s, 38.4 GB/s,
 *   carry 15 to 16 between sockets of Broadwell in MLC, including snoops: the same share of 16,
 *   0.42, would be 6.7. Table 1 of the paper has 7.4 GB/s copied over one hop by one thread, with the
 *   same amount inwards: 7.5.
 *
 * mesh-4x20: 4 x Xeon Gold 6248, fully connected. Two-socket Cascade Lake: 81 and 141 ns, 208 GB/s
 * with three reads per write, 104 per node; 34.3 GB/s over two UPI links: 17 for the single link of
 * each pair.
 *
 * x7550-4x8: 4 x Xeon X7550. 160 ns local (X7560, AnandTech 3648); 230 remote, by the ratio of
 * E7-4800 (135 to 197 ns, Intel's blog). Four DDR3-1066 channels behind buffers: 17 GB/s, an
 * estimate; QPI with 6.4 GT/s: 12.8 GB/s in each direction.
 *
 * e5620-2x4: 2 x Xeon E5620, kMLB's machine (its table 2). 85 and 137 ns as later two-socket
 * machines; three channels of DDR3-1066: 18 GB/s, and QPI with 5.86 GT/s: 11.7 GB/s; estimates.
 *
 * o6320-4x8: 4 x Opteron 6320 (exclusivity paper, table 4): its constant NUMA factor, 1.6, with an
 * estimated 100 ns; 25 GB/s per node and HyperTransport with 6.4 GT/s at 16 bit, 12.8 GB/s;
 * estimates.
 *
 * epyc-2x32-llc: 2 x EPYC 7452 (Zen 2), one node a socket, eight complexes of four cores with 16 MB
 * each. 105 and 200 ns, 150 GB/s of the 205 that eight channels of DDR4-3200 have, and 50 GB/s
 * between the sockets: estimates. Names ending in "-llc" have caches in the model.
 *
 * Two busy threads of a core have 1.25 times the throughput of one: an estimate within Intel's
 * statements.
 */
struct model {
	struct nm_sim_model shown;
	enum shape shape;
	unsigned nodes, cores, smt;
	double ghz, latency_ns[3]; /* by number of hops */
	double node_bytes_per_ns, link_bytes_per_ns;
	unsigned distance[3]; /* from the firmware */
	uint64_t llc_bytes, node_memory_bytes;
	unsigned caches; /* of each node, whose effects are modelled (cache.c); 0: none */
};

/* clang-format off */
static const struct model models[] = {
	{{"ring-4x10", "4 x Xeon E5-4620 v4 in a ring, one memory channel each (ct1)"},
	 RING, 4, 10, 1, 2.4, {80, 140, 160}, 15.3, 7.5, {10, 21, 30}, 25 * MIB, 128 * GIB, 0},
	{{"mesh-4x20", "4 x Xeon Gold 6248, fully connected (ct2)"},
	 MESH, 4, 20, 1, 3.2, {81, 141, 141}, 104, 17, {10, 21, 21}, 27 * MIB, 256 * GIB, 0},
	{{"ring-8x10", "eight nodes like those of ring-4x10, in a ring"},
	 RING, 8, 10, 1, 2.4, {80, 140, 160}, 15.3, 7.5, {10, 21, 30}, 25 * MIB, 4 * GIB, 0},
	{{"mesh-8x20", "eight nodes like those of mesh-4x20, fully connected"},
	 MESH, 8, 20, 1, 3.2, {81, 141, 141}, 104, 17, {10, 21, 21}, 27 * MIB, 4 * GIB, 0},
	{{"x7550-4x8", "4 x Xeon X7550, fully connected, SMT (kMAF)"},
	 MESH, 4, 8, 2, 2.0, {160, 230, 230}, 17, 12.8, {10, 21, 21}, 18 * MIB, 32 * GIB, 0},
	{{"e5620-2x4", "2 x Xeon E5620, SMT (kMLB)"},
	 MESH, 2, 4, 2, 2.4, {85, 137, 137}, 18, 11.7, {10, 20, 20}, 12 * MIB, 12 * GIB, 0},
	{{"o6320-4x8", "4 x Opteron 6320, constant distance (exclusivity)"},
	 MESH, 4, 8, 1, 2.8, {100, 160, 160}, 25, 12.8, {10, 16, 16}, 8 * MIB, 32 * GIB, 0},
	{{"x7550-4x8-llc", "x7550-4x8 with shared last-level caches"},
	 MESH, 4, 8, 2, 2.0, {160, 230, 230}, 17, 12.8, {10, 21, 21}, 18 * MIB, 32 * GIB, 1},
	{{"e5620-2x4-llc", "e5620-2x4 with shared last-level caches"},
	 MESH, 2, 4, 2, 2.4, {85, 137, 137}, 18, 11.7, {10, 20, 20}, 12 * MIB, 12 * GIB, 1},
	{{"o6320-4x8-llc", "o6320-4x8 with shared last-level caches"},
	 MESH, 4, 8, 1, 2.8, {100, 160, 160}, 25, 12.8, {10, 16, 16}, 8 * MIB, 32 * GIB, 1},
	{{"epyc-2x32-llc", "2 x 32 cores, eight last-level caches each"},
	 MESH, 2, 32, 1, 2.8, {105, 200, 200}, 150, 50, {10, 32, 32}, 16 * MIB, 256 * GIB, 8},
};
/* clang-format on */

#define SMT_GAIN 1.25
/* For machines of which only the topology is known: values of a current server. SLIT exaggerates
 * (21/10, while 1.6 to 1.8 is measured: 0.7 of the excess over the local distance). */
#define USUAL_GHZ 2.5
#define USUAL_LATENCY_NS 80.0
#define USUAL_NODE_BYTES_PER_NS 100.0
#define USUAL_LINK_BYTES_PER_NS 40.0
#define SLIT_TRUTH 0.7

const struct nm_sim_model *nm_sim_model(size_t index)
{
	return index < NM_ARRAY_SIZE(models) ? &models[index].shown : NULL;
}

void nm_sim_machine_free(struct nm_sim_machine *machine)
{
	if (!machine)
		return;
	nm_topology_free(machine->topology);
	free(machine->latency_ns);
	free(machine->node_bytes_per_ns);
	free(machine->links);
	free(machine->route);
	free(machine);
}

/* ---- topologies ---- */

static int alloc_topology(unsigned nodes, unsigned cpus, struct nm_topology **ret)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = calloc(1, sizeof(*topology));

	if (!topology)
		return -ENOMEM;
	topology->nr_cpus = cpus;
	topology->nodes = calloc(nodes, sizeof(*topology->nodes));
	topology->cpus = calloc(cpus, sizeof(*topology->cpus));
	topology->distance = calloc((size_t)nodes * nodes, sizeof(*topology->distance));
	topology->usable = hwloc_bitmap_alloc();
	topology->online = hwloc_bitmap_alloc();
	topology->possible = hwloc_bitmap_alloc();
	if (!topology->nodes || !topology->cpus || !topology->distance || !topology->usable ||
	    !topology->online || !topology->possible)
		return -ENOMEM;
	for (; topology->nr_nodes < nodes; topology->nr_nodes++) {
		struct nm_node *node = &topology->nodes[topology->nr_nodes];
		*node = (struct nm_node){.os_id = topology->nr_nodes,
					 .cpus = hwloc_bitmap_alloc(),
					 .nearest_with_cpus = (int)topology->nr_nodes};
		if (!node->cpus)
			return -ENOMEM;
	}
	*ret = NM_TAKE(topology);
	return 0;
}

/* In the numbering of Linux: first one thread of each core, node by node, then the others. */
static void place_cpus(struct nm_topology *topology, unsigned smt, unsigned caches)
{
	unsigned cores = topology->nr_cpus / smt;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		unsigned core = cpu % cores;
		unsigned node = (unsigned)((uint64_t)core * topology->nr_nodes / cores);
		topology->cpus[cpu] = (struct nm_cpu){.present = true,
						      .online = true,
						      .node = (int)node,
						      .core = (int)core,
						      .cache = (int)((uint64_t)core * caches / cores)};
		hwloc_bitmap_set(topology->nodes[node].cpus, cpu);
	}
	hwloc_bitmap_set_range(topology->usable, 0, (int)topology->nr_cpus - 1);
	hwloc_bitmap_copy(topology->online, topology->usable);
	hwloc_bitmap_copy(topology->possible, topology->usable);
}

static unsigned hops(enum shape shape, unsigned nodes, unsigned a, unsigned b)
{
	unsigned apart = a > b ? a - b : b - a;
	if (shape == RING && nodes - apart < apart)
		apart = nodes - apart;
	if (shape == MESH)
		return apart > 0;
	return apart > 2 ? 2 : apart;
}

/* ---- machines ---- */

static double *pair_entry(const struct nm_sim_machine *machine, double *matrix, unsigned a,
			  unsigned b)
{
	return &matrix[(size_t)a * machine->topology->nr_nodes + b];
}

static double *share_of_link(const struct nm_sim_machine *machine, unsigned from, unsigned to,
			     unsigned link)
{
	unsigned nodes = machine->topology->nr_nodes;
	return &machine->route[((size_t)from * nodes + to) * machine->nr_links + link];
}

static int alloc_machine(unsigned nodes, unsigned links, struct nm_sim_machine **ret)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = calloc(1, sizeof(*machine));
	if (!machine)
		return -ENOMEM;
	machine->nr_links = links;
	machine->latency_ns = calloc((size_t)nodes * nodes, sizeof(*machine->latency_ns));
	machine->node_bytes_per_ns = calloc(nodes, sizeof(*machine->node_bytes_per_ns));
	machine->links = calloc(links + 1, sizeof(*machine->links));
	machine->route = calloc((size_t)nodes * nodes * (links + 1), sizeof(*machine->route));
	if (!machine->latency_ns || !machine->node_bytes_per_ns || !machine->links ||
	    !machine->route)
		return -ENOMEM;
	*ret = NM_TAKE(machine);
	return 0;
}

/* Link 2k leads from node k to the next one, 2k + 1 to the previous one. To the opposite node both
 * directions are equally long, and carry 50 % each. */
static void route_ring(struct nm_sim_machine *machine)
{
	unsigned nodes = machine->topology->nr_nodes;
	for (unsigned from = 0; from < nodes; from++)
		for (unsigned up = 1; up < nodes; up++) {
			unsigned to = (from + up) % nodes, down = nodes - up;
			double part = up == down ? 0.5 : up < down;
			for (unsigned hop = 0; hop < up && part > 0; hop++)
				*share_of_link(machine, from, to, 2 * ((from + hop) % nodes)) =
					part;
			for (unsigned hop = 0; hop < down && part < 1; hop++)
				*share_of_link(machine, from, to,
					       2 * ((from + nodes - hop) % nodes) + 1) = 1 - part;
		}
}

static void route_mesh(struct nm_sim_machine *machine)
{
	unsigned nodes = machine->topology->nr_nodes;
	for (unsigned from = 0; from < nodes; from++)
		for (unsigned to = 0; to < nodes; to++)
			if (from != to)
				*share_of_link(machine, from, to, from * nodes + to) = 1;
}

/* One outgoing and one incoming link per node, to all other nodes. */
static void route_ports(struct nm_sim_machine *machine)
{
	unsigned nodes = machine->topology->nr_nodes;
	for (unsigned from = 0; from < nodes; from++)
		for (unsigned to = 0; to < nodes; to++)
			if (from != to)
				*share_of_link(machine, from, to, 2 * from) =
					*share_of_link(machine, from, to, 2 * to + 1) = 1;
}

static void fill_model(const struct model *model, struct nm_sim_machine *machine)
{
	struct nm_topology *topology = machine->topology;
	place_cpus(topology, model->smt, model->nodes * (model->caches ? model->caches : 1));
	machine->nr_caches = model->nodes * model->caches;
	topology->llc_bytes = model->llc_bytes;
	machine->ghz = model->ghz;
	machine->smt_gain = SMT_GAIN;
	for (unsigned a = 0; a < model->nodes; a++) {
		topology->nodes[a].memory_bytes = model->node_memory_bytes;
		machine->node_bytes_per_ns[a] = model->node_bytes_per_ns;
		for (unsigned b = 0; b < model->nodes; b++) {
			unsigned apart = hops(model->shape, model->nodes, a, b);
			*pair_entry(machine, machine->latency_ns, a, b) = model->latency_ns[apart];
			topology->distance[a * model->nodes + b] = model->distance[apart];
		}
	}
	for (unsigned i = 0; i < machine->nr_links; i++)
		machine->links[i].bytes_per_ns = model->link_bytes_per_ns;
	if (model->shape == RING)
		route_ring(machine);
	else
		route_mesh(machine);
}

static int make_machine(const struct model *model, struct nm_sim_machine **ret)
{
	nm_auto(nm_sim_machine_freep) struct nm_sim_machine *machine = NULL;
	unsigned links = model->shape == RING ? 2 * model->nodes : model->nodes * model->nodes;
	int r = alloc_machine(model->nodes, links, &machine);
	if (r == 0)
		r = alloc_topology(model->nodes, model->nodes * model->cores * model->smt,
				   &machine->topology);
	if (r < 0)
		return r;
	fill_model(model, machine);
	*ret = NM_TAKE(machine);
	return 0;
}

int nm_sim_machine_by_name(const char *name, struct nm_sim_machine **ret)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(models); i++)
		if (strcmp(models[i].shown.name, name) == 0)
			return make_machine(&models[i], ret);
	return -ENOENT;
}

int nm_sim_machine_of(struct nm_topology *topology, struct nm_sim_machine **ret)
{
	struct nm_sim_machine *machine = NULL;
	int r = alloc_machine(topology->nr_nodes, 2 * topology->nr_nodes, &machine);
	if (r < 0)
		return r;
	machine->topology = topology;
	machine->ghz = USUAL_GHZ;
	machine->smt_gain = SMT_GAIN;
	for (unsigned a = 0; a < topology->nr_nodes; a++) {
		machine->node_bytes_per_ns[a] = USUAL_NODE_BYTES_PER_NS;
		for (unsigned b = 0; b < topology->nr_nodes; b++) {
			unsigned distance = nm_topology_distance(topology, (int)a, (int)b);
			double beyond = distance > 10 ? (distance - 10) / 10.0 : 0;
			*pair_entry(machine, machine->latency_ns, a, b) =
				USUAL_LATENCY_NS * (1 + SLIT_TRUTH * beyond);
		}
	}
	for (unsigned i = 0; i < machine->nr_links; i++)
		machine->links[i].bytes_per_ns = USUAL_LINK_BYTES_PER_NS;
	route_ports(machine);
	*ret = machine;
	return 0;
}

int nm_sim_machine_regular(unsigned nodes, unsigned cpus, struct nm_sim_machine **ret)
{
	nm_auto(nm_topology_freep) struct nm_topology *topology = NULL;
	if (nodes == 0 || cpus == 0 || cpus % nodes != 0)
		return -EINVAL;
	int r = alloc_topology(nodes, cpus, &topology);
	if (r < 0)
		return r;
	place_cpus(topology, 1, nodes);
	topology->llc_bytes = 32 * MIB;
	for (unsigned a = 0; a < nodes; a++) {
		topology->nodes[a].memory_bytes = 256 * GIB;
		for (unsigned b = 0; b < nodes; b++)
			topology->distance[a * nodes + b] = a == b ? 10 : 20;
	}
	r = nm_sim_machine_of(topology, ret);
	if (r == 0)
		topology = NULL;
	return r;
}
