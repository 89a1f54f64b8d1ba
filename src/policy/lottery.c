/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "lottery.h"

/* The candidates of one θ, stored consecutively. A θ wins at most once, so that a win removes the
 * whole group. A draw first selects a group, and then a candidate of that group. */
struct group {
	uint32_t thread;
	size_t first, count;
	double score; /* paper: the highest draw; proportional: the sum of tickets */
};

struct nm_ticket_pool {
	const struct nm_snapshot *snapshot;
	enum nm_lottery rule;
	struct nm_rng *rng;
	struct nm_candidate *candidates;
	size_t count, capacity;
	struct group *groups;
	size_t nr_groups, group_capacity;
	bool *taken;   /* per thread: already moves */
	bool *claimed; /* per CPU: destination of a winner */
	bool *crowded; /* per CPU: an SMT sibling is claimed */
};

void nm_ticket_pool_free(struct nm_ticket_pool *pool)
{
	if (!pool)
		return;
	free(pool->candidates);
	free(pool->groups);
	free(pool->taken);
	free(pool->claimed);
	free(pool->crowded);
	free(pool);
}

void nm_ticket_pool_new(const struct nm_snapshot *snapshot, enum nm_lottery rule,
			struct nm_rng *rng, struct nm_ticket_pool **ret)
{
	nm_auto(nm_ticket_pool_freep) struct nm_ticket_pool *pool =
		nm_must(calloc(1, sizeof(*pool)));
	size_t nr_cpus = snapshot->topology->nr_cpus;
	pool->snapshot = snapshot;
	pool->rule = rule;
	pool->rng = rng;
	pool->taken = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*pool->taken)));
	pool->claimed = nm_must(calloc(nr_cpus + 1, sizeof(*pool->claimed)));
	pool->crowded = nm_must(calloc(nr_cpus + 1, sizeof(*pool->crowded)));
	*ret = NM_TAKE(pool);
}

/* A draw without tickets would be 0. It is shifted below 0, so that it loses to all others, and
 * ties among such candidates are random. */
static double paper_draw(struct nm_rng *rng, double tickets)
{
	double unit = nm_rng_unit(rng);
	return tickets > 0 ? unit * tickets : unit - 1;
}

static double empty_score(const struct nm_ticket_pool *pool)
{
	return pool->rule == NM_LOTTERY_PAPER ? (double)-INFINITY : 0;
}

static void add_score(const struct nm_ticket_pool *pool, struct group *group,
		      const struct nm_candidate *candidate)
{
	if (pool->rule == NM_LOTTERY_PROPORTIONAL)
		group->score += candidate->tickets;
	else if (candidate->draw > group->score)
		group->score = candidate->draw;
}

void nm_ticket_pool_add(struct nm_ticket_pool *pool, uint32_t thread, int32_t destination,
			uint32_t partner, double tickets)
{
	NM_RESERVE(pool->candidates, pool->capacity, pool->count);
	if (pool->nr_groups == 0 || pool->groups[pool->nr_groups - 1].thread != thread) {
		NM_RESERVE(pool->groups, pool->group_capacity, pool->nr_groups);
		pool->groups[pool->nr_groups++] = (struct group){
			.thread = thread, .first = pool->count, .score = empty_score(pool)};
	}
	struct group *group = &pool->groups[pool->nr_groups - 1];
	struct nm_candidate *candidate = &pool->candidates[pool->count++];
	*candidate = (struct nm_candidate){
		.tickets = tickets, .partner = partner, .destination = destination};
	if (pool->rule == NM_LOTTERY_PAPER)
		candidate->draw = paper_draw(pool->rng, tickets);
	group->count++;
	add_score(pool, group, candidate);
}

size_t nm_ticket_pool_count(const struct nm_ticket_pool *pool)
{
	return pool->count;
}

static bool is_open(const struct nm_ticket_pool *pool, const struct group *group)
{
	return group->count > 0 && !pool->taken[group->thread];
}

static struct group *draw_highest(struct nm_ticket_pool *pool, size_t *ret_index)
{
	struct group *best = NULL;
	for (size_t i = 0; i < pool->nr_groups; i++)
		if (is_open(pool, &pool->groups[i]) &&
		    (!best || pool->groups[i].score > best->score))
			best = &pool->groups[i];
	if (!best)
		return NULL;
	*ret_index = best->first;
	while (pool->candidates[*ret_index].draw < best->score)
		(*ret_index)++;
	return best;
}

/* Returns the candidate at `point` in the range of the group's tickets. */
static size_t candidate_at(const struct nm_ticket_pool *pool, const struct group *group,
			   double point)
{
	size_t last = group->first;
	for (size_t i = group->first; i < group->first + group->count; i++) {
		if (!(pool->candidates[i].tickets > 0))
			continue;
		last = i;
		if (point < pool->candidates[i].tickets)
			break;
		point -= pool->candidates[i].tickets;
	}
	return last;
}

static struct group *draw_by_share(struct nm_ticket_pool *pool, size_t *ret_index)
{
	double total = 0;
	for (size_t i = 0; i < pool->nr_groups; i++)
		if (is_open(pool, &pool->groups[i]))
			total += pool->groups[i].score;
	double draw = nm_rng_unit(pool->rng) * total, point = draw;
	struct group *chosen = NULL;
	for (size_t i = 0; i < pool->nr_groups; i++) {
		if (!is_open(pool, &pool->groups[i]) || !(pool->groups[i].score > 0))
			continue;
		chosen = &pool->groups[i];
		if (point < chosen->score)
			break;
		point -= chosen->score;
	}
	if (!chosen)
		return NULL;
	*ret_index = candidate_at(pool, chosen, point);
	pool->candidates[*ret_index].draw = draw;
	return chosen;
}

struct choice {
	const struct nm_snapshot *snapshot;
	const bool *crowded;
};

/* Prefers idle CPUs to partly idle ones, then CPUs with idle siblings, then the least busy of the
 * partly idle ones. */
static bool is_better(const struct choice *choice, int cpu, int than)
{
	const struct nm_snap_cpu *one = &choice->snapshot->cpus[cpu];
	const struct nm_snap_cpu *other = &choice->snapshot->cpus[than];
	bool crowded = one->sibling_busy || (choice->crowded && choice->crowded[cpu]);
	if (one->idle != other->idle)
		return one->idle;
	if (crowded != (other->sibling_busy || (choice->crowded && choice->crowded[than])))
		return !crowded;
	return !one->idle && one->busy_share < other->busy_share;
}

int nm_pick_free_cpu(const struct nm_snapshot *snapshot, unsigned node,
		     hwloc_const_bitmap_t allowed, const bool *claimed, const bool *crowded)
{
	const struct choice choice = {.snapshot = snapshot, .crowded = crowded};
	hwloc_const_bitmap_t cpus = snapshot->topology->nodes[node].cpus;
	int best = -1;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		const struct nm_snap_cpu *state = &snapshot->cpus[cpu];
		if ((claimed && claimed[cpu]) || !nm_snapshot_is_free_for(snapshot, cpu, allowed))
			continue;
		if (best < 0 || is_better(&choice, cpu, best))
			best = cpu;
		if (state->idle && !state->sibling_busy && !(crowded && crowded[cpu]))
			return cpu;
	}
	return best;
}

/* Returns the destination CPU of the candidate, or -1 if it conflicts with an earlier winner. */
static int destination_of(const struct nm_ticket_pool *pool, uint32_t thread,
			  const struct nm_candidate *candidate)
{
	if (candidate->partner != NM_NO_PARTNER)
		return pool->taken[candidate->partner] ? -1 : candidate->destination;
	if (candidate->destination < 0)
		return nm_pick_free_cpu(pool->snapshot, (unsigned)(-1 - candidate->destination),
					pool->snapshot->threads[thread].allowed, pool->claimed,
					pool->crowded);
	return pool->claimed[candidate->destination] ? -1 : candidate->destination;
}

static bool settle_win(struct nm_ticket_pool *pool, uint32_t thread,
		       const struct nm_candidate *candidate, struct nm_win *ret)
{
	int cpu = destination_of(pool, thread, candidate);
	if (cpu < 0)
		return false;
	pool->taken[thread] = true;
	if (candidate->partner != NM_NO_PARTNER) {
		pool->taken[candidate->partner] = true;
	} else {
		const struct nm_topology *topology = pool->snapshot->topology;
		pool->claimed[cpu] = true;
		for (unsigned other = 0; other < topology->nr_cpus; other++)
			if (topology->cpus[other].core == topology->cpus[cpu].core)
				pool->crowded[other] = true;
	}
	*ret = (struct nm_win){
		.thread = thread,
		.partner = candidate->partner,
		.cpu_to = cpu,
		.tickets = candidate->tickets,
		.draw = candidate->draw > 0 ? candidate->draw : 0,
	};
	return true;
}

bool nm_ticket_pool_draw(struct nm_ticket_pool *pool, struct nm_win *ret)
{
	for (;;) {
		size_t index;
		struct group *group = pool->rule == NM_LOTTERY_PAPER ? draw_highest(pool, &index)
								     : draw_by_share(pool, &index);
		if (!group)
			return false;
		if (settle_win(pool, group->thread, &pool->candidates[index], ret)) {
			ret->candidates = &pool->candidates[group->first];
			ret->nr_candidates = group->count;
			ret->winner = index - group->first;
			return true;
		}
		pool->candidates[index] = pool->candidates[group->first + --group->count];
		group->score = empty_score(pool);
		for (size_t i = 0; i < group->count; i++)
			add_score(pool, group, &pool->candidates[group->first + i]);
	}
}
