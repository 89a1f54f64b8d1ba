/* SPDX-License-Identifier: MIT */
/* Which home a group gets. */
#include "numa-migrd/placement.h"

#include <math.h>
#include <stdlib.h>

#define MOVING_COSTS 0.6  /* what a node must be emptier by, per core, to go there for that alone; less while young */
#define HALF_CPU 0.5	  /* demand is measured, and that of threads is in whole CPUs */
#define THERE 0.9	  /* share of its running that makes a node the one it runs on */
#define GATHERED 0.8	  /* share of its memory that makes a node its memory's */
#define IN_DEMAND 0.75	  /* load per core of the machine from which on groups are kept apart */
/* Bytes per second: one channel of DDR3-1066 sustains about this; lower traffic shows no limit. */
#define CONTROLLER_LEAST 8e9
#define KERNEL_ALLOWS 4.0 /* threads up to this part of a node's cores are not spread by the kernel:
			   * adjust_numa_imbalance(), kernel/sched/fair.c */
#define STEADY_S 1.0	  /* by then threads have touched what they use */
#define MEMORY_KNOWN_S 0.25 /* an answer takes less */
#define NEAR 10.5 /* mean distance of one that is where it belongs */

static const char *const reasons[NM_PLACE_REASON_MAX] = {
	[NM_PLACE_THERE] = "runs there",
	[NM_PLACE_SINGLE] = "one thread",
	[NM_PLACE_SMALL] = "few threads",
	[NM_PLACE_MEMORY] = "memory on one node",
	[NM_PLACE_SEPARATE] = "machine busy",
	[NM_PLACE_HELD] = "placed",
	[NM_PLACE_BARRED] = "awaits a verdict, or was rolled back",
	[NM_PLACE_YOUNG] = "just started, or creating threads",
	[NM_PLACE_WATCHED] = "measured before it is placed",
	[NM_PLACE_IDLE] = "little CPU use",
	[NM_PLACE_NO_ROOM] = "no node has enough idle CPUs and free memory",
	[NM_PLACE_NEAR] = "just started, near its memory",
	[NM_PLACE_TOO_DEAR] = "migration costs more than it gains",
	[NM_PLACE_SPREAD] = "idle CPUs, faster spread",
};

const char *nm_place_reason_text(enum nm_place_reason reason)
{
	return reasons[reason];
}

/* What is promised and used, while groups are given their homes one after another. */
struct plan {
	const struct nm_place_view *view;
	double *load;	     /* per node: CPUs in demand */
	uint64_t *free_bytes; /* per node: not promised yet */
	double total, cores;
	double largest_cores; /* of a node */
};

static void plan_clear(struct plan *plan)
{
	free(plan->load);
	free(plan->free_bytes);
}

static double sum(const double *values, unsigned count)
{
	double total = 0;
	for (unsigned i = 0; i < count; i++)
		total += values[i];
	return total;
}

/* A program that has just begun may have one thread that waits for its data, and eight in a second;
 * on a small node, one of these may be its first one, which has ended its part. */
static double expected_demand(const struct plan *plan, const struct nm_place_group *group)
{
	return group->age_s < NM_PLACE_YOUNG_S
		       ? fmax(group->demand_cpus, fmin(group->running, plan->largest_cores))
		       : group->demand_cpus;
}

/* Its memory is large for its age: which node it goes to is decided once it is known where that is.
 */
static bool awaits_memory(const struct nm_place_view *view, const struct nm_place_group *group)
{
	return group->age_s < MEMORY_KNOWN_S && !group->memory_on &&
	       nm_place_move_s(&view->cost, (double)group->anon_bytes) > group->age_s;
}

static bool is_eligible(const struct nm_place_view *view, const struct nm_place_group *group,
			enum nm_place_reason *ret)
{
	if (group->home >= 0)
		*ret = NM_PLACE_HELD;
	else if (group->barred)
		*ret = NM_PLACE_BARRED;
	else if (group->age_s < NM_PLACE_MIN_AGE_S || awaits_memory(view, group) ||
		 (group->awaits_count &&
		  group->age_s >= NM_PLACE_YOUNG_S)) /* the young cannot wait */
		*ret = NM_PLACE_YOUNG;
	else if (group->age_s > NM_PLACE_YOUNG_S && group->watched_s < NM_PLACE_WATCHED_S)
		*ret = NM_PLACE_WATCHED;
	else if (group->demand_cpus < NM_PLACE_LEAST_DEMAND || group->running == 0)
		*ret = NM_PLACE_IDLE;
	else
		return true;
	return false;
}

/* It is not to be placed now, and goes on where it is. */
static void account_in_place(struct plan *plan, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < plan->view->topology->nr_nodes; k++)
		plan->load[k] += group->ran_on[k];
}

/* What runs there beside the groups; then the homes that stand. */
static int plan_init(struct plan *plan, const struct nm_place_view *view)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	plan->view = view;
	plan->load = calloc(nr_nodes, sizeof(*plan->load));
	plan->free_bytes = calloc(nr_nodes, sizeof(*plan->free_bytes));
	if (!plan->load || !plan->free_bytes)
		return -ENOMEM;
	for (unsigned k = 0; k < nr_nodes; k++) {
		double others = view->nodes[k].busy_cpus;
		for (size_t i = 0; i < view->nr_groups; i++)
			others -= view->groups[i].ran_on[k];
		others = fmax(others, 0);
		plan->load[k] = fmax(others - HALF_CPU, 0); /* finds another CPU */
		plan->free_bytes[k] = view->nodes[k].free_bytes;
		plan->cores += view->nodes[k].cores;
		plan->largest_cores = fmax(plan->largest_cores, view->nodes[k].cores);
		plan->total += others;
	}
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		enum nm_place_reason reason;
		plan->total += expected_demand(plan, group);
		if (group->home >= 0)
			plan->load[group->home] += expected_demand(plan, group);
		else if (!is_eligible(view, group, &reason))
			account_in_place(plan, group);
	}
	return 0;
}

/* Parts of its memory by node. Where nothing is known, memory is where the threads have run, since
 * they touched it. */
static const double *memory_parts(const struct nm_place_group *group)
{
	if (group->memory_on)
		return group->memory_on;
	return group->has_run_on ? group->has_run_on : group->ran_on;
}

static double memory_share(const struct nm_place_view *view, const struct nm_place_group *group,
			   unsigned node)
{
	const double *parts = memory_parts(group);
	double total = group->memory_on ? 1 : sum(parts, view->topology->nr_nodes);
	return total > 0 ? parts[node] / total : 0;
}

static double bytes_elsewhere(const struct plan *plan, const struct nm_place_group *group,
			      unsigned node)
{
	return (double)group->anon_bytes * (1 - memory_share(plan->view, group, node));
}

static double distance_from(const struct nm_place_view *view, const struct nm_place_group *group,
			    unsigned from)
{
	const double *parts = memory_parts(group);
	double distance = 0, total = 0;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		distance += parts[k] * nm_topology_distance(view->topology, (int)from, (int)k);
		total += parts[k];
	}
	return total > 0 ? distance / total : NM_DISTANCE_LOCAL;
}

double nm_place_distance(const struct nm_place_view *view, const struct nm_place_group *group)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	double ran = sum(group->ran_on, nr_nodes), distance = 0;
	for (unsigned k = 0; k < nr_nodes; k++)
		if (group->ran_on[k] > 0)
			distance += group->ran_on[k] / ran * distance_from(view, group, k);
	return ran > 0 ? distance : NAN;
}

/* Its load per core stays within one, or within what an even spread of all demand would give. */
static bool has_room(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	const struct nm_place_node *at = &plan->view->nodes[node];
	double most = fmax(1, plan->total / plan->cores) * at->cores;
	return group->allowed[node] && at->cores > 0 &&
	       plan->load[node] + expected_demand(plan, group) <= most + HALF_CPU &&
	       bytes_elsewhere(plan, group, node) <= (double)plan->free_bytes[node];
}

/* A program that has run more threads than now will run as many again. */
static unsigned threads_of(const struct nm_place_group *group)
{
	return group->running > group->ran_most ? group->running : group->ran_most;
}

/* Threads that were created a moment ago have touched little yet, and run where their creator does.
 * A young program cannot wait for that. */
static bool is_steady(const struct nm_place_group *group)
{
	return threads_of(group) <= 1 || group->age_s < NM_PLACE_YOUNG_S ||
	       group->steady_s >= STEADY_S;
}

/* Then one memory controller serves all of it, wherever its threads run. */
static bool is_memory_gathered(const struct nm_place_view *view, const struct nm_place_group *group)
{
	if (!is_steady(group))
		return false;
	for (unsigned k = 0; group->memory_on && k < view->topology->nr_nodes; k++)
		if (group->memory_on[k] >= GATHERED)
			return true;
	return false;
}

/* On the node, its traffic and that of the others would exceed what any controller was seen to
 * serve. */
static bool fills_controller(const struct nm_place_view *view, const struct nm_place_group *group,
			     unsigned node)
{
	if (!(view->most_traffic > 0 && group->traffic > 0))
		return false;
	double already = group->traffic * memory_share(view, group, node);
	double others = fmax(view->nodes[node].traffic - already, 0);
	return others + group->traffic > fmax(view->most_traffic, CONTROLLER_LEAST);
}

/* Is there a reason to pack it on the node? The scheduler spreads for bandwidth, and is right on an
 * idle machine. */
static bool may_pack(const struct plan *plan, const struct nm_place_group *group, unsigned node,
		     enum nm_place_reason *ret)
{
	const struct nm_place_view *view = plan->view;
	if (threads_of(group) <= 1)
		*ret = NM_PLACE_SINGLE;
	else if (threads_of(group) * KERNEL_ALLOWS <= view->nodes[node].cores)
		*ret = NM_PLACE_SMALL;
	else if (is_memory_gathered(view, group))
		*ret = NM_PLACE_MEMORY;
	else if (fmax(plan->total, view->demand_of_late) >= IN_DEMAND * plan->cores &&
		 !fills_controller(view, group, node))
		*ret = NM_PLACE_SEPARATE;
	else
		return false;
	return true;
}

/* May it be brought together there? */
static bool may_gather(const struct plan *plan, const struct nm_place_group *group, unsigned node,
		       enum nm_place_reason *ret)
{
	double ran = sum(group->ran_on, plan->view->topology->nr_nodes);
	if (!(ran > 0 && group->ran_on[node] >= THERE * ran && is_steady(group) &&
	      threads_of(group) <= plan->view->nodes[node].cores))
		return may_pack(plan, group, node, ret);
	*ret = NM_PLACE_THERE;
	return true;
}

static double move_s(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	return nm_place_move_s(&plan->view->cost, bytes_elsewhere(plan, group, node));
}

/* Of the time that it still has: until its memory has followed. */
static double share_away(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	if (plan->view->memory_stays)
		return 1;
	return fmin(move_s(plan, group, node) / nm_place_to_come(group->age_s), 1);
}

/* At the mean over that time. */
static double expected_distance(const struct plan *plan, const struct nm_place_group *group,
				unsigned node)
{
	double away = share_away(plan, group, node);
	return away * distance_from(plan->view, group, node) + (1 - away) * NM_DISTANCE_LOCAL;
}

/* Lower is better: how full the node gets, and how far its memory is for how long. */
static double cost_of(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	double far = expected_distance(plan, group, node) / NM_DISTANCE_LOCAL - 1;
	double moves = 1 - memory_share(plan->view, group, node);
	return far + moves * MOVING_COSTS * fmin(group->age_s / NM_PLACE_YOUNG_S, 1) +
	       (plan->load[node] + expected_demand(plan, group)) / plan->view->nodes[node].cores;
}

/* Threads that run apart are brought together at once, where that takes them no further from their
 * memory: what they touch from then on is there. */
static bool only_gathers(const struct plan *plan, const struct nm_place_group *group,
			 const struct nm_place_proposal *to)
{
	return to->reason != NM_PLACE_THERE &&
	       distance_from(plan->view, group, (unsigned)to->node) <= to->distance_now;
}

/* Else once its memory's being elsewhere may be expected to cost as much as moving it does. The scheduler leaves
 * most threads where they are, so that there is no hurry to hold those that are beside it. */
static bool is_worth_it(const struct plan *plan, const struct nm_place_group *group,
			struct nm_place_proposal *ret)
{
	unsigned node = (unsigned)ret->node;
	if (ret->reason == NM_PLACE_THERE && ret->distance_now <= NEAR) {
		ret->reason = group->age_s < NM_PLACE_YOUNG_S ? NM_PLACE_NEAR : NM_PLACE_THERE;
		return ret->reason == NM_PLACE_THERE;
	}
	bool worth = plan->view->memory_stays
			     ? distance_from(plan->view, group, node) < ret->distance_now
			     : nm_place_to_come(group->lost_s) >= move_s(plan, group, node) ||
				       only_gathers(plan, group, ret);
	ret->reason = worth ? ret->reason : NM_PLACE_TOO_DEAR;
	return worth;
}

bool nm_place_may_go_anywhere(const struct nm_place_view *view, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (view->nodes[k].cores > 0 && !group->allowed[k])
			return false;
	return true;
}

static void choose(struct plan *plan, const struct nm_place_group *group,
		   struct nm_place_proposal *ret)
{
	double best = INFINITY;
	ret->reason = NM_PLACE_NO_ROOM;
	for (unsigned k = 0; k < plan->view->topology->nr_nodes; k++) {
		enum nm_place_reason reason;
		if (!has_room(plan, group, k))
			continue;
		if (!may_gather(plan, group, k, &reason)) {
			if (ret->node < 0)
				ret->reason = NM_PLACE_SPREAD;
			continue;
		}
		double cost = cost_of(plan, group, k);
		if (cost >= best)
			continue;
		best = cost;
		ret->node = (int)k;
		ret->reason = reason;
	}
	bool worth = ret->node >= 0 && is_worth_it(plan, group, ret);
	if (worth || ret->reason == NM_PLACE_NEAR)
		plan->load[ret->node] += expected_demand(plan, group);
	else if (ret->reason == NM_PLACE_SPREAD || !nm_place_may_go_anywhere(plan->view, group))
		account_in_place(plan, group);
	if (!worth) {
		ret->node = -1;
		return;
	}
	uint64_t elsewhere = (uint64_t)bytes_elsewhere(plan, group, (unsigned)ret->node);
	plan->free_bytes[ret->node] -= elsewhere;
	ret->load = plan->load[ret->node] / plan->view->nodes[ret->node].cores;
	ret->distance_home = NM_DISTANCE_LOCAL;
	ret->bytes_away = elsewhere;
	ret->distance_away = distance_from(plan->view, group, (unsigned)ret->node);
}

struct rank {
	bool well; /* its threads are beside its memory: newcomers go elsewhere */
	double demand;
	size_t group;
};

static int by_rank(const void *one, const void *other)
{
	const struct rank *a = one, *b = other;
	if (a->well != b->well)
		return a->well ? -1 : 1;
	if (a->demand != b->demand)
		return a->demand > b->demand ? -1 : 1;
	return (a->group > b->group) - (a->group < b->group);
}

int nm_place_propose(const struct nm_place_view *view, struct nm_place_proposal *ret)
{
	nm_auto(plan_clear) struct plan plan = {0};
	nm_autofree struct rank *ranks = calloc(view->nr_groups + 1, sizeof(*ranks));
	int r = ranks ? plan_init(&plan, view) : -ENOMEM;
	if (r < 0)
		return r;
	for (size_t i = 0; i < view->nr_groups; i++) {
		ret[i] = (struct nm_place_proposal){
			.group = i,
			.node = -1,
			.distance_now = nm_place_distance(view, &view->groups[i]),
			.distance_home = NAN,
			.load = NAN,
			.distance_away = NAN,
		};
		ranks[i] = (struct rank){
			.well = ret[i].distance_now <= NEAR,
			.demand = view->groups[i].demand_cpus,
			.group = i,
		};
	}
	qsort(ranks, view->nr_groups, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < view->nr_groups; i++) {
		size_t at = ranks[i].group;
		const struct nm_place_group *group = &view->groups[at];
		if (is_eligible(view, group, &ret[at].reason))
			choose(&plan, group, &ret[at]);
	}
	return 0;
}

/* ---- homes whose reason has gone ---- */

static bool goes_with_growth(enum nm_place_reason reason)
{
	return reason == NM_PLACE_THERE || reason == NM_PLACE_SINGLE || reason == NM_PLACE_SMALL;
}

int nm_place_outgrown(const struct nm_place_view *view, enum nm_place_reason *ret)
{
	nm_auto(plan_clear) struct plan plan = {0};
	int r = plan_init(&plan, view);
	for (size_t i = 0; r == 0 && i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		ret[i] = group->home_reason;
		if (group->home < 0 || !goes_with_growth(group->home_reason) ||
		    group->running <= group->home_ran_most)
			continue;
		if (!may_pack(&plan, group, (unsigned)group->home, &ret[i]))
			ret[i] = NM_PLACE_SPREAD;
	}
	return r;
}
