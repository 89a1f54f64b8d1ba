/* SPDX-License-Identifier: MIT */
/* LBMA (IMAR² paper, section 4.2, algorithm 1): the candidates of a thread θ, which are a CPU or a
 * swap on another node, with their tickets; the lottery; and Θ̂, random threads. IMAR² (imar2.c)
 * searches for candidates in the same way. The gate is not from the paper. */
#include <math.h>

#include "lbma.h"

/* Maximum number of pairs of threads examined per tick, about 10 ms; at the limit Θ̂ consists of
 * the threads found so far. */
#define MAX_COMPARISONS (4ULL << 20) /* shared: first */
#define NEVER (-1.0)

/* ---- gate ---- */

/* An unknown number of accesses counts as 0, and does not justify a move. */
static double known_accesses(const struct nm_snap_thread *thread)
{
	return thread->stats.access_total > 0 ? thread->stats.access_total : 0;
}

/* Returns by how much nearer an access to memory on `node` becomes, in local distances. */
static double nearer_by(const struct nm_topology *topology, int from, int to, int node)
{
	double before = nm_topology_distance(topology, from, node);
	return (before - nm_topology_distance(topology, to, node)) /
	       nm_topology_distance(topology, from, from);
}

double nm_surplus_of(const struct nm_topology *topology, const struct nm_snap_thread *thread,
		     int node_from, int node_to, double margin, double sigmas)
{
	double saved = 0, squares = 0, known = known_accesses(thread);
	for (int node = 0; node < (int)topology->nr_nodes; node++) {
		double nearer = nearer_by(topology, node_from, node_to, node);
		saved += thread->stats.accesses[node] * nearer;
		squares += thread->stats.accesses[node] * nearer * nearer;
	}
	saved -= margin * known;
	if (!(sigmas > 0) || !(thread->stats.access_samples > 0))
		return saved;
	return saved - sigmas * sqrt(squares * known / thread->stats.access_samples);
}

/* ---- candidates ---- */

/* A thread as the partner of a swap, in the order of snapshot->main_threads. */
struct partner {
	hwloc_const_bitmap_t allowed;
	uint32_t thread, uid;
	bool everywhere; /* as in struct nm_snap_thread */
};

struct search {
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	const struct nm_search_tickets *tickets;
	bool paper;	/* Θ̂ may include threads without a candidate, and nodes are not filled */
	bool gated;	/* gate = "benefit" */
	bool merged;	/* all CPUs of one node that are free form one candidate */
	bool zero_wins; /* a candidate with Q = 0 can win */
	bool no_pointless_swaps; /* threads that prefer the same node do not swap because of it */
	bool *refused;		 /* per thread: there is no room for it on its preferred node */
	struct partner *partners;
	size_t nr_partners;
	/* Rows of nr_partners, one per destination node, which the inner loop reads in order. */
	double *surplus; /* nm_surplus_of() of the partner for moving there; -∞: not allowed */
	double *partner_tickets; /* tickets of the partner for moving there; -1: not allowed */
	/* Highest surplus over the partners of a node and of a CPU, at from × nr_nodes + to. */
	double *best_of_node, *best_of_cpu;
	uint64_t comparisons; /* number of pairs of threads examined */
};

/* θ and one other node k' during the search for candidates. */
struct pair_search {
	struct search *search;
	struct nm_ticket_pool *pool;
	const struct nm_snap_thread *thread;
	uint32_t index;
	int node;	     /* k' */
	double surplus;	     /* of θ for moving there */
	double move_tickets; /* tickets for that */
};

static void raise_to(double *best, double value)
{
	if (value > *best)
		*best = value;
}

bool nm_search_waits_for_pages(const struct nm_snapshot *snapshot, const struct nm_config *config,
			       uint32_t thread)
{
	return nm_config_moves_pages(config) && !config->rules.paper && snapshot->contended >= 0 &&
	       snapshot->threads[thread].preferred == snapshot->contended;
}

double nm_search_preference(const struct nm_snapshot *snapshot, const struct nm_config *config,
			    uint32_t thread, int node)
{
	const struct nm_snap_thread *one = &snapshot->threads[thread];
	double most = 0;
	if (!config->rules.paper)
		return one->preferred == node ? config->rules.q2 : 0;
	for (unsigned k = 0; k < snapshot->topology->nr_nodes; k++)
		raise_to(&most, one->stats.accesses[k]);
	return most > 0 && one->stats.accesses[node] == most ? config->rules.q2 : 0;
}

static bool is_refused(const struct search *search, uint32_t thread, int node)
{
	return search->refused[thread] && search->snapshot->threads[thread].preferred == node;
}

static double move_tickets_of(const struct search *search, uint32_t thread, int node)
{
	size_t nr_nodes = search->snapshot->topology->nr_nodes;
	return search->tickets->move_tickets[thread * nr_nodes + (size_t)node];
}

static double surplus_of(const struct search *search, const struct nm_snap_thread *thread, int node)
{
	return nm_surplus_of(search->snapshot->topology, thread, thread->stats.main_node, node,
			     NM_GATE_MARGIN, search->config->rules.gate_sigmas);
}

static void fill_partner(struct search *search, size_t position)
{
	const struct nm_snapshot *snapshot = search->snapshot;
	uint32_t index = snapshot->main_threads[position];
	const struct nm_snap_thread *thread = &snapshot->threads[index];
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	/* A partner with too few samples may lose more than is known, and is not moved. */
	bool unknown = search->gated && !search->tickets->known[index];
	bool fixed = !thread->movable || thread->stats.main_node < 0 || unknown;
	search->partners[position] = (struct partner){
		.allowed = thread->allowed,
		.thread = index,
		.uid = snapshot->processes[thread->process].uid,
		.everywhere = thread->everywhere,
	};
	for (int node = 0; !fixed && node < (int)nr_nodes; node++) {
		size_t at = (size_t)node * search->nr_partners + position, to = (size_t)node;
		if (node == thread->stats.main_node || is_refused(search, index, node))
			continue;
		double surplus = surplus_of(search, thread, node);
		search->partner_tickets[at] = move_tickets_of(search, index, node);
		if (search->tickets->partner)
			search->partner_tickets[at] += search->tickets->partner[index];
		search->surplus[at] = surplus;
		raise_to(&search->best_of_node[(size_t)thread->stats.main_node * nr_nodes + to],
			 surplus);
		raise_to(&search->best_of_cpu[(size_t)thread->stats.main_cpu * nr_nodes + to],
			 surplus);
	}
}

static double *new_filled(size_t count, double with)
{
	double *values = nm_must(malloc((count + 1) * sizeof(*values)));
	for (size_t i = 0; i < count; i++)
		values[i] = with;
	return values;
}

static void fill_partners(struct search *search)
{
	const struct nm_topology *topology = search->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes;
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		search->nr_partners += search->snapshot->cpus[cpu].nr_main_threads;
	search->refused =
		nm_must(calloc(search->snapshot->nr_threads + 1, sizeof(*search->refused)));
	search->partners = nm_must(calloc(search->nr_partners + 1, sizeof(*search->partners)));
	search->surplus = new_filled(nr_nodes * search->nr_partners, -INFINITY);
	search->partner_tickets = new_filled(nr_nodes * search->nr_partners, NEVER);
	search->best_of_node = new_filled(nr_nodes * nr_nodes, -INFINITY);
	search->best_of_cpu = new_filled(topology->nr_cpus * nr_nodes, -INFINITY);
	if (!search->paper)
		nm_overcommit_refuse(search->snapshot, search->refused);
	for (size_t i = 0; i < search->nr_partners; i++)
		fill_partner(search, i);
}

static void search_clear(struct search *search)
{
	free(search->refused);
	free(search->partners);
	free(search->surplus);
	free(search->partner_tickets);
	free(search->best_of_node);
	free(search->best_of_cpu);
}

static bool passes_gate(const struct search *search, double surplus)
{
	return !search->gated || surplus > 0;
}

static void add_single(struct pair_search *pair_search, int cpu, int32_t destination)
{
	const struct search *search = pair_search->search;
	double q1 = search->snapshot->cpus[cpu].sibling_busy ? search->config->rules.q1_sibling
							     : search->config->rules.q1;
	double tickets = q1 + pair_search->move_tickets;
	if (!(tickets > 0) && !search->zero_wins)
		return;
	nm_ticket_pool_add(pair_search->pool, pair_search->index, destination, NM_NO_PARTNER,
			   tickets);
}

static void add_singles(struct pair_search *pair_search)
{
	const struct nm_snapshot *snapshot = pair_search->search->snapshot;
	hwloc_const_bitmap_t allowed = pair_search->thread->allowed;
	if (!passes_gate(pair_search->search, pair_search->surplus))
		return;
	if (pair_search->search->merged) {
		unsigned node = (unsigned)pair_search->node;
		int cpu = nm_pick_free_cpu(snapshot, node, allowed, NULL, NULL);
		if (cpu >= 0)
			add_single(pair_search, cpu, nm_any_cpu_of(node));
		return;
	}
	hwloc_const_bitmap_t cpus = snapshot->topology->nodes[pair_search->node].cpus;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		if (!nm_snapshot_is_free_for(snapshot, cpu, allowed))
			continue;
		add_single(pair_search, cpu, cpu);
	}
}

/* Both threads prefer the node of one of them: which of them is local would depend on the number of
 * their samples, and would change again with the next samples. */
static bool is_pointless_swap(const struct pair_search *pair_search, uint32_t partner)
{
	int wanted = pair_search->thread->preferred;
	return pair_search->search->no_pointless_swaps && wanted >= 0 &&
	       wanted == pair_search->search->snapshot->threads[partner].preferred &&
	       (wanted == pair_search->node || wanted == pair_search->thread->stats.main_node);
}

/* Returns whether the pair must be examined further; most are rejected by the gate. */
static bool is_candidate(const struct pair_search *pair_search, size_t at,
			 const struct partner *partner)
{
	const struct search *search = pair_search->search;
	double partner_tickets = search->partner_tickets[at];
	if (!passes_gate(search, pair_search->surplus + search->surplus[at]))
		return false;
	return partner_tickets >= 0 && !is_pointless_swap(pair_search, partner->thread) &&
	       (pair_search->move_tickets + partner_tickets > 0 || search->zero_wins);
}

/* No user may lose for another: threads of two users are swapped only if each of them gains. */
static bool may_swap_users(const struct pair_search *pair_search, size_t at)
{
	const struct search *search = pair_search->search;
	return search->config->rules.cross_owner_swap ||
	       (search->gated && pair_search->surplus > 0 && search->surplus[at] > 0);
}

/* Adds swaps with the threads whose main CPU is γ', which θ may use. */
static void add_swaps_with(struct pair_search *pair_search, int cpu)
{
	struct search *search = pair_search->search;
	const struct nm_snap_cpu *there = &search->snapshot->cpus[cpu];
	size_t row = (size_t)pair_search->thread->stats.main_node * search->nr_partners;
	unsigned here = (unsigned)pair_search->thread->stats.main_cpu;
	uint32_t uid = search->snapshot->processes[pair_search->thread->process].uid;
	search->comparisons += there->nr_main_threads;
	for (size_t i = there->first_main_thread;
	     i < there->first_main_thread + there->nr_main_threads; i++) {
		const struct partner *partner = &search->partners[i];
		if (!is_candidate(pair_search, row + i, partner) ||
		    !(partner->everywhere || hwloc_bitmap_isset(partner->allowed, here)))
			continue;
		if (partner->uid != uid && !may_swap_users(pair_search, row + i))
			continue;
		nm_ticket_pool_add(pair_search->pool, pair_search->index, cpu, partner->thread,
				   pair_search->move_tickets + search->partner_tickets[row + i]);
	}
}

static void add_swaps(struct pair_search *pair_search)
{
	const struct search *search = pair_search->search;
	const struct nm_topology *topology = search->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes, home = (size_t)pair_search->thread->stats.main_node;
	if (!search->snapshot->cpus[pair_search->thread->stats.main_cpu].usable)
		return;
	const double *best_of_node = &search->best_of_node[(size_t)pair_search->node * nr_nodes];
	if (!passes_gate(search, pair_search->surplus + best_of_node[home]))
		return;
	hwloc_const_bitmap_t cpus = topology->nodes[pair_search->node].cpus;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		if (search->snapshot->cpus[cpu].nr_main_threads == 0 ||
		    !passes_gate(search,
				 pair_search->surplus +
					 search->best_of_cpu[(size_t)cpu * nr_nodes + home]) ||
		    !hwloc_bitmap_isset(pair_search->thread->allowed, (unsigned)cpu))
			continue;
		add_swaps_with(pair_search, cpu);
	}
}

/* Adds the candidates of the thread, which has a main node, to the pool. */
static void search_thread(struct search *search, struct nm_ticket_pool *pool, uint32_t thread)
{
	struct pair_search pair_search = {.search = search,
					  .pool = pool,
					  .thread = &search->snapshot->threads[thread],
					  .index = thread};
	int home = pair_search.thread->stats.main_node;
	for (pair_search.node = 0; pair_search.node < (int)search->snapshot->topology->nr_nodes;
	     pair_search.node++) {
		if (pair_search.node == home || is_refused(search, thread, pair_search.node))
			continue;
		pair_search.surplus = surplus_of(search, pair_search.thread, pair_search.node);
		pair_search.move_tickets = move_tickets_of(search, thread, pair_search.node);
		add_singles(&pair_search);
		add_swaps(&pair_search);
	}
}

static struct nm_move move_to(const struct nm_snapshot *snapshot, uint32_t thread, int cpu_to)
{
	const struct nm_snap_thread *moved = &snapshot->threads[thread];
	return (struct nm_move){
		.thread = thread,
		.cpu_from = moved->stats.main_cpu,
		.cpu_to = cpu_to,
		.node_from = moved->stats.main_node,
		.node_to = snapshot->cpus[cpu_to].node,
		.record = NAN,
	};
}

static struct nm_alternative alternative_of(const struct nm_snapshot *snapshot,
					    const struct nm_candidate *candidate)
{
	int32_t to = candidate->destination;
	bool any = to < 0;
	return (struct nm_alternative){
		.node_to = any ? (int)(-1 - to) : snapshot->cpus[to].node,
		.cpu_to = any ? -1 : (int)to,
		.partner = candidate->partner == NM_NO_PARTNER
				   ? 0
				   : snapshot->threads[candidate->partner].tid,
		.tickets = candidate->tickets,
	};
}

/* Inserts an alternative after the first one, which won; the one with the fewest tickets is
 * dropped. */
static void insert_alternative(struct nm_alternative alternative, struct nm_proposal *proposal)
{
	size_t place = proposal->nr_alternatives < NM_ALTERNATIVES_MAX ? proposal->nr_alternatives++
								       : NM_ALTERNATIVES_MAX;
	for (; place > 1 && proposal->alternatives[place - 1].tickets < alternative.tickets;
	     place--)
		if (place < NM_ALTERNATIVES_MAX)
			proposal->alternatives[place] = proposal->alternatives[place - 1];
	if (place < NM_ALTERNATIVES_MAX)
		proposal->alternatives[place] = alternative;
}

static struct nm_proposal proposal_of(const struct nm_snapshot *snapshot, const struct nm_win *win)
{
	struct nm_proposal proposal = {
		.kind = NM_PROPOSAL_MIGRATE, .tickets = {.total = win->tickets}, .draw = win->draw};
	struct nm_move *moves = proposal.moves;
	moves[0] = move_to(snapshot, win->thread, win->cpu_to);
	if (win->partner != NM_NO_PARTNER) {
		proposal.kind = NM_PROPOSAL_SWAP;
		moves[1] = move_to(snapshot, win->partner, moves[0].cpu_from);
	}
	size_t count = proposal.kind == NM_PROPOSAL_SWAP ? 2 : 1;
	proposal.gain = nm_gate_gain(snapshot, moves, count);
	proposal.nr_candidates = win->nr_candidates;
	proposal.alternatives[proposal.nr_alternatives++] =
		alternative_of(snapshot, &win->candidates[win->winner]);
	for (size_t i = 0; i < win->nr_candidates; i++)
		if (i != win->winner)
			insert_alternative(alternative_of(snapshot, &win->candidates[i]),
					   &proposal);
	return proposal;
}

void nm_search_lottery(const struct nm_snapshot *snapshot, const struct nm_config *config,
		       const struct nm_search_tickets *tickets, struct nm_rng *rng,
		       struct nm_proposals *ret)
{
	bool gated = config->rules.gate == NM_GATE_BENEFIT;
	bool merged = config->rules.lottery == NM_LOTTERY_PROPORTIONAL;
	nm_auto(search_clear) struct search search = {
		.snapshot = snapshot,
		.config = config,
		.tickets = tickets,
		.paper = config->rules.paper,
		.gated = gated,
		.merged = merged,
		/* A candidate without tickets never wins, except in the paper's lottery. */
		.zero_wins = !gated && !merged,
		/* Locality cannot determine which of the two would be faster there; IMAR²'s P
		 * can. */
		.no_pointless_swaps =
			gated && (tickets->policy == NM_POLICY_LBMA || snapshot->by_locality),
	};
	nm_auto(nm_ticket_pool_freep) struct nm_ticket_pool *pool = NULL;
	struct nm_win win;
	uint64_t considered = 0;
	size_t stuck = 0;
	fill_partners(&search);
	nm_ticket_pool_new(snapshot, config->rules.lottery, rng, &pool);
	while (considered < config->rules.n && search.comparisons < MAX_COMPARISONS) {
		uint32_t thread = tickets->next(tickets->list);
		if (thread == NM_NO_PARTNER)
			break;
		size_t before = nm_ticket_pool_count(pool);
		search_thread(&search, pool, thread);
		bool found = nm_ticket_pool_count(pool) > before;
		considered += search.paper || found;
		stuck += !found;
	}
	struct nm_proposals proposals = {
		/* Each thread of Θ̂ wins at most once, so that there are never more than n. */
		.items = nm_must(calloc(config->rules.n + 1, sizeof(*proposals.items))),
		.comparisons = search.comparisons,
		.stuck = stuck,
	};
	while (nm_ticket_pool_draw(pool, &win))
		proposals.items[proposals.count++] = proposal_of(snapshot, &win);
	*ret = proposals;
}

double nm_gate_gain(const struct nm_snapshot *snapshot, const struct nm_move *moves, size_t count)
{
	double gained = 0, total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[moves[i].thread];
		gained += thread->stats.accesses[moves[i].node_to] -
			  thread->stats.accesses[moves[i].node_from];
		total += known_accesses(thread);
	}
	return total > 0 ? gained / total : (double)NAN;
}

/* ---- LBMA ---- */

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

/* Never fails. */
static int propose_lbma(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	const struct nm_snapshot *snapshot = input->snapshot;
	const struct nm_config *config = input->config;
	size_t threads = snapshot->nr_threads, nodes = snapshot->topology->nr_nodes;
	(void)state;
	nm_autofree uint32_t *eligible = nm_must(calloc(threads + 1, sizeof(*eligible)));
	nm_autofree double *move_tickets =
		nm_must(calloc(threads * nodes + 1, sizeof(*move_tickets)));
	nm_autofree bool *known = nm_must(calloc(threads + 1, sizeof(*known)));
	struct shuffle list = {.rng = input->rng, .threads = eligible};
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
	nm_search_lottery(snapshot, config, &tickets, input->rng, ret);
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
	return 0;
}

const struct nm_policy_ops nm_lbma_policy = {
	.propose = propose_lbma,
	.judged_by = {{NM_BY_LOCALITY, NM_CRITERION_VETOES},
		      {.by = NM_BY_PERFORMANCE},
		      {.by = NM_BY_LOCALITY}},
};
