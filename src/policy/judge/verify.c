/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "locality.h"
#include "sharing.h"
#include "verifier.h"

#define MAX_AWAY_INTERVALS 2
/* Share of its run samples on the new node from which the performance of an interval is that of the
 * new node: the thread is not kept there. */
#define RESIDENT_SHARE 0.9

void nm_verdicts_clear(struct nm_verdicts *verdicts)
{
	free(verdicts->items);
	*verdicts = (struct nm_verdicts){0};
}

struct nm_verifier *nm_verifier_new(void)
{
	return nm_must(calloc(1, sizeof(struct nm_verifier)));
}

void nm_verifier_free(struct nm_verifier *verifier)
{
	if (!verifier)
		return;
	for (size_t i = 0; i < verifier->count; i++)
		nm_evaluation_leave(verifier->pending[i].evaluation);
	free(verifier->pending);
	free(verifier);
}

struct nm_verdict nm_verdict_of(const struct nm_decision *decision)
{
	struct nm_verdict verdict = {
		.decision = decision->id,
		.of = decision->kind,
		.policy = decision->policy,
		.interval = decision->interval,
		.by_performance = decision->by_performance,
		.balance = decision->balance,
		.pages = decision->pages,
		.measured_benefit = NAN,
		.expected_gain = NAN,
		.measured_gain = NAN,
		.cost_before = NAN,
		.cost_after = NAN,
		.cost_noise = NAN,
		.slowdown = NAN,
		.slowdown_noise = NAN,
		.figure = NAN,
		.noise = NAN,
		.losses = NAN,
		.global_before = NAN,
		.global_after = NAN,
		.interval_s = NAN,
		.locality_before = NAN,
		.locality_after = NAN,
		.locality_noise = NAN,
		.nr_threads = decision->nr_steps,
	};
	for (unsigned i = 0; i < decision->nr_steps; i++) {
		const struct nm_step *step = &decision->steps[i];
		verdict.threads[i] = (struct nm_verdict_thread){
			.tid = step->tid,
			.pid = step->pid,
			.start_ticks = step->start_ticks,
			.adopted_ns = step->adopted_ns,
			.ran_on_node = step->tid == 0, /* a process need not arrive */
			.cpu_from = step->cpu_from,
			.node_from = step->node_from,
			.node_to = step->node_to,
			.local_before = step->local_before,
			.samples_before = step->samples_before,
			.local_after = NAN,
			.latency_before = step->latency_before,
			.latency_after = NAN,
			.latency_samples_before = step->latency_samples_before,
			.performance_before = step->performance_before,
			.access_cost_before = step->access_cost_before,
			.access_cost_after = NAN,
			.performance_after = NAN,
		};
		memcpy(verdict.threads[i].comm, step->comm, sizeof(step->comm));
	}
	return verdict;
}

size_t nm_verifier_open(const struct nm_verifier *verifier)
{
	return verifier->count;
}

/* Moves the complete verdicts to *ret. */
static void take_complete(struct nm_verifier *verifier, struct nm_verdicts *ret)
{
	struct nm_verdicts verdicts = {
		.items = nm_must(calloc(verifier->count + 1, sizeof(*verdicts.items)))};
	size_t open = 0;
	for (size_t i = 0; i < verifier->count; i++) {
		struct nm_pending_verdict *pending = &verifier->pending[i];
		if (!pending->judged) {
			verifier->pending[open++] = *pending;
			continue;
		}
		verdicts.items[verdicts.count++] = pending->verdict;
		nm_evaluation_leave(pending->evaluation);
	}
	verifier->count = open;
	*ret = verdicts;
}

void nm_verifier_add(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		     const struct nm_decision *decision)
{
	struct nm_evaluation *evaluation = NULL;
	if (decision->kind == NM_DECISION_PAGES)
		evaluation = nm_evaluation_join(verifier, input, decision);
	NM_RESERVE(verifier->pending, verifier->capacity, verifier->count);
	verifier->pending[verifier->count++] = (struct nm_pending_verdict){
		.verdict = nm_verdict_of(decision), .evaluation = evaluation};
}

void nm_verifier_drop_pages(struct nm_verifier *verifier)
{
	size_t kept = 0;
	for (size_t i = 0; i < verifier->count; i++) {
		if (verifier->pending[i].evaluation)
			nm_evaluation_leave(verifier->pending[i].evaluation);
		else
			verifier->pending[kept++] = verifier->pending[i];
	}
	verifier->count = kept;
}

static bool concerns(const struct nm_verdict *verdict, uint32_t pid)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].pid == pid)
			return true;
	return false;
}

/* Frees the pending verdict, unless it stays, as the next of those that do. */
static void keep_or_drop(struct nm_verifier *verifier, size_t index, bool stays, size_t *kept)
{
	if (stays)
		verifier->pending[(*kept)++] = verifier->pending[index];
	else
		nm_evaluation_leave(verifier->pending[index].evaluation);
}

void nm_verifier_drop_process(struct nm_verifier *verifier, uint32_t pid)
{
	size_t kept = 0;
	for (size_t i = 0; i < verifier->count; i++)
		keep_or_drop(verifier, i, !concerns(&verifier->pending[i].verdict, pid), &kept);
	verifier->count = kept;
}

/* Returns whether the nodes of its threads have the same CPUs; -1: no node. */
static bool keeps_nodes(const struct nm_verdict *verdict, const struct nm_topology *before,
			const struct nm_topology *now)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		if ((thread->node_from >= 0 &&
		     !nm_topology_keeps_node(before, now, thread->node_from)) ||
		    (thread->node_to >= 0 && !nm_topology_keeps_node(before, now, thread->node_to)))
			return false;
	}
	return true;
}

void nm_verifier_retarget(struct nm_verifier *verifier, const struct nm_topology *before,
			  const struct nm_topology *now)
{
	bool same = nm_topology_has_same_nodes(before, now);
	size_t kept = 0;
	for (size_t i = 0; i < verifier->count; i++)
		keep_or_drop(verifier, i,
			     same && keeps_nodes(&verifier->pending[i].verdict, before, now),
			     &kept);
	verifier->count = kept;
}

/* ---- threads ---- */

static void set_feedback(struct nm_pending_verdict *pending,
			 const struct nm_feedback_result *result,
			 const struct nm_feedback_judgement *judgement)
{
	pending->has_feedback = true;
	pending->performance = judgement->change;
	pending->verdict.figure = judgement->figure;
	pending->verdict.noise = judgement->noise;
	pending->verdict.losses = judgement->losses;
	pending->verdict.global_before = result->before;
	pending->verdict.global_after = result->after;
	pending->verdict.interval_s = result->interval_s;
}

/* Both arrays are in the order of the decisions. */
void nm_verifier_apply(struct nm_verifier *verifier, const struct nm_feedback_result *result)
{
	size_t q = 0;
	for (size_t i = 0; i < result->nr_judgements; i++) {
		uint64_t decision = result->judgements[i].decision;
		while (q < verifier->count && verifier->pending[q].verdict.decision < decision)
			q++;
		if (q < verifier->count && verifier->pending[q].verdict.decision == decision)
			set_feedback(&verifier->pending[q], result, &result->judgements[i]);
	}
}

static void observe_performance(const struct nm_snap_thread *seen, struct nm_verdict_thread *thread)
{
	if (!seen->measured || !isnan(thread->performance_after))
		return;
	thread->performance_after = seen->performance;
	thread->latency_after = seen->stats.latency;
}

/* Pages follow threads, so that the last value counts. */
static void observe_latency(const struct nm_snap_thread *seen, const struct nm_config *config,
			    struct nm_verdict_thread *thread)
{
	if (isnan(seen->stats.latency) || seen->stats.latency_samples < config->rules.min_samples ||
	    !thread->ran_on_node)
		return;
	thread->latency_after = seen->stats.latency;
	thread->latency_samples_after = seen->stats.latency_samples;
}

/* The cost of its accesses in this interval from the node on which it ran. */
static double fresh_cost(const struct nm_snapshot *snapshot, const struct nm_snap_thread *seen)
{
	const struct nm_topology *topology = snapshot->topology;
	int home = nm_topology_node_of_cpu(topology, seen->stats.main_cpu);
	double cost = 0;
	if (home < 0)
		return 0;
	for (int node = 0; node < (int)topology->nr_nodes; node++)
		cost += (double)seen->stats.fresh[node] *
			nm_topology_distance(topology, home, node);
	return cost / nm_topology_distance(topology, home, home);
}

/* IMAR² rolls back by the performance since the move. The paper pins its threads. */
static bool needs_residence(const struct nm_verdict *verdict, const struct nm_config *config)
{
	return nm_policy_ops(verdict->policy)->rolls_back && !config->rules.paper &&
	       verdict->of != NM_DECISION_ROLLBACK;
}

static void observe_thread(const struct nm_snapshot *snapshot, const struct nm_config *config,
			   struct nm_pending_verdict *pending, unsigned index)
{
	struct nm_verdict_thread *thread = &pending->verdict.threads[index];
	const struct nm_snap_thread *seen = nm_snapshot_thread(snapshot, thread->tid);
	thread->alive = seen && seen->start_ticks == thread->start_ticks &&
			seen->adopted_ns == thread->adopted_ns;
	if (!thread->alive)
		return;
	if (seen->stats.main_cpu >= 0) {
		if (snapshot->cpus[seen->stats.main_cpu].node != thread->node_to)
			pending->intervals_away[index]++;
		else if (!needs_residence(&pending->verdict, config) ||
			 seen->stats.main_node_share >= RESIDENT_SHARE)
			thread->ran_on_node = true;
	}
	if (nm_policy_is_by_sharing(pending->verdict.policy))
		observe_latency(seen, config, thread);
	else if (thread->ran_on_node || !needs_residence(&pending->verdict, config))
		observe_performance(seen, thread);
	for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
		thread->accesses_after += seen->stats.fresh[node];
	thread->samples_after += seen->stats.fresh_samples;
	pending->local_accesses[index] += seen->stats.fresh[thread->node_to];
	pending->access_cost[index] += fresh_cost(snapshot, seen);
	if (thread->accesses_after == 0)
		return;
	thread->local_after =
		(double)pending->local_accesses[index] / (double)thread->accesses_after;
	thread->access_cost_after = pending->access_cost[index] / (double)thread->accesses_after;
}

static bool has_arrived(const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].alive && !verdict->threads[i].ran_on_node)
			return false;
	return true;
}

/* P before and after is as informative as accesses. */
static bool is_reported(const struct nm_verdict *verdict, const struct nm_verdict_thread *thread,
			const struct nm_config *config)
{
	return nm_verdict_is_sampled(thread, config) ||
	       (verdict->by_performance && !isnan(thread->performance_after));
}

/* LBMA, which accepts no loss of locality, also waits for the accesses. */
static bool is_awaited(const struct nm_verdict *verdict, const struct nm_verdict_thread *thread,
		       const struct nm_config *config)
{
	if (!thread->ran_on_node)
		return true;
	if (nm_policy_is_by(verdict->policy, NM_BY_LOCALITY))
		return !nm_verdict_is_sampled(thread, config);
	return !is_reported(verdict, thread, config);
}

static bool is_any_reported(const struct nm_verdict *verdict, const struct nm_config *config)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].alive && is_reported(verdict, &verdict->threads[i], config))
			return true;
	return false;
}

/* ---- the changes since ---- */

/* Accesses that became slower by the factor 1/delta_g are a fall. */
static struct nm_change latency_change(const struct nm_verdict *verdict,
				       const struct nm_config *config)
{
	double delta = config->rules.delta_g, noise = verdict->slowdown_noise;
	return nm_change_of(1 - verdict->slowdown, fmax(1 - delta, noise),
			    fmax(1 / delta - 1, noise));
}

/* Threads that are farther from their partners than at their old places return in any case. */
static struct nm_change communication_change(const struct nm_verdict *verdict,
					     const struct nm_config *config)
{
	double least = (1 - config->rules.delta_g) * verdict->cost_before;
	return nm_change_of(verdict->cost_before - verdict->cost_after,
			    fmax(least, verdict->cost_noise), 0);
}

/* IMAR² requires rollbacks; in the papers, LBMA and balance have none. */
static bool may_roll_back(const struct nm_verdict *verdict, enum nm_measure by,
			  const struct nm_config *config)
{
	return config->rules.rollback ||
	       (by == NM_BY_PERFORMANCE && nm_policy_ops(verdict->policy)->rolls_back);
}

static struct nm_judgement judgement_of(const struct nm_pending_verdict *pending,
					const struct nm_config *config)
{
	const struct nm_verdict *verdict = &pending->verdict;
	const struct nm_change changes[NM_MEASURES] = {
		[NM_BY_PERFORMANCE] = pending->performance,
		[NM_BY_LOCALITY] =
			nm_locality_change(verdict->locality_after - verdict->locality_before,
					   verdict->locality_noise),
		[NM_BY_LATENCY] = latency_change(verdict, config),
		[NM_BY_COMMUNICATION] = communication_change(verdict, config),
	};
	return nm_judge_by(nm_policy_ops(verdict->policy)->judged_by, changes);
}

static enum nm_verdict_kind kind_by(const struct nm_verdict *verdict,
				    const struct nm_judgement *judgement,
				    const struct nm_config *config)
{
	bool stays = judgement->kind == NM_VERDICT_ROLLED_BACK &&
		     !may_roll_back(verdict, judgement->by, config);
	return stays ? NM_VERDICT_NEUTRAL : judgement->kind;
}

/* ---- communication ---- */

static size_t count_by_sharing(const struct nm_verifier *verifier)
{
	size_t count = 0;
	for (size_t q = 0; q < verifier->count; q++)
		if (nm_policy_is_by_sharing(verifier->pending[q].verdict.policy))
			count += verifier->pending[q].verdict.nr_threads;
	return count;
}

static void list_places(const struct nm_verifier *verifier, struct nm_sharing_place *places)
{
	for (size_t q = 0; q < verifier->count; q++) {
		const struct nm_verdict *verdict = &verifier->pending[q].verdict;
		for (unsigned i = 0;
		     nm_policy_is_by_sharing(verdict->policy) && i < verdict->nr_threads; i++)
			*places++ = (struct nm_sharing_place){
				.tid = verdict->threads[i].tid,
				.node_from = verdict->threads[i].node_from,
				.node_to = verdict->threads[i].node_to};
	}
}

static void measure_sharing(struct nm_verifier *verifier, const struct nm_verifier_input *input)
{
	double step = NM_SHARING_STEP;
	size_t count = count_by_sharing(verifier);
	if (!input->affinity || count == 0)
		return;
	nm_autofree struct nm_sharing_place *places = nm_must(calloc(count, sizeof(*places)));
	list_places(verifier, places);
	nm_sharing_costs(input->affinity, input->snapshot, places, count);
	const struct nm_sharing_place *place = places;
	for (size_t q = 0; q < verifier->count; q++) {
		struct nm_verdict *verdict = &verifier->pending[q].verdict;
		if (!nm_policy_is_by_sharing(verdict->policy))
			continue;
		double variance = 0;
		verdict->cost_before = verdict->cost_after = 0;
		for (unsigned i = 0; i < verdict->nr_threads; i++, place++) {
			verdict->cost_before += place->before / step;
			verdict->cost_after += place->after / step;
			variance += place->variance / step;
		}
		verdict->cost_noise = input->config->rules.gate_sigmas * sqrt(variance);
	}
}

/* Decisions that belong together are judged by the values of all of them. */
static void compare_latencies(struct nm_verifier *verifier, const struct nm_config *config)
{
	size_t count = 0;
	nm_autofree struct nm_verdict **verdicts =
		nm_must(calloc(verifier->count + 1, sizeof(*verdicts)));
	for (size_t i = 0; i < verifier->count; i++)
		if (nm_policy_is_by_sharing(verifier->pending[i].verdict.policy))
			verdicts[count++] = &verifier->pending[i].verdict;
	nm_sharing_compare_latencies(verdicts, count, config);
}

/* Sets the verdict's kind and returns true if there is a verdict; all of its threads are on their
 * new nodes. */
static bool judge_sharing(struct nm_pending_verdict *pending, const struct nm_config *config,
			  bool expired)
{
	struct nm_verdict *verdict = &pending->verdict;
	struct nm_judgement judgement = judgement_of(pending, config);
	verdict->kind = NM_VERDICT_NEUTRAL;
	if (verdict->of == NM_DECISION_ROLLBACK)
		return true;
	bool waits = judgement.by == NM_BY_LATENCY
			     ? judgement.kind == NM_VERDICT_ROLLED_BACK && !expired
			     : verdict->intervals < NM_VERDICT_AGED_INTERVALS;
	if (waits)
		return false;
	if (judgement.by != NM_BY_NOTHING)
		verdict->kind = kind_by(verdict, &judgement, config);
	return true;
}

/* ---- verdict ---- */

static bool awaits_feedback(const struct nm_pending_verdict *pending)
{
	return pending->verdict.by_performance && pending->verdict.of != NM_DECISION_ROLLBACK &&
	       !pending->has_feedback;
}

static bool has_live_thread(const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].alive)
			return true;
	return false;
}

/* Sets the verdict's kind and returns true if there is a verdict. */
static bool judge_threads(struct nm_pending_verdict *pending, const struct nm_config *config)
{
	struct nm_verdict *verdict = &pending->verdict;
	bool expired = verdict->intervals >= NM_VERDICT_INTERVALS;
	unsigned undecided = awaits_feedback(pending);
	verdict->kind = NM_VERDICT_INCONCLUSIVE;
	if (verdict->superseded || !has_live_thread(verdict))
		return true;
	if (nm_change_kind(&pending->performance) == NM_VERDICT_ROLLED_BACK &&
	    may_roll_back(verdict, NM_BY_PERFORMANCE, config)) {
		verdict->kind = NM_VERDICT_ROLLED_BACK;
		return true;
	}
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		if (!thread->alive)
			continue;
		if (!thread->ran_on_node &&
		    (expired || pending->intervals_away[i] >= MAX_AWAY_INTERVALS)) {
			verdict->kind = NM_VERDICT_CANCELLED;
			return true;
		}
		undecided += is_awaited(verdict, thread, config);
	}
	if (nm_policy_is_by_sharing(verdict->policy))
		return has_arrived(verdict) && judge_sharing(pending, config, expired);
	if (undecided > 0 && !expired)
		return false;
	if (is_any_reported(verdict, config)) {
		struct nm_judgement judgement = judgement_of(pending, config);
		verdict->kind = verdict->of == NM_DECISION_ROLLBACK
					? NM_VERDICT_NEUTRAL
					: kind_by(verdict, &judgement, config);
	}
	return true;
}

/* Balance moves one thread per decision. */
static void compare_with_prediction(struct nm_verdict *verdict)
{
	const struct nm_verdict_thread *thread = &verdict->threads[0];
	if (verdict->balance.given)
		verdict->measured_benefit =
			verdict->balance.resident *
			(thread->access_cost_before - thread->access_cost_after);
}

static void observe(struct nm_pending_verdict *pending, const struct nm_verifier_input *input)
{
	const struct nm_snapshot *snapshot = input->snapshot;
	if (snapshot->interval <= pending->verdict.interval)
		return;
	pending->verdict.intervals = (unsigned)(snapshot->interval - pending->verdict.interval);
	if (pending->evaluation) {
		nm_evaluation_observe(pending, input);
		return;
	}
	for (unsigned i = 0; i < pending->verdict.nr_threads; i++)
		observe_thread(snapshot, input->config, pending, i);
	if (needs_residence(&pending->verdict, input->config) && !has_arrived(&pending->verdict))
		pending->performance = (struct nm_change){0}; /* not that of the new node */
	if (!nm_policy_is_by_sharing(pending->verdict.policy))
		nm_verdict_measure_locality(&pending->verdict, snapshot->topology, input->config);
	compare_with_prediction(&pending->verdict);
}

/* A decision about a thread supersedes the earlier ones about it. */
static void find_superseded(struct nm_verifier *verifier)
{
	nm_auto(nm_tidmap_freep) struct nm_tidmap *later = nm_tidmap_new();
	for (size_t i = verifier->count; i-- > 0;) {
		struct nm_verdict *verdict = &verifier->pending[i].verdict;
		for (unsigned k = 0; k < verdict->nr_threads; k++) {
			uint32_t tid = verdict->threads[k].tid;
			if (tid == 0)
				continue;
			verdict->superseded |= nm_tidmap_get(later, tid) != NM_TIDMAP_NONE;
			(void)nm_tidmap_set(later, tid, (uint32_t)i);
		}
	}
}

static bool judge(struct nm_pending_verdict *pending, const struct nm_verifier_input *input)
{
	if (input->snapshot->interval <= pending->verdict.interval)
		return false;
	return pending->evaluation ? nm_evaluation_judge(pending, input)
				   : judge_threads(pending, input->config);
}

void nm_verifier_judge(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		       struct nm_verdicts *ret)
{
	measure_sharing(verifier, input);
	find_superseded(verifier);
	for (size_t i = 0; i < verifier->count; i++)
		observe(&verifier->pending[i], input);
	compare_latencies(verifier, input->config);
	for (size_t i = 0; i < verifier->count; i++)
		verifier->pending[i].judged = judge(&verifier->pending[i], input);
	take_complete(verifier, ret);
}
