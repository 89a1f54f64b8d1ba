/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "locality.h"
#include "verifier.h"

/* Accesses of a process, of all and of those to the nodes of its threads. */
struct accesses {
	double local, total, samples;
};

struct nm_evaluation {
	uint64_t opened; /* interval of the first decision */
	uint64_t done;	 /* interval in which the last batch ended */
	uint64_t seen;	 /* last interval that was observed */
	unsigned count;	 /* number of decisions */
	unsigned moving; /* number of decisions with pending batches */
	bool disturbed;	 /* threads of the process were moved meanwhile */
	struct nm_baseline *baseline;
	struct accesses before, after;
	struct nm_feedback_change performance;
};

void nm_evaluation_leave(struct nm_evaluation *evaluation)
{
	if (!evaluation || --evaluation->count > 0)
		return;
	nm_baseline_free(evaluation->baseline);
	free(evaluation);
}

/* ---- beginning of an evaluation ---- */

/* Adds those in this interval. */
static void add_accesses(const struct nm_snapshot *snapshot, uint32_t pid, struct accesses *sum)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->pid != pid || thread->stats.main_node < 0)
			continue;
		sum->local += thread->stats.fresh[thread->stats.main_node];
		sum->samples += thread->stats.fresh_samples;
		for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
			sum->total += thread->stats.fresh[node];
	}
}

static struct accesses window_of(const struct nm_snapshot *snapshot, uint32_t pid)
{
	struct accesses sum = {0};
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->pid != pid || thread->stats.main_node < 0 ||
		    !(thread->stats.access_total > 0))
			continue;
		sum.local += thread->stats.accesses[thread->stats.main_node];
		sum.samples += thread->stats.access_samples;
		sum.total += thread->stats.access_total;
	}
	return sum;
}

static bool is_enough(const struct accesses *sum, const struct nm_config *config)
{
	return sum->samples >= (double)config->rules.min_samples && sum->total > 0;
}

static double local_share(const struct accesses *sum)
{
	return sum->total > 0 ? sum->local / sum->total : (double)NAN;
}

static struct nm_evaluation *newest_of(const struct nm_verifier *verifier, uint32_t pid,
				       uint64_t start_ticks)
{
	for (size_t i = verifier->count; i-- > 0;) {
		const struct nm_pending_verdict *pending = &verifier->pending[i];
		const struct nm_verdict_thread *process = &pending->verdict.threads[0];
		if (pending->evaluation && process->pid == pid &&
		    process->start_ticks == start_ticks)
			return pending->evaluation;
	}
	return NULL;
}

static bool is_joinable(const struct nm_evaluation *evaluation, uint64_t interval)
{
	return evaluation && interval - evaluation->opened < NM_PAGE_JOIN_INTERVALS;
}

bool nm_verifier_awaits(const struct nm_verifier *verifier, uint32_t pid, uint64_t start_ticks,
			uint64_t interval)
{
	const struct nm_evaluation *evaluation = newest_of(verifier, pid, start_ticks);
	return evaluation && !is_joinable(evaluation, interval);
}

static struct nm_evaluation *open_evaluation(const struct nm_verifier_input *input,
					     const struct nm_decision *decision)
{
	uint32_t pid = decision->steps[0].pid;
	struct nm_evaluation *evaluation = nm_must(calloc(1, sizeof(*evaluation)));
	evaluation->opened = decision->interval;
	evaluation->performance = (struct nm_feedback_change){
		.before = NAN, .after = NAN, .figure = NAN, .noise = NAN};
	/* A program that has just begun to use other memory must not be compared with its earlier
	 * accesses, unless there are too few in this interval. */
	add_accesses(input->snapshot, pid, &evaluation->before);
	if (!is_enough(&evaluation->before, input->config))
		evaluation->before = window_of(input->snapshot, pid);
	nm_feedback_baseline(input->feedback, pid, &evaluation->baseline);
	return evaluation;
}

struct nm_evaluation *nm_evaluation_join(const struct nm_verifier *verifier,
					 const struct nm_verifier_input *input,
					 const struct nm_decision *decision)
{
	const struct nm_step *process = &decision->steps[0];
	struct nm_evaluation *evaluation = newest_of(verifier, process->pid, process->start_ticks);
	if (!is_joinable(evaluation, decision->interval))
		evaluation = open_evaluation(input, decision);
	evaluation->count++;
	evaluation->moving++;
	/* Accesses during the migration count neither as before nor as after. */
	evaluation->after = (struct accesses){0};
	return evaluation;
}

static struct nm_pending_verdict *find_moving(const struct nm_verifier *verifier, uint64_t decision)
{
	for (size_t i = 0; i < verifier->count; i++) {
		struct nm_pending_verdict *pending = &verifier->pending[i];
		if (pending->verdict.decision == decision && pending->evaluation && !pending->ended)
			return pending;
	}
	return NULL;
}

void nm_verifier_done(struct nm_verifier *verifier, uint64_t decision,
		      const struct nm_page_results *results, uint64_t interval)
{
	struct nm_pending_verdict *pending = find_moving(verifier, decision);
	if (!pending)
		return;
	pending->evaluation->moving--;
	if (results->moved > 0) {
		pending->ended = true;
		pending->verdict.results = *results;
		pending->evaluation->done = interval;
		return;
	}
	nm_evaluation_leave(pending->evaluation);
	size_t index = (size_t)(pending - verifier->pending);
	memmove(pending, pending + 1, (--verifier->count - index) * sizeof(*verifier->pending));
}

void nm_verifier_disturb(struct nm_verifier *verifier, uint32_t pid)
{
	for (size_t i = 0; i < verifier->count; i++) {
		const struct nm_pending_verdict *pending = &verifier->pending[i];
		if (pending->evaluation && pending->verdict.threads[0].pid == pid)
			pending->evaluation->disturbed = true;
	}
}

/* ---- end of an evaluation ---- */

static bool is_alive(const struct nm_verdict_thread *process, const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].pid == process->pid)
			return snapshot->processes[i].start_ticks == process->start_ticks;
	return false;
}

static bool is_measured(const struct nm_evaluation *evaluation, const struct nm_config *config)
{
	return evaluation->performance.change.known || is_enough(&evaluation->after, config);
}

/* If only locality is known, pages that were spread on purpose cannot be judged. */
static bool is_unobservable(const struct nm_evaluation *evaluation,
			    const struct nm_verdict *verdict, const struct nm_snapshot *snapshot)
{
	return verdict->pages.reason == NM_PAGE_REASON_CONTENTION &&
	       (!evaluation->performance.change.known || snapshot->by_locality);
}

static double variance_of(const struct accesses *sum)
{
	double share = local_share(sum);
	return share * (1 - share) / fmax(sum->samples, 1);
}

/* Pages that cannot be moved back must not be rolled back. */
static bool may_roll_back(const struct nm_page_results *results, enum nm_measure by,
			  const struct nm_config *config)
{
	return config->rules.rollback_pages > 0 &&
	       (results->forgotten == 0 || results->remembered > 0) &&
	       (by == NM_BY_PERFORMANCE || config->rules.rollback);
}

static double local_change(const struct nm_evaluation *evaluation)
{
	return local_share(&evaluation->after) - local_share(&evaluation->before);
}

static double local_noise(const struct nm_evaluation *evaluation, const struct nm_config *config)
{
	return config->rules.gate_sigmas *
	       sqrt(variance_of(&evaluation->before) + variance_of(&evaluation->after));
}

/* P of one interval is noisy. A rise within its noise does not refute that accesses became local,
 * which more samples show. */
static const struct nm_criterion criteria[] = {
	{.by = NM_BY_PERFORMANCE}, {NM_BY_LOCALITY, NM_CRITERION_CONFIRMS}, {.by = NM_BY_NOTHING}};

static enum nm_verdict_kind kind_of(const struct nm_evaluation *evaluation,
				    const struct nm_verdict *verdict,
				    const struct nm_snapshot *snapshot,
				    const struct nm_config *config)
{
	if (!is_measured(evaluation, config) || evaluation->disturbed || !verdict->threads[0].alive)
		return NM_VERDICT_INCONCLUSIVE;
	/* A rollback restores the earlier state: it cannot be an improvement, or be rolled back. */
	if (verdict->pages.reason == NM_PAGE_REASON_ROLLBACK ||
	    is_unobservable(evaluation, verdict, snapshot))
		return NM_VERDICT_NEUTRAL;
	const struct nm_change changes[NM_MEASURES] = {
		[NM_BY_PERFORMANCE] = evaluation->performance.change,
		[NM_BY_LOCALITY] = nm_locality_change(local_change(evaluation),
						      local_noise(evaluation, config)),
	};
	struct nm_judgement judgement = nm_judge_by(criteria, changes);
	bool stays = judgement.kind == NM_VERDICT_ROLLED_BACK &&
		     !may_roll_back(&verdict->results, judgement.by, config);
	return stays || judgement.by == NM_BY_NOTHING ? NM_VERDICT_NEUTRAL : judgement.kind;
}

/* Returns whether pages were moved to their users, and enough accesses show that the locality did
 * not change as much as counts. If it fell, threads have moved meanwhile. */
static bool is_without_gain(const struct nm_evaluation *evaluation,
			    const struct nm_verdict *verdict, const struct nm_config *config)
{
	return (verdict->pages.reason == NM_PAGE_REASON_PAGES ||
		verdict->pages.reason == NM_PAGE_REASON_REGION) &&
	       fabs(local_change(evaluation)) + local_noise(evaluation, config) < NM_GATE_MARGIN;
}

static bool is_due(const struct nm_evaluation *evaluation, bool alive,
		   const struct nm_snapshot *snapshot, const struct nm_config *config)
{
	if (evaluation->moving > 0)
		return false;
	if (!alive)
		return true;
	uint64_t waited = snapshot->interval - evaluation->done;
	return waited >= NM_VERDICT_INTERVALS ||
	       (waited >= NM_PAGE_SETTLE_INTERVALS && is_measured(evaluation, config));
}

void nm_evaluation_observe(const struct nm_pending_verdict *pending,
			   const struct nm_verifier_input *input)
{
	struct nm_evaluation *evaluation = pending->evaluation;
	const struct nm_snapshot *snapshot = input->snapshot;
	if (evaluation->moving > 0 || snapshot->interval <= evaluation->done ||
	    evaluation->seen == snapshot->interval)
		return;
	evaluation->seen = snapshot->interval;
	add_accesses(snapshot, pending->verdict.threads[0].pid, &evaluation->after);
	nm_feedback_compare(input->feedback, evaluation->baseline, input->config,
			    &evaluation->performance);
}

bool nm_evaluation_judge(struct nm_pending_verdict *pending, const struct nm_verifier_input *input)
{
	const struct nm_evaluation *evaluation = pending->evaluation;
	struct nm_verdict *verdict = &pending->verdict;
	struct nm_verdict_thread *process = &verdict->threads[0];
	process->alive = is_alive(process, input->snapshot);
	if (!is_due(evaluation, process->alive, input->snapshot, input->config))
		return false;
	verdict->kind = kind_of(evaluation, verdict, input->snapshot, input->config);
	verdict->no_gain = verdict->kind == NM_VERDICT_NEUTRAL &&
			   is_without_gain(evaluation, verdict, input->config);
	verdict->together = evaluation->count;
	verdict->by_performance = evaluation->performance.change.known;
	verdict->figure = evaluation->performance.figure;
	verdict->noise = evaluation->performance.noise;
	process->local_before = local_share(&evaluation->before);
	process->local_after = local_share(&evaluation->after);
	process->samples_after = (uint64_t)evaluation->after.samples;
	process->performance_before = evaluation->performance.before;
	process->performance_after = evaluation->performance.after;
	return true;
}
