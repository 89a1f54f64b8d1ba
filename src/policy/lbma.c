/* SPDX-License-Identifier: MIT */
#include "lbma.h"

/* Pairs of threads looked at per tick, beyond which Θ̂ is what was found: some 10 ms. */
#define MAX_LOOKS (4ULL << 20)

void nm_proposals_clear(struct nm_proposals *proposals)
{
	free(proposals->items);
	*proposals = (struct nm_proposals){0};
}

static struct nm_lbma_rules rules_of(const struct nm_config *config)
{
	bool paper = config->profile == NM_PROFILE_PAPER;
	bool gated = config->threads.gate == NM_GATE_BENEFIT;
	bool merged = config->threads.lottery == NM_LOTTERY_PROPORTIONAL;
	return (struct nm_lbma_rules){
		.gated = gated,
		.merged = merged,
		/* A share of no tickets is no chance: only the paper's lottery lets Q = 0 win. */
		.zero_wins = !gated && !merged,
		.any_thread = paper,
		.cross_owner_swap = config->threads.cross_owner_swap,
		.fill_nodes = config->threads.overcommit == NM_OVERCOMMIT_PAGES,
		.ties = config->threads.preferred_ties,
		.q1 = config->threads.q1,
		/* Half a core is worth half the tickets; the paper does not look at siblings. */
		.q1_sibling_busy = paper ? config->threads.q1 : config->threads.q1 / 2,
		.q2 = config->threads.q2,
		.margin = config->threads.gate_margin,
		.sigmas = config->threads.gate_sigmas,
	};
}

static size_t list_eligible(const struct nm_snapshot *snapshot, const struct nm_lbma_rules *rules,
			    uint32_t *eligible)
{
	size_t count = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->movable && thread->home_node >= 0 &&
		    (thread->valid || rules->any_thread))
			eligible[count++] = (uint32_t)i;
	}
	return count;
}

/*
 * Θ̂ and its candidates: threads are taken in a random order, and those without a candidate do not
 * count, which is a uniform choice of n among those that have one, without a look at all of them.
 */
static int consider_threads(struct nm_lbma_scan *scan, struct nm_urn *urn, struct nm_rng *rng,
			    uint64_t n, uint64_t *ret_considered)
{
	nm_autofree uint32_t *eligible = calloc(scan->snapshot->nr_threads + 1, sizeof(*eligible));
	if (!eligible)
		return -ENOMEM;
	size_t count = list_eligible(scan->snapshot, &scan->rules, eligible);
	uint64_t considered = 0;
	for (size_t i = 0; i < count && considered < n && scan->looks < MAX_LOOKS; i++) {
		size_t other = i + nm_rng_below(rng, count - i);
		uint32_t thread = eligible[other];
		eligible[other] = eligible[i];
		size_t before = nm_urn_count(urn);
		int r = nm_lbma_scan_thread(scan, urn, thread);
		if (r < 0)
			return r;
		considered += scan->rules.any_thread || nm_urn_count(urn) > before;
	}
	*ret_considered = considered;
	return 0;
}

static struct nm_move move_to(const struct nm_snapshot *snapshot, uint32_t thread, int cpu_to)
{
	const struct nm_snap_thread *moved = &snapshot->threads[thread];
	return (struct nm_move){
		.thread = thread,
		.cpu_from = moved->home_cpu,
		.cpu_to = cpu_to,
		.node_from = moved->home_node,
		.node_to = snapshot->cpus[cpu_to].node,
	};
}

static struct nm_proposal proposal_of(const struct nm_lbma_scan *scan, const struct nm_win *win)
{
	const struct nm_snapshot *snapshot = scan->snapshot;
	struct nm_proposal proposal = {.kind = NM_PROPOSAL_MIGRATE, .draw = win->draw};
	struct nm_tickets *tickets = &proposal.tickets;
	struct nm_move *moves = proposal.moves;
	moves[0] = move_to(snapshot, win->thread, win->cpu_to);
	tickets->total = win->tickets;
	tickets->preferred = nm_lbma_q2(scan, win->thread, moves[0].node_to);
	if (win->partner == NM_NO_PARTNER) {
		tickets->free_cpu = win->tickets - tickets->preferred;
	} else {
		proposal.kind = NM_PROPOSAL_SWAP;
		moves[1] = move_to(snapshot, win->partner, moves[0].cpu_from);
		tickets->partner = nm_lbma_q2(scan, win->partner, moves[1].node_to);
	}
	size_t count = proposal.kind == NM_PROPOSAL_SWAP ? 2 : 1;
	proposal.gain = nm_gate_gain(snapshot, moves, count);
	return proposal;
}

static int draw_winners(const struct nm_lbma_scan *scan, struct nm_urn *urn,
			struct nm_proposals *proposals)
{
	struct nm_win win;
	/* Each thread of Θ̂ wins at most once, so that there are never more than n winners. */
	proposals->items = calloc(proposals->threads_considered + 1, sizeof(*proposals->items));
	if (!proposals->items)
		return -ENOMEM;
	while (nm_urn_draw(urn, &win))
		proposals->items[proposals->count++] = proposal_of(scan, &win);
	return 0;
}

static int run_lottery(struct nm_lbma_scan *scan, const struct nm_config *config,
		       struct nm_rng *rng, struct nm_proposals *proposals)
{
	nm_auto(nm_urn_freep) struct nm_urn *urn = NULL;
	int r = nm_urn_new(scan->snapshot, config->threads.lottery, rng, &urn);
	if (r < 0)
		return r;
	r = consider_threads(scan, urn, rng, config->threads.n, &proposals->threads_considered);
	if (r < 0)
		return r;
	proposals->candidates = nm_urn_count(urn);
	proposals->stopped_by_gate = scan->stopped_by_gate;
	proposals->stopped_by_owner = scan->stopped_by_owner;
	return draw_winners(scan, urn, proposals);
}

int nm_lbma_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    struct nm_rng *rng, struct nm_proposals *ret)
{
	struct nm_lbma_rules rules = rules_of(config);
	struct nm_lbma_scan scan;
	struct nm_proposals proposals = {0};
	int r = nm_lbma_scan_init(&scan, snapshot, &rules);
	if (r < 0)
		return r;
	r = run_lottery(&scan, config, rng, &proposals);
	nm_lbma_scan_clear(&scan);
	if (r < 0)
		return r;
	*ret = proposals;
	return 0;
}
