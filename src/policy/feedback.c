/* SPDX-License-Identifier: MIT */
/* Equation 4 of IMAR²: whether the performance rose or fell after moves, by how much it varies
 * without them, and the interval that follows. Moves of pages are compared in the same way. */
#include <math.h>
#include <string.h>

#include "numa-migrd/snapshot.h"
#include "performance_change.h"
#include "policy/judge.h"
#include "policy/placement.h"

/* A relative change of the number of active threads above this value postpones the verdict. */
#define ACTIVE_CHANGE_MAX 0.25
#define POSTPONED_MAX 2U /* maximum number of consecutive postponements */
/* Fewer processes do not show a common change: one of them may have begun another phase. */
#define OTHERS_MIN 3U
/* A verdict does not call a smaller rise a gain, even if there was no noise before. */
#define GAIN_MIN 0.01

/* ---- equation 4 ---- */

/* The history of a process, or of all of them together. */
struct history {
	struct nm_spread spread;
	double log_losses, losses_variance; /* of moves accepted since its last gain */
	uint64_t disturbed; /* the last call after which its threads or pages were moved */
};

/* A decision that awaits its judgement, and a process that owns a thread moved by it. */
struct move {
	uint64_t decision;
	uint32_t pid;
};

struct nm_feedback {
	struct nm_readings last; /* of the last call */
	struct nm_readings base; /* when the moves to be judged were decided */
	size_t active_base;
	struct move *moves;
	size_t nr_moves, move_capacity;
	struct nm_feedback_judgement *judgements; /* of the decisions, in order */
	size_t nr_judgements, judgement_capacity;
	uint64_t call; /* number of calls of nm_imar2_feedback() */
	unsigned postponed;
	/*
	 * The meaning of P when these were collected: a spread of other values is not comparable.
	 */
	bool by_locality;
	enum nm_performance performance;
	struct history all;
	struct nm_column histories; /* of the managed processes; those of idle ones are kept */
	double interval_s;	    /* 0: not started */
	double interval_from_s;	    /* the setting from which it started */
};

struct nm_feedback *nm_feedback_new(void)
{
	struct nm_feedback *feedback = nm_must(calloc(1, sizeof(*feedback)));
	feedback->histories.cell_bytes = sizeof(struct history);
	return feedback;
}

void nm_feedback_free(struct nm_feedback *feedback)
{
	if (!feedback)
		return;
	free(feedback->last.items);
	free(feedback->base.items);
	free(feedback->moves);
	free(feedback->judgements);
	nm_column_clear(&feedback->histories);
	free(feedback);
}

static void update_spread(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
			  const struct nm_readings *now)
{
	nm_auto(nm_process_changes_clear) struct nm_process_changes process_changes = {0};
	nm_process_changes_compare(&feedback->last, now, &process_changes);
	nm_column_follow_processes(&feedback->histories, snapshot);
	for (size_t i = 0; i < process_changes.count; i++) {
		const struct nm_process_change *process_change = &process_changes.items[i];
		struct history *history = nm_column_find(&feedback->histories, process_change->pid);
		if (history && history->disturbed < feedback->call)
			nm_spread_add(&history->spread, process_change->before,
				      process_change->after);
	}
	struct nm_process_change sum = nm_process_changes_sum(&process_changes);
	if (feedback->all.disturbed < feedback->call)
		nm_spread_add(&feedback->all.spread, sum.before, sum.after);
}

/* A process whose threads were moved; with feedback = "global", all processes together. */
struct scope {
	struct history *history;
	uint32_t pid;
	double log; /* logarithm of the remaining performance; NaN: not comparable */
	double sigma;
	bool rolled_back;
};

struct scopes {
	struct scope *items;
	size_t count;
	bool global;
};

static struct scope scope_of(struct history *history, uint32_t pid,
			     const struct nm_process_change *process_change)
{
	struct scope scope = {.history = history,
			      .pid = pid,
			      .log = NAN,
			      .sigma = nm_spread_sigma(&history->spread)};
	if (process_change && process_change->before > 0)
		scope.log = log(process_change->after / process_change->before);
	return scope;
}

static bool has_scope(const struct scopes *scopes, uint32_t pid)
{
	for (size_t i = 0; i < scopes->count; i++)
		if (scopes->items[i].pid == pid)
			return true;
	return false;
}

/* Returns whether the decision (0: any decision) moved a thread of the scope. */
static bool involves(const struct nm_feedback *feedback, const struct scopes *scopes,
		     uint64_t decision, const struct scope *scope)
{
	if (scopes->global || decision == 0)
		return true;
	for (size_t i = 0; i < feedback->nr_moves; i++)
		if (feedback->moves[i].decision == decision && feedback->moves[i].pid == scope->pid)
			return true;
	return false;
}

/* The geometric mean over the scopes of a decision; NaN if none has values. */
struct change {
	double log, sigma;
	double losses, losses_sigma;
};

static struct change change_of(const struct nm_feedback *feedback, const struct scopes *scopes,
			       uint64_t decision)
{
	double logs = 0, variance = 0, losses = 0, losses_variance = 0;
	unsigned count = 0;
	for (size_t i = 0; i < scopes->count; i++) {
		const struct scope *scope = &scopes->items[i];
		const struct history *history = scope->history;
		double own = scope->sigma * scope->sigma;
		if (isnan(scope->log) || !involves(feedback, scopes, decision, scope))
			continue;
		logs += scope->log;
		variance += own;
		losses += fmin(0, history->log_losses + scope->log);
		losses_variance += history->losses_variance + own;
		count++;
	}
	if (count == 0)
		return (struct change){.log = NAN};
	return (struct change){.log = logs / count,
			       .sigma = sqrt(variance) / count,
			       .losses = losses / count,
			       .losses_sigma = sqrt(losses_variance) / count};
}

static bool is_gain(const struct nm_config *config, double change, double sigma)
{
	return change > 0 && change > config->rules.noise_gate * sigma;
}

static struct nm_change log_change(const struct nm_config *config, double change, double sigma)
{
	double noise = config->rules.noise_gate * sigma;
	return nm_change_of(change, fmax(log1p(GAIN_MIN), noise),
			    fmax(-log(config->rules.delta_g), noise));
}

static struct nm_feedback_judgement judgement_of(const struct nm_config *config,
						 const struct change *change, uint64_t decision)
{
	double figure = exp(change->log);
	bool summed = !config->rules.paper && !isnan(figure);
	struct nm_feedback_judgement judgement = {
		.decision = decision,
		.change = log_change(config, change->log, change->sigma),
		.figure = figure,
		.noise = config->rules.noise_gate * change->sigma,
		.losses = summed ? exp(change->losses) : figure,
	};
	/* Small losses accumulate; only the last decision can be rolled back. */
	struct nm_change losses = log_change(config, change->losses, change->losses_sigma);
	if (summed && nm_change_kind(&losses) == NM_VERDICT_ROLLED_BACK)
		judgement.change.fall = 0;
	return judgement;
}

static enum nm_feedback_outcome judge_decisions(struct nm_feedback *feedback,
						const struct nm_config *config,
						const struct scopes *scopes,
						struct nm_feedback_result *result)
{
	struct change change = change_of(feedback, scopes, 0);
	struct nm_feedback_judgement all = judgement_of(config, &change, 0);
	bool roll_back = false;
	result->figure = all.figure;
	result->noise = all.noise;
	result->losses = all.losses;
	for (size_t i = 0; i < feedback->nr_judgements; i++) {
		struct nm_feedback_judgement *judgement = &feedback->judgements[i];
		uint64_t decision = judgement->decision;
		struct change own = change_of(feedback, scopes, decision);
		*judgement = judgement_of(config, &own, decision);
		bool fell = nm_change_kind(&judgement->change) == NM_VERDICT_ROLLED_BACK;
		roll_back = roll_back || fell;
		for (size_t k = 0; fell && k < scopes->count; k++)
			if (involves(feedback, scopes, decision, &scopes->items[k]))
				scopes->items[k].rolled_back = true;
	}
	for (size_t i = 0; i < scopes->count; i++) {
		const struct scope *scope = &scopes->items[i];
		struct history *history = scope->history;
		/* A decision that is rolled back leaves no loss. */
		if (isnan(scope->log) || scope->rolled_back)
			continue;
		history->log_losses = fmin(0, history->log_losses + scope->log);
		history->losses_variance += scope->sigma * scope->sigma;
		if (history->log_losses == 0 || is_gain(config, scope->log, scope->sigma))
			history->log_losses = history->losses_variance = 0;
	}
	if (roll_back)
		return NM_FEEDBACK_ROLL_BACK;
	return is_gain(config, change.log, change.sigma) ? NM_FEEDBACK_GAIN : NM_FEEDBACK_KEEP;
}

static void judge_moves(struct nm_feedback *feedback, const struct nm_config *config,
			const struct nm_readings *now, struct nm_feedback_result *result)
{
	nm_auto(nm_process_changes_clear) struct nm_process_changes process_changes = {0};
	struct scopes scopes = {
		.items = nm_must(calloc(feedback->nr_moves + 1, sizeof(*scopes.items))),
		.global = config->rules.feedback == NM_FEEDBACK_GLOBAL};
	nm_process_changes_compare(&feedback->base, now, &process_changes);
	struct nm_process_change sum = nm_process_changes_sum(&process_changes);
	if (scopes.global)
		scopes.items[scopes.count++] = scope_of(&feedback->all, 0, &sum);
	for (size_t i = 0; !scopes.global && i < feedback->nr_moves; i++) {
		uint32_t pid = feedback->moves[i].pid;
		struct history *history = nm_column_find(&feedback->histories, pid);
		if (history && !has_scope(&scopes, pid))
			scopes.items[scopes.count++] =
				scope_of(history, pid, nm_process_change_of(&process_changes, pid));
	}
	result->outcome = judge_decisions(feedback, config, &scopes, result);
	free(scopes.items);
	result->may_propose = result->outcome != NM_FEEDBACK_ROLL_BACK;
	if (process_changes.count > 0) {
		result->before = sum.before;
		result->after = sum.after;
	}
	result->judgements = feedback->judgements;
	result->nr_judgements = feedback->nr_judgements;
}

static double within_bounds(const struct nm_config *config, double interval_s)
{
	return fmax(fmin(interval_s, config->rules.t_max_s), config->rules.t_min_s);
}

double nm_feedback_interval_s(const struct nm_feedback *feedback, const struct nm_config *config)
{
	bool begun =
		feedback->interval_s > 0 && feedback->interval_from_s == config->general.interval_s;
	return within_bounds(config, begun ? feedback->interval_s : config->general.interval_s);
}

static void judge_and_update(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
			     const struct nm_config *config, const struct nm_readings *now,
			     struct nm_feedback_result *result)
{
	/* Only an interval with measured threads determines the meaning of P. */
	if (now->count > 0 && (now->by_locality != feedback->by_locality ||
			       now->performance != feedback->performance)) {
		feedback->by_locality = now->by_locality;
		feedback->performance = now->performance;
		feedback->all = (struct history){0};
		nm_column_clear(&feedback->histories);
	}
	double active_before = (double)feedback->active_base;
	bool active_changed =
		fabs((double)snapshot->active - active_before) > ACTIVE_CHANGE_MAX * active_before;
	if (feedback->nr_judgements > 0 && !config->rules.paper &&
	    feedback->postponed < POSTPONED_MAX && active_changed) {
		feedback->postponed++;
		result->outcome = NM_FEEDBACK_POSTPONED;
		result->may_propose = false;
	} else if (feedback->nr_judgements > 0) {
		judge_moves(feedback, config, now, result);
	}
	/* After the judgement, which must be compared with the earlier spread. */
	update_spread(feedback, snapshot, now);
	bool gain = result->outcome == NM_FEEDBACK_GAIN;
	if (gain || result->outcome == NM_FEEDBACK_ROLL_BACK) {
		double interval_s = nm_feedback_interval_s(feedback, config);
		feedback->interval_s =
			within_bounds(config, gain ? interval_s / 2 : interval_s * 2);
		feedback->interval_from_s = config->general.interval_s;
	}
}

void nm_imar2_feedback(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, struct nm_feedback_result *ret)
{
	struct nm_feedback_result result = {
		.outcome = NM_FEEDBACK_NONE,
		.may_propose = true,
		.figure = NAN,
		.losses = NAN,
		.before = NAN,
		.after = NAN,
	};
	struct nm_readings now = {0};
	nm_readings_take(snapshot, config, &now);
	judge_and_update(feedback, snapshot, config, &now, &result);
	nm_readings_replace(&feedback->last, &now);
	feedback->call++;
	/* The judgement ends; its arrays stay valid for the result. */
	if (result.outcome != NM_FEEDBACK_POSTPONED)
		feedback->nr_moves = feedback->nr_judgements = feedback->postponed = 0;
	result.interval_s = nm_feedback_interval_s(feedback, config);
	*ret = result;
}

void nm_feedback_disturb(struct nm_feedback *feedback, uint32_t pid)
{
	struct history *history = nm_column_find(&feedback->histories, pid);
	feedback->all.disturbed = feedback->call;
	if (history)
		history->disturbed = feedback->call;
}

void nm_feedback_moved(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		       uint64_t decision, uint32_t pid, bool rollback)
{
	size_t count = feedback->nr_judgements;
	nm_feedback_disturb(feedback, pid);
	if (rollback)
		return;
	if (count == 0) { /* the readings of this tick are the baseline of its moves */
		struct nm_readings base;
		nm_readings_copy(&feedback->last, &base);
		nm_readings_replace(&feedback->base, &base);
		feedback->active_base = snapshot->active;
	}
	NM_RESERVE(feedback->moves, feedback->move_capacity, feedback->nr_moves);
	feedback->moves[feedback->nr_moves++] = (struct move){.decision = decision, .pid = pid};
	if (count > 0 && feedback->judgements[count - 1].decision == decision)
		return;
	NM_RESERVE(feedback->judgements, feedback->judgement_capacity, count);
	feedback->judgements[feedback->nr_judgements++] =
		(struct nm_feedback_judgement){.decision = decision};
}

/* ---- operations that take longer than a tick ---- */

struct nm_baseline {
	uint32_t pid;
	uint64_t call;
	struct nm_readings readings; /* of all processes */
};

void nm_baseline_free(struct nm_baseline *baseline)
{
	if (!baseline)
		return;
	free(baseline->readings.items);
	free(baseline);
}

void nm_feedback_baseline(const struct nm_feedback *feedback, uint32_t pid,
			  struct nm_baseline **ret)
{
	nm_auto(nm_baseline_freep) struct nm_baseline *baseline =
		nm_must(calloc(1, sizeof(*baseline)));
	nm_readings_copy(&feedback->last, &baseline->readings);
	baseline->pid = pid;
	baseline->call = feedback->call;
	*ret = NM_TAKE(baseline);
}

/* Divides the change of the process by that of the processes that were left alone since the
 * baseline: a change that all have in common is not caused by the move. */
static void compare_with_others(const struct nm_feedback *feedback,
				const struct nm_baseline *baseline,
				const struct nm_process_changes *changes, struct scope *scope)
{
	nm_autofree struct nm_place_change *others =
		nm_must(calloc(changes->count + 1, sizeof(*others)));
	double variance = 0;
	size_t count = 0;
	for (size_t i = 0; i < changes->count; i++) {
		const struct nm_process_change *one = &changes->items[i];
		const struct history *history = nm_column_find(&feedback->histories, one->pid);
		if (one->pid == baseline->pid || !history || history->disturbed >= baseline->call ||
		    !(one->before > 0 && one->after > 0))
			continue;
		variance += pow(nm_spread_sigma(&history->spread), 2);
		others[count++] = (struct nm_place_change){one->domain, one->after / one->before};
	}
	if (count < OTHERS_MIN)
		return;
	scope->log -= log(nm_place_domain_median(others, count, 1));
	scope->sigma = hypot(scope->sigma, sqrt(variance) / (double)count);
}

void nm_feedback_compare(const struct nm_feedback *feedback, const struct nm_baseline *baseline,
			 const struct nm_config *config, struct nm_feedback_change *ret)
{
	nm_auto(nm_process_changes_clear) struct nm_process_changes process_changes = {0};
	struct nm_feedback_change change = {
		.before = NAN, .after = NAN, .figure = NAN, .noise = NAN};
	nm_process_changes_compare(&baseline->readings, &feedback->last, &process_changes);
	const struct nm_process_change *process_change =
		nm_process_change_of(&process_changes, baseline->pid);
	struct history *history = nm_column_find(&feedback->histories, baseline->pid);
	if (process_change && history && process_change->before > 0) {
		struct scope scope = scope_of(history, baseline->pid, process_change);
		compare_with_others(feedback, baseline, &process_changes, &scope);
		change.before = process_change->before;
		change.after = process_change->after;
		change.figure = exp(scope.log);
		change.noise = config->rules.noise_gate * scope.sigma;
		change.change = log_change(config, scope.log, scope.sigma);
	}
	*ret = change;
}
