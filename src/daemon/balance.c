/* SPDX-License-Identifier: MIT */
/* Policy "balance": threads that wait leave an overloaded node. */
#include "balance.h"

#include <math.h>
#include <unistd.h>

/* Minimum difference between the load of the old CPU, and that of the new CPU with the thread. */
#define RELIEF 0.1

static int begin(struct nm_daemon *daemon)
{
	if (daemon->pipeline.balancer)
		return 0;
	struct nm_balancer *balancer = calloc(1, sizeof(*balancer));
	if (!balancer)
		return -ENOMEM;
	balancer->topology = daemon->pipeline.topology;
	balancer->page_bytes = (double)sysconf(_SC_PAGESIZE);
	daemon->pipeline.balancer = balancer;
	return 0;
}

void nm_balance_end(struct nm_daemon *daemon)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	if (!balancer)
		return;
	nm_balance_pages_clear(daemon);
	nm_balance_types_clear(balancer);
	nm_balance_result_clear(&balancer->result);
	free(balancer->known);
	free(balancer);
	daemon->pipeline.balancer = NULL;
}

static struct nm_balance_rules rules_of(const struct nm_config *config)
{
	double min_gain = config->threads.balance_min_gain;
	return (struct nm_balance_rules){
		.selection = config->threads.selection,
		.begin = config->threads.balance_begin,
		.end = config->threads.balance_end,
		.persist = (unsigned)config->threads.balance_persist,
		.overload = config->threads.balance_overload,
		.relief = config->profile == NM_PROFILE_PAPER ? 0 : RELIEF,
		.min_gain = min_gain <= NM_CONFIG_ANY_GAIN ? -INFINITY : min_gain,
		.max_moves = config->threads.moves_per_interval,
		.idle_max = config->threads.balance_idle_max,
	};
}

/* ---- the round ---- */

/* Data read for a round; by index of the snapshot's threads and processes. */
struct evidence {
	struct nm_balance_times *times;
	const double **resident;
	enum nm_dtas_type *types;
};

static void free_evidence(struct evidence *evidence)
{
	free(evidence->times);
	free(evidence->resident);
	free(evidence->types);
}

static int make_room(const struct nm_snapshot *snapshot, struct evidence *evidence)
{
	evidence->times = calloc(snapshot->nr_threads + 1, sizeof(*evidence->times));
	evidence->resident = calloc(snapshot->nr_processes + 1, sizeof(*evidence->resident));
	evidence->types = calloc(snapshot->nr_threads + 1, sizeof(*evidence->types));
	return evidence->times && evidence->resident && evidence->types ? 0 : -ENOMEM;
}

static void take_evidence(const struct nm_balancer *balancer, const struct nm_snapshot *snapshot,
			  struct evidence *evidence)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		evidence->types[i] = balancer->known[i].behaviour.type;
	for (size_t i = 0; i < snapshot->nr_processes; i++) {
		const struct nm_residency *pages = nm_balance_residency(
			balancer, snapshot->processes[i].pid, snapshot->time_ns);
		evidence->resident[i] = pages ? pages->pages : NULL;
	}
}

static void report_change(struct nm_daemon *daemon, bool was_active)
{
	const struct nm_balance_result *result = &daemon->pipeline.balancer->result;
	if (result->active == was_active)
		return;
	if (result->active)
		nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
			  "Balancing nodes: loads differ by %.2f per CPU", result->gap);
	else
		nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
			  "Balancing ended: loads differ by %.2f per CPU", result->gap);
}

static int run_round(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		     const struct nm_balance_rules *rules, const struct evidence *evidence)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	const struct nm_config *config = daemon->config;
	nm_auto(nm_balance_gathered_clear) struct nm_balance_gathered gathered = {0};
	const struct nm_balance_facts facts = {
		.snapshot = snapshot,
		.times = evidence->times,
		.resident = evidence->resident,
		.types = balancer->split ? evidence->types : NULL,
		.cpu_types = balancer->split ? balancer->cpu_types : NULL,
		.min_run = config->threads.min_run,
	};
	struct nm_balance_result result = {0};
	int r = nm_balance_gather(&facts, &gathered);
	if (r == 0)
		r = nm_balance_round(&gathered.input, rules, &balancer->state, &result);
	if (r < 0)
		return r;
	bool was_active = balancer->result.active;
	nm_balance_result_clear(&balancer->result);
	balancer->result = result;
	report_change(daemon, was_active);
	balancer->tally.stopped_by_gain += result.stopped_by_gain;
	balancer->tally.unknown += result.unknown;
	balancer->tally.stopped_by_leader += result.stopped_by_leader;
	return 0;
}

int nm_balance_look(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		    const struct nm_figures *figures, size_t nr_figures)
{
	nm_auto(free_evidence) struct evidence evidence = {0};
	size_t suspects = 0;
	if (daemon->config->threads.policy != NM_POLICY_BALANCE)
		return 0;
	const struct nm_balance_rules rules = rules_of(daemon->config);
	int r = begin(daemon);
	if (r == 0)
		r = make_room(snapshot, &evidence);
	if (r == 0)
		r = nm_balance_follow_threads(daemon->pipeline.balancer, snapshot);
	if (r == 0)
		r = nm_balance_read_times(daemon, snapshot, &rules, evidence.times, &suspects);
	if (r == 0)
		r = nm_balance_follow_types(daemon, snapshot, figures, nr_figures);
	if (r == 0)
		r = nm_balance_follow_pages(daemon, snapshot, suspects > 0);
	if (r < 0)
		return r;
	take_evidence(daemon->pipeline.balancer, snapshot, &evidence);
	return run_round(daemon, snapshot, &rules, &evidence);
}

/* ---- proposals ---- */

static struct nm_balance_reason reason_of(const struct nm_daemon *daemon,
					  const struct nm_snapshot *snapshot,
					  const struct nm_balance_move *move)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;
	const struct nm_residency *pages = nm_balance_residency(
		balancer, snapshot->threads[move->thread].pid, snapshot->time_ns);
	struct nm_balance_reason reason = {
		.given = true,
		.selection = daemon->config->threads.selection,
		.by = move->reason,
		.metric = move->metric,
		.cost_change = move->cost_change,
		.load = move->load,
		.load_from = move->load_from,
		.load_to = move->load_to,
		.gap = balancer->result.gap,
		.gain = move->gain,
		.gain_error = NAN,
		.resident = NAN,
		.age_s = NAN,
	};
	if (!pages)
		return reason;
	reason.gain_error = nm_residency_gain_error(pages, move->node_from, move->node_to);
	reason.resident = pages->resident;
	reason.source = pages->source;
	reason.age_s =
		(double)nm_residency_age_ns(pages, snapshot->time_ns) / (double)NM_NSEC_PER_SEC;
	return reason;
}

static void propose(const struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		    const struct nm_balance_move *move, struct nm_proposal *ret)
{
	const struct nm_balancer *balancer = daemon->pipeline.balancer;
	*ret = (struct nm_proposal){
		.kind = NM_PROPOSAL_MIGRATE,
		.moves[0] = {.thread = move->thread,
			     .cpu_from = move->cpu_from,
			     .cpu_to = move->cpu_to,
			     .node_from = move->node_from,
			     .node_to = move->node_to,
			     .record = NAN,
			     .within = nm_balance_lease(
				     balancer, balancer->known[move->thread].behaviour.type,
				     move->node_to, move->cpu_to)},
		.draw = NAN,
		.cost_before = NAN,
		.cost_after = NAN,
		.shared = {NAN, NAN},
		.balance = reason_of(daemon, snapshot, move),
	};
	ret->gain = nm_gate_gain(snapshot, ret->moves, 1);
}

int nm_balance_propose(const struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       struct nm_proposals *ret)
{
	const struct nm_balance_result *result = &daemon->pipeline.balancer->result;
	struct nm_proposals proposals = {.count = result->count,
					 .threads_considered = result->waiting,
					 .candidates = result->evaluated};
	proposals.items = calloc(result->count + 1, sizeof(*proposals.items));
	if (!proposals.items)
		return -ENOMEM;
	for (size_t i = 0; i < result->count; i++)
		propose(daemon, snapshot, &result->moves[i], &proposals.items[i]);
	*ret = proposals;
	return 0;
}

static struct nm_known_thread *find_known(struct nm_balancer *balancer, uint32_t tid,
					  uint64_t start_ticks)
{
	for (size_t i = 0; i < balancer->nr_known; i++)
		if (balancer->known[i].tid == tid && balancer->known[i].start_ticks == start_ticks)
			return &balancer->known[i];
	return NULL;
}

void nm_balance_applied(struct nm_daemon *daemon, const struct nm_decision *decision)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	for (unsigned i = 0; balancer && i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		struct nm_known_thread *known = find_known(balancer, step->tid, step->start_ticks);
		if (!known || step->node_to < 0)
			continue;
		enum nm_dtas_type type = known->behaviour.type;
		hwloc_const_bitmap_t within =
			nm_balance_lease(balancer, type, step->node_to, step->cpu_to);
		bool typed = within && hwloc_bitmap_isincluded(step->target, within);
		known->leased_as = typed ? type : NM_DTAS_EITHER;
	}
}
