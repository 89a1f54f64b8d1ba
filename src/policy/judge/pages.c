/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "numa-migrd/judge.h"

struct question {
	uint32_t pid;
	uint64_t start_ticks;
	uint64_t opened; /* interval of the first decision */
	uint64_t done;	 /* interval in which the last batch ended */
	size_t moving;	 /* number of decisions with pending batches */
	bool disturbed;	 /* threads of the process were moved meanwhile */
	struct nm_baseline *baseline;
	double local_before, samples_before;
	uint64_t local_after, total_after, samples_after;
	struct nm_feedback_change performance;
	struct nm_verdict *verdicts; /* values known so far, one per decision */
	bool *ended;
	size_t count, capacity, ended_capacity;
};

struct nm_page_verifier {
	struct question *questions; /* in order of their first decisions */
	size_t count, capacity;
};

static void question_clear(struct question *question)
{
	nm_baseline_free(question->baseline);
	free(question->verdicts);
	free(question->ended);
}

int nm_page_verifier_new(struct nm_page_verifier **ret)
{
	struct nm_page_verifier *verifier = calloc(1, sizeof(*verifier));
	if (!verifier)
		return -ENOMEM;
	*ret = verifier;
	return 0;
}

void nm_page_verifier_free(struct nm_page_verifier *verifier)
{
	if (!verifier)
		return;
	for (size_t i = 0; i < verifier->count; i++)
		question_clear(&verifier->questions[i]);
	free(verifier->questions);
	free(verifier);
}

size_t nm_page_verifier_open(const struct nm_page_verifier *verifier)
{
	size_t open = 0;
	for (size_t i = 0; i < verifier->count; i++)
		open += verifier->questions[i].count;
	return open;
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

static struct question *newest_of(const struct nm_page_verifier *verifier, uint32_t pid,
				  uint64_t start_ticks)
{
	for (size_t i = verifier->count; i-- > 0;) {
		struct question *question = &verifier->questions[i];
		if (question->pid == pid && question->start_ticks == start_ticks)
			return question;
	}
	return NULL;
}

static bool is_joinable(const struct question *question, uint64_t interval)
{
	return interval - question->opened < NM_PAGE_JOIN_INTERVALS;
}

bool nm_page_verifier_awaits(const struct nm_page_verifier *verifier, uint32_t pid,
			     uint64_t start_ticks, uint64_t interval)
{
	const struct question *question = newest_of(verifier, pid, start_ticks);
	return question && !is_joinable(question, interval);
}

static int open_question(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			 const struct nm_feedback *feedback, const struct nm_config *config,
			 const struct nm_decision *decision, struct question **ret)
{
	uint32_t pid = decision->steps[0].pid;
	struct question question = {
		.pid = pid,
		.start_ticks = decision->steps[0].start_ticks,
		.opened = decision->interval,
		.performance = {.before = NAN, .after = NAN, .figure = NAN, .noise = NAN},
	};
	question.local_before = local_share(snapshot, config, pid, &question.samples_before);
	int r = nm_reserve((void **)&verifier->questions, &verifier->capacity, verifier->count,
			   sizeof(*verifier->questions));
	if (r == 0)
		r = nm_feedback_baseline(feedback, pid, &question.baseline);
	if (r < 0)
		return r;
	*ret = &verifier->questions[verifier->count++];
	**ret = question;
	return 0;
}

static int join(struct question *question, const struct nm_decision *decision)
{
	int r = nm_reserve((void **)&question->verdicts, &question->capacity, question->count,
			   sizeof(*question->verdicts));
	if (r == 0)
		r = nm_reserve((void **)&question->ended, &question->ended_capacity,
			       question->count, sizeof(*question->ended));
	if (r < 0)
		return r;
	question->ended[question->count] = false;
	question->verdicts[question->count] = nm_verdict_of(decision);
	question->verdicts[question->count++].threads[0].ran_on_node = true;
	question->moving++;
	/* Accesses during the migration count neither as before nor as after. */
	question->local_after = question->total_after = question->samples_after = 0;
	return 0;
}

int nm_page_verifier_add(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			 const struct nm_feedback *feedback, const struct nm_config *config,
			 const struct nm_decision *decision)
{
	struct question *question =
		newest_of(verifier, decision->steps[0].pid, decision->steps[0].start_ticks);
	if (!question || !is_joinable(question, decision->interval)) {
		int r = open_question(verifier, snapshot, feedback, config, decision, &question);
		if (r < 0)
			return r;
	}
	return join(question, decision);
}

static void end_decision(struct question *question, size_t index,
			 const struct nm_page_results *results, uint64_t interval)
{
	if (question->ended[index])
		return;
	question->ended[index] = true;
	question->verdicts[index].results = *results;
	question->moving--;
	question->done = interval;
}

void nm_page_verifier_done(struct nm_page_verifier *verifier, uint64_t decision,
			   const struct nm_page_results *results, uint64_t interval)
{
	for (size_t i = 0; i < verifier->count; i++)
		for (size_t j = 0; j < verifier->questions[i].count; j++)
			if (verifier->questions[i].verdicts[j].decision == decision)
				end_decision(&verifier->questions[i], j, results, interval);
}

void nm_page_verifier_disturb(struct nm_page_verifier *verifier, uint32_t pid)
{
	for (size_t i = 0; i < verifier->count; i++)
		if (verifier->questions[i].pid == pid)
			verifier->questions[i].disturbed = true;
}

/* ---- end of an evaluation ---- */

static bool is_alive(const struct question *question, const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].pid == question->pid)
			return snapshot->processes[i].start_ticks == question->start_ticks;
	return false;
}

static void observe(struct question *question, const struct nm_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->pid != question->pid || thread->main_node < 0)
			continue;
		question->local_after += thread->fresh[thread->main_node];
		question->samples_after += thread->fresh_samples;
		for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
			question->total_after += thread->fresh[node];
	}
}

static double share_after(const struct question *question)
{
	return question->total_after > 0
		       ? (double)question->local_after / (double)question->total_after
		       : (double)NAN;
}

static bool is_measured(const struct question *question, const struct nm_config *config)
{
	return isfinite(question->performance.figure) ||
	       (question->samples_after >= config->threads.min_samples &&
		question->total_after > 0);
}

static bool has_moved(const struct question *question)
{
	for (size_t i = 0; i < question->count; i++)
		if (question->verdicts[i].results.moved > 0)
			return true;
	return false;
}

/* If only locality is known, pages that were spread on purpose cannot be judged. */
static bool is_unobservable(const struct question *question, const struct nm_verdict *verdict,
			    const struct nm_snapshot *snapshot)
{
	return verdict->pages.reason == NM_PAGE_REASON_CONTENTION &&
	       (!isfinite(question->performance.figure) || snapshot->by_locality);
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

static enum nm_verdict_kind weigh_locality(const struct question *question,
					   const struct nm_config *config, bool undo)
{
	double before = question->local_before, after = share_after(question);
	double margin = config->threads.gate_margin;
	double noise = config->threads.gate_sigmas *
		       sqrt(variance_of(before, question->samples_before) +
			    variance_of(after, (double)question->samples_after));
	if (isnan(before))
		return NM_VERDICT_NEUTRAL;
	return nm_judge_change(after - before, fmax(margin, noise),
			       undo && config->threads.rollback ? margin : INFINITY);
}

static enum nm_verdict_kind kind_of(const struct question *question,
				    const struct nm_verdict *verdict,
				    const struct nm_snapshot *snapshot,
				    const struct nm_config *config)
{
	if (verdict->results.moved == 0 || !is_measured(question, config) || question->disturbed ||
	    !is_alive(question, snapshot))
		return NM_VERDICT_INCONCLUSIVE;
	/* A rollback restores the earlier state: it cannot be an improvement, or be rolled back. */
	if (verdict->pages.reason == NM_PAGE_REASON_ROLLBACK ||
	    is_unobservable(question, verdict, snapshot))
		return NM_VERDICT_NEUTRAL;
	bool undo = may_be_undone(&verdict->results, config);
	if (!isfinite(question->performance.figure))
		return weigh_locality(question, config, undo);
	if (question->performance.loss && undo)
		return NM_VERDICT_ROLLED_BACK;
	return question->performance.gain ? NM_VERDICT_IMPROVED : NM_VERDICT_NEUTRAL;
}

static bool is_ripe(const struct question *question, const struct nm_snapshot *snapshot,
		    const struct nm_config *config)
{
	if (question->moving > 0)
		return false;
	if (!has_moved(question) || !is_alive(question, snapshot))
		return true;
	uint64_t waited = snapshot->interval - question->done;
	return waited >= NM_VERDICT_INTERVALS ||
	       (waited >= NM_PAGE_SETTLE_INTERVALS && is_measured(question, config));
}

static void answer(struct question *question, const struct nm_snapshot *snapshot,
		   const struct nm_config *config, struct nm_verdicts *verdicts)
{
	for (size_t i = 0; i < question->count; i++) {
		struct nm_verdict *verdict = &verdicts->items[verdicts->count++];
		struct nm_verdict_thread *process = &verdict->threads[0];
		*verdict = question->verdicts[i];
		verdict->kind = kind_of(question, verdict, snapshot, config);
		verdict->intervals = (unsigned)(snapshot->interval - verdict->interval);
		verdict->together = (unsigned)question->count;
		verdict->by_performance = isfinite(question->performance.figure);
		verdict->figure = question->performance.figure;
		verdict->noise = question->performance.noise;
		process->alive = is_alive(question, snapshot);
		process->local_before = question->local_before;
		process->local_after = share_after(question);
		process->samples_after = question->samples_after;
		process->performance_before = question->performance.before;
		process->performance_after = question->performance.after;
	}
}

static int look_at_question(struct question *question, const struct nm_snapshot *snapshot,
			    const struct nm_feedback *feedback, const struct nm_config *config)
{
	if (question->moving > 0 || snapshot->interval <= question->done)
		return 0;
	observe(question, snapshot);
	return nm_feedback_compare(feedback, question->baseline, config, &question->performance);
}

int nm_page_verifier_judge(struct nm_page_verifier *verifier, const struct nm_snapshot *snapshot,
			   const struct nm_feedback *feedback, const struct nm_config *config,
			   struct nm_verdicts *ret)
{
	struct nm_verdicts verdicts = {
		.items = calloc(nm_page_verifier_open(verifier) + 1, sizeof(*verdicts.items))};
	size_t open = 0;
	int r = verdicts.items ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < verifier->count; i++)
		r = look_at_question(&verifier->questions[i], snapshot, feedback, config);
	if (r < 0) {
		nm_verdicts_clear(&verdicts);
		return r;
	}
	for (size_t i = 0; i < verifier->count; i++) {
		struct question *question = &verifier->questions[i];
		if (is_ripe(question, snapshot, config)) {
			answer(question, snapshot, config, &verdicts);
			question_clear(question);
		} else {
			verifier->questions[open++] = *question;
		}
	}
	verifier->count = open;
	*ret = verdicts;
	return 0;
}
