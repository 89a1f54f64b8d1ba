/* SPDX-License-Identifier: MIT */
/* Policy "auto": which groups may be assigned a home, which node is predicted to serve them best,
 * and which homes have lost their reason. */
#include "policy/placement.h"

#include <math.h>
#include <stdlib.h>

#include "predict.h"
#include "reach.h"

#define GAIN_MIN 0.03 /* share of the time; what verdicts cannot see is not worth a decision */
/* A gain is expected to last for some multiple of the age (nm_place_expected_rest()), but for at
 * most this time: programs change. */
#define LASTS_S 60.0
/* Share of the time by which a node is preferred for each unused core of the group's size: an
 * emptier one has room for what comes. */
#define EMPTIER 0.05
#define MEMORY_KNOWN_S 0.25 /* time limit of a query */
/* Seconds. A thread that computes runs for a time slice of about 3 ms or more (base_slice_ns of
 * Linux); a thread that answers requests sleeps again sooner. */
#define BURST_TO_EXPIRE 0.001
#define BURST_TO_PLACE 0.003
/* Demand from which a thread almost never sleeps: one that runs only briefly at a time is then
 * preempted by others, not woken by them. */
#define SLEEPLESS 0.95

static const char *const reasons[NM_PLACE_REASON_MAX] = {
	[NM_PLACE_REMOTE] = "remote memory",
	[NM_PLACE_WAITING] = "waiting for CPUs",
	[NM_PLACE_HAS_HOME] = "placed",
	[NM_PLACE_BARRED] = "has just given up its home",
	[NM_PLACE_YOUNG] = "just started, or creating threads",
	[NM_PLACE_OBSERVED] = "measured before it is placed",
	[NM_PLACE_IDLE] = "little CPU use",
	[NM_PLACE_YIELDS] = "idle priority, leaves the CPUs to others",
	[NM_PLACE_NO_ROOM] = "no node has enough idle CPUs and free memory",
	[NM_PLACE_LARGER] = "larger than every node",
	[NM_PLACE_NO_GAIN] = "no node is predicted to be faster",
	[NM_PLACE_TOO_COSTLY] = "migration costs more than it gains",
	[NM_PLACE_SPREAD] = "faster spread over several nodes",
	[NM_PLACE_BANDWIDTH] = "one node's memory is too slow",
	[NM_PLACE_FIXED] = "memory elsewhere cannot be moved",
	[NM_PLACE_OFTEN_WOKEN] = "woken all the time, runs near its wakers",
	[NM_PLACE_PINNED] = "pinned threads use memory elsewhere",
	[NM_PLACE_LEFT_ALONE] = "left alone for comparison",
};

const char *nm_place_reason_text(enum nm_place_reason reason)
{
	return reasons[reason];
}

/* ---- who may be assigned a home ---- */

/* The memory is large for the age of the group: its node is chosen when the location of the memory
 * is known. */
static bool awaits_memory(const struct nm_place_view *view, const struct nm_place_group *group)
{
	return group->age_s < MEMORY_KNOWN_S && !group->memory_on &&
	       nm_place_migration_cost_s(view->page_ns, (double)group->anon_bytes) > group->age_s;
}

/* Returns whether its only thread is woken by other processes all the time, such as a client by its
 * server. The scheduler runs it near the thread that wakes it, or on any idle CPU; on a home node
 * it would be far from its partner, and would queue. */
static bool is_woken_often(const struct nm_place_group *group, double burst_s)
{
	return nm_place_threads(group) <= 1 && group->burst_s > 0 && group->burst_s < burst_s &&
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

/* Returns whether it would fit on no node that it may use even if nothing else ran there. */
static bool is_larger_than_every_node(const struct nm_loads *loads,
				      const struct nm_place_group *group)
{
	const struct nm_place_view *view = loads->view;
	double cpus = nm_place_expected_cpus(loads, group);
	double spread = nm_predict_staying(loads, group).waiting;
	bool may_use_any = false;
	for (unsigned k = 0; k < view->topology->nr_nodes; k++) {
		uint64_t memory = view->nodes[k].memory_bytes;
		double room = nm_place_room(view, group, k);
		if (!group->allowed[k] || !(room > 0))
			continue;
		if (cpus <= (1 + spread) * room + nm_place_tolerance(room) &&
		    (memory == 0 || group->anon_bytes <= memory))
			return false;
		may_use_any = true;
	}
	return may_use_any;
}

/* ---- the choice of a node ---- */

bool nm_place_is_unrestricted(const struct nm_place_view *view, const struct nm_place_group *group)
{
	for (unsigned k = 0; k < view->topology->nr_nodes; k++)
		if (view->nodes[k].cores > 0 && !group->allowed[k])
			return false;
	return true;
}

static double gain_of(const struct nm_prediction *there, const struct nm_prediction *stays)
{
	return 1 - there->time / stays->time;
}

/* Keeps the best ones, the first of which is staying. */
static void add_candidate(struct nm_place_proposal *proposal, int node,
			  const struct nm_prediction *at, double gain)
{
	struct nm_home_candidate *all = proposal->candidates;
	unsigned k = proposal->nr_candidates;
	while (k > 1 && all[k - 1].gain < gain)
		k--;
	if (k == NM_HOME_CANDIDATES_MAX)
		return;
	if (proposal->nr_candidates < NM_HOME_CANDIDATES_MAX)
		proposal->nr_candidates++;
	for (unsigned i = proposal->nr_candidates - 1; i > k; i--)
		all[i] = all[i - 1];
	all[k] = (struct nm_home_candidate){.node = node, .at = *at, .gain = gain};
}

/* Why the best of the nodes is not chosen. */
static enum nm_place_reason reason_to_stay(const struct nm_prediction *there,
					   const struct nm_prediction *stays)
{
	double memory = there->stalled * (there->contention - stays->contention);
	double waiting = there->waiting - stays->waiting;
	if (gain_of(there, stays) >= GAIN_MIN)
		return NM_PLACE_TOO_COSTLY;
	if (fmax(memory, waiting) < GAIN_MIN)
		return NM_PLACE_NO_GAIN;
	return waiting > memory ? NM_PLACE_NO_ROOM : NM_PLACE_BANDWIDTH;
}

/* The larger of the terms that a home saves. */
static enum nm_place_reason reason_to_move(const struct nm_prediction *there,
					   const struct nm_prediction *stays)
{
	double remote = there->stalled * (stays->distance - there->distance) / NM_DISTANCE_LOCAL;
	return stays->waiting - there->waiting > remote ? NM_PLACE_WAITING : NM_PLACE_REMOTE;
}

/* Returns whether the rules that are no cost allow this node. */
static bool may_use(const struct nm_loads *loads, const struct nm_place_group *group, unsigned node,
		    enum nm_place_reason *reason)
{
	const struct nm_place_view *view = loads->view;
	if (!group->allowed[node] || !(nm_place_room(view, group, node) > 0) ||
	    nm_place_bytes_elsewhere(loads, group, node) > (double)loads->free_bytes[node])
		return false;
	if (!nm_place_takes_memory_away(view, group, node))
		return true;
	*reason = NM_PLACE_PINNED;
	return false;
}

/*
 * Compares a node with staying, before and after the memory of the group has followed. Relief of a
 * full controller is no gain: that others leave it is not predicted. Returns how good the node is;
 * below 0: not worth a move, which only the gain before can justify without its cost.
 */
static double worth_of(const struct nm_loads *loads, const struct nm_place_group *group,
		       unsigned node, const struct nm_prediction *stays,
		       struct nm_place_proposal *proposal)
{
	const struct nm_place_view *view = loads->view;
	double far = nm_place_distance_from(view, group, node);
	double near = nm_place_final_distance(view, group, node);
	struct nm_prediction before = nm_predict_at(loads, group, node, far);
	struct nm_prediction after = nm_predict_at(loads, group, node, near);
	struct nm_prediction from = *stays;
	from.time += from.stalled * (fmin(stays->contention, after.contention) - stays->contention);
	double gain = gain_of(&after, &from), gain_before = gain_of(&before, &from);
	double cpus = fmax(nm_place_expected_cpus(loads, group), NM_PLACE_MIN_DEMAND);
	double lasts_s = fmin(nm_place_expected_rest(group->age_s), LASTS_S);
	double bytes = nm_place_bytes_elsewhere(loads, group, node);
	double cost = nm_place_migration_cost_s(view->page_ns, bytes) / (cpus * lasts_s);
	double load = nm_place_load_within(group, node, loads->cpus[node]) + cpus;
	add_candidate(proposal, (int)node, &after, gain);
	if (gain < GAIN_MIN || (gain < cost && gain_before < GAIN_MIN))
		return -1;
	return 1 + fmax(gain - cost, gain_before) -
	       EMPTIER * load / nm_place_room(view, group, node);
}

/* Returns the best node, or -1 with the reason. */
static int best_node(const struct nm_loads *loads, const struct nm_place_group *group,
		     struct nm_place_proposal *proposal)
{
	const struct nm_prediction stays = nm_predict_staying(loads, group);
	double best = 0;
	int node = -1;
	proposal->reason = NM_PLACE_NO_ROOM;
	add_candidate(proposal, -1, &stays, 0);
	for (unsigned k = 0; k < loads->view->topology->nr_nodes; k++) {
		if (!may_use(loads, group, k, &proposal->reason))
			continue;
		double worth = worth_of(loads, group, k, &stays, proposal);
		if (worth <= best)
			continue;
		best = worth;
		node = (int)k;
	}
	for (unsigned i = 1; i < proposal->nr_candidates; i++) {
		const struct nm_home_candidate *one = &proposal->candidates[i];
		if (node >= 0 && one->node != node)
			continue;
		proposal->gain = one->gain;
		proposal->reason = node >= 0 ? reason_to_move(&one->at, &stays)
					     : reason_to_stay(&one->at, &stays);
		break;
	}
	return node;
}

static void choose_node(struct nm_loads *loads, const struct nm_place_group *group,
			struct nm_place_proposal *ret)
{
	const struct nm_place_view *view = loads->view;
	if (is_larger_than_every_node(loads, group))
		ret->reason = NM_PLACE_LARGER;
	else
		ret->node = best_node(loads, group, ret);
	if (ret->node < 0) {
		/* One that finds no room moves on to any idle CPU. */
		if (ret->reason != NM_PLACE_NO_ROOM || !nm_place_is_unrestricted(view, group))
			nm_loads_add_in_place(loads, group);
		return;
	}
	unsigned node = (unsigned)ret->node;
	ret->bytes_away = (uint64_t)nm_place_bytes_elsewhere(loads, group, node);
	ret->distance_home = nm_place_final_distance(view, group, node);
	ret->distance_away = nm_place_distance_from(view, group, node);
	nm_loads_add_at(loads, group, node);
	ret->load = nm_place_load_within(group, node, loads->cpus[node]) /
		    nm_place_room(view, group, node);
}

/* Returns whether nearer memory could not save it much: it counts there before others choose. */
static bool is_near(const struct nm_loads *loads, const struct nm_place_group *group)
{
	const struct nm_prediction stays = nm_predict_staying(loads, group);
	double lost = stays.stalled * (stays.distance / NM_DISTANCE_LOCAL - 1);
	return lost / (1 + lost) < GAIN_MIN;
}

/* Returns whether what is known of it now speaks against a decision, not what is yet to be known.
 */
static bool is_stable(enum nm_place_reason reason)
{
	return reason != NM_PLACE_YOUNG && reason != NM_PLACE_OBSERVED;
}

/* Larger ones choose first. */
static int by_demand(const void *one, const void *other)
{
	const struct nm_place_group *a = *(const struct nm_place_group *const *)one;
	const struct nm_place_group *b = *(const struct nm_place_group *const *)other;
	return NM_COMPARE(b->demand_cpus, a->demand_cpus) ?: NM_COMPARE(a, b);
}

void nm_place_propose(const struct nm_place_view *view, struct nm_place_proposal *ret)
{
	nm_auto(nm_loads_clear) struct nm_loads loads = {0};
	nm_autofree const struct nm_place_group **order =
		nm_must(calloc(view->nr_groups + 1, sizeof(const struct nm_place_group *)));
	nm_autofree bool *chosen = nm_must(calloc(view->nr_groups + 1, sizeof(*chosen)));
	nm_loads_init(&loads, view);
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		order[i] = group;
		ret[i] = (struct nm_place_proposal){
			.group = i,
			.node = -1,
			.gain = NAN,
			.distance_now = nm_place_distance(view, group),
			.distance_home = NAN,
			.load = NAN,
			.distance_away = NAN,
		};
		if (is_eligible(view, group, &ret[i].reason))
			continue;
		ret[i].stable = is_stable(ret[i].reason);
		if (group->home < 0)
			nm_loads_add_in_place(&loads, group);
	}
	qsort(order, view->nr_groups, sizeof(const struct nm_place_group *), by_demand);
	for (size_t i = 0; i < view->nr_groups; i++) {
		struct nm_place_proposal *proposal = &ret[order[i] - view->groups];
		chosen[i] = !is_eligible(view, order[i], &proposal->reason);
		if (chosen[i] || !is_near(&loads, order[i]))
			continue;
		choose_node(&loads, order[i], proposal);
		proposal->stable = proposal->reason == NM_PLACE_NO_GAIN;
		chosen[i] = true;
	}
	for (size_t i = 0; i < view->nr_groups; i++)
		if (!chosen[i])
			choose_node(&loads, order[i], &ret[order[i] - view->groups]);
}

/* ---- homes without a reason ---- */

/* Returns whether more threads run than when it was assigned its home, and all would be faster
 * spread over the machine. */
static bool is_faster_spread(struct nm_loads *loads, const struct nm_place_group *group)
{
	unsigned home = (unsigned)group->home;
	double own = nm_place_expected_cpus(loads, group);
	if (group->running <= group->home_max_running)
		return false;
	struct nm_prediction spread = nm_predict_spread(loads, group);
	loads->cpus[home] -= own;
	struct nm_prediction at_home = nm_predict_at(loads, group, home, NM_DISTANCE_LOCAL);
	loads->cpus[home] += own;
	return gain_of(&spread, &at_home) >= GAIN_MIN;
}

/* Most of its memory has turned out to stay elsewhere. */
static bool is_far_from_memory(const struct nm_place_view *view, const struct nm_place_group *group)
{
	unsigned home = (unsigned)group->home;
	return !group->home_despite_memory &&
	       nm_place_staying_share(view, group, home) >= NM_PLACE_MOSTLY &&
	       nm_place_memory_share(view, group, home) < NM_PLACE_MOSTLY;
}

void nm_place_find_expired(const struct nm_place_view *view, enum nm_place_reason *ret)
{
	nm_auto(nm_loads_clear) struct nm_loads loads = {0};
	nm_loads_init(&loads, view);
	for (size_t i = 0; i < view->nr_groups; i++) {
		const struct nm_place_group *group = &view->groups[i];
		ret[i] = group->home_reason;
		if (group->home < 0)
			continue;
		if (is_far_from_memory(view, group))
			ret[i] = NM_PLACE_FIXED;
		else if (nm_place_takes_memory_away(view, group, (unsigned)group->home))
			ret[i] = NM_PLACE_PINNED;
		else if (is_woken_often(group, BURST_TO_EXPIRE))
			ret[i] = NM_PLACE_OFTEN_WOKEN;
		else if (is_faster_spread(&loads, group))
			ret[i] = NM_PLACE_SPREAD;
	}
}
