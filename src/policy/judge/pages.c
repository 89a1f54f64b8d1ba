/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "verifier.h"

struct nm_evaluation {
	uint64_t opened; /* interval of the first decision */
	uint64_t done;	 /* interval in which the last batch ended */
	uint64_t seen;	 /* last interval that was observed */
	unsigned count;	 /* number of decisions */
	unsigned moving; /* number of decisions with pending batches */
	bool moved;	 /* at least one page */
	bool disturbed;	 /* threads of the process were moved meanwhile */
	struct nm_baseline *baseline;
	double local_before, samples_before;
	uint64_t local_after, total_after, samples_after;
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

struct locality {
	double local, total;
};

static void add_lately(struct locality *locality, const struct nm_snap_thread *thread,
		       unsigned nr_nodes)
{
	locality->local += (double)thread->fresh[thread->main_node];
	for (unsigned node = 0; node < nr_nodes; node++)
		locality->total += (double)thread->fresh[node];
}

/*
 * Returns the local access ratio of the process in this interval or, if there were too few
 * accesses, in the window. A program that has just begun to use other memory must not be compared
 * with its earlier accesses.
 */
static double local_share(const struct nm_snapshot *snapshot, const struct nm_config *config,
			  uint32_t pid, double *ret_samples)
{
	struct locality now = {0}, faded = {0};
	double samples = 0, faded_samples = 0;

	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->pid != pid || thread->main_node < 0 || !(thread->access_total > 0))
			continue;
		samples += (double)thread->fresh_samples;
		faded_samples += thread->access_samples;
		add_lately(&now, thread, snapshot->topology->nr_nodes);
		faded.local += thread->accesses[thread->main_node];
		faded.total += thread->access_total;
	}
	*ret_samples = samples;
	if (samples >= (double)config->threads.min_samples && now.total > 0)
		return now.local / now.total;
	*ret_samples = faded_samples;
	return faded.total > 0 ? faded.local / faded.total : (double)NAN;
}

static bool is_of(const struct nm_question *question, uint32_t pid, uint64_t start_ticks)
{
	const struct nm_verdict_thread *process = &question->verdict.threads[0];
	return process->pid == pid && process->start_ticks == start_ticks;
}

static struct nm_evaluation *newest_of(const struct nm_verifier *verifier, uint32_t pid,
				       uint64_t start_ticks)
{
	for (size_t i = verifier->count; i-- > 0;)
		if (is_of(&verifier->questions[i], pid, start_ticks))
			return verifier->questions[i].evaluation;
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

static int open_evaluation(const struct nm_snapshot *snapshot, const struct nm_feedback *feedback,
			   const struct nm_config *config, const struct nm_decision *decision,
			   struct nm_evaluation **ret)
{
	uint32_t pid = decision->steps[0].pid;
	nm_autofree struct nm_evaluation *evaluation = calloc(1, sizeof(*evaluation));
	if (!evaluation)
		return -ENOMEM;
	evaluation->opened = decision->interval;
	evaluation->performance = (struct nm_feedback_change){NAN, NAN, NAN, NAN, false, false};
	evaluation->local_before = local_share(snapshot, config, pid, &evaluation->samples_before);
	int r = nm_feedback_baseline(feedback, pid, &evaluation->baseline);
	if (r < 0)
		return r;
	*ret = NM_TAKE(evaluation);
	return 0;
}

int nm_verifier_add_pages(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
			  const struct nm_feedback *feedback, const struct nm_config *config,
			  const struct nm_decision *decision)
{
	const struct nm_step *process = &decision->steps[0];
	struct nm_evaluation *evaluation = newest_of(verifier, process->pid, process->start_ticks);
	struct nm_question *question;
	int r = nm_verifier_put(verifier, decision, &question);
	if (r == 0 && !is_joinable(evaluation, decision->interval)) {
		r = open_evaluation(snapshot, feedback, config, decision, &evaluation);
		verifier->count -= r < 0;
	}
	if (r < 0)
		return r;
	question->verdict.threads[0].ran_on_node = true;
	question->evaluation = evaluation;
	evaluation->count++;
	evaluation->moving++;
	/* Accesses during the migration count neither as before nor as after. */
	evaluation->local_after = evaluation->total_after = evaluation->samples_after = 0;
	return 0;
}

void nm_verifier_done(struct nm_verifier *verifier, uint64_t decision,
		      const struct nm_page_results *results, uint64_t interval)
{
	for (size_t i = 0; i < verifier->count; i++) {
		struct nm_question *question = &verifier->questions[i];
		if (question->verdict.decision != decision || question->ended)
			continue;
		question->ended = true;
		question->verdict.results = *results;
		question->evaluation->moved |= results->moved > 0;
		question->evaluation->moving--;
		question->evaluation->done = interval;
	}
}

void nm_verifier_disturb(struct nm_verifier *verifier, uint32_t pid)
{
	for (size_t i = 0; i < verifier->count; i++)
		if (verifier->questions[i].verdict.threads[0].pid == pid)
			verifier->questions[i].evaluation->disturbed = true;
}

/* ---- end of an evaluation ---- */

static bool is_alive(const struct nm_verdict_thread *process, const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].pid == process->pid)
			return snapshot->processes[i].start_ticks == process->start_ticks;
	return false;
}

static void observe(struct nm_evaluation *evaluation, uint32_t pid,
		    const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->pid != pid || thread->main_node < 0)
			continue;
		evaluation->local_after += thread->fresh[thread->main_node];
		evaluation->samples_after += thread->fresh_samples;
		for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
			evaluation->total_after += thread->fresh[node];
	}
}

static double share_after(const struct nm_evaluation *evaluation)
{
	return evaluation->total_after > 0
		       ? (double)evaluation->local_after / (double)evaluation->total_after
		       : (double)NAN;
}

static bool is_measured(const struct nm_evaluation *evaluation, const struct nm_config *config)
{
	return isfinite(evaluation->performance.figure) ||
	       (evaluation->samples_after >= config->threads.min_samples &&
		evaluation->total_after > 0);
}

/* If only locality is known, pages that were spread on purpose cannot be judged. */
static bool is_unobservable(const struct nm_evaluation *evaluation,
			    const struct nm_verdict *verdict, const struct nm_snapshot *snapshot)
{
	return verdict->pages.reason == NM_PAGE_REASON_CONTENTION &&
	       (!isfinite(evaluation->performance.figure) || snapshot->by_locality);
}

static double variance_of(double share, double samples)
{
	return share * (1 - share) / fmax(samples, 1);
}

/* Pages that cannot be moved back must not be rolled back. */
static bool may_be_undone(const struct nm_page_results *results, const struct nm_config *config)
{
	return config->pages.rollback_pages > 0 &&
	       (results->forgotten == 0 || results->remembered > 0);
}

static enum nm_verdict_kind weigh_locality(const struct nm_evaluation *evaluation,
					   const struct nm_config *config, bool undo)
{
	double before = evaluation->local_before, after = share_after(evaluation);
	double margin = config->threads.gate_margin;
	double noise = config->threads.gate_sigmas *
		       sqrt(variance_of(before, evaluation->samples_before) +
			    variance_of(after, (double)evaluation->samples_after));
	if (isnan(before))
		return NM_VERDICT_NEUTRAL;
	return nm_judge_change(after - before, fmax(margin, noise),
			       undo && config->threads.rollback ? margin : INFINITY);
}

static enum nm_verdict_kind kind_of(const struct nm_evaluation *evaluation,
				    const struct nm_verdict *verdict,
				    const struct nm_snapshot *snapshot,
				    const struct nm_config *config)
{
	if (verdict->results.moved == 0 || !is_measured(evaluation, config) ||
	    evaluation->disturbed || !verdict->threads[0].alive)
		return NM_VERDICT_INCONCLUSIVE;
	/* A rollback restores the earlier state: it cannot be an improvement, or be rolled back. */
	if (verdict->pages.reason == NM_PAGE_REASON_ROLLBACK ||
	    is_unobservable(evaluation, verdict, snapshot))
		return NM_VERDICT_NEUTRAL;
	bool undo = may_be_undone(&verdict->results, config);
	if (!isfinite(evaluation->performance.figure))
		return weigh_locality(evaluation, config, undo);
	if (evaluation->performance.loss && undo)
		return NM_VERDICT_ROLLED_BACK;
	return evaluation->performance.gain ? NM_VERDICT_IMPROVED : NM_VERDICT_NEUTRAL;
}

static bool is_ripe(const struct nm_evaluation *evaluation, bool alive,
		    const struct nm_snapshot *snapshot, const struct nm_config *config)
{
	if (evaluation->moving > 0)
		return false;
	if (!evaluation->moved || !alive)
		return true;
	uint64_t waited = snapshot->interval - evaluation->done;
	return waited >= NM_VERDICT_INTERVALS ||
	       (waited >= NM_PAGE_SETTLE_INTERVALS && is_measured(evaluation, config));
}

static void judge(struct nm_question *question, const struct nm_snapshot *snapshot,
		  const struct nm_config *config)
{
	const struct nm_evaluation *evaluation = question->evaluation;
	struct nm_verdict *verdict = &question->verdict;
	struct nm_verdict_thread *process = &verdict->threads[0];
	process->alive = is_alive(process, snapshot);
	question->judged = is_ripe(evaluation, process->alive, snapshot, config);
	if (!question->judged)
		return;
	verdict->kind = kind_of(evaluation, verdict, snapshot, config);
	verdict->intervals = (unsigned)(snapshot->interval - verdict->interval);
	verdict->together = evaluation->count;
	verdict->by_performance = isfinite(evaluation->performance.figure);
	verdict->figure = evaluation->performance.figure;
	verdict->noise = evaluation->performance.noise;
	process->local_before = evaluation->local_before;
	process->local_after = share_after(evaluation);
	process->samples_after = evaluation->samples_after;
	process->performance_before = evaluation->performance.before;
	process->performance_after = evaluation->performance.after;
}

/* Each evaluation is updated once in an interval. */
static int update(struct nm_evaluation *evaluation, uint32_t pid,
		  const struct nm_snapshot *snapshot, const struct nm_feedback *feedback,
		  const struct nm_config *config)
{
	if (evaluation->moving > 0 || snapshot->interval <= evaluation->done ||
	    evaluation->seen == snapshot->interval)
		return 0;
	evaluation->seen = snapshot->interval;
	observe(evaluation, pid, snapshot);
	return nm_feedback_compare(feedback, evaluation->baseline, config,
				   &evaluation->performance);
}

int nm_verifier_judge_pages(struct nm_verifier *verifier, const struct nm_snapshot *snapshot,
			    const struct nm_feedback *feedback, const struct nm_config *config,
			    struct nm_verdicts *ret)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < verifier->count; i++) {
		struct nm_question *question = &verifier->questions[i];
		r = update(question->evaluation, question->verdict.threads[0].pid, snapshot,
			   feedback, config);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < verifier->count; i++)
		judge(&verifier->questions[i], snapshot, config);
	return nm_verifier_take(verifier, ret);
}
