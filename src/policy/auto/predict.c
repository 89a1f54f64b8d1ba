/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": one prediction for a home and for none, as the time that a unit of work takes,
 * relative to local memory on an idle machine (numa-migrd-policies(7), "auto"):
 *
 *	time = 1 + stalled * (distance / 10 - 1 + contention) + waiting
 */
#include "predict.h"

#include <math.h>
#include <stdlib.h>

#include "reach.h"

#define STALLED                                                                                    \
	0.25 /* share of its time that a group with local memory waits for it; an estimate */
/* Seconds that a thread waits for each byte of idle local memory at most: 80 ns for a line of 64
 * (79 ns on a Platinum 8269CY, Intel MLC). A group whose threads read few lines waits less. */
#define BYTE_S 1.25e-9
/* Share of the highest traffic seen from which a controller may be full. Latency rises from about
 * that load: 131 ns instead of 79 at 87 % (the same machine). Above it, requests queue. */
#define FULL 0.8
#define SATURATED 0.96 /* from here on in proportion: what exceeds the limit is not served */
/* The kernel does not spread threads up to this fraction of a node's cores, regardless of their
 * traffic: adjust_numa_imbalance(), kernel/sched/fair.c. */
#define KERNEL_PACKS 4.0
#define HALF_CPU 0.5 /* of a node of two or more cores */

/* ---- demand ---- */

unsigned nm_place_threads(const struct nm_place_group *group)
{
	return group->running > group->max_running ? group->running : group->max_running;
}

static double largest_room(const struct nm_loads *loads, const struct nm_place_group *group)
{
	double largest = 0;
	for (unsigned k = 0; group->room && k < loads->view->topology->nr_nodes; k++)
		largest = fmax(largest, nm_place_room(loads->view, group, k));
	return group->room ? largest : loads->largest_cores;
}

/*
 * A program that has just started may have one thread that waits for its data, and eight threads a
 * second later. On a small node, one of these may be the first one, which has completed its part.
 */
double nm_place_expected_cpus(const struct nm_loads *loads, const struct nm_place_group *group)
{
	double running = nm_place_allowed_cpus(group->running, group->cpu_limit);
	double all = group->age_s < NM_PLACE_YOUNG_S
			     ? fmax(group->demand_cpus, fmin(running, largest_room(loads, group)))
			     : group->demand_cpus;
	return all - group->fixed_cpus;
}

double nm_place_tolerance(double room)
{
	return fmin(HALF_CPU, room / 4);
}

double nm_place_bytes_elsewhere(const struct nm_loads *loads, const struct nm_place_group *group,
				unsigned node)
{
	const struct nm_place_view *view = loads->view;
	double away = 1 - nm_place_following_share(view, group, node);
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (view->nodes[k].is_device && k != node)
			away -= nm_place_following_share(view, group, k);
	if (group->may_hold && !group->may_hold[node])
		return 0;
	return (double)group->anon_bytes * fmax(away, 0) * (1 - group->pinned_share);
}

static double fixed_on(const struct nm_place_group *group, unsigned node)
{
	return group->fixed_on ? group->fixed_on[node] : 0;
}

/* ---- loads ---- */

void nm_loads_clear(struct nm_loads *loads)
{
	free(loads->cpus);
	free(loads->traffic);
	free(loads->free_bytes);
}

void nm_loads_add_in_place(struct nm_loads *loads, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < loads->view->topology->nr_nodes; k++)
		loads->cpus[k] += group->ran_on[k] - fixed_on(group, k);
}

void nm_loads_init(struct nm_loads *loads, const struct nm_place_view *view)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	loads->view = view;
	loads->cpus = nm_must(calloc(nr_nodes, sizeof(*loads->cpus)));
	loads->traffic = nm_must(calloc(nr_nodes, sizeof(*loads->traffic)));
	loads->free_bytes = nm_must(calloc(nr_nodes, sizeof(*loads->free_bytes)));
	for (unsigned k = 0; k < nr_nodes; k++) {
		double others = view->nodes[k].busy_cpus;
		for (size_t i = 0; i < view->nr_groups; i++)
			others -= view->groups[i].ran_on[k];
		others = fmax(others, 0);
		loads->cpus[k] = fmax(others - HALF_CPU, 0); /* a task finds another CPU */
		loads->traffic[k] = view->nodes[k].traffic;
		loads->free_bytes[k] = view->nodes[k].free_bytes;
		loads->cores += view->nodes[k].cores;
		loads->largest_cores = fmax(loads->largest_cores, view->nodes[k].cores);
		loads->wanted += others;
	}
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		for (unsigned k = 0; k < nr_nodes; k++)
			loads->cpus[k] += fixed_on(group, k);
		loads->wanted += group->wanted_cpus;
		if (group->home >= 0)
			loads->cpus[group->home] += nm_place_expected_cpus(loads, group);
	}
}

/* Returns the part of the node's traffic that others cause. */
static double others_traffic(const struct nm_loads *loads, const struct nm_place_group *group,
			     unsigned node)
{
	double own = fmax(group->traffic, 0) * nm_place_memory_share(loads->view, group, node);
	return fmax(loads->traffic[node] - own, 0);
}

/* ---- memory controllers ---- */

/* The demand of a group for memory traffic, and the limit of one controller. If its traffic is not
 * known, the unit is a computing thread instead of a byte per second. */
struct traffic {
	bool counted;
	double own, limit;
};

static double most_seen(const struct nm_place_view *view)
{
	return fmax(view->max_traffic, NM_CONTROLLER_MIN);
}

/* A full controller serves only a part of what is asked of it. */
static bool is_throttled(const struct nm_place_view *view, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (nm_place_memory_share(view, group, k) > NM_PLACE_MOSTLY &&
		    view->nodes[k].traffic >= FULL * most_seen(view))
			return true;
	return false;
}

static double beside(const struct nm_loads *loads, const struct nm_place_group *group, bool counted,
		     unsigned node)
{
	return counted ? others_traffic(loads, group, node)
		       : fmax(loads->cpus[node] - fixed_on(group, node), 0);
}

static struct traffic traffic_of(const struct nm_loads *loads, const struct nm_place_group *group)
{
	unsigned nr_nodes = loads->view->topology->nr_nodes;
	double threads = nm_place_allowed_cpus(nm_place_threads(group), group->cpu_limit);
	double cpus = fmax(nm_place_expected_cpus(loads, group), threads);
	double throttled = is_throttled(loads->view, group) ? FULL : 1;
	struct traffic ret = {.counted = group->cpu_traffic > 0};
	ret.own = ret.counted ? group->cpu_traffic * cpus / throttled : cpus;
	double all = ret.own;
	for (unsigned k = 0; ret.counted && k < nr_nodes; k++)
		all += others_traffic(loads, group, k);
	/* Demand that has just begun may end as soon. */
	if (!ret.counted)
		all = fmax(ret.own, loads->view->recent_demand);
	double packed = fmax(loads->largest_cores / KERNEL_PACKS, 1);
	double least = ret.counted ? most_seen(loads->view) : packed / FULL;
	/* The highest traffic of others is no limit for a node that serves less than the geometric
	 * mean of an even share and all of the traffic. */
	ret.limit = fmax(all / sqrt(nr_nodes), least);
	return ret;
}

/* Returns the time that an access waits for the node's controller, in latencies of idle memory, if
 * this share of the group's memory is there. */
static double contention(const struct nm_loads *loads, const struct nm_place_group *group,
			 const struct traffic *traffic, unsigned node, double share)
{
	double here = beside(loads, group, traffic->counted, node) + share * traffic->own;
	double use = here / traffic->limit, most = fmin(use, SATURATED);
	return use > FULL ? (most - FULL) / (1 - most) * use / most : 0;
}

void nm_loads_add_at(struct nm_loads *loads, const struct nm_place_group *group, unsigned node)
{
	const struct traffic traffic = traffic_of(loads, group);
	for (unsigned k = 0; traffic.counted && k < loads->view->topology->nr_nodes; k++)
		loads->traffic[k] = others_traffic(loads, group, k) + (k == node ? traffic.own : 0);
	loads->cpus[node] += nm_place_expected_cpus(loads, group);
	loads->free_bytes[node] -= (uint64_t)nm_place_bytes_elsewhere(loads, group, node);
}

/* ---- predictions ---- */

static double stalled_share(const struct nm_place_group *group)
{
	return group->cpu_traffic > 0 ? fmin(STALLED, group->cpu_traffic * BYTE_S) : STALLED;
}

static struct nm_prediction with_time(const struct nm_place_group *group,
				      struct nm_prediction prediction)
{
	double memory = prediction.distance / NM_DISTANCE_LOCAL - 1 + prediction.contention;
	prediction.stalled = stalled_share(group);
	prediction.time = 1 + prediction.stalled * memory + prediction.waiting;
	return prediction;
}

/* Returns the time that threads wait for CPUs per CPU time, with an even spread over those that the
 * group may use. */
static double waiting_spread(const struct nm_loads *loads, const struct nm_place_group *group)
{
	const struct nm_place_view *view = loads->view;
	double room = 0, load = group->home < 0 ? nm_place_expected_cpus(loads, group) : 0;
	if (!nm_place_is_restricted(view, group))
		return fmax(loads->wanted / loads->cores - 1, 0);
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		if (!group->allowed[k] || !(nm_place_room(view, group, k) > 0))
			continue;
		room += nm_place_room(view, group, k);
		load += nm_place_load_within(group, k, loads->cpus[k]);
	}
	return room > 0 ? fmax(load / room - 1, 0) : 0;
}

/* Returns the part of its memory that will be on the node if it stays: pages follow the threads, if
 * something moves them. */
static double memory_later(const struct nm_loads *loads, const struct nm_place_group *group,
			   unsigned node, double ran)
{
	const struct nm_place_view *view = loads->view;
	if (group->cpu_traffic == 0 && !view->kernel_moves)
		return nm_place_memory_share(view, group, node);
	/* The scheduler spreads the threads that do not run now. */
	if (ran == 0 || 2 * group->running < nm_place_threads(group))
		return 1.0 / view->topology->nr_nodes;
	return group->ran_on[node] / ran;
}

/* Returns the time that threads wait for the CPUs on which they run now, if not all CPUs are
 * allowed. */
static double waiting_now(const struct nm_loads *loads, const struct nm_place_group *group,
			  double ran)
{
	const struct nm_place_view *view = loads->view;
	double waiting = 0, cpus = nm_place_expected_cpus(loads, group);
	if (!nm_place_is_restricted(view, group) || ran == 0)
		return 0;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		double share = group->ran_on[k] / ran, room = nm_place_room(view, group, k);
		if (share > 0 && room > 0)
			waiting += share * fmax(share * cpus / room - 1, 0);
	}
	return waiting;
}

struct nm_prediction nm_predict_staying(const struct nm_loads *loads,
					const struct nm_place_group *group)
{
	const struct nm_place_view *view = loads->view;
	const struct traffic traffic = traffic_of(loads, group);
	unsigned nr_nodes = view->topology->nr_nodes;
	double ran = nm_place_sum(group->ran_on, nr_nodes);
	struct nm_prediction ret = {
		.distance = nm_place_distance(view, group),
		.waiting = fmax(waiting_spread(loads, group), waiting_now(loads, group, ran))};
	/* Threads that are near their memory now do not stay there: half-way to those that use all
	 * of the memory alike. */
	if (group->distance > 0)
		ret.distance = (ret.distance + group->distance) / 2;
	if (isnan(ret.distance))
		ret.distance = NM_DISTANCE_LOCAL;
	for (unsigned k = 0; k < nr_nodes; k++) {
		double share = memory_later(loads, group, k, ran);
		ret.contention += share * contention(loads, group, &traffic, k, share);
	}
	return with_time(group, ret);
}

struct nm_prediction nm_predict_at(const struct nm_loads *loads, const struct nm_place_group *group,
				   unsigned node, double distance)
{
	const struct traffic traffic = traffic_of(loads, group);
	double room = nm_place_room(loads->view, group, node);
	double load = nm_place_load_within(group, node, loads->cpus[node]) +
		      nm_place_expected_cpus(loads, group);
	struct nm_prediction ret = {
		.distance = distance,
		.contention = contention(loads, group, &traffic, node, 1),
		.waiting =
			room > 0 ? fmax((load - nm_place_tolerance(room)) / room - 1, 0) : INFINITY,
	};
	return with_time(group, ret);
}

struct nm_prediction nm_predict_spread(const struct nm_loads *loads,
				       const struct nm_place_group *group)
{
	const struct traffic traffic = traffic_of(loads, group);
	const struct nm_topology *topology = loads->view->topology;
	const double share = 1.0 / topology->nr_nodes;
	struct nm_prediction ret = {.waiting = waiting_spread(loads, group)};
	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		ret.contention += share * contention(loads, group, &traffic, i, share);
		for (unsigned k = 0; k < topology->nr_nodes; k++)
			ret.distance +=
				share * share * nm_topology_distance(topology, (int)i, (int)k);
	}
	return with_time(group, ret);
}

/* ---- the same for verdicts and migrations ---- */

bool nm_place_is_controller_full(const struct nm_place_view *view, unsigned node)
{
	double traffic = view->nodes[node].traffic;
	return traffic >= NM_CONTROLLER_MIN && traffic >= FULL * view->max_traffic;
}

double nm_place_lost_cpus(double demand_cpus, double distance)
{
	double longer = STALLED * (distance / NM_DISTANCE_LOCAL - 1);
	return longer > 0 ? demand_cpus * longer / (1 + longer) : 0;
}
