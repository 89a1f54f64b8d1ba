/* SPDX-License-Identifier: MIT */
/* kMAF, section 3.4: once per placement period threads are mapped (mapping/), and the mapping is
 * turned into moves for which there is room, as few as bring communicating threads together.
 * kmaf_select.c drops moves that do not pay, which is not from the paper; pages/ holds the page
 * rules of section 3.3. */
#include <math.h>

#include "kmaf_plan.h"

#define PARTNERS_MAX 16U /* strongest partners of a thread that its placement considers */

/* ---- moves ---- */

static void free_plan(struct plan *plan)
{
	free(plan->here);
	free(plan->wanted);
	free(plan->place);
	free(plan->unit_of);
	free(plan->demand_now);
	free(plan->capacity);
	free(plan->traffic);
	free(plan->demand);
	free(plan->first_of);
	free(plan->last_of);
	free(plan->needed_by);
	free(plan->freed_by);
	free(plan->claimed);
	free(plan->moves);
	free(plan->units);
	for (size_t i = 0; i < plan->nr_caches; i++)
		hwloc_bitmap_free(plan->caches[i].cpus);
	free(plan->caches);
	free(plan->cache_of);
	free(plan->differs);
}

/* Within a node a thread moves only if it makes a difference with whom it shares a cache. */
static int wanted_cache(const struct plan *plan, const struct nm_mapping *mapping, size_t i)
{
	const struct nm_snap_thread *thread = thread_of(plan, i);
	if (!thread->movable || thread->stats.main_node < 0 || plan->here[i] < 0 ||
	    mapping->cpu[i] < 0)
		return NONE;
	int cache = plan->cache_of[mapping->cpu[i]];
	if (cache == plan->here[i])
		return NONE;
	bool within = node_of(plan, cache) == node_of(plan, plan->here[i]);
	return within && !plan->differs[i] ? NONE : cache;
}

static void init_plan(struct plan *plan, const struct nm_mapping *mapping)
{
	const struct nm_topology *topology = plan->snapshot->topology;
	size_t threads = plan->snapshot->nr_threads, cpus = topology->nr_cpus;
	nm_kmaf_find_caches(plan);
	nm_kmaf_find_differing(plan);
	plan->here = nm_must(calloc(threads + 1, sizeof(int)));
	plan->wanted = nm_must(calloc(threads + 1, sizeof(int)));
	plan->place = nm_must(calloc(threads + 1, sizeof(int)));
	plan->unit_of = nm_must(calloc(threads + 1, sizeof(int)));
	plan->demand_now = nm_must(calloc(plan->nr_caches + 1, sizeof(double)));
	plan->demand = nm_must(calloc(plan->nr_caches + 1, sizeof(double)));
	plan->capacity = nm_must(calloc(plan->nr_caches + 1, sizeof(double)));
	plan->traffic = nm_must(calloc(topology->nr_nodes + 1, sizeof(double)));
	plan->first_of = nm_must(calloc(threads + 1, sizeof(int)));
	plan->last_of = nm_must(calloc(threads + 1, sizeof(int)));
	plan->needed_by = nm_must(calloc(threads + 1, sizeof(int)));
	plan->freed_by = nm_must(calloc(cpus + 1, sizeof(int)));
	plan->claimed = nm_must(calloc(cpus + 1, sizeof(bool)));
	plan->moves = nm_must(calloc(threads + 1, sizeof(*plan->moves)));
	plan->units = nm_must(calloc(threads + 1, sizeof(*plan->units)));
	for (size_t i = 0; i < plan->snapshot->nr_threads; i++) {
		int cpu = thread_of(plan, i)->stats.main_cpu;
		plan->here[i] = cpu < 0 ? NONE : plan->cache_of[cpu];
		plan->place[i] = plan->here[i];
		plan->unit_of[i] = NONE;
		plan->wanted[i] = wanted_cache(plan, mapping, i);
		if (plan->here[i] < 0)
			continue;
		plan->demand_now[plan->here[i]] += demand_of(plan, i);
		plan->traffic[node_of(plan, plan->here[i])] += traffic_of(plan, i);
	}
	plan->traffic_most = NM_CONTROLLER_MIN;
	for (unsigned node = 0; node < topology->nr_nodes; node++)
		plan->traffic_most = fmax(plan->traffic_most, plan->traffic[node]);
	for (size_t cache = 0; cache < plan->nr_caches; cache++) {
		plan->demand[cache] = plan->demand_now[cache];
		plan->capacity[cache] = nm_core_capacity(plan->snapshot, plan->caches[cache].cpus);
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		plan->freed_by[cpu] = NONE;
}

static struct unit *add_unit(struct plan *plan, bool swap)
{
	struct unit *unit = &plan->units[plan->nr_units++];
	*unit = (struct unit){.first = plan->nr_moves,
			      .swap = swap,
			      .needs = NONE,
			      .group = (int)plan->nr_units - 1,
			      .next = NONE};
	return unit;
}

static void add_move(struct plan *plan, struct unit *unit, size_t thread, int cpu)
{
	int from = node_of(plan, plan->here[thread]), to = node_of(plan, plan->wanted[thread]);
	plan->moves[plan->nr_moves++] = (struct nm_move){
		.thread = (uint32_t)thread,
		.cpu_from = thread_of(plan, thread)->stats.main_cpu,
		.cpu_to = cpu,
		.node_from = from,
		.node_to = to,
		.record = NAN,
		.below_cache = plan->differs[thread],
	};
	unit->count++;
	plan->unit_of[thread] = (int)(unit - plan->units);
	plan->place[thread] = plan->wanted[thread];
	plan->demand[plan->here[thread]] -= demand_of(plan, thread);
	plan->demand[plan->wanted[thread]] += demand_of(plan, thread);
	plan->traffic[from] -= traffic_of(plan, thread);
	plan->traffic[to] += traffic_of(plan, thread);
}

static bool is_waiting(const struct plan *plan, size_t thread)
{
	return plan->wanted[thread] != NONE && plan->unit_of[thread] == NONE;
}

static bool may_replace(const struct plan *plan, size_t thread, size_t other)
{
	const struct nm_snap_thread *enters = thread_of(plan, thread),
				    *leaves = thread_of(plan, other);
	const struct nm_snap_process *processes = plan->snapshot->processes;
	if (!plan->config->rules.cross_owner_swap &&
	    processes[enters->process].uid != processes[leaves->process].uid)
		return false;
	return hwloc_bitmap_isset(enters->allowed, (unsigned)leaves->stats.main_cpu);
}

/* Waiting threads, by their current and wanted caches, in order. */
struct queues {
	int *first, *next; /* per pair of caches; per thread */
};

static int *queue_of(const struct plan *plan, const struct queues *queues, int here, int wanted)
{
	return &queues->first[(size_t)here * plan->nr_caches + (size_t)wanted];
}

/* Finds the first thread after `a` that moves in the opposite direction; earlier ones have searched
 * for a partner themselves. */
static void find_partner(struct plan *plan, const struct queues *queues, size_t a)
{
	int *first = queue_of(plan, queues, plan->wanted[a], plan->here[a]);
	while (*first != NONE && (*first <= (int)a || !is_waiting(plan, (size_t)*first)))
		*first = queues->next[*first];
	for (int b = *first; b != NONE && plan->comparisons < NM_KMAF_COMPARISONS_MAX;
	     b = queues->next[b]) {
		size_t other = (size_t)b;
		plan->comparisons++;
		if (!is_waiting(plan, other) || !may_replace(plan, a, other) ||
		    !may_replace(plan, other, a))
			continue;
		struct unit *unit = add_unit(plan, true);
		add_move(plan, unit, a, thread_of(plan, other)->stats.main_cpu);
		add_move(plan, unit, other, thread_of(plan, a)->stats.main_cpu);
		return;
	}
}

static void find_partners(struct plan *plan)
{
	size_t threads = plan->snapshot->nr_threads, nr_caches = plan->nr_caches;
	nm_autofree int *first = nm_must(calloc(nr_caches * nr_caches + 1, sizeof(*first)));
	nm_autofree int *next = nm_must(calloc(threads + 1, sizeof(*next)));
	const struct queues queues = {.first = first, .next = next};
	for (size_t i = 0; i < nr_caches * nr_caches; i++)
		first[i] = NONE;
	for (size_t i = threads; i-- > 0;) {
		if (!is_waiting(plan, i))
			continue;
		int *queue = queue_of(plan, &queues, plan->here[i], plan->wanted[i]);
		next[i] = *queue;
		*queue = (int)i;
	}
	for (size_t i = 0; i < threads; i++)
		if (is_waiting(plan, i))
			find_partner(plan, &queues, i);
}

/* A CPU may be free only because other threads share one at the moment. A controller
 * that is known to serve no more would slow down all threads whose pages follow them. */
static bool has_room(const struct plan *plan, size_t thread)
{
	int cache = plan->wanted[thread], node = node_of(plan, cache);
	return plan->demand[cache] + demand_of(plan, thread) <= plan->capacity[cache] &&
	       (node == node_of(plan, plan->here[thread]) ||
		plan->traffic[node] + traffic_of(plan, thread) <= plan->traffic_most);
}

/* Returns a CPU below the cache for the thread: one that is free, or else one that will be; or
 * NONE. */
static int find_cpu(struct plan *plan, size_t thread)
{
	const struct nm_snapshot *snapshot = plan->snapshot;
	hwloc_const_bitmap_t allowed = thread_of(plan, thread)->allowed;
	hwloc_const_bitmap_t cpus = plan->caches[plan->wanted[thread]].cpus;
	int freed = NONE;
	for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) {
		plan->comparisons++;
		if (!snapshot->cpus[cpu].usable || plan->claimed[cpu] ||
		    !hwloc_bitmap_isset(allowed, (unsigned)cpu))
			continue;
		if (nm_snapshot_is_free_for(snapshot, cpu, allowed))
			return cpu;
		if (freed == NONE && plan->freed_by[cpu] != NONE)
			freed = cpu;
	}
	return freed;
}

/* Returns whether no other thread runs on the CPU that the thread leaves, and nothing else keeps it
 * busy. */
static bool frees_cpu(const struct plan *plan, size_t thread)
{
	const struct nm_snap_thread *leaving = thread_of(plan, thread);
	const struct nm_snap_cpu *cpu = &plan->snapshot->cpus[leaving->stats.main_cpu];
	return cpu->nr_main_threads == 1 &&
	       cpu->busy_share - leaving->stats.run_share <= plan->config->rules.free_max;
}

static bool move_alone(struct plan *plan, size_t thread)
{
	int cpu = has_room(plan, thread) ? find_cpu(plan, thread) : NONE;
	if (cpu == NONE)
		return false;
	struct unit *unit = add_unit(plan, false);
	if (!nm_snapshot_is_free_for(plan->snapshot, cpu, thread_of(plan, thread)->allowed))
		unit->needs = plan->freed_by[cpu];
	plan->claimed[cpu] = true;
	if (frees_cpu(plan, thread))
		plan->freed_by[thread_of(plan, thread)->stats.main_cpu] = (int)plan->nr_units - 1;
	add_move(plan, unit, thread, cpu);
	return true;
}

/* Finds the next thread of a cycle: one that leaves a place for the previous thread, and
 * wants to move to a cache that is not in the cycle yet, or to the start of the cycle. */
static size_t find_next(struct plan *plan, const size_t *cycle, size_t length)
{
	int cache = plan->wanted[cycle[length - 1]];
	plan->comparisons += plan->snapshot->nr_threads;
	for (size_t b = 0; b < plan->snapshot->nr_threads; b++) {
		bool passed = false;
		if (!is_waiting(plan, b) || plan->here[b] != cache ||
		    !may_replace(plan, cycle[length - 1], b))
			continue;
		for (size_t i = 1; i < length; i++)
			passed = passed || plan->here[cycle[i]] == plan->wanted[b];
		if (!passed)
			return b;
	}
	return SIZE_MAX;
}

static void find_cycle(struct plan *plan, size_t a, size_t *cycle)
{
	size_t length = 0, next = a;
	do {
		cycle[length++] = next;
		if (plan->wanted[next] == plan->here[a])
			break;
		next = find_next(plan, cycle, length);
	} while (next != SIZE_MAX && length < plan->nr_caches);
	if (next == SIZE_MAX || plan->wanted[cycle[length - 1]] != plan->here[a] ||
	    !may_replace(plan, cycle[length - 1], a))
		return;
	struct unit *unit = add_unit(plan, false);
	for (size_t i = 0; i < length; i++)
		add_move(plan, unit, cycle[i],
			 thread_of(plan, cycle[(i + 1) % length])->stats.main_cpu);
}

static void make_units(struct plan *plan)
{
	size_t threads = plan->snapshot->nr_threads;
	nm_autofree size_t *cycle = nm_must(calloc(plan->nr_caches + 1, sizeof(*cycle)));
	bool more = true;
	find_partners(plan);
	while (more) {
		more = false;
		plan->comparisons += threads;
		for (size_t i = 0; i < threads && plan->comparisons < NM_KMAF_COMPARISONS_MAX; i++)
			if (is_waiting(plan, i) && move_alone(plan, i))
				more = true;
	}
	for (size_t i = 0; i < threads && plan->comparisons < NM_KMAF_COMPARISONS_MAX; i++)
		if (is_waiting(plan, i))
			find_cycle(plan, i, cycle);
}

/* In the paper each thread migrates to the CPU that it is mapped to, whether it is idle or not. */
static void follow_mapping(struct plan *plan, const struct nm_mapping *mapping)
{
	for (size_t i = 0; i < plan->snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = thread_of(plan, i);
		if (!thread->movable || plan->here[i] < 0 || mapping->cpu[i] < 0 ||
		    mapping->cpu[i] == thread->stats.main_cpu)
			continue;
		plan->wanted[i] = plan->cache_of[mapping->cpu[i]];
		add_move(plan, add_unit(plan, false), i, mapping->cpu[i]);
	}
}

/* ---- result ---- */

static double shared_at_place(const struct plan *plan, uint32_t thread)
{
	const struct nm_affinity_graph *graph = plan->graph;
	double shared = 0;
	for (uint32_t at = graph->first[thread]; at < graph->first[thread + 1]; at++)
		if (plan->place[graph->partner[at]] == plan->place[thread])
			shared += (double)graph->weight[at] / NM_SHARING_STEP;
	return shared;
}

/* Returns whether the thread stays where partners move to, and could be moved away by the kernel
 * because the node becomes fuller. It is then assigned to its node. */
static bool must_stay_for_partners(const struct plan *plan, uint32_t thread)
{
	const struct nm_affinity_graph *graph = plan->graph;
	double all = 0, coming = 0;
	if (is_moving(plan, thread) || plan->here[thread] < 0 ||
	    !thread_of(plan, thread)->movable || thread_of(plan, thread)->assigned >= 0)
		return false;
	for (uint32_t at = graph->first[thread]; at < graph->first[thread + 1]; at++) {
		uint32_t partner = graph->partner[at];
		all += graph->weight[at];
		int from = node_of(plan, plan->here[partner]);
		int to = node_of(plan, plan->place[partner]);
		if (is_moving(plan, partner) && from != to &&
		    to == node_of(plan, plan->here[thread]))
			coming += graph->weight[at];
	}
	return coming > 0 && 2 * coming >= all;
}

static void propose(const struct plan *plan, const struct cost *cost, const struct nm_move *moves,
		    size_t count, struct nm_proposal *proposal)
{
	*proposal = (struct nm_proposal){
		.kind = count == 2 ? NM_PROPOSAL_SWAP : NM_PROPOSAL_MIGRATE,
		.draw = NAN,
		.gain = nm_gate_gain(plan->snapshot, moves, count),
		.cost_before = cost->before,
		.cost_after = cost->after,
	};
	for (size_t i = 0; i < count; i++) {
		proposal->moves[i] = moves[i];
		proposal->shared[i] = shared_at_place(plan, moves[i].thread);
	}
}

static void write_proposals(const struct plan *plan, struct nm_proposals *ret)
{
	struct cost cost = nm_kmaf_plan_cost(plan);
	struct nm_proposals proposals = {.comparisons = plan->comparisons};
	proposals.items = nm_must(
		calloc(plan->nr_moves + plan->snapshot->nr_threads + 1, sizeof(*proposals.items)));
	for (size_t i = 0; i < plan->nr_units; i++) {
		const struct unit *unit = &plan->units[i];
		size_t each = unit->swap ? 2 : 1;
		for (size_t m = 0; !unit->dropped && m < unit->count; m += each)
			propose(plan, &cost, &plan->moves[unit->first + m], each,
				&proposals.items[proposals.count++]);
	}
	for (uint32_t i = 0; i < plan->snapshot->nr_threads; i++) {
		struct nm_move stay = {.thread = i,
				       .cpu_from = thread_of(plan, i)->stats.main_cpu,
				       .cpu_to = thread_of(plan, i)->stats.main_cpu,
				       .node_from = node_of(plan, plan->here[i]),
				       .node_to = node_of(plan, plan->here[i]),
				       .record = NAN};
		if (must_stay_for_partners(plan, i))
			propose(plan, &cost, &stay, 1, &proposals.items[proposals.count++]);
	}
	*ret = proposals;
}

void nm_kmaf_moves(const struct nm_snapshot *snapshot, const struct nm_config *config,
		   const struct nm_affinity_graph *graph, const struct nm_mapping *mapping,
		   struct nm_proposals *ret)
{
	nm_auto(free_plan) struct plan plan = {
		.snapshot = snapshot, .config = config, .graph = graph};
	if (!mapping->worthwhile) {
		*ret = (struct nm_proposals){0};
		return;
	}
	init_plan(&plan, mapping);
	if (config->rules.paper) {
		follow_mapping(&plan, mapping);
	} else {
		make_units(&plan);
		nm_kmaf_select(&plan);
	}
	write_proposals(&plan, ret);
}

/* ---- mapping ---- */

/* The threads as input of the placement, and the CPU sets created for those that must stay. */
struct input {
	struct nm_mapping_thread *threads;
	hwloc_bitmap_t *masks;
	size_t count;
};

static void free_input(struct input *input)
{
	for (size_t i = 0; input->masks && i < input->count; i++)
		hwloc_bitmap_free(input->masks[i]);
	free(input->masks);
	free(input->threads);
}

static void add_thread(const struct nm_snapshot *snapshot, struct input *input, size_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	input->threads[i] = (struct nm_mapping_thread){
		.cpu = thread->stats.main_cpu,
		.load = thread->stats.main_cpu < 0 ? 0 : thread->stats.run_share,
		.allowed = thread->allowed,
		.memory = (unsigned)(thread->preferred + 1),
	};
	if (thread->movable && thread->stats.main_node >= 0)
		return;
	/* A thread that must stay is bound to its node, so that partners move to it. */
	int node = nm_topology_node_of_cpu(snapshot->topology, thread->stats.main_cpu);
	hwloc_bitmap_t mask = nm_must(hwloc_bitmap_dup(thread->allowed));
	if (node >= 0)
		nm_must_do(hwloc_bitmap_and(mask, mask, snapshot->topology->nodes[node].cpus));
	input->masks[i] = mask;
	input->threads[i].allowed = mask;
}

int nm_kmaf_propose(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    const struct nm_affinity_graph *graph, uint32_t seed, struct nm_proposals *ret)
{
	nm_auto(free_input) struct input input = {0};
	nm_auto(nm_mapping_freep) struct nm_mapping *mapping = NULL;
	if (graph->first[graph->nr_threads] == 0) {
		*ret = (struct nm_proposals){0};
		return 0;
	}
	input.count = snapshot->nr_threads;
	input.threads = nm_must(calloc(input.count + 1, sizeof(*input.threads)));
	input.masks = nm_must(calloc(input.count + 1, sizeof(hwloc_bitmap_t)));
	for (size_t i = 0; i < input.count; i++)
		add_thread(snapshot, &input, i);
	int r = nm_mapping_compute(snapshot->topology, graph, input.threads,
				   config->rules.mapping_gain, seed, &mapping);
	/* Without the library nothing is moved; nm_kmaf_check() has the reason. */
	if (r == -ENODATA || r == -ELIBACC) {
		*ret = (struct nm_proposals){0};
		return 0;
	}
	if (r < 0)
		return r;
	nm_kmaf_moves(snapshot, config, graph, mapping, ret);
	return 0;
}

/* The state of the policy: its placement periods. */
struct clock {
	uint64_t ended_ns; /* end of the last one */
};

/* Returns whether a placement period ends now, which begins the next one. interval_s is the time
 * between two calls, each in a tick. */
static bool ends_period(struct clock *clock, const struct nm_config *config, double interval_s,
			uint64_t now_ns)
{
	double passed_s = (double)(now_ns - clock->ended_ns) / (double)NM_NSEC_PER_SEC;
	/* Ticks are slightly early or late; the one nearest to the end of the period counts. */
	if (passed_s < config->rules.mapping_s - interval_s / 2)
		return false;
	clock->ended_ns = now_ns;
	return true;
}

static bool is_process_moved(const struct nm_snapshot *snapshot,
			     const struct nm_proposals *proposals, uint32_t pid)
{
	for (size_t i = 0; i < proposals->count; i++)
		if (snapshot->threads[proposals->items[i].moves[0].thread].pid == pid)
			return true;
	return false;
}

static void *open_clock(const struct nm_topology *topology, double page_bytes)
{
	(void)topology;
	(void)page_bytes;
	return nm_must(calloc(1, sizeof(struct clock)));
}

/* Proposes moves at the end of a placement period, releases pages that were held back, and ages the
 * matrix of communication. The seed must be the same each time: otherwise threads would move back
 * and forth between equivalent placements. */
static int propose_kmaf(void *state, const struct nm_policy_input *input, struct nm_proposals *ret)
{
	const struct nm_snapshot *snapshot = input->snapshot;
	const struct nm_config *config = input->config;
	struct nm_memory *memory = input->memory;
	if (!memory || !ends_period(state, config, input->interval_s, snapshot->time_ns))
		return 0;
	nm_auto(nm_affinity_graph_freep) struct nm_affinity_graph *graph = NULL;
	nm_autofree uint32_t *tids = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*tids)));
	/* The paper pins threads. Here a thread that rests could leave at each wake-up, after its
	 * partners and their pages have come to it. */
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		if (config->rules.paper || !snapshot->threads[i].rests)
			tids[i] = snapshot->threads[i].tid;
	nm_affinity_graph(nm_memory_affinity(memory), tids, snapshot->nr_threads, PARTNERS_MAX,
			  &graph);
	int r = nm_kmaf_propose(snapshot, config, graph, (uint32_t)input->seed, ret);
	if (r < 0)
		return r;
	/* Release the pages of processes whose threads are being placed. Pages of other processes
	 * keep waiting for a limited time, until it is known that their threads need not move. */
	const struct nm_memory_process *processes;
	size_t count = nm_memory_processes(memory, &processes);
	for (size_t i = 0; i < count; i++)
		nm_memory_mapping_over(memory, processes[i].pid,
				       is_process_moved(snapshot, ret, processes[i].pid));
	nm_affinity_age(nm_memory_affinity(memory));
	return 0;
}

const struct nm_policy_ops nm_kmaf_policy = {
	.open = open_clock,
	.close = free,
	.propose = propose_kmaf,
	.judged_by = {{.by = NM_BY_LATENCY}, {.by = NM_BY_COMMUNICATION}},
};
