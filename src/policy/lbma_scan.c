/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "lbma.h"

enum {
	NM_WISH_NEVER = 1,   /* may not be moved there */
	NM_WISH_PREFERS = 2, /* earns q2 */
};

/* θ and one other node k', while its candidates are looked for. */
struct view {
	struct nm_lbma_scan *scan;
	struct nm_urn *urn;
	const struct nm_snap_thread *thread;
	uint32_t index;
	int node;	  /* k' */
	double surplus;	  /* of θ going there */
	double preferred; /* q2 or 0 */
	bool gate_refused;
};

double nm_lbma_q2(const struct nm_lbma_scan *scan, uint32_t thread, int node)
{
	const struct nm_snapshot *snapshot = scan->snapshot;
	return nm_snapshot_prefers(snapshot, &snapshot->threads[thread], node, scan->rules.ties)
		       ? scan->rules.q2
		       : 0;
}

double nm_lbma_q1(const struct nm_lbma_scan *scan, int cpu)
{
	return scan->snapshot->cpus[cpu].sibling_busy ? scan->rules.q1_sibling_busy
						      : scan->rules.q1;
}

static bool is_refused(const struct nm_lbma_scan *scan, uint32_t thread, int node)
{
	return scan->refused[thread] && scan->snapshot->threads[thread].preferred == node;
}

static void raise(double *best, double surplus)
{
	if (surplus > *best)
		*best = surplus;
}

static void note_surplus(struct nm_lbma_scan *scan, const struct nm_snap_thread *thread, int node,
			 double surplus)
{
	size_t nr_nodes = scan->snapshot->topology->nr_nodes, to = (size_t)node;
	raise(&scan->best_of_node[(size_t)thread->home_node * nr_nodes + to], surplus);
	raise(&scan->best_of_cpu[(size_t)thread->home_cpu * nr_nodes + to], surplus);
}

static void fill_partner(struct nm_lbma_scan *scan, size_t position)
{
	const struct nm_snapshot *snapshot = scan->snapshot;
	uint32_t index = snapshot->home_threads[position];
	const struct nm_snap_thread *thread = &snapshot->threads[index];
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	/* A partner of whom too little was seen may lose more than is known: it is not gambled
	 * with. */
	bool unknown = scan->rules.gated && !thread->valid;
	bool fixed = !thread->movable || thread->home_node < 0 || unknown;
	scan->partners[position] = (struct nm_lbma_partner){
		.allowed = thread->allowed,
		.thread = index,
		.uid = snapshot->processes[thread->process].uid,
		.preferred = thread->preferred,
	};
	for (int node = 0; node < (int)nr_nodes; node++) {
		size_t at = (size_t)node * scan->nr_partners + position;
		scan->wish[at] = NM_WISH_NEVER;
		if (fixed || is_refused(scan, index, node))
			continue;
		scan->wish[at] = nm_snapshot_prefers(snapshot, thread, node, scan->rules.ties)
					 ? NM_WISH_PREFERS
					 : 0;
		scan->surplus[at] = nm_gate_surplus(thread, thread->home_node, node,
						    scan->rules.margin, scan->rules.sigmas);
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

static int allocate(struct nm_lbma_scan *scan)
{
	const struct nm_topology *topology = scan->snapshot->topology;
	size_t nr_nodes = topology->nr_nodes, homes = scan->nr_partners;
	scan->refused = calloc(scan->snapshot->nr_threads + 1, sizeof(*scan->refused));
	scan->partners = calloc(homes + 1, sizeof(*scan->partners));
	scan->surplus = calloc(nr_nodes * homes + 1, sizeof(*scan->surplus));
	scan->wish = calloc(nr_nodes * homes + 1, sizeof(*scan->wish));
	scan->best_of_node = lowest(nr_nodes * nr_nodes);
	scan->best_of_cpu = lowest(topology->nr_cpus * nr_nodes);
	if (!scan->refused || !scan->partners || !scan->surplus || !scan->wish ||
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

int nm_lbma_scan_init(struct nm_lbma_scan *scan, const struct nm_snapshot *snapshot,
		      const struct nm_lbma_rules *rules)
{
	*scan = (struct nm_lbma_scan){
		.snapshot = snapshot, .rules = *rules, .nr_partners = count_homes(snapshot)};
	int r = allocate(scan);
	if (r >= 0 && rules->fill_nodes)
		r = nm_overcommit_refuse(snapshot, scan->refused);
	if (r < 0) {
		nm_lbma_scan_clear(scan);
		return r;
	}
	for (size_t i = 0; i < scan->nr_partners; i++)
		fill_partner(scan, i);
	return 0;
}

void nm_lbma_scan_clear(struct nm_lbma_scan *scan)
{
	free(scan->refused);
	free(scan->partners);
	free(scan->surplus);
	free(scan->wish);
	free(scan->best_of_node);
	free(scan->best_of_cpu);
	*scan = (struct nm_lbma_scan){0};
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
	double tickets = nm_lbma_q1(view->scan, cpu) + view->preferred;
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

/*
 * Both prefer the node where one of them is: who of them is local would turn on whose accesses were
 * sampled more often, which page faults cannot tell, and turn back with the next samples.
 */
static bool is_mere_exchange(const struct view *view, const struct nm_lbma_partner *partner)
{
	int wanted = view->thread->preferred;
	return view->scan->rules.gated && wanted >= 0 && wanted == partner->preferred &&
	       (wanted == view->node || wanted == view->thread->home_node);
}

/* Interchanges with the home threads of one CPU γ' that θ may run on. */
static int add_swaps_with(struct view *view, int cpu)
{
	struct nm_lbma_scan *scan = view->scan;
	const struct nm_snap_cpu *there = &scan->snapshot->cpus[cpu];
	size_t row = (size_t)view->thread->home_node * scan->nr_partners;
	uint32_t uid = scan->snapshot->processes[view->thread->process].uid;
	hwloc_const_bitmap_t tested = NULL; /* threads of one process often share a mask */
	bool may_run_here = false;
	scan->looks += there->homes;
	for (size_t i = there->first_home; i < there->first_home + there->homes; i++) {
		uint8_t wish = scan->wish[row + i];
		const struct nm_lbma_partner *partner = &scan->partners[i];
		if (wish & NM_WISH_NEVER)
			continue;
		if (is_mere_exchange(view, partner))
			continue;
		double tickets = view->preferred + (wish & NM_WISH_PREFERS ? scan->rules.q2 : 0);
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
	const struct nm_lbma_scan *scan = view->scan;
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

int nm_lbma_scan_thread(struct nm_lbma_scan *scan, struct nm_urn *urn, uint32_t thread)
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
		view.surplus = nm_gate_surplus(view.thread, home, view.node, scan->rules.margin,
					       scan->rules.sigmas);
		view.preferred = nm_lbma_q2(scan, thread, view.node);
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
