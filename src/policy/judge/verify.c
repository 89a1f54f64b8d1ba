/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "locality.h"
#include "sharing.h"
#include "verifier.h"

#define MAX_AWAY_INTERVALS 2

void nm_verdicts_clear(struct nm_verdicts *verdicts)
{
	free(verdicts->items);
	*verdicts = (struct nm_verdicts){0};
}

int nm_verifier_new(struct nm_verifier **ret)
{
	struct nm_verifier *verifier = calloc(1, sizeof(*verifier));
	if (!verifier)
		return -ENOMEM;
	*ret = verifier;
	return 0;
}

void nm_verifier_free(struct nm_verifier *verifier)
{
	if (!verifier)
		return;
	for (size_t i = 0; i < verifier->count; i++)
		nm_evaluation_leave(verifier->questions[i].evaluation);
	free(verifier->questions);
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

/* Moves the complete verdicts to *ret. Returns 0, or -ENOMEM (none was moved). */
static int take(struct nm_verifier *verifier, struct nm_verdicts *ret)
{
	struct nm_verdicts verdicts = {
		.items = calloc(verifier->count + 1, sizeof(*verdicts.items))};
	size_t open = 0;
	if (!verdicts.items)
		return -ENOMEM;
	for (size_t i = 0; i < verifier->count; i++) {
		struct nm_question *question = &verifier->questions[i];
		if (!question->judged) {
			verifier->questions[open++] = *question;
			continue;
		}
		verdicts.items[verdicts.count++] = question->verdict;
		nm_evaluation_leave(question->evaluation);
	}
	verifier->count = open;
	*ret = verdicts;
	return 0;
}

int nm_verifier_add(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		    const struct nm_decision *decision)
{
	struct nm_evaluation *evaluation = NULL;
	int r = NM_RESERVE(verifier->questions, verifier->capacity, verifier->count);
	if (r == 0 && decision->kind == NM_DECISION_PAGES)
		r = nm_evaluation_join(verifier, input, decision, &evaluation);
	if (r < 0)
		return r;
	verifier->questions[verifier->count++] =
		(struct nm_question){.verdict = nm_verdict_of(decision), .evaluation = evaluation};
	return 0;
}

void nm_verifier_forget_pages(struct nm_verifier *verifier)
{
	size_t kept = 0;
	for (size_t i = 0; i < verifier->count; i++) {
		if (verifier->questions[i].evaluation)
			nm_evaluation_leave(verifier->questions[i].evaluation);
		else
			verifier->questions[kept++] = verifier->questions[i];
	}
	verifier->count = kept;
}

/* ---- threads ---- */

static void heed(struct nm_question *question, const struct nm_feedback_result *result,
		 const struct nm_feedback_judgement *judgement)
{
	question->heeded = true;
	question->undo = judgement->undo;
	question->gain = judgement->gain;
	question->verdict.figure = judgement->figure;
	question->verdict.noise = judgement->noise;
	question->verdict.losses = judgement->losses;
	question->verdict.global_before = result->before;
	question->verdict.global_after = result->after;
	question->verdict.interval_s = result->interval_s;
}

/* Both arrays are in the order of the decisions. */
void nm_verifier_apply(struct nm_verifier *verifier, const struct nm_feedback_result *result)
{
	size_t q = 0;
	for (size_t i = 0; i < result->nr_judgements; i++) {
		uint64_t decision = result->judgements[i].decision;
		while (q < verifier->count && verifier->questions[q].verdict.decision < decision)
			q++;
		if (q < verifier->count && verifier->questions[q].verdict.decision == decision)
			heed(&verifier->questions[q], result, &result->judgements[i]);
	}
}

static const struct nm_policy_ops *row_of(const struct nm_verdict *verdict)
{
	return nm_policy_ops(verdict->policy);
}

static void observe_performance(const struct nm_snap_thread *seen, struct nm_verdict_thread *thread)
{
	if (!seen->measured || !isnan(thread->performance_after))
		return;
	thread->performance_after = seen->performance;
	thread->latency_after = seen->latency;
}

/* Pages follow threads, so that the last value counts. */
static void observe_latency(const struct nm_snap_thread *seen, const struct nm_config *config,
			    struct nm_verdict_thread *thread)
{
	if (isnan(seen->latency) || seen->latency_samples < config->threads.min_samples ||
	    !thread->ran_on_node)
		return;
	thread->latency_after = seen->latency;
	thread->latency_samples_after = seen->latency_samples;
}

/* The cost of its accesses in this interval from the node on which it ran. */
static double fresh_cost(const struct nm_snapshot *snapshot, const struct nm_snap_thread *seen)
{
	const struct nm_topology *topology = snapshot->topology;
	int home = nm_topology_node_of_cpu(topology, seen->main_cpu);
	double cost = 0;
	if (home < 0)
		return 0;
	for (int node = 0; node < (int)topology->nr_nodes; node++)
		cost += (double)seen->fresh[node] * nm_topology_distance(topology, home, node);
	return cost / nm_topology_distance(topology, home, home);
}

static void observe_thread(const struct nm_snapshot *snapshot, const struct nm_config *config,
			   struct nm_question *question, unsigned index)
{
	struct nm_verdict_thread *thread = &question->verdict.threads[index];
	const struct nm_snap_thread *seen = nm_snapshot_thread(snapshot, thread->tid);
	thread->alive = seen && seen->start_ticks == thread->start_ticks &&
			seen->adopted_ns == thread->adopted_ns;
	if (!thread->alive)
		return;
	if (seen->main_cpu >= 0) {
		if (snapshot->cpus[seen->main_cpu].node == thread->node_to)
			thread->ran_on_node = true;
		else
			question->away[index]++;
	}
	if (row_of(&question->verdict)->by_sharing)
		observe_latency(seen, config, thread);
	else
		observe_performance(seen, thread);
	for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
		thread->accesses_after += seen->fresh[node];
	thread->samples_after += seen->fresh_samples;
	question->local_accesses[index] += seen->fresh[thread->node_to];
	question->access_cost[index] += fresh_cost(snapshot, seen);
	if (thread->accesses_after == 0)
		return;
	thread->local_after =
		(double)question->local_accesses[index] / (double)thread->accesses_after;
	thread->access_cost_after = question->access_cost[index] / (double)thread->accesses_after;
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
	if (row_of(verdict)->by_locality)
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

static enum nm_verdict_kind weigh_locality(const struct nm_verdict *verdict,
					   const struct nm_config *config)
{
	double margin = config->threads.gate_margin;
	if (verdict->balance.given)
		return NM_VERDICT_INCONCLUSIVE;
	return nm_judge_change(verdict->locality_after - verdict->locality_before,
			       fmax(margin, verdict->locality_noise),
			       config->threads.rollback ? margin : INFINITY);
}

static enum nm_verdict_kind weigh_performance(const struct nm_question *question,
					      const struct nm_config *config)
{
	const struct nm_verdict *verdict = &question->verdict;
	bool fell = row_of(verdict)->by_locality && nm_verdict_locality_fell(verdict, config);
	if (fell && config->threads.rollback)
		return NM_VERDICT_ROLLED_BACK;
	return question->gain && !fell ? NM_VERDICT_IMPROVED : NM_VERDICT_NEUTRAL;
}

static enum nm_verdict_kind weigh(const struct nm_question *question,
				  const struct nm_config *config)
{
	const struct nm_verdict *verdict = &question->verdict;
	if (!is_any_reported(verdict, config))
		return NM_VERDICT_INCONCLUSIVE;
	if (verdict->of == NM_DECISION_ROLLBACK)
		return NM_VERDICT_NEUTRAL;
	if (verdict->by_performance && !isnan(verdict->figure))
		return weigh_performance(question, config);
	return weigh_locality(verdict, config);
}

/* ---- communication ---- */

static size_t count_by_sharing(const struct nm_verifier *verifier)
{
	size_t count = 0;
	for (size_t q = 0; q < verifier->count; q++)
		if (row_of(&verifier->questions[q].verdict)->by_sharing)
			count += verifier->questions[q].verdict.nr_threads;
	return count;
}

static void list_places(const struct nm_verifier *verifier, struct nm_sharing_place *places)
{
	for (size_t q = 0; q < verifier->count; q++) {
		const struct nm_verdict *verdict = &verifier->questions[q].verdict;
		for (unsigned i = 0; row_of(verdict)->by_sharing && i < verdict->nr_threads; i++)
			*places++ = (struct nm_sharing_place){
				.tid = verdict->threads[i].tid,
				.node_from = verdict->threads[i].node_from,
				.node_to = verdict->threads[i].node_to};
	}
}

static int measure_sharing(struct nm_verifier *verifier, const struct nm_verifier_input *input)
{
	double step = NM_SHARING_STEP;
	size_t count = count_by_sharing(verifier);
	if (!input->affinity || count == 0)
		return 0;
	nm_autofree struct nm_sharing_place *places = calloc(count, sizeof(*places));
	if (!places)
		return -ENOMEM;
	list_places(verifier, places);
	int r = nm_sharing_costs(input->affinity, input->snapshot, places, count);
	if (r < 0)
		return r;
	const struct nm_sharing_place *place = places;
	for (size_t q = 0; q < verifier->count; q++) {
		struct nm_verdict *verdict = &verifier->questions[q].verdict;
		if (!row_of(verdict)->by_sharing)
			continue;
		double variance = 0;
		verdict->cost_before = verdict->cost_after = 0;
		for (unsigned i = 0; i < verdict->nr_threads; i++, place++) {
			verdict->cost_before += place->before / step;
			verdict->cost_after += place->after / step;
			variance += place->variance / step;
		}
		verdict->cost_noise = input->config->threads.gate_sigmas * sqrt(variance);
	}
	return 0;
}

/* Decisions that belong together are judged by the values of all of them. */
static int weigh_latencies(struct nm_verifier *verifier, const struct nm_config *config)
{
	size_t count = 0;
	nm_autofree struct nm_verdict **verdicts = calloc(verifier->count + 1, sizeof(*verdicts));
	if (!verdicts)
		return -ENOMEM;
	for (size_t i = 0; i < verifier->count; i++)
		if (row_of(&verifier->questions[i].verdict)->by_sharing)
			verdicts[count++] = &verifier->questions[i].verdict;
	nm_sharing_weigh_latencies(verdicts, count, config);
	return 0;
}

static bool is_slower(const struct nm_verdict *verdict, const struct nm_config *config)
{
	return verdict->slowdown * config->threads.delta_g > 1 &&
	       verdict->slowdown - 1 > verdict->slowdown_noise;
}

/* Returns whether accesses are faster or, if latencies are not sampled, communicating threads are
 * nearer. */
static bool is_improvement(const struct nm_verdict *verdict, const struct nm_config *config)
{
	double saved = verdict->cost_before - verdict->cost_after;
	if (!isnan(verdict->slowdown))
		return verdict->slowdown < config->threads.delta_g &&
		       1 - verdict->slowdown > verdict->slowdown_noise;
	return verdict->cost_after < config->threads.delta_g * verdict->cost_before &&
	       saved > verdict->cost_noise;
}

/* Sets the verdict's kind and returns true if there is a verdict; all of its threads are on their
 * new nodes. */
static bool judge_sharing(struct nm_verdict *verdict, const struct nm_config *config, bool expired)
{
	bool measured = !isnan(verdict->slowdown);
	bool worse =
		measured ? is_slower(verdict, config) : verdict->cost_after > verdict->cost_before;
	verdict->kind = NM_VERDICT_NEUTRAL;
	if (verdict->of == NM_DECISION_ROLLBACK)
		return true;
	if (measured ? worse && !expired : verdict->intervals < NM_VERDICT_AGED_INTERVALS)
		return false;
	if (worse && config->threads.rollback)
		verdict->kind = NM_VERDICT_ROLLED_BACK;
	else if (is_improvement(verdict, config))
		verdict->kind = NM_VERDICT_IMPROVED;
	return true;
}

static bool has_arrived(const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].alive && !verdict->threads[i].ran_on_node)
			return false;
	return true;
}

/* ---- verdict ---- */

static bool awaits_feedback(const struct nm_question *question)
{
	return question->verdict.by_performance && question->verdict.of != NM_DECISION_ROLLBACK &&
	       !question->heeded;
}

static bool has_living(const struct nm_verdict *verdict)
{
	for (unsigned i = 0; i < verdict->nr_threads; i++)
		if (verdict->threads[i].alive)
			return true;
	return false;
}

/* IMAR² requires rollbacks; in the papers, LBMA and balance have none. */
static bool may_be_undone(const struct nm_verdict *verdict, const struct nm_config *config)
{
	return row_of(verdict)->rolls_back || config->threads.rollback;
}

/* Sets the verdict's kind and returns true if there is a verdict. */
static bool judge_threads(struct nm_question *question, const struct nm_config *config)
{
	struct nm_verdict *verdict = &question->verdict;
	bool expired = verdict->intervals >= NM_VERDICT_INTERVALS;
	unsigned undecided = awaits_feedback(question);
	verdict->kind = NM_VERDICT_INCONCLUSIVE;
	if (verdict->superseded || !has_living(verdict))
		return true;
	if (question->undo && may_be_undone(verdict, config)) {
		verdict->kind = NM_VERDICT_ROLLED_BACK;
		return true;
	}
	for (unsigned i = 0; i < verdict->nr_threads; i++) {
		const struct nm_verdict_thread *thread = &verdict->threads[i];
		if (!thread->alive)
			continue;
		if (!thread->ran_on_node && (expired || question->away[i] >= MAX_AWAY_INTERVALS)) {
			verdict->kind = NM_VERDICT_CANCELLED;
			return true;
		}
		undecided += is_awaited(verdict, thread, config);
	}
	if (row_of(verdict)->by_sharing)
		return has_arrived(verdict) && judge_sharing(verdict, config, expired);
	if (undecided > 0 && !expired)
		return false;
	verdict->kind = weigh(question, config);
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

static int observe(struct nm_question *question, const struct nm_verifier_input *input)
{
	const struct nm_snapshot *snapshot = input->snapshot;
	if (snapshot->interval <= question->verdict.interval)
		return 0;
	question->verdict.intervals = (unsigned)(snapshot->interval - question->verdict.interval);
	if (question->evaluation)
		return nm_evaluation_observe(question, input);
	for (unsigned i = 0; i < question->verdict.nr_threads; i++)
		observe_thread(snapshot, input->config, question, i);
	if (!row_of(&question->verdict)->by_sharing)
		nm_verdict_measure_locality(&question->verdict, snapshot->topology, input->config);
	compare_with_prediction(&question->verdict);
	return 0;
}

/* A decision about a thread supersedes the earlier ones about it. */
static int find_superseded(struct nm_verifier *verifier)
{
	nm_auto(nm_tidmap_freep) struct nm_tidmap *later = NULL;
	int r = nm_tidmap_new(&later);
	for (size_t i = verifier->count; i-- > 0;) {
		struct nm_verdict *verdict = &verifier->questions[i].verdict;
		for (unsigned k = 0; r == 0 && k < verdict->nr_threads; k++) {
			uint32_t tid = verdict->threads[k].tid;
			if (tid == 0)
				continue;
			verdict->superseded |= nm_tidmap_get(later, tid) != NM_TIDMAP_NONE;
			r = nm_tidmap_set(later, tid, (uint32_t)i);
		}
	}
	return r;
}

static bool judge(struct nm_question *question, const struct nm_verifier_input *input)
{
	if (input->snapshot->interval <= question->verdict.interval)
		return false;
	return question->evaluation ? nm_evaluation_judge(question, input)
				    : judge_threads(question, input->config);
}

int nm_verifier_judge(struct nm_verifier *verifier, const struct nm_verifier_input *input,
		      struct nm_verdicts *ret)
{
	int r = measure_sharing(verifier, input);
	if (r == 0)
		r = find_superseded(verifier);
	for (size_t i = 0; r == 0 && i < verifier->count; i++)
		r = observe(&verifier->questions[i], input);
	if (r == 0)
		r = weigh_latencies(verifier, input->config);
	if (r < 0)
		return r;
	for (size_t i = 0; i < verifier->count; i++)
		verifier->questions[i].judged = judge(&verifier->questions[i], input);
	return take(verifier, ret);
}
