/* SPDX-License-Identifier: MIT */
#include "search.h"

void nm_proposals_clear(struct nm_proposals *proposals)
{
	free(proposals->items);
	*proposals = (struct nm_proposals){0};
}

/* Threads in random order: a uniform choice of n threads among those that have a candidate. */
struct shuffle {
	struct nm_rng *rng;
	uint32_t *threads;
	size_t next, count;
};

static uint32_t next_at_random(void *context)
{
	struct shuffle *list = context;
	if (list->next == list->count)
		return NM_NO_PARTNER;
	size_t other = list->next + nm_rng_below(list->rng, list->count - list->next);
	uint32_t thread = list->threads[other];
	list->threads[other] = list->threads[list->next++];
	return thread;
}

void nm_lbma_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     struct nm_rng *rng, struct nm_proposals *ret)
{
	size_t threads = snapshot->nr_threads, nodes = snapshot->topology->nr_nodes;
	nm_autofree uint32_t *eligible = nm_must(calloc(threads + 1, sizeof(*eligible)));
	nm_autofree double *move_tickets =
		nm_must(calloc(threads * nodes + 1, sizeof(*move_tickets)));
	nm_autofree bool *known = nm_must(calloc(threads + 1, sizeof(*known)));
	struct shuffle list = {.rng = rng, .threads = eligible};
	for (uint32_t i = 0; i < threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		bool waits = nm_search_waits_for_pages(snapshot, config, i);
		known[i] = thread->valid && !waits;
		for (size_t node = 0; node < nodes; node++)
			move_tickets[i * nodes + node] =
				nm_search_preference(snapshot, config, i, (int)node);
		if (!waits &&
		    nm_lottery_candidacy(NM_POLICY_LBMA, config, thread) == NM_CANDIDACY_YES)
			eligible[list.count++] = i;
	}
	const struct nm_search_tickets tickets = {.policy = NM_POLICY_LBMA,
						  .move_tickets = move_tickets,
						  .known = known,
						  .next = next_at_random,
						  .list = &list};
	nm_search_lottery(snapshot, config, &tickets, rng, ret);
	for (size_t i = 0; i < ret->count; i++) {
		struct nm_proposal *proposal = &ret->items[i];
		const struct nm_move *moves = proposal->moves;
		struct nm_tickets *won = &proposal->tickets;
		won->preferred =
			nm_search_preference(snapshot, config, moves[0].thread, moves[0].node_to);
		if (proposal->kind == NM_PROPOSAL_SWAP)
			won->partner = nm_search_preference(snapshot, config, moves[1].thread,
							    moves[1].node_to);
		else
			won->free_cpu = won->total - won->preferred;
	}
}

static int propose_lbma(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	(void)state;
	nm_lbma_propose(input->snapshot, input->config, input->rng, ret);
	return 0;
}

const struct nm_policy_ops nm_lbma_policy = {
	.propose = propose_lbma,
	.judged_by = {{NM_BY_LOCALITY, NM_CRITERION_VETOES},
		      {.by = NM_BY_PERFORMANCE},
		      {.by = NM_BY_LOCALITY}},
};
