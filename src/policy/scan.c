/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "scan.h"

/* Pairs of threads looked at per tick, beyond which Θ̂ is what was found: some 10 ms. */
#define MAX_LOOKS (4ULL << 20)
#define NEVER (-1.0)

/* θ and one other node k', while its candidates are looked for. */
struct view {
	struct nm_scan *scan;
	struct nm_urn *urn;
	const struct nm_snap_thread *thread;
	uint32_t index;
	int node;	/* k' */
	double surplus; /* of θ going there */
	double going;	/* tickets for that */
	bool gate_refused;
};

struct nm_scan_rules nm_scan_rules_of(const struct nm_config *config)
{
	bool paper = config->profile == NM_PROFILE_PAPER;
	bool gated = config->threads.gate == NM_GATE_BENEFIT;
	bool merged = config->threads.lottery == NM_LOTTERY_PROPORTIONAL;
	return (struct nm_scan_rules){
		.gated = gated,
		.merged = merged,
		/* A share of no tickets is no chance: only the paper's lottery lets Q = 0 win. */
		.zero_wins = !gated && !merged,
		.any_thread = paper,
		.cross_owner_swap = config->threads.cross_owner_swap,
		.fill_nodes = config->threads.overcommit == NM_OVERCOMMIT_PAGES,
		.q1 = config->threads.q1,
		/* Half a core is worth half the tickets; the paper does not look at siblings. */
		.q1_sibling_busy = paper ? config->threads.q1 : config->threads.q1 / 2,
		.margin = config->threads.gate_margin,
	};
}

static double q1_of(const struct nm_scan *scan, int cpu)
{
	return scan->snapshot->cpus[cpu].sibling_busy ? scan->rules.q1_sibling_busy
						      : scan->rules.q1;
}

static bool is_refused(const struct nm_scan *scan, uint32_t thread, int node)
{
	return scan->refused[thread] && scan->snapshot->threads[thread].preferred == node;
}

static void raise(double *best, double surplus)
{
	if (surplus > *best)
		*best = surplus;
}

static void note_surplus(struct nm_scan *scan, const struct nm_snap_thread *thread, int node,
			 double surplus)
{
	size_t nr_nodes = scan->snapshot->topology->nr_nodes, to = (size_t)node;
	raise(&scan->best_of_node[(size_t)thread->home_node * nr_nodes + to], surplus);
	raise(&scan->best_of_cpu[(size_t)thread->home_cpu * nr_nodes + to], surplus);
}

static double going_of(const struct nm_scan *scan, uint32_t thread, int node)
{
	size_t nr_nodes = scan->snapshot->topology->nr_nodes;
	return scan->tickets.going[thread * nr_nodes + (size_t)node];
}

static void fill_partner(struct nm_scan *scan, size_t position)
{
	const struct nm_snapshot *snapshot = scan->snapshot;
	uint32_t index = snapshot->home_threads[position];
	const struct nm_snap_thread *thread = &snapshot->threads[index];
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	/* A partner of whom too little was seen may lose more than is known: it is not gambled
	 * with. */
	bool unknown = scan->rules.gated && !scan->tickets.known[index];
	bool fixed = !thread->movable || thread->home_node < 0 || unknown;
	scan->partners[position] = (struct nm_scan_partner){
		.allowed = thread->allowed,
		.thread = index,
		.uid = snapshot->processes[thread->process].uid,
	};
	for (int node = 0; node < (int)nr_nodes; node++) {
		size_t at = (size_t)node * scan->nr_partners + position;
		scan->grant[at] = NEVER;
		if (fixed || is_refused(scan, index, node))
			continue;
		scan->grant[at] = going_of(scan, index, node);
		if (scan->tickets.partner)
			scan->grant[at] += scan->tickets.partner[index];
		scan->surplus[at] =
			nm_gate_surplus(thread, thread->home_node, node, scan->rules.margin);
		note_surplus(scan, thread, node, scan->surplus[at]);
	}
}

static double *lowest(size_t count)
{
	double *values = calloc(count + 1, sizeof(*values));
	for (size_t i = 0; values && i < count; i++)
		values[i] = -INFINITY;
	return values;
}

static int allocate(struct nm_scan *scan)
{
	const struct nm_topology *topology = scan->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes, homes = scan->nr_partners;
	scan->refused = calloc(scan->snapshot->nr_threads + 1, sizeof(*scan->refused));
	scan->partners = calloc(homes + 1, sizeof(*scan->partners));
	scan->surplus = calloc(nr_nodes * homes + 1, sizeof(*scan->surplus));
	scan->grant = calloc(nr_nodes * homes + 1, sizeof(*scan->grant));
	scan->best_of_node = lowest(nr_nodes * nr_nodes);
	scan->best_of_cpu = lowest(topology->nr_cpus * nr_nodes);
	if (!scan->refused || !scan->partners || !scan->surplus || !scan->grant ||
	    !scan->best_of_node || !scan->best_of_cpu)
		return -ENOMEM;
	return 0;
}

static size_t count_homes(const struct nm_snapshot *snapshot)
{
	size_t homes = 0;
	for (unsigned cpu = 0; cpu < snapshot->topology->nr_cpus; cpu++)
		homes += snapshot->cpus[cpu].homes;
	return homes;
}

int nm_scan_init(struct nm_scan *scan, const struct nm_snapshot *snapshot,
		 const struct nm_scan_rules *rules, const struct nm_scan_tickets *tickets)
{
	*scan = (struct nm_scan){.snapshot = snapshot,
				 .rules = *rules,
				 .tickets = *tickets,
				 .nr_partners = count_homes(snapshot)};
	int r = allocate(scan);
	if (r >= 0 && rules->fill_nodes)
		r = nm_overcommit_refuse(snapshot, scan->refused);
	if (r < 0) {
		nm_scan_clear(scan);
		return r;
	}
	for (size_t i = 0; i < scan->nr_partners; i++)
		fill_partner(scan, i);
	return 0;
}

void nm_scan_clear(struct nm_scan *scan)
{
	free(scan->refused);
	free(scan->partners);
	free(scan->surplus);
	free(scan->grant);
	free(scan->best_of_node);
	free(scan->best_of_cpu);
	*scan = (struct nm_scan){0};
}

static bool passes_gate(struct view *view, double surplus)
{
	if (!view->scan->rules.gated || surplus > 0)
		return true;
	view->gate_refused = true;
	return false;
}

static int add_single(struct view *view, int cpu, int32_t destination)
{
	double tickets = q1_of(view->scan, cpu) + view->going;
	if (!(tickets > 0) && !view->scan->rules.zero_wins)
		return 0;
	return nm_urn_add(view->urn, view->index, destination, NM_NO_PARTNER, tickets);
}

static int add_singles(struct view *view)
{
	const struct nm_snapshot *snapshot = view->scan->snapshot;
	hwloc_const_bitmap_t allowed = view->thread->allowed;
	if (!passes_gate(view, view->surplus))
		return 0;
	if (view->scan->rules.merged) {
		unsigned node = (unsigned)view->node;
		int cpu = nm_pick_free_cpu(snapshot, node, allowed, NULL, NULL);
		return cpu < 0 ? 0 : add_single(view, cpu, nm_any_cpu_of(node));
	}
	hwloc_const_bitmap_t cpus = snapshot->topology->nodes[view->node].cpus;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		if (!snapshot->cpus[cpu].free || !hwloc_bitmap_isset(allowed, (unsigned)cpu))
			continue;
		int r = add_single(view, cpu, cpu);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Interchanges with the home threads of one CPU γ' that θ may run on. */
static int add_swaps_with(struct view *view, int cpu)
{
	struct nm_scan *scan = view->scan;
	const struct nm_snap_cpu *there = &scan->snapshot->cpus[cpu];
	size_t row = (size_t)view->thread->home_node * scan->nr_partners;
	uint32_t uid = scan->snapshot->processes[view->thread->process].uid;
	hwloc_const_bitmap_t tested = NULL; /* threads of one process often share a mask */
	bool may_run_here = false;
	scan->looks += there->homes;
	for (size_t i = there->first_home; i < there->first_home + there->homes; i++) {
		double grant = scan->grant[row + i], tickets = view->going + grant;
		const struct nm_scan_partner *partner = &scan->partners[i];
		if (grant < 0)
			continue;
		if (!(tickets > 0) && !scan->rules.zero_wins)
			continue;
		if (!passes_gate(view, view->surplus + scan->surplus[row + i]))
			continue;
		if (partner->allowed != tested) {
			tested = partner->allowed;
			may_run_here = hwloc_bitmap_isset(tested, (unsigned)view->thread->home_cpu);
		}
		if (!may_run_here)
			continue;
		if (partner->uid != uid && !scan->rules.cross_owner_swap) {
			scan->stopped_by_owner++;
			continue;
		}
		int r = nm_urn_add(view->urn, view->index, cpu, partner->thread, tickets);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_swaps(struct view *view)
{
	const struct nm_scan *scan = view->scan;
	const struct nm_topology *topology = scan->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes, home = (size_t)view->thread->home_node;
	if (!scan->snapshot->cpus[view->thread->home_cpu].usable)
		return 0;
	const double *best_of_node = &scan->best_of_node[(size_t)view->node * nr_nodes];
	if (!passes_gate(view, view->surplus + best_of_node[home]))
		return 0;
	hwloc_const_bitmap_t cpus = topology->nodes[view->node].cpus;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		if (scan->snapshot->cpus[cpu].homes == 0 ||
		    !passes_gate(view, view->surplus +
					       scan->best_of_cpu[(size_t)cpu * nr_nodes + home]) ||
		    !hwloc_bitmap_isset(view->thread->allowed, (unsigned)cpu))
			continue;
		int r = add_swaps_with(view, cpu);
		if (r < 0)
			return r;
	}
	return 0;
}

int nm_scan_thread(struct nm_scan *scan, struct nm_urn *urn, uint32_t thread)
{
	struct view view = {.scan = scan,
			    .urn = urn,
			    .thread = &scan->snapshot->threads[thread],
			    .index = thread};
	int home = view.thread->home_node;
	size_t before = nm_urn_count(urn);
	for (view.node = 0; view.node < (int)scan->snapshot->topology->nr_nodes; view.node++) {
		if (view.node == home || is_refused(scan, thread, view.node))
			continue;
		view.surplus = nm_gate_surplus(view.thread, home, view.node, scan->rules.margin);
		view.going = going_of(scan, thread, view.node);
		int r = add_singles(&view);
		if (r >= 0)
			r = add_swaps(&view);
		if (r < 0)
			return r;
	}
	if (view.gate_refused && nm_urn_count(urn) == before)
		scan->stopped_by_gate++;
	return 0;
}

/* ---- the lottery ---- */

static struct nm_move move_to(const struct nm_snapshot *snapshot, uint32_t thread, int cpu_to)
{
	const struct nm_snap_thread *moved = &snapshot->threads[thread];
	return (struct nm_move){
		.thread = thread,
		.cpu_from = moved->home_cpu,
		.cpu_to = cpu_to,
		.node_from = moved->home_node,
		.node_to = snapshot->cpus[cpu_to].node,
		.record = NAN,
	};
}

static struct nm_proposal proposal_of(const struct nm_scan *scan, const struct nm_win *win)
{
	const struct nm_snapshot *snapshot = scan->snapshot;
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
	return proposal;
}

static int fill_urn(struct nm_scan *scan, struct nm_urn *urn, uint64_t n, nm_scan_next_fn next,
		    void *list, uint64_t *ret_considered)
{
	uint64_t considered = 0;
	while (considered < n && scan->looks < MAX_LOOKS) {
		uint32_t thread = next(list);
		if (thread == NM_NO_PARTNER)
			break;
		size_t before = nm_urn_count(urn);
		int r = nm_scan_thread(scan, urn, thread);
		if (r < 0)
			return r;
		considered += scan->rules.any_thread || nm_urn_count(urn) > before;
	}
	*ret_considered = considered;
	return 0;
}

int nm_scan_lottery(struct nm_scan *scan, const struct nm_config *config, struct nm_rng *rng,
		    nm_scan_next_fn next, void *list, struct nm_proposals *ret)
{
	nm_auto(nm_urn_freep) struct nm_urn *urn = NULL;
	struct nm_win win;
	uint64_t considered;
	int r = nm_urn_new(scan->snapshot, config->threads.lottery, rng, &urn);
	if (r >= 0)
		r = fill_urn(scan, urn, config->threads.n, next, list, &considered);
	if (r < 0)
		return r;
	struct nm_proposals proposals = {
		/* Each thread of Θ̂ wins at most once, so that there are never more than n. */
		.items = calloc(considered + 1, sizeof(*proposals.items)),
		.threads_considered = considered,
		.candidates = nm_urn_count(urn),
		.stopped_by_gate = scan->stopped_by_gate,
		.stopped_by_owner = scan->stopped_by_owner,
	};
	if (!proposals.items)
		return -ENOMEM;
	while (nm_urn_draw(urn, &win))
		proposals.items[proposals.count++] = proposal_of(scan, &win);
	*ret = proposals;
	return 0;
}
