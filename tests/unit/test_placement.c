/* SPDX-License-Identifier: MIT */
/* Policy "auto": homes assigned to groups, and verdicts on them. */
#define SET_UP set_up
#include "../support/test.h"

#include <math.h>
#include <string.h>

#include "policy/placement.h"

#define NODES 4U
#define MIB ((uint64_t)1 << 20)

/* ---- the machine ---- */

/* Four nodes of two cores and 1 GiB each in a ring: 10, 21, 31, 21. */
static unsigned distances[NODES * NODES];
static struct nm_topology topology = {.nr_nodes = NODES, .distance = distances};
static struct nm_place_node nodes[NODES];
static bool anywhere[NODES] = {true, true, true, true};

static int set_up(void **state)
{
	(void)state;
	static const unsigned hops[NODES] = {10, 21, 31, 21};
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned k = 0; k < NODES; k++)
			distances[i * NODES + k] = hops[(k + NODES - i) % NODES];
	for (unsigned k = 0; k < NODES; k++)
		nodes[k] = (struct nm_place_node){.cores = 2, .free_bytes = 1024 * MIB};
	return 0;
}

/* Values of the nodes, in the order of their numbers. */
#define ON(...) ((double[NODES]){__VA_ARGS__})
#define MAY(...) ((bool[NODES]){__VA_ARGS__})

/* A group is described by what differs from this: each of its threads uses a CPU, it has run for a
 * second, and its traffic is served by any memory controller. */
static struct nm_place_group completed(struct nm_place_group group, bool uncounted)
{
	group.pid = 100;
	group.demand_cpus = group.demand_cpus > 0 ? group.demand_cpus : group.running;
	group.wanted_cpus = group.wanted_cpus > 0 ? group.wanted_cpus : group.running;
	group.max_running = group.max_running > 0 ? group.max_running : group.running;
	group.age_s = group.age_s > 0 ? group.age_s : 1;
	group.observed_s = group.observed_s > 0 ? group.observed_s : group.age_s;
	group.anon_bytes = group.anon_bytes > 0 ? group.anon_bytes : 64 * MIB;
	group.allowed = group.allowed ? group.allowed : anywhere;
	group.distance = group.distance > 0 ? group.distance : (double)NAN;
	group.cpu_traffic = group.cpu_traffic > 0 ? group.cpu_traffic : 1e9;
	if (uncounted)
		group.cpu_traffic = 0;
	return group;
}

/* Adds up what runs on the nodes: the groups, and others. */
static void load_nodes(const struct nm_place_group *groups, size_t count, const double *others)
{
	for (unsigned k = 0; k < NODES; k++) {
		nodes[k].busy_cpus = others ? others[k] : 0;
		for (size_t i = 0; i < count; i++)
			nodes[k].busy_cpus += groups[i].ran_on[k];
	}
}

/* The load of the nodes has lasted for some seconds. */
static double recent_demand(void)
{
	double sum = 0;
	for (unsigned k = 0; k < NODES; k++)
		sum += nodes[k].busy_cpus;
	return sum;
}

/* ---- predictions ---- */

/* The time that a placement is predicted to cost a group that waits for memory 25 % of its time:
 * mean distance, waiting for controllers in latencies, and for CPUs. */
#define TIME(distance, contention, waiting)                                                        \
	(1 + 0.25 * ((distance) / 10.0 - 1 + (contention)) + (waiting))
#define GAIN(there, stays) (1 - (there) / (stays))
#define TWO_NODES TIME(15.5, 0, 0) /* half of the accesses are one hop away */
/* Waiting for a controller of which more than 80 %, and more than 96 %, is used. */
#define BUSY(use) (((use)-0.8) / (1 - (use)))
#define FULL(use) (4 * (use) / 0.96)

/* clang-format off */
/* A group on a machine, and what is proposed. */
static const struct scene {
	const char *name;
	struct nm_place_group group;
	bool uncounted; /* nothing counts its traffic */
	/* Of the machine; NULL and 0: as in set_up(). */
	const double *others, *cores, *traffic; /* CPUs in use by others; bytes per second */
	double max_traffic, page_ns;
	uint64_t memory_bytes;
	bool memory_stays;
	int device; /* a node */

	int node;
	enum nm_place_reason reason;
	double gain;
	double load;	     /* 0: not checked */
	uint64_t bytes_away; /* 0: not checked */
} scenes[] = {
#define GETS(home, because, saved) .node = home, .reason = NM_PLACE_##because, .gain = saved
	/* ---- distance ---- */
	{"near its memory", {.running = 1, .ran_on = ON(1, 0, 0, 0)}, GETS(-1, NO_GAIN, 0)},
	{"far from its memory",
	 {.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0, 0, 1, 0)},
	 GETS(2, REMOTE, GAIN(1, TIME(31, 0, 0))), .load = 0.5},
	{"memory is assumed where the threads ran for long",
	 {.running = 1, .age_s = 10, .ran_on = ON(1, 0, 0, 0), .has_run_on = ON(0.1, 0, 10, 0)},
	 GETS(2, REMOTE, GAIN(1, TIME(311 / 10.1, 0, 0)))},
	{"threads are gathered at their memory",
	 {.running = 2, .ran_on = ON(1, 0, 1, 0), .memory_on = ON(0.05, 0.05, 0.05, 0.85)},
	 GETS(3, REMOTE, GAIN(1, TIME(20.95, 0, 0))), .load = 1},
	{"half of it follows", {.running = 2, .ran_on = ON(1, 1, 0, 0)},
	 GETS(0, REMOTE, GAIN(1, TWO_NODES)), .load = 1, .bytes_away = 32 * MIB},
	{"threads that are near their memory count half",
	 {.running = 2, .distance = 10, .ran_on = ON(1, 1, 0, 0)},
	 GETS(0, REMOTE, GAIN(1, TIME(12.75, 0, 0)))},
	{"its data is in caches: 1e6 / 64 lines of 80 ns",
	 {.running = 2, .cpu_traffic = 1e6, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, NO_GAIN, GAIN(1, 1 + 0.00125 * 0.55))},
	{"the emptier of two nodes",
	 {.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0, 0.5, 0, 0.5)},
	 .others = ON(0, 1.5, 0, 0), GETS(3, REMOTE, GAIN(1, TIME(21, 0, 0))), .load = 0.5},

	/* ---- memory that stays ---- */
	{"nothing moves memory",
	 {.running = 2, .ran_on = ON(1, 0, 0, 1), .memory_on = ON(0, 0.25, 0.5, 0.25)},
	 .others = ON(2, 0, 0, 2), .memory_stays = true,
	 GETS(2, REMOTE, GAIN(TIME(15.5, 0, 0), TIME(23.375, 0, 0)))},
	{"nothing moves memory, and no node is nearer",
	 {.running = 2, .ran_on = ON(1, 0, 0, 1), .memory_on = ON(0.5, 0, 0, 0.5)},
	 .others = ON(0, 2, 2, 0), .memory_stays = true, GETS(-1, NO_GAIN, 0)},
	{"its memory could not be moved",
	 {.running = 1, .ran_on = ON(0, 0, 1, 0), .memory_on = ON(1, 0, 0, 0),
	  .memory_stays = true}, GETS(0, REMOTE, GAIN(1, TIME(31, 0, 0)))},
	{"its cpuset forbids memory on node 0",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0), .may_hold = MAY(false, true, true, true)},
	 GETS(1, REMOTE, GAIN(1, TWO_NODES))},
	{"memory on node 1 is shared",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0), .stays_on = ON(0, 1, 0, 0)},
	 GETS(1, REMOTE, GAIN(1, TWO_NODES))},
	{"half of its memory is locked",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0), .pinned_share = 0.5},
	 GETS(0, REMOTE, GAIN(TIME(12.75, 0, 0), TWO_NODES)), .bytes_away = 16 * MIB},
	{"memory of a device is not moved",
	 {.running = 1, .ran_on = ON(0, 1, 0, 0), .memory_on = ON(0.5, 0, 0.5, 0)},
	 .cores = ON(2, 2, 0, 2), .device = 2, GETS(1, REMOTE, GAIN(TWO_NODES, TIME(21, 0, 0))),
	 .bytes_away = 32 * MIB},

	/* ---- memory controllers ---- */
	{"two controllers at the highest rate so far, one could not serve both",
	 {.running = 2, .cpu_traffic = 10e9, .traffic = 20e9, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), .traffic = ON(10e9, 10e9, 0, 0), .max_traffic = 10e9,
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(2), 0), TIME(15.5, FULL(1), 0)))},
	{"one controller is too slow",
	 {.running = 2, .cpu_traffic = 5e9, .traffic = 10e9, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), .traffic = ON(8e9, 8e9, 3e9, 3e9), .max_traffic = 11e9,
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(13 / 11.), 0), TWO_NODES))},
	{"13 of 17 GB/s",
	 {.running = 2, .cpu_traffic = 5e9, .traffic = 10e9, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), .traffic = ON(8e9, 8e9, 3e9, 3e9), .max_traffic = 17e9,
	 GETS(0, REMOTE, GAIN(1, TWO_NODES)), .load = 1.25},
	{"16 of 17 GB/s: half of the traffic of the machine",
	 {.running = 2, .cpu_traffic = 5e9, .traffic = 10e9, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), .traffic = ON(11e9, 11e9, 6e9, 6e9), .max_traffic = 11e9,
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, BUSY(16 / 17.), 0), TWO_NODES))},
	{"any controller serves 5 GB/s",
	 {.running = 2, .cpu_traffic = 2e9, .traffic = 4e9, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), .traffic = ON(3e9, 3e9, 1e9, 1e9), .max_traffic = 3e9,
	 GETS(0, REMOTE, GAIN(1, TWO_NODES))},
	{"memory written by one thread, on an idle machine",
	 {.running = 2, .age_s = 0.3, .cpu_traffic = 5e9, .ran_on = ON(1, 1, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)},
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(1.25), 0), TWO_NODES))},
	{"the same, and its controller has served more",
	 {.running = 2, .age_s = 0.3, .cpu_traffic = 5e9, .ran_on = ON(1, 1, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, .max_traffic = 20e9, GETS(0, REMOTE, GAIN(1, TWO_NODES))},
	/* Its 7.2 GB/s, with 60 % of its memory on node 1. */
	{"72 % of node 0",
	 {.running = 2, .cpu_traffic = 3.6e9, .traffic = 7.2e9, .ran_on = ON(1, 1, 0, 0),
	  .memory_on = ON(0.4, 0.6, 0, 0)}, .traffic = ON(2.88e9, 7.9e9, 0, 0), .max_traffic = 10e9,
	 GETS(0, REMOTE, GAIN(1, TWO_NODES))},
	{"throttled now, it asks for 90 %",
	 {.running = 2, .cpu_traffic = 3.6e9, .traffic = 7.2e9, .ran_on = ON(1, 1, 0, 0),
	  .memory_on = ON(0.4, 0.6, 0, 0)}, .traffic = ON(2.88e9, 8.1e9, 0, 0), .max_traffic = 10e9,
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, BUSY(0.9), 0), TIME(15.5, BUSY(0.828) / 2, 0)))},
	{"one of eight threads runs, as in a serial phase",
	 {.running = 1, .max_running = 8, .age_s = 60, .ran_on = ON(1, 0, 0, 0)},
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(1), 0), 1))},
	{"unknown traffic: the quarter of a node that the kernel packs",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0)}, .uncounted = true, .cores = ON(8, 8, 8, 8),
	 GETS(0, REMOTE, GAIN(1, TWO_NODES))},
	{"unknown traffic: more", {.running = 3, .ran_on = ON(1.5, 1.5, 0, 0)}, .uncounted = true,
	 .cores = ON(8, 8, 8, 8), GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(3 / 2.5), 0), TWO_NODES))},
	{"unknown traffic: all cores of a small node, of which one is packed",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0)}, .uncounted = true,
	 GETS(-1, BANDWIDTH, GAIN(TIME(10, FULL(2 / 1.25), 0), TWO_NODES))},
	{"unknown traffic, on a busy machine: 2.5 of 6 busy CPUs",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0)}, .uncounted = true, .others = ON(1, 1, 1, 1),
	 GETS(0, REMOTE, GAIN(TIME(10, BUSY(2.5 / 3), 0), TWO_NODES))},

	/* ---- CPUs ---- */
	{"waits for CPUs elsewhere: 8.75 of 8 are in demand",
	 {.running = 2, .ran_on = ON(2, 0, 0, 0)}, .others = ON(2.25, 2.25, 0, 2.25),
	 GETS(2, WAITING, GAIN(1, TIME(10, 0, 0.09375)))},
	{"1.5 CPUs of others: none is left for a second thread",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0)}, .others = ON(1.5, 1.5, 1.5, 1.5),
	 GETS(-1, NO_ROOM, GAIN(TIME(10, 0, 0.25), TWO_NODES))},
	{"light load of others finds another CPU", {.running = 2, .ran_on = ON(1, 1, 0, 0)},
	 .others = ON(1, 1, 1, 1), GETS(0, REMOTE, GAIN(1, TWO_NODES)), .load = 1.25},
	{"a young group may soon use a CPU for each thread",
	 {.running = 2, .demand_cpus = 0.5, .ran_on = ON(0, 0.5, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, GETS(0, REMOTE, GAIN(1, TIME(21, 0, 0))), .load = 1},
	{"up to the limit of its cgroup",
	 {.running = 2, .demand_cpus = 0.5, .cpu_limit = 1, .ran_on = ON(0, 0.5, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, GETS(0, REMOTE, GAIN(1, TIME(21, 0, 0))), .load = 0.5},
	{"an older one goes on as it is",
	 {.running = 2, .age_s = 10, .demand_cpus = 0.5, .ran_on = ON(0, 0.5, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, GETS(0, REMOTE, GAIN(1, TIME(21, 0, 0))), .load = 0.25},
	{"one core of each node; its memory follows where others leave it free",
	 {.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0, 1, 0, 0),
	  .allowed = MAY(true, true, false, false), .room = ON(1, 1, 0, 0)},
	 .others = ON(0, 2, 0, 0), GETS(0, REMOTE, GAIN(1, TIME(21, 0, 0.25))), .load = 1},
	{"the others run on the other cores",
	 {.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0, 1, 0, 0),
	  .allowed = MAY(true, true, false, false), .room = ON(1, 1, 0, 0),
	  .beyond = ON(0, 2, 0, 0)}, .others = ON(0, 2, 0, 0),
	 GETS(1, REMOTE, GAIN(1, TIME(21, 0, 0)))},
	{"more threads than CPUs", {.running = 8, .ran_on = ON(2, 2, 2, 2)}, GETS(-1, LARGER, NAN)},
	{"more memory than a node",
	 {.running = 2, .anon_bytes = 2048 * MIB, .ran_on = ON(1, 1, 0, 0)},
	 .memory_bytes = 1024 * MIB, GETS(-1, LARGER, NAN)},
	{"more memory than is free",
	 {.running = 2, .anon_bytes = 8192 * MIB, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, NO_ROOM, NAN)},
	{"may run nowhere",
	 {.running = 2, .ran_on = ON(1, 1, 0, 0), .allowed = MAY(false, false, false, false)},
	 GETS(-1, NO_ROOM, NAN)},
	{"with its pinned thread",
	 {.running = 2, .fixed_cpus = 1, .ran_on = ON(1, 1, 0, 0), .fixed_on = ON(0, 1, 0, 0)},
	 GETS(1, REMOTE, GAIN(1, TWO_NODES)), .load = 1},
	{"a pinned thread keeps its memory",
	 {.running = 2, .fixed_cpus = 1, .ran_on = ON(1, 1, 0, 0), .fixed_on = ON(0, 1, 0, 0),
	  .allowed = MAY(true, false, true, true)}, GETS(-1, PINNED, NAN)},

	/* ---- the cost of moving: 64 MiB are 16384 pages, and users wait as long as the mover ---- */
	{"1.6 s of two CPUs for 12 % of 3 s", {.running = 2, .ran_on = ON(1, 1, 0, 0)},
	 .page_ns = 1e5, GETS(-1, TOO_COSTLY, GAIN(1, TWO_NODES))},
	{"for 12 % of a minute", {.running = 2, .age_s = 20, .ran_on = ON(1, 1, 0, 0)},
	 .page_ns = 1e5, GETS(0, REMOTE, GAIN(1, TWO_NODES))},
	{"nobody is expected to run as it does for longer",
	 {.running = 2, .age_s = 1000, .ran_on = ON(1, 1, 0, 0)}, .page_ns = 1.5e6,
	 GETS(-1, TOO_COSTLY, GAIN(1, TWO_NODES))},
	{"threads go to most of their memory, whatever the rest costs",
	 {.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0.2, 0, 0.8, 0)}, .page_ns = 2e5,
	 GETS(2, REMOTE, GAIN(1, TIME(26.8, 0, 0)))},
	{"small memory is placed at once",
	 {.running = 2, .age_s = 0.15, .anon_bytes = 8 * MIB, .ran_on = ON(1, 0, 1, 0)},
	 GETS(0, REMOTE, GAIN(1, TIME(20.5, 0, 0)))},
	{"large memory when its location is known",
	 {.running = 2, .age_s = 0.15, .anon_bytes = 1024 * MIB, .ran_on = ON(1, 0, 1, 0),
	  .memory_on = ON(1, 0, 0, 0)}, GETS(0, REMOTE, GAIN(1, TIME(20.5, 0, 0)))},

	/* ---- who is eligible ---- */
	{"large memory, location not known yet",
	 {.running = 2, .age_s = 0.15, .anon_bytes = 1024 * MIB, .ran_on = ON(1, 0, 1, 0)},
	 GETS(-1, YOUNG, NAN)},
	{"just started", {.running = 2, .age_s = 0.05, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, YOUNG, NAN)},
	{"creating threads", {.running = 1, .creating = true, .ran_on = ON(1.2, 0, 0, 0)},
	 GETS(-1, YOUNG, NAN)},
	{"its memory is being located",
	 {.running = 2, .age_s = 60, .awaits_query = true, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, YOUNG, NAN)},
	{"not observed for long",
	 {.running = 2, .age_s = 60, .observed_s = 1, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, OBSERVED, NAN)},
	{"hardly runs", {.running = 2, .demand_cpus = 0.05, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, IDLE, NAN)},
	{"hardly runs but for pinned threads",
	 {.running = 2, .fixed_cpus = 1.9, .ran_on = ON(1, 1, 0, 0)}, GETS(-1, IDLE, NAN)},
	{"idle priority", {.yields = true, .demand_cpus = 1, .ran_on = ON(1, 1, 0, 0)},
	 GETS(-1, YIELDS, NAN)},
	{"barred", {.running = 2, .barred = true, .ran_on = ON(1, 1, 0, 0)}, GETS(-1, BARRED, NAN)},
	{"one thread that others wake",
	 {.running = 1, .demand_cpus = 0.6, .burst_s = 0.0015, .ran_on = ON(0, 1, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, GETS(-1, OFTEN_WOKEN, NAN)},
#define FROM_1_TO_0 GETS(0, REMOTE, GAIN(1, TIME(21, 0, 0)))
	{"it does not sleep, but is preempted",
	 {.running = 1, .burst_s = 0.0015, .ran_on = ON(0, 1, 0, 0), .memory_on = ON(1, 0, 0, 0)},
	 FROM_1_TO_0},
	{"it computes",
	 {.running = 1, .demand_cpus = 0.6, .burst_s = 0.004, .ran_on = ON(0, 1, 0, 0),
	  .memory_on = ON(1, 0, 0, 0)}, FROM_1_TO_0},
	{"it is not known whether it computes",
	 {.running = 1, .demand_cpus = 0.6, .ran_on = ON(0, 1, 0, 0), .memory_on = ON(1, 0, 0, 0)},
	 FROM_1_TO_0},
#undef FROM_1_TO_0
	{"threads that wake each other",
	 {.running = 2, .burst_s = 0.0015, .ran_on = ON(1, 1, 0, 0)},
	 GETS(0, REMOTE, GAIN(1, TWO_NODES))},
#undef GETS
};
/* clang-format on */

static void check_candidates(const struct scene *scene, const struct nm_place_proposal *found)
{
	const struct nm_home_candidate *all = found->candidates;
	bool has_node = found->node < 0;
	CHECK(scene, all[0].node == -1 && all[0].gain == 0 && all[0].at.time >= 1);
	for (unsigned i = 1; i < found->nr_candidates; i++) {
		CHECK(scene, i == 1 || all[i].gain <= all[i - 1].gain);
		if (all[i].node != found->node)
			continue;
		has_node = true;
		CHECK(scene, all[i].gain == found->gain);
		CHECK(scene, all[i].at.distance == found->distance_home);
	}
	CHECK(scene, has_node);
}

static void check_proposal(const struct scene *scene, const struct nm_place_proposal *found)
{
	CHECK(scene, found->reason == scene->reason);
	CHECK(scene, found->node == scene->node);
	CHECK(scene,
	      isnan(scene->gain) ? isnan(found->gain) : fabs(found->gain - scene->gain) < 1e-6);
	CHECK(scene, found->load == scene->load || scene->load == 0);
	CHECK(scene, found->bytes_away == scene->bytes_away || scene->bytes_away == 0);
	CHECK(scene, (found->node < 0) == isnan(found->distance_home));
	CHECK(scene, (found->node < 0) == isnan(found->distance_away));
	CHECK(scene, (found->node < 0) == isnan(found->load));
	CHECK(scene, nm_place_reason_text(found->reason)[0] != '\0');
	if (found->nr_candidates > 0)
		check_candidates(scene, found);
	else
		CHECK(scene, isnan(found->gain));
}

TEST(test_scenes)
{
	EACH_ROW(scene, scenes)
	{
		set_up(state);
		struct nm_place_group group = completed(scene->group, scene->uncounted);
		struct nm_place_proposal found;
		group.home = -1;
		for (unsigned k = 0; k < NODES; k++) {
			nodes[k].cores = scene->cores ? scene->cores[k] : nodes[k].cores;
			nodes[k].traffic = scene->traffic ? scene->traffic[k] : 0;
			nodes[k].memory_bytes = scene->memory_bytes;
			nodes[k].is_device = scene->device > 0 && k == (unsigned)scene->device;
		}
		load_nodes(&group, 1, scene->others);
		nm_place_propose(&(struct nm_place_view){.topology = &topology,
							 .nodes = nodes,
							 .groups = &group,
							 .nr_groups = 1,
							 .page_ns = scene->page_ns,
							 .max_traffic = scene->max_traffic,
							 .recent_demand = recent_demand(),
							 .memory_stays = scene->memory_stays},
				 &found);
		check_proposal(scene, &found);
	}
}

/* ---- several groups ---- */

#define GROUPS 4U

/* clang-format off */
/* The nodes that they are given, in their order. */
static const struct crowd {
	const char *name;
	struct nm_place_group groups[GROUPS];
	bool uncounted;
	const double *cores, *traffic;
	int nodes[GROUPS];
	enum nm_place_reason reasons[GROUPS];
} crowds[] = {
#define A {.running = 2, .ran_on = ON(1, 1, 0, 0)}
#define B {.running = 2, .ran_on = ON(0, 0, 1, 1)}
	{"a full machine is separated", {A, A, B, B}, .nodes = {0, 1, 2, 3}},
	{"also if nothing counts traffic", {A, A, B, B}, .uncounted = true, .nodes = {0, 1, 2, 3}},
	{"what is too large to move will run elsewhere",
	 {{.running = 2, .anon_bytes = 8192 * MIB, .ran_on = ON(1, 1, 0, 0)}, A, B, B},
	 .nodes = {-1, 0, 2, 3}, .reasons = {NM_PLACE_NO_ROOM}},
	{"unless it cannot",
	 {{.running = 2, .anon_bytes = 8192 * MIB, .ran_on = ON(1, 1, 0, 0),
	  .allowed = MAY(true, true, false, false)}, A, B}, .nodes = {-1, 2, 3},
	 .reasons = {NM_PLACE_NO_ROOM}},
	{"one that has just started counts where it runs",
	 {A, {.running = 2, .age_s = 0.05, .ran_on = ON(2, 0, 0, 0)}}, .cores = ON(2, 2, 0, 0),
	 .nodes = {1, -1}, .reasons = {0, NM_PLACE_YOUNG}},
	{"the larger one chooses first",
	 {{.running = 1, .ran_on = ON(0, 0, 1, 0), .memory_on = ON(1, 0, 0, 0)}, A},
	 .nodes = {1, 0}},
	/* Node 3 has two cores, and two threads that stay with their memory. */
	{"who stays counts where it runs",
	 {{.running = 1, .ran_on = ON(1, 0, 0, 0), .memory_on = ON(0, 0, 0, 1)},
	  {.running = 1, .ran_on = ON(0, 0, 0, 1)}, {.running = 1, .ran_on = ON(0, 0, 0, 1)}},
	 .nodes = {0, -1, -1}, .reasons = {0, NM_PLACE_NO_GAIN, NM_PLACE_NO_GAIN}},
	/* Each has 0.8 GiB to move to node 1, where 1 GiB is free. */
#define C {.running = 1, .age_s = 60, .anon_bytes = 2048 * MIB, .ran_on = ON(1, 0, 0, 0), \
	   .memory_on = ON(0.4, 0.6, 0, 0)}
	{"memory is promised once", {C, C}, .nodes = {1, -1}, .reasons = {0, NM_PLACE_NO_ROOM}},
	/* Each has 6 GB/s, half of it at node 0 and at node 1; a controller serves 8 GB/s. */
#define D {.running = 2, .cpu_traffic = 3e9, .traffic = 6e9, .ran_on = ON(1, 1, 0, 0)}
	{"and so is bandwidth", {D, D}, .cores = ON(8, 8, 8, 8), .traffic = ON(6e9, 6e9, 0, 0),
	 .nodes = {2, 0}},
#undef A
#undef B
#undef C
#undef D
};
/* clang-format on */

TEST(test_crowds)
{
	EACH_ROW(crowd, crowds)
	{
		struct nm_place_group groups[GROUPS];
		struct nm_place_proposal found[GROUPS];
		size_t count = 0;
		set_up(state);
		for (; count < GROUPS && crowd->groups[count].ran_on; count++) {
			groups[count] = completed(crowd->groups[count], crowd->uncounted);
			groups[count].home = -1;
		}
		for (unsigned k = 0; k < NODES; k++) {
			nodes[k].cores = crowd->cores ? crowd->cores[k] : nodes[k].cores;
			nodes[k].traffic = crowd->traffic ? crowd->traffic[k] : 0;
		}
		load_nodes(groups, count, NULL);
		nm_place_propose(&(struct nm_place_view){.topology = &topology,
							 .nodes = nodes,
							 .groups = groups,
							 .nr_groups = count,
							 .recent_demand = recent_demand()},
				 found);
		for (size_t i = 0; i < count; i++) {
			CHECK(crowd, found[i].group == i && found[i].node == crowd->nodes[i]);
			CHECK(crowd, found[i].reason == crowd->reasons[i]);
		}
	}
}

/* Of two threads whose memory stays on node 0, where two homes use both cores, beside four parents
 * that wait for their children. */
TEST(test_a_lull_adds_no_capacity)
{
	struct nm_place_group groups[7];
	struct nm_place_proposal found[7];
	double *on_3 = ON(0, 0, 0, 1), *nowhere = ON(0, 0, 0, 0);
	for (unsigned i = 0; i < 7; i++) {
		groups[i] = completed((struct nm_place_group){.running = 1, .ran_on = on_3}, false);
		groups[i].home = i < 2 ? 0 : -1;
	}
	groups[2].memory_on = ON(1, 0, 0, 0);
	groups[2].memory_stays = true;
	for (unsigned i = 3; i < 7; i++) {
		groups[i].ran_on = nowhere;
		groups[i].demand_cpus = 2;
		groups[i].wanted_cpus = groups[i].running = 0;
	}
	const struct nm_place_view view = {
		.topology = &topology, .nodes = nodes, .groups = groups, .nr_groups = 7};
	load_nodes(groups, 7, NULL);
	nm_place_propose(&view, found);
	assert_int_equal(found[2].node, -1);
	assert_int_equal(found[2].reason, NM_PLACE_NO_ROOM);
	assert_true(fabs(found[2].gain - GAIN(TIME(10, 0, 0.25), TIME(21, 0, 0))) < 1e-6);
	for (unsigned i = 3; i < 7; i++)
		groups[i].wanted_cpus = 2; /* 11 of 8 CPUs are in demand */
	nm_place_propose(&view, found);
	assert_true(found[2].node >= 0);
	assert_int_equal(found[2].reason, NM_PLACE_WAITING);
}

/* A group that has a home gets no other one. */
TEST(test_a_home_is_assigned_once)
{
	struct nm_place_group group =
		completed((struct nm_place_group){.running = 2, .ran_on = ON(1, 1, 0, 0)}, false);
	struct nm_place_proposal found;
	group.home = 3;
	nm_place_propose(
		&(struct nm_place_view){
			.topology = &topology, .nodes = nodes, .groups = &group, .nr_groups = 1},
		&found);
	assert_int_equal(found.node, -1);
	assert_int_equal(found.reason, NM_PLACE_HAS_HOME);
	assert_int_equal(found.nr_candidates, 0);
}

/* ---- end of homes ---- */

/* clang-format off */
/* Homes on node 0, assigned because of remote memory when `home_max_running` threads ran. */
static const struct {
	const char *name;
	struct nm_place_group group;
	const double *others, *cores;
	enum nm_place_reason reason;
} homes[] = {
#define KEPT .reason = NM_PLACE_REMOTE
	{"as it was", {.running = 2, .home_max_running = 2, .ran_on = ON(2, 0, 0, 0)}, KEPT},
	{"memory that may still follow",
	 {.running = 1, .home_max_running = 1, .ran_on = ON(1, 0, 0, 0),
	  .memory_on = ON(0, 0, 1, 0)}, KEPT},
	{"memory that stays elsewhere",
	 {.running = 1, .home_max_running = 1, .ran_on = ON(1, 0, 0, 0),
	  .memory_on = ON(0, 0, 1, 0), .memory_stays = true}, .reason = NM_PLACE_FIXED},
	{"this was known", /* it would leave the best node that has capacity again and again */
	 {.running = 1, .home_max_running = 1, .ran_on = ON(1, 0, 0, 0),
	  .memory_on = ON(0, 0, 1, 0), .memory_stays = true, .home_despite_memory = true},
	 KEPT},
	{"its memory stays here",
	 {.running = 1, .home_max_running = 1, .ran_on = ON(1, 0, 0, 0),
	  .memory_on = ON(1, 0, 0, 0), .memory_stays = true}, KEPT},
	{"a pinned thread uses memory on node 1",
	 {.running = 2, .home_max_running = 2, .fixed_cpus = 1, .ran_on = ON(1, 1, 0, 0),
	  .fixed_on = ON(0, 1, 0, 0)}, .reason = NM_PLACE_PINNED},
	{"preempted all the time",
	 {.running = 1, .home_max_running = 1, .burst_s = 0.0005, .ran_on = ON(1, 0, 0, 0)}, KEPT},
	{"woken all the time",
	 {.running = 1, .home_max_running = 1, .demand_cpus = 0.6, .burst_s = 0.0005,
	  .ran_on = ON(0.6, 0, 0, 0)}, .reason = NM_PLACE_OFTEN_WOKEN},
	{"so close to the threshold that it would alternate",
	 {.running = 1, .home_max_running = 1, .demand_cpus = 0.6, .burst_s = 0.0015,
	  .ran_on = ON(0.6, 0, 0, 0)}, KEPT},
	/* Two wait at home (0.75 with a tolerance of half a CPU), or memory is at 20.75. */
	{"four threads instead of two",
	 {.running = 4, .home_max_running = 2, .ran_on = ON(2, 0, 0, 0)},
	 .reason = NM_PLACE_SPREAD},
	{"four threads were known", {.running = 4, .home_max_running = 4, .ran_on = ON(2, 0, 0, 0)},
	 KEPT},
	{"four threads, and eight cores",
	 {.running = 4, .home_max_running = 2, .ran_on = ON(4, 0, 0, 0)}, .cores = ON(8, 8, 8, 8),
	 KEPT},
	{"and a controller for two of them",
	 {.running = 4, .home_max_running = 2, .cpu_traffic = 3e9, .ran_on = ON(4, 0, 0, 0)},
	 .cores = ON(8, 8, 8, 8), .reason = NM_PLACE_SPREAD},
	{"they would wait elsewhere, too",
	 {.running = 4, .home_max_running = 2, .ran_on = ON(2, 0, 0, 0)}, .others = ON(0, 4, 4, 4),
	 KEPT},
#undef KEPT
};
/* clang-format on */

TEST(test_homes_end_with_their_reason)
{
	EACH_ROW(row, homes)
	{
		struct nm_place_group group = completed(row->group, false);
		enum nm_place_reason reason;
		set_up(state);
		group.home_reason = NM_PLACE_REMOTE;
		for (unsigned k = 0; k < NODES; k++)
			nodes[k].cores = row->cores ? row->cores[k] : nodes[k].cores;
		load_nodes(&group, 1, row->others);
		nm_place_find_expired(&(struct nm_place_view){.topology = &topology,
							      .nodes = nodes,
							      .groups = &group,
							      .nr_groups = 1},
				      &reason);
		CHECK(row, reason == row->reason);
		group.home = -1;
		nm_place_find_expired(&(struct nm_place_view){.topology = &topology,
							      .nodes = nodes,
							      .groups = &group,
							      .nr_groups = 1},
				      &reason);
		CHECK(row, reason == NM_PLACE_REMOTE);
	}
}

/* clang-format off */
/* Two groups, with homes on node 0 unless .home is -1; which of them give it up. */
static const struct {
	const char *name;
	struct nm_place_group groups[2];
	const double *busy; /* by all */
	bool given_up[2];
} yields[] = {
#define TWO {.running = 2, .ran_on = ON(2, 0, 0, 0)}
	{"the smaller one, beside idle nodes", {TWO, {.running = 1, .ran_on = ON(2, 0, 0, 0)}},
	 ON(0, 0, 0, 0), {false, true}},
	{"no node is idle", {TWO, {.running = 1, .ran_on = ON(2, 0, 0, 0)}}, ON(0, 2, 2, 2),
	 {false, false}},
	{"a node full of pinned threads of others", {{.running = 2, .ran_on = ON(0.4, 0, 0, 0)}},
	 ON(2, 0, 0, 0), {true}},
	{"of its own threads", {TWO}, ON(2, 0, 0, 0), {false}},
	{"load that was accepted", {{.running = 2, .demand_cpus = 2.1, .ran_on = ON(2, 0, 0, 0)}},
	 ON(2.3, 0.3, 0.3, 0.3), {false}},
	{"a CPU more", {{.running = 2, .demand_cpus = 2.1, .ran_on = ON(2, 0, 0, 0)}},
	 ON(3.3, 0.3, 0.3, 0.3), {true}},
	{"others can run elsewhere",
	 {{.running = 2, .ran_on = ON(1, 0, 0, 0)}, {.running = 2, .home = -1,
	  .ran_on = ON(2, 0, 0, 0)}}, ON(3, 0, 0, 0), {false, false}},
	{"others must run there",
	 {{.running = 2, .ran_on = ON(1, 0, 0, 0)}, {.running = 2, .home = -1,
	  .ran_on = ON(2, 0, 0, 0), .allowed = MAY(true, false, false, false)}}, ON(3, 0, 0, 0),
	 {true, false}},
	{"the one that grew, not its neighbour that fits",
	 {{.running = 1, .ran_on = ON(1, 0, 0, 0)}, {.running = 6, .ran_on = ON(1, 0, 0, 0)}},
	 ON(0, 0, 0, 0), {false, true}},
#undef TWO
};
/* clang-format on */

TEST(test_homes_yield)
{
	EACH_ROW(row, yields)
	{
		struct nm_place_group groups[2];
		bool given_up[2];
		size_t count = row->groups[1].ran_on ? 2 : 1;
		for (size_t i = 0; i < count; i++)
			groups[i] = completed(row->groups[i], false);
		for (unsigned k = 0; k < NODES; k++)
			nodes[k].busy_cpus = row->busy[k];
		nm_place_yield(&(struct nm_place_view){.topology = &topology,
						       .nodes = nodes,
						       .groups = groups,
						       .nr_groups = count},
			       given_up);
		for (size_t i = 0; i < count; i++)
			CHECK(row, given_up[i] == row->given_up[i]);
	}
}

/* ---- costs ---- */

/* Local memory costs nothing; the cost of a move is estimated first, and then measured. */
TEST_BETWEEN(NULL, NULL, test_cost_of_remote_memory)
{
	assert_true(nm_place_lost_cpus(2, 10) == 0);
	assert_true(nm_place_lost_cpus(2, NAN) == 0);
	assert_true(nm_place_lost_cpus(0, 31) == 0);
	assert_true(nm_place_lost_cpus(2, 31) > nm_place_lost_cpus(2, 21));
	assert_true(nm_place_lost_cpus(2, 21) > nm_place_lost_cpus(1, 21));
	assert_true(nm_place_lost_cpus(1, 255) < 1);
}

static void add_costs(struct nm_place_cost *cost, uint64_t domain, uint64_t page_ns)
{
	for (unsigned i = 0; i < 20; i++)
		nm_place_add_cost(cost, domain, 65536, 65536 * page_ns);
}

/* The cost of a move is estimated first, and then measured. */
TEST_BETWEEN(NULL, NULL, test_cost_of_moves)
{
	struct nm_place_cost cost = {0};
	double guess = nm_place_migration_cost_s(cost.page_ns, 1 << 20);
	assert_true(guess > 0 && guess < 0.1);
	nm_place_add_cost(&cost, 1, 4096, 4096 * 15000ULL);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 2.5 * guess);
	/* Old measurements expire. */
	add_costs(&cost, 1, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < 1.1 * guess);
	/* Calls that move nothing cost time too. */
	double before = cost.page_ns;
	nm_place_add_cost(&cost, 1, 0, 1000000000);
	assert_true(cost.page_ns > before);
}

/* One domain, whose moves take as long as it likes, neither stops the moves of others nor makes
 * them appear free of charge; alone it is believed within a factor of four. */
/* SECURITY: page-cost */
TEST_BETWEEN(NULL, NULL, test_one_domain_teaches_no_cost)
{
	struct nm_place_cost cost = {0};
	double guess = nm_place_migration_cost_s(0, 1 << 20);
	for (unsigned i = 0; i < 10; i++)
		nm_place_add_cost(&cost, 1, 256, 4900000000ULL);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < 4.01 * guess);
	add_costs(&cost, 2, 2000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) < guess);
	add_costs(&cost, 1, 1);
	add_costs(&cost, 3, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 0.35 * guess);
	/* More domains than are remembered. */
	for (uint64_t domain = 10; domain < 60; domain++)
		add_costs(&cost, domain, 5000);
	assert_true(nm_place_migration_cost_s(cost.page_ns, 1 << 20) > 0.9 * guess);
}

/* ---- verdicts ---- */

/* clang-format off */
/* Changes from `before` to `after`; measures that are not given are not known. */
static const struct {
	const char *name;
	struct nm_place_measure before, after;
	struct nm_place_context context; /* the tolerance is 5 % */
	enum nm_verdict_kind kind;
	enum nm_measure by;
	double change;
	double needed; /* intervals */
} verdicts[] = {
#define DISTANCE(d) .distance = d, .accesses = 500
#define SPEED(p, deviation, count)                                                                 \
	.performance = p, .performance_variance = (deviation) * (deviation), .intervals = count
#define IMPROVED(measure, value) .kind = NM_VERDICT_IMPROVED, .by = measure, .change = value
#define NEUTRAL(measure, value) .kind = NM_VERDICT_NEUTRAL, .by = measure, .change = value
#define WORSE(measure, value) .kind = NM_VERDICT_WORSE, .by = measure, .change = value
#define INCONCLUSIVE .kind = NM_VERDICT_INCONCLUSIVE, .by = NM_BY_NOTHING, .change = NAN
	{"nearer", {DISTANCE(25)}, {DISTANCE(10)}, IMPROVED(NM_BY_DISTANCE, 1.5)},
	{"farther", {DISTANCE(10)}, {DISTANCE(25)}, WORSE(NM_BY_DISTANCE, -0.6)},
	{"as near", {DISTANCE(25)}, {DISTANCE(25)}, NEUTRAL(NM_BY_DISTANCE, 0)},
	{"no samples", {DISTANCE(25)}, {.distance = 25}, INCONCLUSIVE},
	{"slower", {SPEED(2e9, 0, 0)}, {SPEED(1.5e9, 0, 0)}, WORSE(NM_BY_PERFORMANCE, -0.25)},
	{"faster", {SPEED(1e9, 0, 0)}, {SPEED(1.5e9, 0, 0)}, IMPROVED(NM_BY_PERFORMANCE, 0.5)},
	{"others became as much faster", {SPEED(1e9, 0, 0)}, {SPEED(1.5e9, 0, 0)},
	 .context = {.performance_drift = 0.5}, NEUTRAL(NM_BY_PERFORMANCE, 0)},
	{"others became as much nearer", {DISTANCE(25)}, {DISTANCE(10)},
	 .context = {.distance_drift = 1.5}, NEUTRAL(NM_BY_DISTANCE, 0)},
	{"it hardly ran", {SPEED(2e9, 0, 0)}, {.run_s = 0.1, SPEED(1e9, 0, 0)}, INCONCLUSIVE},
	{"nearer, but as fast", {DISTANCE(25), SPEED(1e9, 0, 0)}, {DISTANCE(10), SPEED(1e9, 0, 0)},
	 NEUTRAL(NM_BY_PERFORMANCE, 0)},
	{"nearer, but slower", {DISTANCE(25), SPEED(1e9, 0, 0)},
	 {DISTANCE(10), SPEED(0.45e9, 0, 0)}, WORSE(NM_BY_PERFORMANCE, -0.55)},

	/* All of its memory is local, and all of its threads wait for one controller. */
	{"nearer, behind a full controller", {DISTANCE(25)}, {DISTANCE(10)},
	 .context = {.controller_full = true}, NEUTRAL(NM_BY_DISTANCE, 1.5)},
	{"farther", {DISTANCE(10)}, {DISTANCE(25)}, .context = {.controller_full = true},
	 WORSE(NM_BY_DISTANCE, -0.6)},
	{"faster", {SPEED(1e9, 0, 0)}, {SPEED(2e9, 0, 0)}, .context = {.controller_full = true},
	 IMPROVED(NM_BY_PERFORMANCE, 1)},

	/* Gathered threads that queue. In 4 s of CPU time they wait for `delay_s`. */
	{"waits, while CPUs are idle", {.delay_s = 0}, {.delay_s = 2},
	 .context = {.cpus_idle = true}, WORSE(NM_BY_DELAY, -0.5)},
	{"nearer, but waits", {DISTANCE(25)}, {DISTANCE(10), .delay_s = 2},
	 .context = {.cpus_idle = true}, WORSE(NM_BY_DELAY, -0.5)},
	{"waits as everywhere", {.delay_s = 0}, {.delay_s = 2}, INCONCLUSIVE},
	{"others wait as long", {.delay_s = 4}, {.delay_s = 8},
	 .context = {.cpus_idle = true, .waiting_drift = 1}, INCONCLUSIVE},
	{"15 % longer", {.delay_s = 40}, {.delay_s = 46}, .context = {.cpus_idle = true},
	 INCONCLUSIVE},
	{"twice as long", {.delay_s = 4}, {.delay_s = 8}, .context = {.cpus_idle = true},
	 WORSE(NM_BY_DELAY, -1)},

	/* The standard error of the mean of N intervals is the deviation / √N. */
	{"10 % slower, ± 10 %", {SPEED(1e9, 0.1e9, 1)}, {SPEED(0.9e9, 0, 1)}, INCONCLUSIVE,
	 .needed = 16},
	{"10 % slower, ± 1 %", {SPEED(1e9, 0.1e9, 100)}, {SPEED(0.9e9, 0, 100)},
	 WORSE(NM_BY_PERFORMANCE, -0.1)},
	{"30 % slower, ± 10 %", {SPEED(1e9, 0.1e9, 1)}, {SPEED(0.7e9, 0, 1)},
	 WORSE(NM_BY_PERFORMANCE, -0.3)},
	{"20 % slower, ± 10 %: it may be 0", {SPEED(1e9, 0.1e9, 1)}, {SPEED(0.8e9, 0, 1)},
	 INCONCLUSIVE,
	 .needed = 16},
	{"no change, ± 10 %: none is found", {SPEED(1e9, 0.1e9, 1)}, {SPEED(1e9, 0, 1)},
	 INCONCLUSIVE,
	 .needed = 16},
	{"no change, ± 1 %", {SPEED(1e9, 0.1e9, 100)}, {SPEED(1e9, 0, 100)},
	 NEUTRAL(NM_BY_PERFORMANCE, 0)},
	{"no change, ± 10 % afterwards", {SPEED(1e9, 0, 1)}, {SPEED(1e9, 0.1e9, 1)}, INCONCLUSIVE,
	 .needed = 16},
	{"distances of 20 ± 2", {DISTANCE(20), .distance_variance = 4, .intervals = 1},
	 {DISTANCE(20), .intervals = 1}, INCONCLUSIVE,
	 .needed = 16},
	{"of 100 intervals", {DISTANCE(20), .distance_variance = 4, .intervals = 100},
	 {DISTANCE(20), .intervals = 100}, NEUTRAL(NM_BY_DISTANCE, 0)},

	/* With other threads it is another program. */
	{"eight threads instead of two", {SPEED(1e9, 0, 0), .threads = 2},
	 {SPEED(2e9, 0, 0), .threads = 8}, INCONCLUSIVE},
	{"two instead of eight", {DISTANCE(25), .threads = 8}, {DISTANCE(10), .threads = 2},
	 INCONCLUSIVE},
	{"three instead of four", {SPEED(1e9, 0, 0), .threads = 4},
	 {SPEED(2e9, 0, 0), .threads = 3}, IMPROVED(NM_BY_PERFORMANCE, 1)},
	{"eight that wait", {SPEED(1e9, 0, 0), .threads = 2},
	 {SPEED(1e9, 0, 0), .threads = 8, .delay_s = 2}, .context = {.cpus_idle = true},
	 WORSE(NM_BY_DELAY, -0.5)},
#undef DISTANCE
#undef SPEED
#undef IMPROVED
#undef NEUTRAL
#undef WORSE
#undef INCONCLUSIVE
};
/* clang-format on */

static struct nm_place_measure measured(struct nm_place_measure measure)
{
	measure.run_s = measure.run_s > 0 ? measure.run_s : 4;
	measure.distance = measure.distance > 0 ? measure.distance : (double)NAN;
	measure.performance = measure.performance > 0 ? measure.performance : (double)NAN;
	return measure;
}

TEST_BETWEEN(NULL, NULL, test_verdicts)
{
	EACH_ROW(row, verdicts)
	{
		const struct nm_place_measure before = measured(row->before),
					      after = measured(row->after);
		struct nm_place_context context = row->context;
		context.tolerance = 0.05;
		const struct nm_judgement found = nm_place_judge(&before, &after, &context);
		CHECK(row, found.kind == row->kind && found.by == row->by);
		CHECK(row, isnan(row->change) ? isnan(found.change)
					      : fabs(found.change - row->change) < 1e-9);
		CHECK(row, fabs(found.needed - row->needed) < 1e-6);
	}
}

/* A controller is full at the highest traffic that was observed, if that is much at all. */
TEST_BETWEEN(NULL, NULL, test_a_controller_is_full_at_the_highest_traffic)
{
	const struct nm_place_node busy[] = {
		{.traffic = 20e9}, {.traffic = 12e9}, {.traffic = 1e9}};
	struct nm_place_view view = {.nodes = busy, .max_traffic = 21e9};
	assert_true(nm_place_is_controller_full(&view, 0));
	assert_false(nm_place_is_controller_full(&view, 1));
	view.max_traffic = 1e9;
	assert_false(nm_place_is_controller_full(&view, 2));
	view.max_traffic = 0; /* not known */
	assert_false(nm_place_is_controller_full(&view, 2));
}

/* A hundred processes of one domain that slow down together, as those of one user or one container
 * can, have one of three votes. */
/* SECURITY: drift */
TEST_BETWEEN(NULL, NULL, test_domains_have_equal_weight)
{
	struct nm_place_change changes[103];
	for (unsigned i = 0; i < 100; i++)
		changes[i] = (struct nm_place_change){1, 0.5};
	changes[100] = (struct nm_place_change){2, 1.01};
	changes[101] = (struct nm_place_change){3, 0.99};
	changes[102] = (struct nm_place_change){2, 1.01};
	assert_true(nm_place_domain_median(changes, 103, 1) == 0.99);
	assert_true(nm_place_domain_median(changes, 0, 7) == 7);
}

RUN_TESTS()
