/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "policy/balance.h"

/* Minimum difference between the load of the old CPU, and that of the new CPU with the thread; the
 * paper has none. */
#define RELIEF 0.1

void nm_balance_update(struct nm_balance_state *state, const struct nm_config *config, double gap)
{
	bool begins = gap > config->rules.balance_begin;
	if (state->active)
		state->active = begins || gap > config->rules.balance_end;
	else if (begins && state->above + 1 >= config->rules.balance_persist)
		state->active = true;
	state->above = state->active || !begins ? 0 : state->above + 1;
	state->gap = gap;
}

/* The threads that wait on each CPU, in the order in which a round examines them. */
struct waiting {
	const struct nm_snap_thread *threads; /* those of the snapshot */
	struct waiter {
		uint64_t start_ticks;
		uint32_t tid;
		uint32_t thread; /* index */
	} * items;		 /* grouped by CPU */
	struct queue {
		uint32_t first, count; /* in items */
		bool ready;	       /* sorted, and `reach` is known */
		bool everywhere;       /* one of the threads may run on any usable CPU */
		hwloc_bitmap_t reach;  /* otherwise: the CPUs that at least one of them may use */
	} * queues;		       /* per CPU */
	unsigned nr_cpus;
	size_t total;
};

static bool may_be_moved(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 uint32_t i)
{
	const struct nm_snap_thread *thread = &snapshot->threads[i];
	const struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, i);
	return thread->stats.main_node >= 0 && thread->movable &&
	       known->read_interval == snapshot->interval && known->waiting;
}

static void waiting_init(struct waiting *waiting, const struct nm_balancer *balancer,
			 const struct nm_snapshot *snapshot)
{
	*waiting = (struct waiting){
		.threads = snapshot->threads,
		.items = nm_must(calloc(snapshot->nr_threads + 1, sizeof(*waiting->items))),
		.queues =
			nm_must(calloc(snapshot->topology->nr_cpus + 1U, sizeof(*waiting->queues))),
		.nr_cpus = snapshot->topology->nr_cpus,
	};
	for (uint32_t i = 0; i < snapshot->nr_threads; i++)
		if (may_be_moved(balancer, snapshot, i))
			waiting->queues[snapshot->threads[i].stats.main_cpu].count++;
	for (unsigned cpu = 0; cpu < waiting->nr_cpus; cpu++) {
		struct queue *queue = &waiting->queues[cpu];
		queue->first = (uint32_t)waiting->total;
		waiting->total += queue->count;
		queue->count = 0;
	}
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (!may_be_moved(balancer, snapshot, i))
			continue;
		struct queue *queue = &waiting->queues[thread->stats.main_cpu];
		waiting->items[queue->first + queue->count++] = (struct waiter){
			.start_ticks = thread->start_ticks, .tid = thread->tid, .thread = i};
	}
}

static int by_start(const void *left, const void *right)
{
	const struct waiter *a = left, *b = right;
	return NM_COMPARE(a->start_ticks, b->start_ticks) ?: NM_COMPARE(a->tid, b->tid);
}

static void waiting_prepare(struct waiting *waiting, uint32_t cpu)
{
	struct queue *queue = &waiting->queues[cpu];
	if (queue->ready)
		return;
	queue->ready = true;
	qsort(waiting->items + queue->first, queue->count, sizeof(*waiting->items), by_start);
	for (uint32_t i = 0; i < queue->count && !queue->everywhere; i++)
		queue->everywhere =
			waiting->threads[waiting->items[queue->first + i].thread].everywhere;
	if (queue->everywhere)
		return;
	queue->reach = nm_must(hwloc_bitmap_alloc());
	for (uint32_t i = 0; i < queue->count; i++) {
		uint32_t thread = waiting->items[queue->first + i].thread;
		nm_must_do(hwloc_bitmap_or(queue->reach, queue->reach,
					   waiting->threads[thread].allowed));
	}
}

static bool waiting_reaches(const struct waiting *waiting, uint32_t cpu, uint32_t to)
{
	const struct queue *queue = &waiting->queues[cpu];
	return queue->everywhere || hwloc_bitmap_isset(queue->reach, to);
}

static void waiting_remove(struct waiting *waiting, uint32_t cpu, uint32_t position)
{
	struct queue *queue = &waiting->queues[cpu];
	struct waiter *item = waiting->items + queue->first + position;
	queue->count--;
	memmove(item, item + 1, (queue->count - position) * sizeof(*item));
}

/* The load of each CPU and node, including the moves decided so far. */
struct loads {
	const struct nm_topology *topology;
	double *cpu;	/* per CPU number */
	double *node;	/* per node: sum over its usable CPUs */
	unsigned *cpus; /* per node: number of usable CPUs */
	/* Usable CPUs from the busiest to the idlest. Ties: the CPU on the fuller node, then the
	 * higher number, counts as busier. */
	uint32_t *order;
	size_t count;
};

static double loads_of_node(const struct loads *loads, int node)
{
	return loads->node[node] / loads->cpus[node];
}

static int node_of_cpu(const struct loads *loads, uint32_t cpu)
{
	return loads->topology->cpus[cpu].node;
}

static bool is_busier(const struct loads *loads, uint32_t a, uint32_t b)
{
	if (loads->cpu[a] != loads->cpu[b])
		return loads->cpu[a] > loads->cpu[b];
	if (node_of_cpu(loads, a) != node_of_cpu(loads, b)) {
		double node_a = loads_of_node(loads, node_of_cpu(loads, a));
		double node_b = loads_of_node(loads, node_of_cpu(loads, b));
		if (node_a != node_b)
			return node_a > node_b;
	}
	return a > b;
}

static int compare_load(const void *a, const void *b, void *loads)
{
	return is_busier(loads, *(const uint32_t *)a, *(const uint32_t *)b) ? -1 : 1;
}

static void loads_move(struct loads *loads, int from, int to, double load)
{
	loads->cpu[from] -= load;
	loads->node[node_of_cpu(loads, (uint32_t)from)] -= load;
	loads->cpu[to] += load;
	loads->node[node_of_cpu(loads, (uint32_t)to)] += load;
	/* Few CPUs change their position after a move, so insertion suffices. */
	for (size_t i = 1; i < loads->count; i++) {
		uint32_t cpu = loads->order[i];
		size_t at = i;
		for (; at > 0 && is_busier(loads, cpu, loads->order[at - 1]); at--)
			loads->order[at] = loads->order[at - 1];
		loads->order[at] = cpu;
	}
}

static void loads_init(struct loads *loads, const struct nm_balancer *balancer,
		       const struct nm_snapshot *snapshot)
{
	const struct nm_topology *topology = snapshot->topology;
	*loads = (struct loads){
		.topology = topology,
		.cpu = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->cpu))),
		.node = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->node))),
		.cpus = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->cpus))),
		.order = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->order))),
	};
	/* Unmanaged tasks: the time that managed threads did not run. Unknown counts as 1. */
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		loads->cpu[cpu] = snapshot->cpus[cpu].busy_share;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		double ran = isnan(thread->stats.run_share) ? 1 : thread->stats.run_share;
		if (thread->stats.main_cpu >= 0 && !isnan(loads->cpu[thread->stats.main_cpu]))
			loads->cpu[thread->stats.main_cpu] =
				fmax(0, loads->cpu[thread->stats.main_cpu] - ran);
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		loads->cpu[cpu] = isnan(loads->cpu[cpu]) ? 1 : loads->cpu[cpu];
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		double load = nm_balancer_load(balancer, snapshot, i);
		if (snapshot->threads[i].stats.main_cpu >= 0)
			loads->cpu[snapshot->threads[i].stats.main_cpu] += isnan(load) ? 1 : load;
	}
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++) {
		int node = node_of_cpu(loads, cpu);
		if (node < 0 || !hwloc_bitmap_isset(topology->usable, cpu))
			continue;
		loads->node[node] += loads->cpu[cpu];
		loads->cpus[node]++;
		loads->order[loads->count++] = cpu;
	}
	qsort_r(loads->order, loads->count, sizeof(*loads->order), compare_load, loads);
}

/* Within a round a node either sends or receives threads. Therefore a move that is impossible once
 * stays impossible: senders only get emptier and receivers fuller. */
enum role { ROLE_NONE, ROLE_SENDS, ROLE_RECEIVES };

enum { TYPES = NM_DTAS_MEMORY + 1 };

struct round {
	struct nm_balancer *balancer;
	const struct nm_snapshot *snapshot;
	const struct nm_config *config;
	struct loads loads;
	struct waiting waiting;
	struct nm_selection_group *groups; /* per process */
	uint32_t *members;		   /* of the groups, including the moves proposed so far */
	double *factors;		   /* nm_selection_factors() */
	enum role *roles; /* per node */
	bool *closed;	  /* per CPU: no thread can move to it */
	/*
	 * No thread can leave this CPU for a CPU of that node and type, regardless of affinities.
	 */
	bool *exhausted;
	struct nm_selection_candidate *candidates; /* scratch space, also the next field */
	uint32_t *positions;
	bool *judged;
};

static void free_round(struct round *round)
{
	struct waiting *waiting = &round->waiting;
	for (unsigned cpu = 0; waiting->queues && cpu < waiting->nr_cpus; cpu++)
		hwloc_bitmap_free(waiting->queues[cpu].reach);
	free(waiting->queues);
	free(waiting->items);
	free(round->loads.cpu);
	free(round->loads.node);
	free(round->loads.cpus);
	free(round->loads.order);
	free(round->groups);
	free(round->members);
	free(round->factors);
	free(round->roles);
	free(round->closed);
	free(round->exhausted);
	free(round->candidates);
	free(round->positions);
	free(round->judged);
}

/* A program of one thread is led by its pages: as a leader it could never leave. The paper is about
 * programs of many threads, in which the leader touches the memory first, and stays. */
static bool leads(const struct round *round, const struct nm_snap_thread *thread)
{
	unsigned threads = round->snapshot->processes[thread->process].threads;
	return thread->tid == thread->pid && (threads > 1 || round->config->rules.paper);
}

/* A leader that neither ran nor waited for long counts as idle; in the paper it is on its CPU. */
static bool is_awake(const struct round *round, uint32_t thread)
{
	return round->config->rules.paper || round->snapshot->threads[thread].active ||
	       nm_balancer_load(round->balancer, round->snapshot, thread) >=
		       round->config->rules.min_run;
}

static void make_groups(struct round *round)
{
	const struct nm_snapshot *snapshot = round->snapshot;
	size_t nr_nodes = snapshot->topology->nr_nodes, nr_groups = snapshot->nr_processes;
	round->groups = nm_must(calloc(nr_groups + 1, sizeof(*round->groups)));
	round->members = nm_must(calloc(nr_groups * nr_nodes + 1, sizeof(*round->members)));
	for (size_t i = 0; i < nr_groups; i++) {
		const struct nm_residence *residence =
			nm_balancer_residence(round->balancer, snapshot->processes[i].pid);
		round->groups[i] =
			(struct nm_selection_group){.resident = residence ? residence->pages : NULL,
						    .members = round->members + i * nr_nodes,
						    .leader_node = -1};
	}
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		int node = nm_topology_node_of_cpu(snapshot->topology, thread->stats.main_cpu);
		if (node < 0)
			continue;
		round->members[thread->process * nr_nodes + (size_t)node]++;
		if (leads(round, thread) && is_awake(round, i))
			round->groups[thread->process].leader_node = node;
	}
}

static void make_room(struct round *round)
{
	size_t nr_nodes = round->snapshot->topology->nr_nodes;
	size_t nr_cpus = round->snapshot->topology->nr_cpus;
	size_t waiting = round->waiting.total;
	size_t most = waiting < round->config->rules.moves_per_interval
			      ? waiting
			      : round->config->rules.moves_per_interval;
	round->factors = nm_must(calloc(nr_nodes * nr_nodes + 1, sizeof(*round->factors)));
	nm_selection_factors(round->snapshot->topology, round->factors);
	round->roles = nm_must(calloc(nr_nodes + 1, sizeof(*round->roles)));
	round->closed = nm_must(calloc(nr_cpus + 1, sizeof(*round->closed)));
	round->exhausted =
		nm_must(calloc(nr_cpus * nr_nodes * TYPES + 1, sizeof(*round->exhausted)));
	round->candidates = nm_must(calloc(waiting + 1, sizeof(*round->candidates)));
	round->positions = nm_must(calloc(waiting + 1, sizeof(*round->positions)));
	round->judged = nm_must(calloc(round->snapshot->nr_processes + 1, sizeof(*round->judged)));
	round->balancer->proposals.items =
		nm_must(calloc(most + 1, sizeof(*round->balancer->proposals.items)));
}

static int node_of(const struct round *round, uint32_t cpu)
{
	return round->snapshot->topology->cpus[cpu].node;
}

/* The type of threads that the CPU accepts; an idle CPU accepts all. */
static enum nm_dtas_type type_now(const struct round *round, uint32_t cpu)
{
	bool idle = round->loads.cpu[cpu] < round->config->rules.balance_idle_max;
	return !round->balancer->split || idle ? NM_DTAS_EITHER : round->balancer->cpu_types[cpu];
}

static bool *exhausted_at(const struct round *round, uint32_t from, uint32_t to,
			  enum nm_dtas_type type)
{
	size_t row =
		from * (size_t)round->snapshot->topology->nr_nodes + (size_t)node_of(round, to);
	return &round->exhausted[row * TYPES + (size_t)type];
}

/* Returns the load below which a thread makes neither its new CPU nor its new node as busy as the
 * old one; otherwise it would move back. */
static double max_load_to_move(const struct round *round, uint32_t from, uint32_t to)
{
	const struct loads *loads = &round->loads;
	int node_from = node_of(round, from), node_to = node_of(round, to);
	double apart = loads_of_node(loads, node_from) - loads_of_node(loads, node_to);
	double by_node = (apart - round->config->rules.balance_end) * loads->cpus[node_to];
	double relief = round->config->rules.paper ? 0 : RELIEF;
	double by_cpu = loads->cpu[from] - loads->cpu[to] - relief;
	return by_cpu < by_node ? by_cpu : by_node;
}

static bool may_yield_move(const struct round *round, uint32_t from, uint32_t to)
{
	int node_from = node_of(round, from), node_to = node_of(round, to);
	return round->waiting.queues[from].count > 0 && node_from != node_to &&
	       round->roles[node_from] != ROLE_RECEIVES && round->roles[node_to] != ROLE_SENDS &&
	       loads_of_node(&round->loads, node_from) >= round->config->rules.balance_overload &&
	       !*exhausted_at(round, from, to, NM_DTAS_EITHER) &&
	       !*exhausted_at(round, from, to, type_now(round, to));
}

/* Lists the threads of the CPU that could move. *ret_masked is set if a thread is excluded only by
 * its affinity. NULL: affinities are ignored. */
static size_t list_candidates(struct round *round, uint32_t from, uint32_t to, bool *ret_masked)
{
	const struct queue *queue = &round->waiting.queues[from];
	enum nm_dtas_type type = type_now(round, to);
	double most = max_load_to_move(round, from, to);
	size_t count = 0;
	for (uint32_t i = 0; i < queue->count; i++) {
		uint32_t index = round->waiting.items[queue->first + i].thread;
		const struct nm_snap_thread *thread = &round->snapshot->threads[index];
		const struct nm_balancer_thread_state *known =
			nm_balancer_thread(round->balancer, index);
		if (!(known->load < most) || !nm_dtas_fits(type, known->behaviour.type, false))
			continue;
		if (ret_masked && !thread->everywhere && !hwloc_bitmap_isset(thread->allowed, to)) {
			*ret_masked = true;
			continue;
		}
		round->positions[count] = i;
		round->candidates[count++] = (struct nm_selection_candidate){
			.group = thread->process, .leader = leads(round, thread)};
	}
	return count;
}

static struct nm_selection_result choose(const struct round *round, uint32_t from, uint32_t to,
					 size_t count)
{
	double min_gain = round->config->rules.balance_min_gain;
	const struct nm_selection_input selection_input = {
		.rule = round->config->threads.selection,
		.nr_nodes = round->snapshot->topology->nr_nodes,
		.from = node_of(round, from),
		.to = node_of(round, to),
		.min_gain = min_gain <= NM_CONFIG_ANY_GAIN ? -INFINITY : min_gain,
		.pages_lead = !round->config->rules.paper,
		.groups = round->groups,
		.candidates = round->candidates,
		.nr_candidates = count,
		.judged = round->judged,
	};
	return nm_selection_choose(&selection_input);
}

static struct nm_proposal proposal_of(const struct round *round, uint32_t thread, uint32_t to,
				      const struct nm_selection_result *selected)
{
	const struct nm_snapshot *snapshot = round->snapshot;
	const struct nm_snap_thread *moved = &snapshot->threads[thread];
	const struct nm_balancer_thread_state *known = nm_balancer_thread(round->balancer, thread);
	const struct nm_residence *residence = nm_balancer_residence(round->balancer, moved->pid);
	int node_from = node_of(round, (uint32_t)moved->stats.main_cpu),
	    node_to = node_of(round, to);
	struct nm_proposal proposal = {
		.kind = NM_PROPOSAL_MIGRATE,
		.moves[0] = {.thread = thread,
			     .cpu_from = moved->stats.main_cpu,
			     .cpu_to = (int)to,
			     .node_from = node_from,
			     .node_to = node_to,
			     .record = NAN,
			     .within = nm_balancer_within(round->balancer, known->behaviour.type,
							  node_to, (int)to)},
		.draw = NAN,
		.cost_before = NAN,
		.cost_after = NAN,
		.shared = {NAN, NAN},
		.balance = {.given = true,
			    .selection = round->config->threads.selection,
			    .by = selected->reason,
			    .metric = selected->metric,
			    .cost_change = nm_selection_cost_change(
				    round->groups[moved->process].resident, round->factors,
				    snapshot->topology->nr_nodes, node_from, node_to),
			    .load = known->load,
			    .load_from = round->loads.cpu[moved->stats.main_cpu],
			    .load_to = round->loads.cpu[to],
			    .gap = round->balancer->state.gap,
			    .gain = selected->gain,
			    .resident = residence ? residence->resident : NAN,
			    .age_s = residence ? (double)residence->age_ns / (double)NM_NSEC_PER_SEC
					       : NAN},
	};
	proposal.gain = nm_gate_gain(snapshot, proposal.moves, 1);
	return proposal;
}

static bool try_pair(struct round *round, uint32_t from, uint32_t to)
{
	bool masked = false;
	waiting_prepare(&round->waiting, from);
	if (!waiting_reaches(&round->waiting, from, to))
		return false;
	size_t count = list_candidates(round, from, to, &masked);
	struct nm_selection_result selected = choose(round, from, to, count);
	round->balancer->tally.stopped_by_gain += selected.stopped_by_gain;
	round->balancer->tally.unknown += selected.unknown;
	round->balancer->tally.stopped_by_leader += selected.stopped_by_leader;
	if (selected.reason == NM_SELECTED_NONE) {
		/* Unless only affinities prevent a move, the other CPUs of the node need not be
		 * tried. */
		if (masked) {
			count = list_candidates(round, from, to, NULL);
			masked = choose(round, from, to, count).reason != NM_SELECTED_NONE;
		}
		*exhausted_at(round, from, to, type_now(round, to)) = !masked;
		return false;
	}
	uint32_t position = round->positions[selected.chosen];
	uint32_t first = round->waiting.queues[from].first;
	uint32_t thread = round->waiting.items[first + position].thread;
	const struct nm_proposal proposal = proposal_of(round, thread, to, &selected);
	const struct nm_move *move = &proposal.moves[0];
	uint32_t *members = round->members + round->snapshot->threads[thread].process *
						     (size_t)round->snapshot->topology->nr_nodes;
	members[move->node_from]--;
	members[move->node_to]++;
	round->roles[move->node_from] = ROLE_SENDS;
	round->roles[move->node_to] = ROLE_RECEIVES;
	waiting_remove(&round->waiting, from, position);
	loads_move(&round->loads, move->cpu_from, move->cpu_to, proposal.balance.load);
	struct nm_proposals *proposals = &round->balancer->proposals;
	proposals->items[proposals->count++] = proposal;
	return true;
}

/* Returns whether a thread was moved. */
static bool move_one(struct round *round)
{
	const struct loads *loads = &round->loads;
	for (size_t i = loads->count; i > 0; i--) {
		uint32_t to = loads->order[i - 1];
		if (round->closed[to])
			continue;
		for (size_t k = 0; k < loads->count; k++) {
			uint32_t from = loads->order[k];
			if (!(loads->cpu[to] < loads->cpu[from]))
				break;
			if (may_yield_move(round, from, to) && try_pair(round, from, to))
				return true;
		}
		round->closed[to] = true;
	}
	return false;
}

void nm_balancer_round(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		       const struct nm_config *config)
{
	nm_auto(free_round) struct round round = {
		.balancer = balancer, .snapshot = snapshot, .config = config};
	waiting_init(&round.waiting, balancer, snapshot);
	loads_init(&round.loads, balancer, snapshot);
	double least = INFINITY, most = -INFINITY;
	for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++) {
		if (round.loads.cpus[node] == 0)
			continue;
		least = fmin(least, loads_of_node(&round.loads, (int)node));
		most = fmax(most, loads_of_node(&round.loads, (int)node));
	}
	nm_balance_update(&balancer->state, config, most > least ? most - least : 0);
	balancer->state.waiting = round.waiting.total;
	nm_proposals_clear(&balancer->proposals);
	if (!balancer->state.active)
		return;
	make_room(&round);
	make_groups(&round);
	while (balancer->proposals.count < config->rules.moves_per_interval && move_one(&round))
		;
}
