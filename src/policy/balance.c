/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "loads.h"
#include "waiting.h"

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

/* Within a round a node either sends or receives threads. Therefore a move that is impossible once
 * stays impossible: senders only get emptier and receivers fuller. */
enum role { ROLE_NONE, ROLE_SENDS, ROLE_RECEIVES };

enum { TYPES = NM_DTAS_MEMORY + 1 };

struct round {
	const struct nm_balance_input *input;
	const struct nm_balance_rules *rules;
	struct nm_loads loads;
	struct nm_waiting waiting;
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
	nm_loads_clear(&round->loads);
	nm_waiting_clear(&round->waiting);
	free(round->groups);
	free(round->members);
	free(round->roles);
	free(round->closed);
	free(round->exhausted);
	free(round->candidates);
	free(round->positions);
	free(round->judged);
	nm_balance_result_clear(&round->result);
}

static void copy_groups(struct round *round)
{
	const struct nm_balance_input *input = round->input;
	size_t nr_nodes = input->topology->nr_nodes;
	for (size_t i = 0; i < input->nr_groups; i++) {
		uint32_t *members = round->members + i * nr_nodes;
		memcpy(members, input->groups[i].members, nr_nodes * sizeof(*members));
		round->groups[i] = input->groups[i];
		round->groups[i].members = members;
	}
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
	copy_groups(round);
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

static bool may_move_between(const struct round *round, int from, int to)
{
	return from != to && round->roles[from] != ROLE_RECEIVES &&
	       round->roles[to] != ROLE_SENDS &&
	       nm_loads_of_node(&round->loads, from) >= round->rules->overload;
}

/* Returns the load below which a thread makes neither its new CPU nor its new node as busy as the
 * old one; otherwise it would move back. */
static double max_load_to_move(const struct round *round, uint32_t from, uint32_t to)
{
	const struct nm_loads *loads = &round->loads;
	int node_from = node_of(round, from), node_to = node_of(round, to);
	double apart = nm_loads_of_node(loads, node_from) - nm_loads_of_node(loads, node_to);
	double by_node = (apart - round->rules->end) * loads->cpus[node_to];
	double by_cpu = loads->cpu[from] - loads->cpu[to] - round->rules->relief;
	return by_cpu < by_node ? by_cpu : by_node;
}

static bool may_yield_move(const struct round *round, uint32_t from, uint32_t to)
{
	return round->waiting.queues[from].count > 0 &&
	       may_move_between(round, node_of(round, from), node_of(round, to)) &&
	       !*exhausted_at(round, from, to, NM_DTAS_EITHER) &&
	       !*exhausted_at(round, from, to, type_now(round, to));
}

/* Lists the threads of the CPU that could move. *ret_masked is set if a thread is excluded only by
 * its affinity. NULL: affinities are ignored. */
static size_t list_candidates(struct round *round, uint32_t from, uint32_t to, bool *ret_masked)
{
	const struct nm_queue *queue = &round->waiting.queues[from];
	enum nm_dtas_type type = type_now(round, to);
	double most = max_load_to_move(round, from, to);
	size_t count = 0;
	for (uint32_t i = 0; i < queue->count; i++) {
		const struct nm_balance_thread *thread =
			&round->input->threads[round->waiting.items[queue->first + i].thread];
		if (!(thread->load < most) || !nm_dtas_fits(type, thread->type, false))
			continue;
		if (ret_masked && !nm_waiting_may_run(thread, to)) {
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

/* Returns whether a thread would move if affinities were ignored. Otherwise the other CPUs of the
 * node need not be tried. */
static bool is_blocked_by_affinity(struct round *round, uint32_t from, uint32_t to)
{
	size_t count = list_candidates(round, from, to, NULL);
	return choose(round, from, to, count).reason != NM_SELECTED_NONE;
}

static void count_result(struct nm_balance_result *result,
			 const struct nm_selection_result *selected)
{
	result->stopped_by_gain += selected->stopped_by_gain;
	result->unknown += selected->unknown;
	result->stopped_by_leader += selected->stopped_by_leader;
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

static void apply_move(struct round *round, const struct nm_balance_move *move, uint32_t position)
{
	size_t nr_nodes = round->input->topology->nr_nodes;
	uint32_t *members = round->members + round->input->threads[move->thread].group * nr_nodes;
	if (members[move->node_from] > 0)
		members[move->node_from]--;
	members[move->node_to]++;
	round->roles[move->node_from] = ROLE_SENDS;
	round->roles[move->node_to] = ROLE_RECEIVES;
	nm_waiting_remove(&round->waiting, (uint32_t)move->cpu_from, position);
	nm_loads_move(&round->loads, move->cpu_from, move->cpu_to, move->load);
	round->result.moves[round->result.count++] = *move;
}

/* Returns 1 if a thread was moved, 0 if none can be, or a negative errno. */
static int try_pair(struct round *round, uint32_t from, uint32_t to)
{
	bool masked = false;
	nm_waiting_prepare(&round->waiting, from);
	if (!nm_waiting_reaches(&round->waiting, from, to))
		return 0;
	size_t count = list_candidates(round, from, to, &masked);
	struct nm_selection_result selected = choose(round, from, to, count);
	count_result(&round->result, &selected);
	if (selected.reason == NM_SELECTED_NONE) {
		bool exhausted = !masked || !is_blocked_by_affinity(round, from, to);
		*exhausted_at(round, from, to, type_now(round, to)) = exhausted;
		return 0;
	}
	uint32_t position = round->positions[selected.chosen];
	uint32_t first = round->waiting.queues[from].first;
	struct nm_balance_move move =
		move_of(round, round->waiting.items[first + position].thread, to, &selected);
	apply_move(round, &move, position);
	return 1;
}

static int fill_cpu(struct round *round, uint32_t to)
{
	const struct nm_loads *loads = &round->loads;
	for (size_t i = 0; i < loads->count; i++) {
		uint32_t from = loads->order[i];
		if (!(loads->cpu[to] < loads->cpu[from]))
			break;
		int r = may_yield_move(round, from, to) ? try_pair(round, from, to) : 0;
		if (r != 0)
			return r;
	}
	round->closed[to] = true;
	return 0;
}

static int move_one(struct round *round)
{
	for (size_t i = round->loads.count; i > 0; i--) {
		uint32_t to = round->loads.order[i - 1];
		int r = round->closed[to] ? 0 : fill_cpu(round, to);
		if (r != 0)
			return r;
	}
	return 0;
}

static int run(struct round *round, struct nm_balance_state *state)
{
	int r;
	nm_waiting_init(&round->waiting, round->input);
	nm_loads_init(&round->loads, round->input);
	round->result.gap = nm_loads_gap(&round->loads);
	round->result.waiting = round->waiting.total;
	round->result.active = nm_balance_update(state, round->rules, round->result.gap);
	if (!round->result.active)
		return 0;
	make_room(round);
	do {
		r = round->result.count < round->rules->max_moves ? move_one(round) : 0;
	} while (r > 0);
	return r;
}

int nm_balance_round(const struct nm_balance_input *input, const struct nm_balance_rules *rules,
		     struct nm_balance_state *state, struct nm_balance_result *ret)
{
	nm_auto(free_round) struct round round = {.input = input, .rules = rules};
	struct nm_balance_state next = *state;
	int r = run(&round, &next);
	if (r < 0)
		return r;
	*state = next;
	*ret = round.result;
	round.result = (struct nm_balance_result){0};
	return 0;
}
