/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "numa-migrd/balance.h"

void nm_balance_result_clear(struct nm_balance_result *result)
{
	free(result->moves);
	*result = (struct nm_balance_result){0};
}

bool nm_balance_update(struct nm_balance_state *state, const struct nm_balance_rules *rules,
		       double gap)
{
	bool begins = gap > rules->begin;
	if (state->active)
		state->active = begins || gap > rules->end;
	else if (begins && state->above + 1 >= rules->persist)
		state->active = true;
	state->above = state->active || !begins ? 0 : state->above + 1;
	return state->active;
}

/* The threads that wait on each CPU, in the order in which a round examines them. */
struct waiting {
	const struct nm_balance_thread *threads; /* those of the input */
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

static bool may_be_moved(const struct nm_balance_thread *thread)
{
	return thread->cpu >= 0 && thread->waiting && thread->movable && !isnan(thread->load);
}

static void waiting_init(struct waiting *waiting, const struct nm_balance_input *input)
{
	*waiting = (struct waiting){
		.threads = input->threads,
		.items = nm_must(calloc(input->nr_threads + 1, sizeof(*waiting->items))),
		.queues = nm_must(calloc(input->topology->nr_cpus + 1U, sizeof(*waiting->queues))),
		.nr_cpus = input->topology->nr_cpus,
	};
	for (size_t i = 0; i < input->nr_threads; i++)
		if (may_be_moved(&input->threads[i]))
			waiting->queues[input->threads[i].cpu].count++;
	for (unsigned cpu = 0; cpu < waiting->nr_cpus; cpu++) {
		struct queue *queue = &waiting->queues[cpu];
		queue->first = (uint32_t)waiting->total;
		waiting->total += queue->count;
		queue->count = 0;
	}
	for (size_t i = 0; i < input->nr_threads; i++) {
		if (!may_be_moved(&input->threads[i]))
			continue;
		struct queue *queue = &waiting->queues[input->threads[i].cpu];
		waiting->items[queue->first + queue->count++] =
			(struct waiter){.start_ticks = input->threads[i].start_ticks,
					.tid = input->threads[i].tid,
					.thread = (uint32_t)i};
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

static void loads_init(struct loads *loads, const struct nm_balance_input *input)
{
	const struct nm_topology *topology = input->topology;
	*loads = (struct loads){
		.topology = topology,
		.cpu = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->cpu))),
		.node = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->node))),
		.cpus = nm_must(calloc(topology->nr_nodes + 1U, sizeof(*loads->cpus))),
		.order = nm_must(calloc(topology->nr_cpus + 1U, sizeof(*loads->order))),
	};
	for (unsigned cpu = 0; input->other_load && cpu < loads->topology->nr_cpus; cpu++)
		loads->cpu[cpu] = isnan(input->other_load[cpu]) ? 1 : input->other_load[cpu];
	for (size_t i = 0; i < input->nr_threads; i++) {
		const struct nm_balance_thread *thread = &input->threads[i];
		if (thread->cpu >= 0) /* unknown counts as a whole CPU */
			loads->cpu[thread->cpu] += isnan(thread->load) ? 1 : thread->load;
	}
	for (unsigned cpu = 0; cpu < loads->topology->nr_cpus; cpu++) {
		int node = node_of_cpu(loads, cpu);
		if (node < 0 || !hwloc_bitmap_isset(loads->topology->usable, cpu))
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
	const struct nm_balance_input *input;
	const struct nm_balance_rules *rules;
	struct loads loads;
	struct waiting waiting;
	struct nm_selection_group *groups; /* those of the input, with separate counts: */
	uint32_t *members;
	enum role *roles; /* per node */
	bool *closed;	  /* per CPU: no thread can move to it */
	/*
	 * No thread can leave this CPU for a CPU of that node and type, regardless of affinities.
	 */
	bool *exhausted;
	struct nm_selection_candidate *candidates; /* scratch space, also the next field */
	uint32_t *positions;
	bool *judged;
	struct nm_balance_result result;
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
	free(round->roles);
	free(round->closed);
	free(round->exhausted);
	free(round->candidates);
	free(round->positions);
	free(round->judged);
}

static void make_room(struct round *round)
{
	size_t nr_nodes = round->input->topology->nr_nodes;
	size_t nr_cpus = round->input->topology->nr_cpus;
	size_t nr_groups = round->input->nr_groups, waiting = round->waiting.total;
	size_t most = waiting < round->rules->max_moves ? waiting : round->rules->max_moves;
	round->groups = nm_must(calloc(nr_groups + 1, sizeof(*round->groups)));
	round->members = nm_must(calloc(nr_groups * nr_nodes + 1, sizeof(*round->members)));
	round->roles = nm_must(calloc(nr_nodes + 1, sizeof(*round->roles)));
	round->closed = nm_must(calloc(nr_cpus + 1, sizeof(*round->closed)));
	round->exhausted =
		nm_must(calloc(nr_cpus * nr_nodes * TYPES + 1, sizeof(*round->exhausted)));
	round->candidates = nm_must(calloc(waiting + 1, sizeof(*round->candidates)));
	round->positions = nm_must(calloc(waiting + 1, sizeof(*round->positions)));
	round->judged = nm_must(calloc(nr_groups + 1, sizeof(*round->judged)));
	round->result.moves = nm_must(calloc(most + 1, sizeof(*round->result.moves)));
	const struct nm_balance_input *input = round->input;
	for (size_t i = 0; i < input->nr_groups; i++) {
		uint32_t *members = round->members + i * nr_nodes;
		memcpy(members, input->groups[i].members, nr_nodes * sizeof(*members));
		round->groups[i] = input->groups[i];
		round->groups[i].members = members;
	}
}

static int node_of(const struct round *round, uint32_t cpu)
{
	return round->input->topology->cpus[cpu].node;
}

/* The type of threads that the CPU accepts; an idle CPU accepts all. */
static enum nm_dtas_type type_now(const struct round *round, uint32_t cpu)
{
	bool idle = round->loads.cpu[cpu] < round->rules->idle_max;
	if (!round->input->cpu_types || idle)
		return NM_DTAS_EITHER;
	return round->input->cpu_types[cpu];
}

static bool *exhausted_at(const struct round *round, uint32_t from, uint32_t to,
			  enum nm_dtas_type type)
{
	size_t row = from * (size_t)round->input->topology->nr_nodes + (size_t)node_of(round, to);
	return &round->exhausted[row * TYPES + (size_t)type];
}

/* Returns the load below which a thread makes neither its new CPU nor its new node as busy as the
 * old one; otherwise it would move back. */
static double max_load_to_move(const struct round *round, uint32_t from, uint32_t to)
{
	const struct loads *loads = &round->loads;
	int node_from = node_of(round, from), node_to = node_of(round, to);
	double apart = loads_of_node(loads, node_from) - loads_of_node(loads, node_to);
	double by_node = (apart - round->rules->end) * loads->cpus[node_to];
	double by_cpu = loads->cpu[from] - loads->cpu[to] - round->rules->relief;
	return by_cpu < by_node ? by_cpu : by_node;
}

static bool may_yield_move(const struct round *round, uint32_t from, uint32_t to)
{
	int node_from = node_of(round, from), node_to = node_of(round, to);
	return round->waiting.queues[from].count > 0 && node_from != node_to &&
	       round->roles[node_from] != ROLE_RECEIVES && round->roles[node_to] != ROLE_SENDS &&
	       loads_of_node(&round->loads, node_from) >= round->rules->overload &&
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
		const struct nm_balance_thread *thread =
			&round->input->threads[round->waiting.items[queue->first + i].thread];
		if (!(thread->load < most) || !nm_dtas_fits(type, thread->type, false))
			continue;
		if (ret_masked && !thread->everywhere && !hwloc_bitmap_isset(thread->allowed, to)) {
			*ret_masked = true;
			continue;
		}
		round->positions[count] = i;
		round->candidates[count++] = (struct nm_selection_candidate){
			.group = thread->group, .leader = thread->leader};
	}
	return count;
}

static struct nm_selection_result choose(const struct round *round, uint32_t from, uint32_t to,
					 size_t count)
{
	const struct nm_selection_input selection_input = {
		.rule = round->rules->selection,
		.nr_nodes = round->input->topology->nr_nodes,
		.from = node_of(round, from),
		.to = node_of(round, to),
		.min_gain = round->rules->min_gain,
		.groups = round->groups,
		.candidates = round->candidates,
		.nr_candidates = count,
		.judged = round->judged,
	};
	return nm_selection_choose(&selection_input);
}

static struct nm_balance_move move_of(const struct round *round, uint32_t thread, uint32_t to,
				      const struct nm_selection_result *selected)
{
	const struct nm_balance_thread *moved = &round->input->threads[thread];
	struct nm_balance_move move = {
		.thread = thread,
		.cpu_from = moved->cpu,
		.cpu_to = (int)to,
		.node_from = node_of(round, (uint32_t)moved->cpu),
		.node_to = node_of(round, to),
		.load = moved->load,
		.load_from = round->loads.cpu[moved->cpu],
		.load_to = round->loads.cpu[to],
		.reason = selected->reason,
		.metric = selected->metric,
		.gain = selected->gain,
	};
	move.cost_change = nm_selection_cost_change(
		round->groups[moved->group].resident, round->input->factors,
		round->input->topology->nr_nodes, move.node_from, move.node_to);
	return move;
}

static bool try_pair(struct round *round, uint32_t from, uint32_t to)
{
	bool masked = false;
	waiting_prepare(&round->waiting, from);
	if (!waiting_reaches(&round->waiting, from, to))
		return false;
	size_t count = list_candidates(round, from, to, &masked);
	struct nm_selection_result selected = choose(round, from, to, count);
	round->result.stopped_by_gain += selected.stopped_by_gain;
	round->result.unknown += selected.unknown;
	round->result.stopped_by_leader += selected.stopped_by_leader;
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
	struct nm_balance_move move =
		move_of(round, round->waiting.items[first + position].thread, to, &selected);
	uint32_t *members = round->members + round->input->threads[move.thread].group *
						     round->input->topology->nr_nodes;
	if (members[move.node_from] > 0)
		members[move.node_from]--;
	members[move.node_to]++;
	round->roles[move.node_from] = ROLE_SENDS;
	round->roles[move.node_to] = ROLE_RECEIVES;
	waiting_remove(&round->waiting, from, position);
	loads_move(&round->loads, move.cpu_from, move.cpu_to, move.load);
	round->result.moves[round->result.count++] = move;
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

void nm_balance_round(const struct nm_balance_input *input, const struct nm_balance_rules *rules,
		      struct nm_balance_state *state, struct nm_balance_result *ret)
{
	nm_auto(free_round) struct round round = {.input = input, .rules = rules};
	waiting_init(&round.waiting, input);
	loads_init(&round.loads, input);
	double least = INFINITY, most = -INFINITY;
	for (unsigned node = 0; node < input->topology->nr_nodes; node++) {
		if (round.loads.cpus[node] == 0)
			continue;
		least = fmin(least, loads_of_node(&round.loads, (int)node));
		most = fmax(most, loads_of_node(&round.loads, (int)node));
	}
	round.result.gap = most > least ? most - least : 0;
	round.result.waiting = round.waiting.total;
	round.result.active = nm_balance_update(state, rules, round.result.gap);
	if (round.result.active) {
		make_room(&round);
		while (round.result.count < rules->max_moves && move_one(&round))
			;
	}
	*ret = round.result;
}
