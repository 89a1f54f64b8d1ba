/* SPDX-License-Identifier: MIT */
/* Chooses the home of a group. */
#include "numa-migrd/placement.h"

#include <math.h>
#include <stdlib.h>

#include "reach.h"

#define MOVING_COSTS                                                                               \
	0.6	     /* by how much emptier, per core, a node must be to justify a migration       \
		      * for that reason alone; less for young groups */
#define HALF_CPU 0.5 /* tolerance, because demand is measured, while threads need whole CPUs */
#define RUNS_THERE                                                                                 \
	0.9 /* share of its running on a node, from which the group counts as running there */
#define ON_ONE_NODE                                                                                \
	0.8		  /* share of its memory on a node, from which its memory counts as being  \
			   * there */
#define IN_DEMAND 0.75	  /* load per core of the machine from which groups are kept apart */
#define SUSTAINED 0.9	  /* of that demand: the mean of some seconds never quite reaches it */
#define KERNEL_PACKS                                                                               \
	4.0		  /* the kernel does not spread threads up to this fraction of a node's    \
			   * cores: adjust_numa_imbalance(), kernel/sched/fair.c */
#define UNPROVEN 0.5	  /* of a node's cores: threads that share one controller, if their traffic \
			   * is not known */
#define STEADY_S 1.0	  /* time after which threads have touched the memory that they use */
#define MEMORY_KNOWN_S 0.25 /* time limit of a query */
#define APART_LOCAL 0.6	    /* local access ratio from which threads count as near their memory */
#define APART_AGE_S 12.0    /* younger ones are better kept apart if the page cache is full */
#define NEAR 10.5	    /* mean distance up to which a group counts as near its memory */
/* Seconds. A thread that computes runs for a time slice of about 3 ms or more (base_slice_ns of
 * Linux); a thread that answers requests sleeps again sooner. */
#define BURST_TO_EXPIRE 0.001
#define BURST_TO_PLACE 0.003
/* Demand from which a thread almost never sleeps: one that runs only briefly at a time is then
 * preempted by others, not woken by them. */
#define SLEEPLESS 0.95

static const char *const reasons[NM_PLACE_REASON_MAX] = {
	[NM_PLACE_RUNS_THERE] = "runs there",
	[NM_PLACE_SINGLE] = "one thread",
	[NM_PLACE_SMALL] = "few threads",
	[NM_PLACE_MEMORY] = "memory on one node",
	[NM_PLACE_SEPARATE] = "machine busy",
	[NM_PLACE_HAS_HOME] = "placed",
	[NM_PLACE_BARRED] = "awaits a verdict, or was rolled back",
	[NM_PLACE_YOUNG] = "just started, or creating threads",
	[NM_PLACE_OBSERVED] = "measured before it is placed",
	[NM_PLACE_IDLE] = "little CPU use",
	[NM_PLACE_YIELDS] = "idle priority, leaves the CPUs to others",
	[NM_PLACE_NO_ROOM] = "no node has enough idle CPUs and free memory",
	[NM_PLACE_LARGER] = "larger than every node",
	[NM_PLACE_NEAR] = "just started, near its memory",
	[NM_PLACE_TOO_COSTLY] = "migration costs more than it gains",
	[NM_PLACE_SPREAD] = "idle CPUs, faster spread",
	[NM_PLACE_BANDWIDTH] = "one node's memory is too slow",
	[NM_PLACE_FIXED] = "memory elsewhere cannot be moved",
	[NM_PLACE_OFTEN_WOKEN] = "woken all the time, runs near its wakers",
	[NM_PLACE_PINNED] = "pinned threads use memory elsewhere",
	[NM_PLACE_LEFT_ALONE] = "left alone for comparison",
	[NM_PLACE_APART] = "threads near their memory on several nodes",
	[NM_PLACE_UNPROVEN] = "memory traffic not known",
	[NM_PLACE_CACHED] = "hardly uses memory",
};

const char *nm_place_reason_text(enum nm_place_reason reason)
{
	return reasons[reason];
}

/* Load and memory, including the homes assigned so far. */
struct plan {
	const struct nm_place_view *view;
	double *load;	      /* per node: CPUs in demand */
	uint64_t *free_bytes; /* per node: not assigned yet */
	double total, cores;
	double wanted;	      /* part of the total that is in demand now */
	double largest_cores; /* of a node */
};

static void plan_clear(struct plan *plan)
{
	free(plan->load);
	free(plan->free_bytes);
}

static double largest_room(const struct plan *plan, const struct nm_place_group *group)
{
	double largest = 0;
	for (unsigned k = 0; group->room && k < plan->view->topology->nr_nodes; k++)
		largest = fmax(largest, nm_place_room(plan->view, group, k));
	return group->room ? largest : plan->largest_cores;
}

/*
 * The demand of the threads that may be moved. A program that has just started may have one thread
 * that waits for its data, and eight threads a second later. On a small node, one of these may be
 * the first one, which has completed its part.
 */
static double expected_demand(const struct plan *plan, const struct nm_place_group *group)
{
	double running = nm_place_allowed_cpus(group->running, group->cpu_limit);
	double all = group->age_s < NM_PLACE_YOUNG_S
			     ? fmax(group->demand_cpus, fmin(running, largest_room(plan, group)))
			     : group->demand_cpus;
	return all - group->fixed_cpus;
}

static double fixed_on(const struct nm_place_group *group, unsigned node)
{
	return group->fixed_on ? group->fixed_on[node] : 0;
}

/* The memory is large for the age of the group: its node is chosen when the location of the memory
 * is known. */
static bool awaits_memory(const struct nm_place_view *view, const struct nm_place_group *group)
{
	return group->age_s < MEMORY_KNOWN_S && !group->memory_on &&
	       nm_place_migration_cost_s(view->page_ns, (double)group->anon_bytes) > group->age_s;
}

/* A program that has run more threads than now will run as many again. */
static unsigned threads_of(const struct nm_place_group *group)
{
	return group->running > group->max_running ? group->running : group->max_running;
}

/* Returns whether its only thread is woken by other processes all the time, such as a client by its
 * server. The scheduler runs it near the thread that wakes it, or on any idle CPU; on a home node
 * it would be far from its partner, and would queue. */
static bool is_woken_often(const struct nm_place_group *group, double burst_s)
{
	return threads_of(group) <= 1 && group->burst_s > 0 && group->burst_s < burst_s &&
	       group->demand_cpus < SLEEPLESS;
}

static bool is_eligible(const struct nm_place_view *view, const struct nm_place_group *group,
			enum nm_place_reason *ret)
{
	if (group->home >= 0)
		*ret = NM_PLACE_HAS_HOME;
	else if (group->barred)
		*ret = NM_PLACE_BARRED;
	else if (group->age_s < NM_PLACE_MIN_AGE_S || group->creating ||
		 awaits_memory(view, group) ||
		 (group->awaits_query &&
		  group->age_s >= NM_PLACE_YOUNG_S)) /* young groups cannot wait */
		*ret = NM_PLACE_YOUNG;
	else if (group->yields && group->running == 0)
		*ret = NM_PLACE_YIELDS;
	else if (group->age_s > NM_PLACE_YOUNG_S && group->observed_s < NM_PLACE_OBSERVED_S)
		*ret = NM_PLACE_OBSERVED;
	else if (group->demand_cpus - group->fixed_cpus < NM_PLACE_MIN_DEMAND ||
		 group->running == 0)
		*ret = NM_PLACE_IDLE;
	else if (is_woken_often(group, BURST_TO_PLACE))
		*ret = NM_PLACE_OFTEN_WOKEN;
	else
		return true;
	return false;
}

/* Accounts for a group that is not placed now, and stays where it is. */
static void account_in_place(struct plan *plan, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < plan->view->topology->nr_nodes; k++)
		plan->load[k] += group->ran_on[k] - fixed_on(group, k);
}

/* Computes the load of other tasks, then that of the existing homes. */
static void plan_init(struct plan *plan, const struct nm_place_view *view)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	plan->view = view;
	plan->load = nm_must(calloc(nr_nodes, sizeof(*plan->load)));
	plan->free_bytes = nm_must(calloc(nr_nodes, sizeof(*plan->free_bytes)));
	for (unsigned k = 0; k < nr_nodes; k++) {
		double others = view->nodes[k].busy_cpus;
		for (size_t i = 0; i < view->nr_groups; i++)
			others -= view->groups[i].ran_on[k];
		others = fmax(others, 0);
		plan->load[k] = fmax(others - HALF_CPU, 0); /* a task finds another CPU */
		plan->free_bytes[k] = view->nodes[k].free_bytes;
		plan->cores += view->nodes[k].cores;
		plan->largest_cores = fmax(plan->largest_cores, view->nodes[k].cores);
		plan->total += others;
	}
	plan->wanted = plan->total;
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		enum nm_place_reason reason;
		plan->total += expected_demand(plan, group) + group->fixed_cpus;
		for (unsigned k = 0; k < nr_nodes; k++)
			plan->load[k] += fixed_on(group, k);
		plan->wanted += group->wanted_cpus;
		if (group->home >= 0)
			plan->load[group->home] += expected_demand(plan, group);
		else if (!is_eligible(view, group, &reason))
			account_in_place(plan, group);
	}
}

/* Returns the memory that would be moved to this node. */
static double bytes_elsewhere(const struct plan *plan, const struct nm_place_group *group,
			      unsigned node)
{
	const struct nm_place_view *view = plan->view;
	double away = 1 - nm_place_following_share(view, group, node);
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (view->nodes[k].is_device && k != node)
			away -= nm_place_following_share(view, group, k);
	if (group->may_hold && !group->may_hold[node])
		return 0;
	return (double)group->anon_bytes * fmax(away, 0) * (1 - group->held_share);
}

/* Returns the load per core, with an even spread, of the CPUs that a restricted group may use. */
static double pressure_on(const struct plan *plan, const struct nm_place_group *group)
{
	double room = 0, load = group->home < 0 ? expected_demand(plan, group) : 0;
	for (unsigned k = 0; k < plan->view->topology->nr_nodes; k++) {
		if (!group->allowed[k] || !(nm_place_room(plan->view, group, k) > 0))
			continue;
		room += nm_place_room(plan->view, group, k);
		load += nm_place_load_within(group, k, plan->load[k]);
	}
	return room > 0 ? load / room : 0;
}

/* The same of any group. */
static double load_per_core(const struct plan *plan, const struct nm_place_group *group)
{
	return nm_place_is_restricted(plan->view, group) ? pressure_on(plan, group)
							 : plan->wanted / plan->cores;
}

/* Returns the load up to which the CPUs of a node that the group may use are not full: one per
 * core, or the load with an even spread of all demand. */
static double most_cpus(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	double room = nm_place_room(plan->view, group, node);
	bool restricted = nm_place_is_restricted(plan->view, group);
	return fmax(1, load_per_core(plan, group)) * room +
	       (restricted ? fmin(HALF_CPU, room / 4) : HALF_CPU);
}

static bool has_room(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	return group->allowed[node] && nm_place_room(plan->view, group, node) > 0 &&
	       nm_place_load_within(group, node, plan->load[node]) + expected_demand(plan, group) <=
		       most_cpus(plan, group, node) &&
	       bytes_elsewhere(plan, group, node) <= (double)plan->free_bytes[node];
}

/* Returns whether it would fit on no node that it may use even if nothing else ran there. */
static bool is_larger_than_every_node(const struct plan *plan, const struct nm_place_group *group)
{
	const struct nm_place_view *view = plan->view;
	bool may_use_any = false;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		uint64_t memory = view->nodes[k].memory_bytes;
		if (!group->allowed[k] || !(nm_place_room(view, group, k) > 0))
			continue;
		if (expected_demand(plan, group) <= most_cpus(plan, group, k) &&
		    (memory == 0 || group->anon_bytes <= memory))
			return false;
		may_use_any = true;
	}
	return may_use_any;
}

/* New threads have touched little memory, and run where they were created. A young program cannot
 * wait for that. */
static bool is_steady(const struct nm_place_group *group)
{
	return threads_of(group) <= 1 || group->age_s < NM_PLACE_YOUNG_S ||
	       group->steady_s >= STEADY_S;
}

/* Returns whether its memory is on one node, so that one memory controller serves it wherever its
 * threads run. */
static bool is_memory_on_one_node(const struct nm_place_view *view,
				  const struct nm_place_group *group)
{
	if (!is_steady(group))
		return false;
	for (unsigned k = 0; group->memory_on && k < view->topology->nr_nodes; k++)
		if (group->memory_on[k] >= ON_ONE_NODE)
			return true;
	return false;
}

/* Returns whether one controller would be full with it, as far as is known. On a busy machine other
 * programs use the controllers that it leaves. */
static bool fills_controller(const struct plan *plan, const struct nm_place_group *group,
			     unsigned node)
{
	double threads = nm_place_allowed_cpus(threads_of(group), group->cpu_limit);
	double cpus = fmax(expected_demand(plan, group), threads);
	return nm_place_fills_controller(plan->view, group, node, cpus,
					 is_memory_on_one_node(plan->view, group));
}

/* Demand that has just begun may end as soon. It counts at once if the program's traffic is known,
 * which shows that one node serves it as well. */
static bool is_in_demand(const struct plan *plan, const struct nm_place_group *group)
{
	double least = IN_DEMAND * plan->cores, recent = plan->view->recent_demand;
	if (nm_place_is_restricted(plan->view, group))
		return pressure_on(plan, group) >= IN_DEMAND;
	return fmax(plan->total, recent) >= least &&
	       (group->cpu_traffic > 0 || recent >= SUSTAINED * least);
}

/*
 * Returns whether its threads prefer different nodes and run there (LBMA and IMAR² paper, section
 * 4.2), so that a home would only concentrate its accesses on one memory controller. A home is
 * better if other programs wait for CPUs or memory: it keeps them apart.
 */
static bool is_apart(const struct plan *plan, const struct nm_place_group *group)
{
	const struct nm_place_view *view = plan->view;
	if (!view->threads_follow || group->age_s < APART_AGE_S ||
	    !(group->local_share >= APART_LOCAL) || threads_of(group) <= 1 ||
	    load_per_core(plan, group) > 1)
		return false;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (group->ran_on[k] > 0 && view->nodes[k].free_bytes == 0)
			return false;
	return !is_memory_on_one_node(view, group);
}

/* Returns whether there is a reason to pack the group on the node, and the reason for or against
 * it. The scheduler spreads threads for bandwidth, which is right on an idle machine, and which
 * nothing undoes once the memory is on one node. */
static bool may_pack(const struct plan *plan, const struct nm_place_group *group, unsigned node,
		     enum nm_place_reason *ret)
{
	const struct nm_place_view *view = plan->view;
	double room = nm_place_room(view, group, node);
	double gathered = threads_of(group) - group->fixed_cpus;
	if (threads_of(group) <= 1)
		*ret = NM_PLACE_SINGLE;
	else if (threads_of(group) * KERNEL_PACKS <= room)
		*ret = NM_PLACE_SMALL;
	else if (fills_controller(plan, group, node))
		*ret = NM_PLACE_BANDWIDTH;
	else if (!is_memory_on_one_node(view, group))
		*ret = is_in_demand(plan, group) ? NM_PLACE_SEPARATE : NM_PLACE_SPREAD;
	else if (group->cpu_traffic == 0 && gathered > UNPROVEN * room)
		*ret = NM_PLACE_UNPROVEN;
	else
		*ret = NM_PLACE_MEMORY;
	return !nm_place_is_spread(*ret);
}

/* Returns whether its threads run there together: not one of many, while the others wait. */
static bool runs_there(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	double ran = nm_place_sum(group->ran_on, plan->view->topology->nr_nodes);
	return ran > 0 && group->ran_on[node] >= RUNS_THERE * ran && is_steady(group) &&
	       threads_of(group) <= nm_place_room(plan->view, group, node) &&
	       2 * group->running >= threads_of(group);
}

/* Returns whether the group may be moved together there. */
static bool may_assign(const struct plan *plan, const struct nm_place_group *group, unsigned node,
		       enum nm_place_reason *ret)
{
	if (threads_of(group) > 1 && nm_place_hardly_uses_memory(group)) {
		*ret = NM_PLACE_CACHED;
		return false;
	}
	if (!runs_there(plan, group, node) || fills_controller(plan, group, node))
		return may_pack(plan, group, node, ret);
	*ret = NM_PLACE_RUNS_THERE;
	return true;
}

static double migration_cost_s(const struct plan *plan, const struct nm_place_group *group,
			       unsigned node)
{
	return nm_place_migration_cost_s(plan->view->page_ns, bytes_elsewhere(plan, group, node));
}

/* Share of its remaining lifetime until its memory has followed. */
static double share_away(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	if (nm_place_staying_share(plan->view, group, node) == 1)
		return 1;
	return fmin(migration_cost_s(plan, group, node) / nm_place_expected_rest(group->age_s), 1);
}

/* Mean distance over its remaining lifetime. */
static double expected_distance(const struct plan *plan, const struct nm_place_group *group,
				unsigned node)
{
	double away = share_away(plan, group, node);
	return away * nm_place_distance_from(plan->view, group, node) +
	       (1 - away) * nm_place_final_distance(plan->view, group, node);
}

/* Lower is better: the load of the node, and the distance of the memory weighted by time. */
static double cost_of(const struct plan *plan, const struct nm_place_group *group, unsigned node)
{
	double far = expected_distance(plan, group, node) / NM_DISTANCE_LOCAL - 1;
	double moves = 1 - nm_place_memory_share(plan->view, group, node);
	return far + moves * MOVING_COSTS * fmin(group->age_s / NM_PLACE_YOUNG_S, 1) +
	       (nm_place_load_within(group, node, plan->load[node]) +
		expected_demand(plan, group)) /
		       nm_place_room(plan->view, group, node);
}

/* Threads on several nodes are brought together at once if their distance to memory does not
 * increase: the memory that they touch from then on is local. */
static bool only_gathers(const struct plan *plan, const struct nm_place_group *group,
			 const struct nm_place_proposal *to)
{
	return to->reason != NM_PLACE_RUNS_THERE &&
	       nm_place_distance_from(plan->view, group, (unsigned)to->node) <= to->distance_now;
}

/*
 * Otherwise the cost of remote accesses must be expected to reach the cost of migration. The
 * scheduler leaves most threads in place, so that threads near their memory need not be held at
 * once.
 */
static bool pays_off(const struct plan *plan, const struct nm_place_group *group,
		     struct nm_place_proposal *ret)
{
	unsigned node = (unsigned)ret->node;
	if (ret->reason == NM_PLACE_RUNS_THERE && ret->distance_now <= NEAR) {
		ret->reason = group->age_s < NM_PLACE_YOUNG_S ? NM_PLACE_NEAR : NM_PLACE_RUNS_THERE;
		return ret->reason == NM_PLACE_RUNS_THERE;
	}
	double stays = nm_place_staying_share(plan->view, group, node);
	bool nearer =
		stays == 0 || nm_place_final_distance(plan->view, group, node) < ret->distance_now;
	bool pays = nm_place_expected_rest(group->lost_s) >= migration_cost_s(plan, group, node) ||
		    only_gathers(plan, group, ret);
	bool worth = nearer && (stays == 1 || pays);
	ret->reason = worth ? ret->reason : NM_PLACE_TOO_COSTLY;
	return worth;
}

bool nm_place_is_unrestricted(const struct nm_place_view *view, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (view->nodes[k].cores > 0 && !group->allowed[k])
			return false;
	return true;
}

static void choose_node(struct plan *plan, const struct nm_place_group *group,
			struct nm_place_proposal *ret)
{
	double best = INFINITY;
	ret->reason = is_larger_than_every_node(plan, group) ? NM_PLACE_LARGER : NM_PLACE_NO_ROOM;
	if (ret->reason == NM_PLACE_NO_ROOM && is_in_demand(plan, group) && is_apart(plan, group)) {
		ret->reason = NM_PLACE_APART;
		account_in_place(plan, group);
		return;
	}
	for (unsigned k = 0; k < plan->view->topology->nr_nodes; k++) {
		enum nm_place_reason reason;
		if (!has_room(plan, group, k))
			continue;
		if (nm_place_is_far_from_staying(plan->view, group, k)) {
			if (ret->node < 0)
				ret->reason = NM_PLACE_FIXED;
			continue;
		}
		if (nm_place_takes_memory_away(plan->view, group, k)) {
			if (ret->node < 0)
				ret->reason = NM_PLACE_PINNED;
			continue;
		}
		if (!may_assign(plan, group, k, &reason)) {
			if (ret->node < 0)
				ret->reason = reason;
			continue;
		}
		double cost = cost_of(plan, group, k);
		if (cost >= best)
			continue;
		best = cost;
		ret->node = (int)k;
		ret->reason = reason;
	}
	bool worth = ret->node >= 0 && pays_off(plan, group, ret);
	if (worth || ret->reason == NM_PLACE_NEAR)
		plan->load[ret->node] += expected_demand(plan, group);
	else if (nm_place_is_spread(ret->reason) || ret->reason == NM_PLACE_PINNED ||
		 ret->reason == NM_PLACE_FIXED ||
		 !nm_place_is_unrestricted(plan->view, group))
		account_in_place(plan, group);
	if (!worth) {
		ret->node = -1;
		return;
	}
	uint64_t elsewhere = (uint64_t)bytes_elsewhere(plan, group, (unsigned)ret->node);
	plan->free_bytes[ret->node] -= elsewhere;
	ret->load = nm_place_load_within(group, (unsigned)ret->node, plan->load[ret->node]) /
		    nm_place_room(plan->view, group, (unsigned)ret->node);
	ret->distance_home = nm_place_final_distance(plan->view, group, (unsigned)ret->node);
	ret->bytes_away = elsewhere;
	ret->distance_away = nm_place_distance_from(plan->view, group, (unsigned)ret->node);
}

struct rank {
	bool is_near; /* its threads are near its memory: new groups go elsewhere */
	double demand;
	size_t group;
};

static int by_rank(const void *one, const void *other)
{
	const struct rank *a = one, *b = other;
	return NM_COMPARE(b->is_near, a->is_near)
		       ?: NM_COMPARE(b->demand, a->demand) ?: NM_COMPARE(a->group, b->group);
}

void nm_place_propose(const struct nm_place_view *view, struct nm_place_proposal *ret)
{
	nm_auto(plan_clear) struct plan plan = {0};
	nm_autofree struct rank *ranks = nm_must(calloc(view->nr_groups + 1, sizeof(*ranks)));
	plan_init(&plan, view);
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
			.is_near = ret[i].distance_now <= NEAR,
			.demand = view->groups[i].demand_cpus,
			.group = i,
		};
	}
	qsort(ranks, view->nr_groups, sizeof(*ranks), by_rank);
	for (size_t i = 0; i < view->nr_groups; i++) {
		size_t at = ranks[i].group;
		const struct nm_place_group *group = &view->groups[at];
		if (is_eligible(view, group, &ret[at].reason))
			choose_node(&plan, group, &ret[at]);
	}
}

/* ---- homes without a reason ---- */

bool nm_place_expires_with_growth(enum nm_place_reason reason)
{
	return reason == NM_PLACE_RUNS_THERE || reason == NM_PLACE_SINGLE ||
	       reason == NM_PLACE_SMALL;
}

void nm_place_find_expired(const struct nm_place_view *view, enum nm_place_reason *ret)
{
	nm_auto(plan_clear) struct plan plan = {0};
	plan_init(&plan, view);
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		ret[i] = group->home_reason;
		if (group->home < 0)
			continue;
		if (nm_place_staying_share(view, group, (unsigned)group->home) >= NM_PLACE_MOSTLY &&
		    !group->home_despite_memory &&
		    nm_place_memory_share(view, group, (unsigned)group->home) < 0.5) {
			ret[i] = NM_PLACE_FIXED;
			continue;
		}
		if (nm_place_takes_memory_away(view, group, (unsigned)group->home)) {
			ret[i] = NM_PLACE_PINNED;
			continue;
		}
		bool for_few = nm_place_expires_with_growth(group->home_reason);
		if (for_few && is_woken_often(group, BURST_TO_EXPIRE))
			ret[i] = NM_PLACE_OFTEN_WOKEN;
		if (group->running <= group->home_max_running)
			continue;
		if (expected_demand(&plan, group) + fixed_on(group, (unsigned)group->home) >
			    most_cpus(&plan, group, (unsigned)group->home) ||
		    (for_few && !may_pack(&plan, group, (unsigned)group->home, &ret[i])))
			ret[i] = NM_PLACE_SPREAD;
	}
}
