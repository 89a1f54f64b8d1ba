/* SPDX-License-Identifier: MIT */
/* Policy "balance": threads that wait leave an overloaded node. */
#include <math.h>
#include <stdlib.h>

#include "numa-migrd/balance.h"

/* Minimum difference between the load of the old CPU, and that of the new CPU with the thread. */
#define RELIEF 0.1

void nm_balancer_new(const struct nm_topology *topology, double page_bytes,
		     struct nm_balancer **ret)
{
	struct nm_balancer *balancer = nm_must(calloc(1, sizeof(*balancer)));
	balancer->topology = topology;
	balancer->page_bytes = page_bytes;
	balancer->threads.cell_bytes = sizeof(struct nm_balancer_thread_state);
	balancer->residences = nm_residence_column();
	*ret = balancer;
}

void nm_balancer_free(struct nm_balancer *balancer)
{
	if (!balancer)
		return;
	nm_column_clear(&balancer->residences);
	nm_balancer_clear_types(balancer);
	nm_balance_result_clear(&balancer->result);
	nm_column_clear(&balancer->threads);
	free(balancer);
}

struct nm_balance_rules nm_balancer_rules(const struct nm_config *config)
{
	double min_gain = config->rules.balance_min_gain;
	return (struct nm_balance_rules){
		.selection = config->threads.selection,
		.begin = config->rules.balance_begin,
		.end = config->rules.balance_end,
		.persist = (unsigned)config->rules.balance_persist,
		.overload = config->rules.balance_overload,
		.relief = config->rules.paper ? 0 : RELIEF,
		.min_gain = min_gain <= NM_CONFIG_ANY_GAIN ? -INFINITY : min_gain,
		.max_moves = config->rules.moves_per_interval,
		.idle_max = config->rules.balance_idle_max,
	};
}

struct nm_balance_times nm_balancer_add_reading(struct nm_balancer *balancer, uint32_t thread,
						uint64_t interval,
						const struct nm_proc_schedstat *reading)
{
	struct nm_balancer_thread_state *known = nm_balancer_thread(balancer, thread);
	const struct nm_proc_schedstat last = known->last;
	bool comparable = known->read_interval != 0 && known->read_interval + 1 == interval &&
			  reading->run_ns >= last.run_ns && reading->delay_ns >= last.delay_ns;
	known->read_interval = interval;
	known->last = *reading;
	if (!comparable)
		return (struct nm_balance_times){0};
	return (struct nm_balance_times){.run_ns = reading->run_ns - last.run_ns,
					 .delay_ns = reading->delay_ns - last.delay_ns,
					 .length_ns = reading->read_ns - last.read_ns};
}

void nm_balancer_round(struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, const struct nm_balance_times *times)
{
	/* By index of the snapshot's threads and processes. */
	nm_autofree const double **resident =
		nm_must(calloc(snapshot->nr_processes + 1, sizeof(*resident)));
	nm_autofree enum nm_dtas_type *types =
		nm_must(calloc(snapshot->nr_threads + 1, sizeof(*types)));
	nm_auto(nm_balance_input_clear) struct nm_balance_input_arrays arrays = {0};
	const struct nm_balance_rules rules = nm_balancer_rules(config);
	struct nm_balance_result result = {0};
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		types[i] = nm_balancer_thread(balancer, i)->behaviour.type;
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		const struct nm_residence *residence =
			nm_balancer_residence(balancer, snapshot->processes[i].pid);
		resident[i] = residence ? residence->pages : NULL;
	}
	const struct nm_balance_measurements measurements = {
		.snapshot = snapshot,
		.times = times,
		.resident = resident,
		.types = balancer->split ? types : NULL,
		.cpu_types = balancer->split ? balancer->cpu_types : NULL,
		.min_run = config->rules.min_run,
	};
	nm_balance_input_build(&measurements, &arrays);
	nm_balance_round(&arrays.input, &rules, &balancer->state, &result);
	nm_balance_result_clear(&balancer->result);
	balancer->result = result;
	balancer->tally.stopped_by_gain += result.stopped_by_gain;
	balancer->tally.unknown += result.unknown;
	balancer->tally.stopped_by_leader += result.stopped_by_leader;
}

static struct nm_balance_reason reason_of(const struct nm_balancer *balancer,
					  const struct nm_snapshot *snapshot,
					  const struct nm_config *config,
					  const struct nm_balance_move *move)
{
	const struct nm_residence *residence =
		nm_balancer_residence(balancer, snapshot->threads[move->thread].pid);
	return (struct nm_balance_reason){
		.given = true,
		.selection = config->threads.selection,
		.by = move->reason,
		.metric = move->metric,
		.cost_change = move->cost_change,
		.load = move->load,
		.load_from = move->load_from,
		.load_to = move->load_to,
		.gap = balancer->result.gap,
		.gain = move->gain,
		.resident = residence ? residence->resident : NAN,
		.age_s = residence ? (double)residence->age_ns / (double)NM_NSEC_PER_SEC : NAN,
	};
}

static void propose(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
		    const struct nm_config *config, const struct nm_balance_move *move,
		    struct nm_proposal *ret)
{
	*ret = (struct nm_proposal){
		.kind = NM_PROPOSAL_MIGRATE,
		.moves[0] = {.thread = move->thread,
			     .cpu_from = move->cpu_from,
			     .cpu_to = move->cpu_to,
			     .node_from = move->node_from,
			     .node_to = move->node_to,
			     .record = NAN,
			     .within = nm_balancer_lease(
				     balancer,
				     nm_balancer_thread(balancer, move->thread)->behaviour.type,
				     move->node_to, move->cpu_to)},
		.draw = NAN,
		.cost_before = NAN,
		.cost_after = NAN,
		.shared = {NAN, NAN},
		.balance = reason_of(balancer, snapshot, config, move),
	};
	ret->gain = nm_gate_gain(snapshot, ret->moves, 1);
}

void nm_balancer_propose(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			 const struct nm_config *config, struct nm_proposals *ret)
{
	const struct nm_balance_result *result = &balancer->result;
	struct nm_proposals proposals = {.count = result->count};
	proposals.items = nm_must(calloc(result->count + 1, sizeof(*proposals.items)));
	for (size_t i = 0; i < result->count; i++)
		propose(balancer, snapshot, config, &result->moves[i], &proposals.items[i]);
	*ret = proposals;
}

void nm_balancer_applied(struct nm_balancer *balancer, const struct nm_decision *decision)
{
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		struct nm_balancer_thread_state *known =
			nm_column_find(&balancer->threads, step->tid);
		if (!known || step->node_to < 0)
			continue;
		enum nm_dtas_type type = known->behaviour.type;
		hwloc_const_bitmap_t within =
			nm_balancer_lease(balancer, type, step->node_to, step->cpu_to);
		bool typed = within && hwloc_bitmap_isincluded(step->target, within);
		known->leased_as = typed ? type : NM_DTAS_EITHER;
	}
}

static void *open_balancer(const struct nm_topology *topology, double page_bytes)
{
	struct nm_balancer *balancer;
	nm_balancer_new(topology, page_bytes, &balancer);
	return balancer;
}

static void close_balancer(void *state)
{
	nm_balancer_free(state);
}

static int propose_balance(void *state, const struct nm_policy_input *input,
			   struct nm_proposals *ret)
{
	nm_balancer_propose(state, input->snapshot, input->config, ret);
	return 0;
}

static void note_balanced(void *state, const struct nm_decision *decision)
{
	nm_balancer_applied(state, decision);
}

const struct nm_policy_ops nm_balance_policy = {
	.open = open_balancer,
	.close = close_balancer,
	.propose = propose_balance,
	.applied = note_balanced,
	/* Not by locality, which it reduces on purpose. */
	.judged_by = {{.by = NM_BY_PERFORMANCE}},
};
