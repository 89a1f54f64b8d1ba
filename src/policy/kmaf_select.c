/* SPDX-License-Identifier: MIT */
/* Computes the benefit of a thread placement by communication, and drops moves without benefit. */
#include <math.h>

#include "kmaf_plan.h"

/* The cost of an edge from the thread, weight times distance; unknown places cost nothing. */
static double cost_of(const struct plan *plan, size_t thread, uint32_t at, int from, int to)
{
	if (from < 0 || to < 0)
		return 0;
	return (double)plan->graph->weight[at] / NM_SHARING_STEP *
	       nm_kmaf_distance(plan, thread, from, to);
}

/* The communication cost of a group if its threads stay and if they move, with all others at their
 * planned places. */
struct change {
	double stay, moved;
};

static bool is_of_group(const struct plan *plan, uint32_t thread, int group)
{
	int unit = plan->unit_of[thread];
	return unit != NONE && !plan->units[unit].dropped && plan->units[unit].group == group;
}

static void add_change(const struct plan *plan, uint32_t i, int group, struct change *change)
{
	const struct nm_affinity_graph *graph = plan->graph;
	for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
		uint32_t j = graph->partner[at];
		bool both = is_of_group(plan, j, group);
		if (both && j < i)
			continue;
		change->stay +=
			cost_of(plan, i, at, plan->here[i], both ? plan->here[j] : plan->place[j]);
		change->moved += cost_of(plan, i, at, plan->place[i], plan->place[j]);
	}
}

/* Returns whether moving the group saves as much as a placement must save. */
static bool pays_off(const struct plan *plan, int group)
{
	struct change change = {0};
	for (int u = plan->first_of[group]; u != NONE; u = plan->units[u].next)
		for (size_t m = 0; !plan->units[u].dropped && m < plan->units[u].count; m++)
			add_change(plan, plan->moves[plan->units[u].first + m].thread, group,
				   &change);
	double saved = change.stay - change.moved;
	return saved > 0 && saved >= plan->config->rules.mapping_gain * change.stay;
}

/* Returns whether the unit can be dropped: later units may rely on the room that it leaves. */
static bool may_stay(const struct plan *plan, const struct unit *unit)
{
	uint32_t thread = plan->moves[unit->first].thread;
	int from = plan->here[thread];
	double demand = plan->demand[from] + demand_of(plan, thread);
	return unit->count > 1 || demand <= plan->capacity[from] ||
	       demand <= plan->demand_now[from];
}

/* Drops a unit that moves, or lets one that was dropped move again. */
static void set_dropped(struct plan *plan, struct unit *unit, bool dropped)
{
	unit->dropped = dropped;
	for (size_t m = 0; m < unit->count; m++) {
		uint32_t thread = plan->moves[unit->first + m].thread;
		int from = dropped ? plan->wanted[thread] : plan->here[thread];
		int to = dropped ? plan->here[thread] : plan->wanted[thread];
		plan->place[thread] = to;
		plan->demand[from] -= demand_of(plan, thread);
		plan->demand[to] += demand_of(plan, thread);
		plan->traffic[node_of(plan, from)] -= traffic_of(plan, thread);
		plan->traffic[node_of(plan, to)] += traffic_of(plan, thread);
	}
}

/* Lists the units of each group in order. */
static void list_groups(struct plan *plan)
{
	for (size_t i = 0; i < plan->nr_units; i++)
		plan->first_of[i] = plan->last_of[i] = NONE;
	for (size_t i = 0; i < plan->nr_units; i++) {
		struct unit *unit = &plan->units[i];
		unit->next = NONE;
		if (plan->first_of[unit->group] == NONE)
			plan->first_of[unit->group] = (int)i;
		else
			plan->units[plan->last_of[unit->group]].next = (int)i;
		plan->last_of[unit->group] = (int)i;
	}
}

/* Later units first, because they may need CPUs that earlier ones leave. */
static void drop_useless_units(struct plan *plan)
{
	list_groups(plan);
	for (size_t i = plan->nr_units; i-- > 0;) {
		struct unit *unit = &plan->units[i];
		if (!unit->needed && may_stay(plan, unit) && !pays_off(plan, (int)i))
			set_dropped(plan, unit, true);
		else if (unit->needs != NONE)
			plan->units[unit->needs].needed = true;
	}
}

/* While groups are being joined, `first_of` leads from a group to the one that it was joined to. */
static int root_of_group(struct plan *plan, int unit)
{
	int group = plan->units[unit].group;
	while (plan->first_of[group] != group) {
		plan->first_of[group] = plan->first_of[plan->first_of[group]];
		group = plan->first_of[group];
	}
	return group;
}

/* Joins communicating threads that are below one cache before and after: none of them would benefit
 * from moving alone. */
static void group_co_moving(struct plan *plan)
{
	const struct nm_affinity_graph *graph = plan->graph;
	for (size_t i = 0; i < plan->nr_units; i++)
		plan->first_of[i] = (int)i;
	for (size_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			uint32_t j = graph->partner[at];
			if (plan->unit_of[i] == NONE || plan->unit_of[j] == NONE ||
			    plan->here[i] != plan->here[j] || plan->place[i] != plan->place[j] ||
			    plan->units[plan->unit_of[i]].dropped ||
			    plan->units[plan->unit_of[j]].dropped)
				continue;
			int group = root_of_group(plan, plan->unit_of[i]);
			int other = root_of_group(plan, plan->unit_of[j]);
			plan->first_of[other] = group;
		}
	for (size_t i = 0; i < plan->nr_units; i++)
		plan->units[i].group = root_of_group(plan, (int)i);
	list_groups(plan);
}

/* Counts a unit that needs one of another group: 1 when it is added, -1 when it is dropped. */
static void count_need(struct plan *plan, const struct unit *unit, int change)
{
	if (unit->needs != NONE && plan->units[unit->needs].group != unit->group)
		plan->needed_by[plan->units[unit->needs].group] += change;
}

static bool fits_everywhere(const struct plan *plan)
{
	for (size_t cache = 0; cache < plan->nr_caches; cache++)
		if (plan->demand[cache] > fmax(plan->capacity[cache], plan->demand_now[cache]))
			return false;
	return true;
}

static void set_group_dropped(struct plan *plan, int group, bool dropped)
{
	for (int u = plan->first_of[group]; u != NONE; u = plan->units[u].next) {
		set_dropped(plan, &plan->units[u], dropped);
		count_need(plan, &plan->units[u], dropped ? -1 : 1);
	}
}

/* Two pairs that swap places are as far from each other as before, although each thread follows its
 * partner. */
static void drop_useless_groups(struct plan *plan)
{
	group_co_moving(plan);
	for (size_t u = 0; u < plan->nr_units; u++)
		if (!plan->units[u].dropped)
			count_need(plan, &plan->units[u], 1);
	for (int group = 0; group < (int)plan->nr_units; group++) {
		int first = plan->first_of[group];
		/* Dropped units are alone in their groups. */
		if (first == NONE || plan->units[first].dropped || plan->needed_by[group] > 0 ||
		    pays_off(plan, group))
			continue;
		set_group_dropped(plan, group, true);
		if (!fits_everywhere(plan))
			set_group_dropped(plan, group, false);
	}
}

struct cost nm_kmaf_plan_cost(const struct plan *plan)
{
	const struct nm_affinity_graph *graph = plan->graph;
	struct cost cost = {0};
	for (size_t i = 0; i < graph->nr_threads; i++)
		for (uint32_t at = graph->first[i]; at < graph->first[i + 1]; at++) {
			uint32_t j = graph->partner[at];
			if (j <= i)
				continue;
			double before = cost_of(plan, i, at, plan->here[i], plan->here[j]);
			double after = cost_of(plan, i, at, plan->place[i], plan->place[j]);
			double sharings = (double)graph->weight[at] / NM_SHARING_STEP;
			cost.before += before;
			cost.after += after;
			if (sharings > 0)
				cost.variance += (before - after) * (before - after) / sharings;
		}
	return cost;
}

static bool is_accepted(const struct plan *plan)
{
	struct cost cost = nm_kmaf_plan_cost(plan);
	double saved = cost.before - cost.after;
	if (plan->config->rules.gate == NM_GATE_BENEFIT &&
	    !(saved > plan->config->rules.gate_sigmas * sqrt(cost.variance)))
		return false;
	return saved >= plan->config->rules.mapping_gain * cost.before;
}

/* Earlier units are kept; no kept unit may need a dropped one. */
static bool limit_moves(struct plan *plan)
{
	uint64_t budget = plan->config->rules.moves_per_interval;
	bool cut = false;
	for (size_t i = 0; i < plan->nr_units; i++) {
		struct unit *unit = &plan->units[i];
		if (unit->dropped)
			continue;
		cut = cut || unit->count > budget;
		if (cut)
			set_dropped(plan, unit, true);
		else
			budget -= unit->count;
	}
	return cut;
}

void nm_kmaf_select(struct plan *plan)
{
	drop_useless_units(plan);
	drop_useless_groups(plan);
	bool accepted = is_accepted(plan);
	if (limit_moves(plan) && accepted) {
		struct cost cost = nm_kmaf_plan_cost(plan);
		accepted = cost.after < cost.before;
	}
	for (size_t i = 0; !accepted && i < plan->nr_units; i++)
		if (!plan->units[i].dropped)
			set_dropped(plan, &plan->units[i], true);
}
