/* SPDX-License-Identifier: MIT */
/* IMAR² (section 4.3, algorithm 2): the slowest threads of each process, tickets q1 to q4, and the
 * record of their performance on each node. Equation 4 is in feedback.c. */
#include <math.h>

#include "lbma.h"

/* ---- record ---- */

/* P of a thread on a node. */
struct cell {
	double performance;
	uint64_t interval;
	bool known; /* it ran there */
};

struct nm_record {
	struct nm_column threads; /* nr_nodes cells each */
	unsigned nr_nodes;
	enum nm_performance performance;
	bool by_locality;
};

static void *open_record(const struct nm_topology *topology, double page_bytes)
{
	(void)topology;
	(void)page_bytes;
	return nm_must(calloc(1, sizeof(struct nm_record)));
}

static void close_record(void *state)
{
	struct nm_record *record = state;
	nm_column_clear(&record->threads);
	free(record);
}

static struct cell *cells_of(const struct nm_record *record, uint32_t thread)
{
	return (struct cell *)record->threads.cells + thread * (size_t)record->nr_nodes;
}

/* An interval without measured threads does not determine what is sampled. */
static bool is_comparable(const struct nm_record *record, const struct nm_snapshot *snapshot,
			  const struct nm_config *config)
{
	if (record->nr_nodes != snapshot->topology->nr_nodes ||
	    record->performance != config->threads.performance)
		return false;
	return snapshot->measured == 0 || record->by_locality == snapshot->by_locality;
}

/* Records P of every measured thread for its main node, and drops threads that are not in the
 * snapshot (nm_column_follow_threads()). The whole record is cleared when P has a different meaning
 * (threads.performance, or derived from locality) or the number of nodes has changed. */
static void follow(void *state, const struct nm_snapshot *snapshot, const struct nm_config *config)
{
	struct nm_record *record = state;
	if (!is_comparable(record, snapshot, config)) {
		nm_column_clear(&record->threads);
		record->nr_nodes = snapshot->topology->nr_nodes;
		record->threads.cell_bytes = record->nr_nodes * sizeof(struct cell);
		record->performance = config->threads.performance;
		record->by_locality = snapshot->by_locality;
	}
	nm_column_follow_threads(&record->threads, snapshot);
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->measured && thread->stats.main_node >= 0)
			cells_of(record, i)[thread->stats.main_node] =
				(struct cell){.performance = thread->performance,
					      .interval = snapshot->interval,
					      .known = true};
	}
}

double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node)
{
	const struct cell *cell = &cells_of(record, thread)[node];
	uint64_t age = config->rules.record_age;
	bool expired = age > 0 && snapshot->interval - cell->interval > age;
	return cell->known && !expired ? cell->performance : (double)NAN;
}

int nm_record_compare(double record, double now, double band)
{
	if (record > now * (1 + band))
		return 1;
	if (record < now * (1 - band))
		return -1;
	return 0;
}

/* ---- tickets ---- */

struct judge {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_record *record;
};

/* A thread of Θ̂; a lower rank means a greater need for a move. */
struct entry {
	double rank;
	uint32_t thread; /* ascending with the tid */
};

struct ranking {
	struct entry *entries;
	size_t next, count;
};

static int by_rank(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	return NM_COMPARE(a->rank, b->rank) ?: NM_COMPARE(a->thread, b->thread);
}

static uint32_t next_by_rank(void *context)
{
	struct ranking *list = context;
	return list->next == list->count ? NM_NO_PARTNER : list->entries[list->next++].thread;
}

static bool is_slow(const struct nm_config *config, const struct nm_snap_thread *thread)
{
	return thread->relative < config->rules.delta_r;
}

/* A few accesses do not determine the locality, even if enough samples determined P. */
static double locality_of(const struct nm_snap_thread *thread)
{
	return thread->valid ? thread->local_share : NAN;
}

enum nm_candidacy nm_lottery_candidacy(enum nm_thread_policy policy, const struct nm_config *config,
				       const struct nm_snap_thread *thread)
{
	bool lbma = policy == NM_POLICY_LBMA;
	if (lbma ? !thread->valid && !config->rules.paper : !thread->measured)
		return NM_CANDIDACY_UNMEASURED;
	if (!thread->movable)
		return NM_CANDIDACY_HELD;
	if (thread->stats.main_node < 0)
		return NM_CANDIDACY_WANDERING;
	if (lbma)
		return NM_CANDIDACY_YES;
	bool remote = locality_of(thread) < config->rules.remote_below;
	return is_slow(config, thread) || remote ? NM_CANDIDACY_YES : NM_CANDIDACY_SETTLED;
}

static double q2_of(const struct judge *judge, uint32_t thread, int node)
{
	return nm_search_preference(judge->snapshot, judge->config, thread, node);
}

static double record_of(const struct judge *judge, uint32_t thread, int node)
{
	return nm_record_get(judge->record, judge->snapshot, judge->config, thread, node);
}

static double q3_of(const struct judge *judge, uint32_t thread, int node)
{
	int compared = nm_record_compare(record_of(judge, thread, node),
					 judge->snapshot->threads[thread].performance,
					 judge->config->rules.record_band);
	if (compared == 0)
		return judge->config->rules.q3_equal;
	return compared > 0 ? judge->config->rules.q3_better : judge->config->rules.q3_worse;
}

static double q4_of(const struct judge *judge, uint32_t thread)
{
	return is_slow(judge->config, &judge->snapshot->threads[thread]) ? judge->config->rules.q4
									 : 0;
}

static void explain(const struct judge *judge, struct nm_proposal *proposal)
{
	struct nm_move *moves = proposal->moves;
	struct nm_tickets *tickets = &proposal->tickets;
	moves[0].record = record_of(judge, moves[0].thread, moves[0].node_to);
	tickets->preferred = q2_of(judge, moves[0].thread, moves[0].node_to);
	tickets->record = q3_of(judge, moves[0].thread, moves[0].node_to);
	if (proposal->kind == NM_PROPOSAL_MIGRATE) {
		tickets->free_cpu = tickets->total - tickets->preferred - tickets->record;
		return;
	}
	moves[1].record = record_of(judge, moves[1].thread, moves[1].node_to);
	tickets->partner = q2_of(judge, moves[1].thread, moves[1].node_to);
	tickets->partner_record = q3_of(judge, moves[1].thread, moves[1].node_to);
	tickets->partner_slow = q4_of(judge, moves[1].thread);
}

/* Never fails. */
static int propose_imar2(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	const struct nm_snapshot *snapshot = input->snapshot;
	const struct nm_config *config = input->config;
	size_t threads = snapshot->nr_threads, nodes = snapshot->topology->nr_nodes;
	struct judge judge = {.snapshot = snapshot, .config = config, .record = state};
	nm_autofree struct entry *entries = nm_must(calloc(threads + 1, sizeof(*entries)));
	nm_autofree double *move_tickets =
		nm_must(calloc(threads * nodes + 1, sizeof(*move_tickets)));
	nm_autofree double *partner = nm_must(calloc(threads + 1, sizeof(*partner)));
	nm_autofree bool *known = nm_must(calloc(threads + 1, sizeof(*known)));
	struct ranking list = {.entries = entries};
	/* If remote_below is 0, as in the paper, locality does not affect the order. */
	bool by_locality = config->rules.remote_below > 0;
	for (uint32_t i = 0; i < threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		bool waits = nm_search_waits_for_pages(snapshot, config, i);
		known[i] = (thread->valid || thread->measured) && !waits;
		partner[i] = q4_of(&judge, i);
		for (size_t node = 0; node < nodes; node++)
			move_tickets[i * nodes + node] =
				q2_of(&judge, i, (int)node) + q3_of(&judge, i, (int)node);
		if (!waits &&
		    nm_lottery_candidacy(NM_POLICY_IMAR2, config, thread) == NM_CANDIDACY_YES)
			entries[list.count++] = (struct entry){
				.rank = by_locality ? fmin(thread->relative, locality_of(thread))
						    : thread->relative,
				.thread = i};
	}
	qsort(entries, list.count, sizeof(*entries), by_rank);
	const struct nm_search_tickets tickets = {.policy = NM_POLICY_IMAR2,
						  .move_tickets = move_tickets,
						  .partner = partner,
						  .known = known,
						  .next = next_by_rank,
						  .list = &list};
	nm_search_lottery(snapshot, config, &tickets, input->rng, ret);
	for (size_t i = 0; i < ret->count; i++)
		explain(&judge, &ret->items[i]);
	return 0;
}

const struct nm_policy_ops nm_imar2_policy = {
	.open = open_record,
	.close = close_record,
	.follow = follow,
	.propose = propose_imar2,
	.judged_by = {{.by = NM_BY_PERFORMANCE}, {.by = NM_BY_LOCALITY}},
	.rolls_back = true,
};
