/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/lottery.h"

/*
 * The candidates of one θ, side by side. A θ wins at most once, so that a win closes its whole
 * stand at once, and a draw looks at stands first and at candidates of one stand only.
 */
struct stand {
	uint32_t thread;
	size_t first, count;
	double score; /* paper: the highest draw; proportional: the sum of tickets */
};

struct nm_urn {
	const struct nm_snapshot *snapshot;
	enum nm_lottery rule;
	struct nm_rng *rng;
	struct nm_candidate *candidates;
	size_t count, capacity;
	struct stand *stands;
	size_t nr_stands, stand_capacity;
	bool *taken;   /* per thread: moves already */
	bool *claimed; /* per CPU: a winner's destination */
	bool *crowded; /* per CPU: an SMT sibling is claimed */
};

void nm_urn_free(struct nm_urn *urn)
{
	if (!urn)
		return;
	free(urn->candidates);
	free(urn->stands);
	free(urn->taken);
	free(urn->claimed);
	free(urn->crowded);
	free(urn);
}

int nm_urn_new(const struct nm_snapshot *snapshot, enum nm_lottery rule, struct nm_rng *rng,
	       struct nm_urn **ret)
{
	nm_auto(nm_urn_freep) struct nm_urn *urn = calloc(1, sizeof(*urn));
	if (!urn)
		return -ENOMEM;
	size_t nr_cpus = snapshot->topology->nr_cpus;
	urn->snapshot = snapshot;
	urn->rule = rule;
	urn->rng = rng;
	urn->taken = calloc(snapshot->nr_threads + 1, sizeof(*urn->taken));
	urn->claimed = calloc(nr_cpus + 1, sizeof(*urn->claimed));
	urn->crowded = calloc(nr_cpus + 1, sizeof(*urn->crowded));
	if (!urn->taken || !urn->claimed || !urn->crowded)
		return -ENOMEM;
	*ret = NM_TAKE(urn);
	return 0;
}

/* Without tickets a draw is 0; below it, so that 0 loses to all others and chance decides among
 * equals. */
static double paper_draw(struct nm_rng *rng, double tickets)
{
	double unit = nm_rng_unit(rng);
	return tickets > 0 ? unit * tickets : unit - 1;
}

static double empty_score(const struct nm_urn *urn)
{
	return urn->rule == NM_LOTTERY_PAPER ? (double)-INFINITY : 0;
}

static void add_score(const struct nm_urn *urn, struct stand *stand,
		      const struct nm_candidate *candidate)
{
	if (urn->rule == NM_LOTTERY_PROPORTIONAL)
		stand->score += candidate->tickets;
	else if (candidate->draw > stand->score)
		stand->score = candidate->draw;
}

static int stand_of(struct nm_urn *urn, uint32_t thread, struct stand **ret)
{
	if (urn->nr_stands == 0 || urn->stands[urn->nr_stands - 1].thread != thread) {
		int r = nm_reserve((void **)&urn->stands, &urn->stand_capacity, urn->nr_stands,
				   sizeof(*urn->stands));
		if (r < 0)
			return r;
		urn->stands[urn->nr_stands++] = (struct stand){
			.thread = thread, .first = urn->count, .score = empty_score(urn)};
	}
	*ret = &urn->stands[urn->nr_stands - 1];
	return 0;
}

int nm_urn_add(struct nm_urn *urn, uint32_t thread, int32_t destination, uint32_t partner,
	       double tickets)
{
	struct stand *stand;
	int r = nm_reserve((void **)&urn->candidates, &urn->capacity, urn->count,
			   sizeof(*urn->candidates));
	if (r < 0)
		return r;
	r = stand_of(urn, thread, &stand);
	if (r < 0)
		return r;
	struct nm_candidate *candidate = &urn->candidates[urn->count++];
	*candidate = (struct nm_candidate){
		.tickets = tickets, .partner = partner, .destination = destination};
	if (urn->rule == NM_LOTTERY_PAPER)
		candidate->draw = paper_draw(urn->rng, tickets);
	stand->count++;
	add_score(urn, stand, candidate);
	return 0;
}

size_t nm_urn_count(const struct nm_urn *urn)
{
	return urn->count;
}

static void remove_candidate(struct nm_urn *urn, struct stand *stand, size_t index)
{
	urn->candidates[index] = urn->candidates[stand->first + --stand->count];
	stand->score = empty_score(urn);
	for (size_t i = 0; i < stand->count; i++)
		add_score(urn, stand, &urn->candidates[stand->first + i]);
}

static bool is_open(const struct nm_urn *urn, const struct stand *stand)
{
	return stand->count > 0 && !urn->taken[stand->thread];
}

static struct stand *draw_highest(struct nm_urn *urn, size_t *ret_index)
{
	struct stand *best = NULL;
	for (size_t i = 0; i < urn->nr_stands; i++)
		if (is_open(urn, &urn->stands[i]) && (!best || urn->stands[i].score > best->score))
			best = &urn->stands[i];
	if (!best)
		return NULL;
	*ret_index = best->first;
	while (urn->candidates[*ret_index].draw < best->score)
		(*ret_index)++;
	return best;
}

/* The candidate at `point` on the line of the stand's tickets. */
static size_t candidate_at(const struct nm_urn *urn, const struct stand *stand, double point)
{
	size_t last = stand->first;
	for (size_t i = stand->first; i < stand->first + stand->count; i++) {
		if (!(urn->candidates[i].tickets > 0))
			continue;
		last = i;
		if (point < urn->candidates[i].tickets)
			break;
		point -= urn->candidates[i].tickets;
	}
	return last;
}

static struct stand *draw_by_share(struct nm_urn *urn, size_t *ret_index)
{
	double total = 0;
	for (size_t i = 0; i < urn->nr_stands; i++)
		if (is_open(urn, &urn->stands[i]))
			total += urn->stands[i].score;
	double draw = nm_rng_unit(urn->rng) * total, point = draw;
	struct stand *chosen = NULL;
	for (size_t i = 0; i < urn->nr_stands; i++) {
		if (!is_open(urn, &urn->stands[i]) || !(urn->stands[i].score > 0))
			continue;
		chosen = &urn->stands[i];
		if (point < chosen->score)
			break;
		point -= chosen->score;
	}
	if (!chosen)
		return NULL;
	*ret_index = candidate_at(urn, chosen, point);
	urn->candidates[*ret_index].draw = draw;
	return chosen;
}

struct choice {
	const struct nm_snapshot *snapshot;
	const bool *crowded;
};

/* Idle before half idle, with idle siblings before busy ones, then the least busy of the half idle.
 */
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

static void claim_cpu(struct nm_urn *urn, int cpu)
{
	const struct nm_topology *topology = urn->snapshot->topology;
	urn->claimed[cpu] = true;
	for (unsigned other = 0; other < topology->nr_cpus; other++)
		if (topology->cpus[other].core == topology->cpus[cpu].core)
			urn->crowded[other] = true;
}

/* The CPU where the candidate leads, or -1 when it conflicts with an earlier winner. */
static int destination_of(const struct nm_urn *urn, uint32_t thread,
			  const struct nm_candidate *candidate)
{
	if (candidate->partner != NM_NO_PARTNER)
		return urn->taken[candidate->partner] ? -1 : candidate->destination;
	if (candidate->destination < 0)
		return nm_pick_free_cpu(urn->snapshot, (unsigned)(-1 - candidate->destination),
					urn->snapshot->threads[thread].allowed, urn->claimed,
					urn->crowded);
	return urn->claimed[candidate->destination] ? -1 : candidate->destination;
}

static bool settle(struct nm_urn *urn, uint32_t thread, const struct nm_candidate *candidate,
		   struct nm_win *ret)
{
	int cpu = destination_of(urn, thread, candidate);
	if (cpu < 0)
		return false;
	urn->taken[thread] = true;
	if (candidate->partner != NM_NO_PARTNER)
		urn->taken[candidate->partner] = true;
	else
		claim_cpu(urn, cpu);
	*ret = (struct nm_win){
		.thread = thread,
		.partner = candidate->partner,
		.cpu_to = cpu,
		.tickets = candidate->tickets,
		.draw = candidate->draw > 0 ? candidate->draw : 0,
	};
	return true;
}

bool nm_urn_draw(struct nm_urn *urn, struct nm_win *ret)
{
	for (;;) {
		size_t index;
		struct stand *stand = urn->rule == NM_LOTTERY_PAPER ? draw_highest(urn, &index)
								    : draw_by_share(urn, &index);
		if (!stand)
			return false;
		if (settle(urn, stand->thread, &urn->candidates[index], ret)) {
			ret->stood = &urn->candidates[stand->first];
			ret->nr_stood = stand->count;
			ret->won = index - stand->first;
			return true;
		}
		remove_candidate(urn, stand, index);
	}
}
