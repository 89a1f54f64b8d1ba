/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "numa-migrd/feedback.h"
#include "spread.h"

/* A change of the number of active threads beyond this share postpones the verdict. */
#define CROWD_CHANGE 0.25

/* P of a thread in one interval. */
struct reading {
	uint32_t tid, pid;
	uint64_t start_ticks;
	double performance;
};

/* The measured threads of one interval, ascending tid. */
struct readings {
	struct reading *items;
	size_t count;
	bool by_locality;
	enum nm_performance performance; /* readings of another figure cannot be compared */
};

/* A process over two intervals: sums of P over the threads measured in both. */
struct course {
	uint32_t pid;
	double before, after;
};

struct history {
	uint32_t pid;
	struct nm_spread spread;
};

struct nm_feedback {
	struct readings last; /* of the last call */
	struct readings base; /* when the moves under judgement were decided */
	size_t active_base;
	uint64_t *decisions; /* under judgement */
	size_t nr_decisions, decision_capacity;
	uint32_t *moved; /* pids that own a thread moved by them */
	size_t nr_moved, moved_capacity;
	uint32_t *disturbed; /* pids of any thread moved in the last tick */
	size_t nr_disturbed, disturbed_capacity;
	unsigned postponed;
	struct nm_spread spread;   /* of P_g */
	struct history *histories; /* of processes, ascending pid */
	size_t nr_histories;
	double log_losses, losses_variance; /* since the last gain */
	double interval_s;		    /* 0: not begun */
};

int nm_feedback_new(struct nm_feedback **ret)
{
	struct nm_feedback *feedback = calloc(1, sizeof(*feedback));
	if (!feedback)
		return -ENOMEM;
	*ret = feedback;
	return 0;
}

void nm_feedback_free(struct nm_feedback *feedback)
{
	if (!feedback)
		return;
	free(feedback->last.items);
	free(feedback->base.items);
	free(feedback->decisions);
	free(feedback->moved);
	free(feedback->disturbed);
	free(feedback->histories);
	free(feedback);
}

/* ---- readings ---- */

static int read_all(const struct nm_snapshot *snapshot, const struct nm_config *config,
		    struct readings *ret)
{
	struct readings readings = {
		.items = calloc(snapshot->measured + 1, sizeof(*readings.items)),
		.by_locality = snapshot->by_locality,
		.performance = config->threads.performance,
	};
	if (!readings.items)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->measured)
			readings.items[readings.count++] =
				(struct reading){.tid = thread->tid,
						 .pid = thread->pid,
						 .start_ticks = thread->start_ticks,
						 .performance = thread->performance};
	}
	*ret = readings;
	return 0;
}

static void replace(struct readings *old, struct readings *fresh)
{
	free(old->items);
	*old = *fresh;
	*fresh = (struct readings){0};
}

static int by_pid(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right; /* the first member of courses and histories */
	return (*a > *b) - (*a < *b);
}

static bool is_same(const struct reading *a, const struct reading *b)
{
	return a->tid == b->tid && a->pid == b->pid && a->start_ticks == b->start_ticks;
}

/* One course for each thread measured in both; then those of a process become one. */
static size_t list_common(const struct readings *before, const struct readings *after,
			  struct course *courses)
{
	size_t count = 0, position = 0;
	if (before->by_locality != after->by_locality || before->performance != after->performance)
		return 0;
	for (size_t i = 0; i < after->count; i++) {
		const struct reading *reading = &after->items[i];
		while (position < before->count && before->items[position].tid < reading->tid)
			position++;
		if (position == before->count)
			break;
		if (is_same(&before->items[position], reading))
			courses[count++] =
				(struct course){.pid = reading->pid,
						.before = before->items[position].performance,
						.after = reading->performance};
	}
	return count;
}

static size_t merge_neighbours(struct course *courses, size_t count)
{
	size_t merged = 0;
	for (size_t i = 0; i < count; i++) {
		if (merged > 0 && courses[merged - 1].pid == courses[i].pid) {
			courses[merged - 1].before += courses[i].before;
			courses[merged - 1].after += courses[i].after;
		} else {
			courses[merged++] = courses[i];
		}
	}
	return merged;
}

/* Threads of a process mostly have ids in a row, so that there is little left to sort. */
static size_t merge_processes(struct course *courses, size_t count)
{
	size_t merged = merge_neighbours(courses, count);
	if (merged > 0)
		qsort(courses, merged, sizeof(*courses), by_pid);
	return merge_neighbours(courses, merged);
}

/* Ascending pid. */
static int compare_readings(const struct readings *before, const struct readings *after,
			    struct course **ret, size_t *ret_count)
{
	struct course *courses = calloc(after->count + 1, sizeof(*courses));
	if (!courses)
		return -ENOMEM;
	*ret_count = merge_processes(courses, list_common(before, after, courses));
	*ret = courses;
	return 0;
}

static struct course sum_of(const struct course *courses, size_t count)
{
	struct course sum = {0};
	for (size_t i = 0; i < count; i++) {
		sum.before += courses[i].before;
		sum.after += courses[i].after;
	}
	return sum;
}

/* ---- the spread without our doing ---- */

static bool holds(const uint32_t *pids, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static const struct history *history_of(const struct nm_feedback *feedback, uint32_t pid)
{
	if (feedback->nr_histories == 0)
		return NULL;
	return bsearch(&pid, feedback->histories, feedback->nr_histories,
		       sizeof(*feedback->histories), by_pid);
}

/* Processes without a thread measured twice running are forgotten. */
static int follow_spread(struct nm_feedback *feedback, const struct readings *now)
{
	nm_autofree struct course *courses = NULL;
	size_t count;
	int r = compare_readings(&feedback->last, now, &courses, &count);
	if (r < 0)
		return r;
	struct history *histories = calloc(count + 1, sizeof(*histories));
	if (!histories)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct history *known = history_of(feedback, courses[i].pid);
		if (known)
			histories[i] = *known;
		histories[i].pid = courses[i].pid;
		if (!holds(feedback->disturbed, feedback->nr_disturbed, courses[i].pid))
			nm_spread_add(&histories[i].spread, courses[i].before, courses[i].after);
	}
	free(feedback->histories);
	feedback->histories = histories;
	feedback->nr_histories = count;
	struct course sum = sum_of(courses, count);
	if (feedback->nr_disturbed == 0)
		nm_spread_add(&feedback->spread, sum.before, sum.after);
	feedback->nr_disturbed = 0;
	return 0;
}

/* ---- the verdict ---- */

struct change {
	double log; /* of the figure; NaN: nothing to compare */
	double sigma;
};

static struct change change_of_all(const struct nm_feedback *feedback, const struct course *sum)
{
	struct change change = {.log = NAN, .sigma = nm_spread_sigma(&feedback->spread)};
	if (sum->before > 0)
		change.log = log(sum->after / sum->before);
	return change;
}

/* The geometric mean over the processes that own a moved thread. */
static struct change change_of_moved(const struct nm_feedback *feedback,
				     const struct course *courses, size_t count)
{
	double logs = 0, variance = 0;
	unsigned processes = 0;
	for (size_t i = 0; i < count; i++) {
		const struct history *history = history_of(feedback, courses[i].pid);
		if (!(courses[i].before > 0) ||
		    !holds(feedback->moved, feedback->nr_moved, courses[i].pid))
			continue;
		double sigma = history ? nm_spread_sigma(&history->spread) : 0;
		logs += log(courses[i].after / courses[i].before);
		variance += sigma * sigma;
		processes++;
	}
	if (processes == 0)
		return (struct change){.log = NAN};
	return (struct change){.log = logs / processes, .sigma = sqrt(variance) / processes};
}

/* Small losses multiply; what is undone by their product is taken out of it again. */
static bool losses_are_too_many(struct nm_feedback *feedback, const struct nm_config *config,
				const struct change *change, struct nm_feedback_result *result)
{
	double losses = fmin(0, feedback->log_losses + change->log);
	double variance = feedback->losses_variance + change->sigma * change->sigma;
	if (!config->threads.sum_losses)
		return false;
	result->losses = exp(losses);
	if (change->log < 0 && losses < log(config->threads.delta_g) &&
	    -losses > config->threads.noise_gate * sqrt(variance))
		return true;
	feedback->log_losses = losses;
	feedback->losses_variance = variance;
	return false;
}

static enum nm_feedback_outcome weigh(struct nm_feedback *feedback, const struct nm_config *config,
				      const struct change *change,
				      struct nm_feedback_result *result)
{
	double noise = config->threads.noise_gate * change->sigma;
	result->figure = exp(change->log);
	result->noise = noise;
	result->losses = result->figure;
	if (isnan(change->log))
		return NM_FEEDBACK_KEEP;
	if (change->log > 0 && change->log > noise) {
		feedback->log_losses = feedback->losses_variance = 0;
		return NM_FEEDBACK_GAIN;
	}
	if (change->log < log(config->threads.delta_g) && -change->log > noise)
		return NM_FEEDBACK_UNDO;
	return losses_are_too_many(feedback, config, change, result) ? NM_FEEDBACK_UNDO
								     : NM_FEEDBACK_KEEP;
}

static double within_bounds(const struct nm_config *config, double interval_s)
{
	return fmax(fmin(interval_s, config->threads.t_max_s), config->threads.t_min_s);
}

double nm_feedback_interval_s(const struct nm_feedback *feedback, const struct nm_config *config)
{
	return within_bounds(config, feedback->interval_s > 0 ? feedback->interval_s
							      : config->general.interval_s);
}

static void adapt_interval(struct nm_feedback *feedback, const struct nm_config *config,
			   enum nm_feedback_outcome outcome)
{
	double interval_s = nm_feedback_interval_s(feedback, config);
	if (outcome == NM_FEEDBACK_GAIN)
		feedback->interval_s = within_bounds(config, interval_s / 2);
	else if (outcome == NM_FEEDBACK_UNDO)
		feedback->interval_s = within_bounds(config, interval_s * 2);
}

static bool crowd_changed(const struct nm_feedback *feedback, const struct nm_snapshot *snapshot)
{
	double before = (double)feedback->active_base, now = (double)snapshot->active;
	return fabs(now - before) > CROWD_CHANGE * before;
}

static int judge(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		 const struct nm_config *config, const struct readings *now,
		 struct nm_feedback_result *result)
{
	nm_autofree struct course *courses = NULL;
	size_t count;
	if (feedback->postponed < config->threads.postpone && crowd_changed(feedback, snapshot)) {
		feedback->postponed++;
		result->outcome = NM_FEEDBACK_POSTPONED;
		result->may_propose = false;
		return 0;
	}
	int r = compare_readings(&feedback->base, now, &courses, &count);
	if (r < 0)
		return r;
	struct course sum = sum_of(courses, count);
	struct change change = config->threads.feedback == NM_FEEDBACK_GLOBAL
				       ? change_of_all(feedback, &sum)
				       : change_of_moved(feedback, courses, count);
	result->outcome = weigh(feedback, config, &change, result);
	result->may_propose = result->outcome != NM_FEEDBACK_UNDO;
	if (count > 0) {
		result->before = sum.before;
		result->after = sum.after;
	}
	result->decisions = feedback->decisions;
	result->nr_decisions = feedback->nr_decisions;
	return 0;
}

/* Nothing is under judgement any more; what was is still there for the result. */
static void close_judgement(struct nm_feedback *feedback)
{
	feedback->nr_decisions = 0;
	feedback->nr_moved = 0;
	feedback->postponed = 0;
}

static int look_back(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, const struct readings *now,
		     struct nm_feedback_result *result)
{
	int r = 0;
	if (feedback->nr_decisions > 0)
		r = judge(feedback, snapshot, config, now, result);
	/* After the verdict: the spread it is compared with is that of before. */
	if (r == 0)
		r = follow_spread(feedback, now);
	adapt_interval(feedback, config, result->outcome);
	return r;
}

int nm_imar2_feedback(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
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
	struct readings now = {0};
	int r = read_all(snapshot, config, &now);
	if (r == 0)
		r = look_back(feedback, snapshot, config, &now, &result);
	replace(&feedback->last, &now);
	if (r < 0 || result.outcome != NM_FEEDBACK_POSTPONED)
		close_judgement(feedback);
	if (r < 0)
		return r;
	result.interval_s = nm_feedback_interval_s(feedback, config);
	*ret = result;
	return 0;
}

/* ---- moves ---- */

static int add_pid(uint32_t **pids, size_t *count, size_t *capacity, uint32_t pid)
{
	if (holds(*pids, *count, pid))
		return 0;
	int r = nm_reserve((void **)pids, capacity, *count, sizeof(**pids));
	if (r < 0)
		return r;
	(*pids)[(*count)++] = pid;
	return 0;
}

/* The readings of the tick are what the moves are measured against. */
static int open_judgement(struct nm_feedback *feedback, const struct nm_snapshot *snapshot)
{
	struct readings base = feedback->last;
	base.items = calloc(base.count + 1, sizeof(*base.items));
	if (!base.items)
		return -ENOMEM;
	if (base.count > 0)
		memcpy(base.items, feedback->last.items, base.count * sizeof(*base.items));
	replace(&feedback->base, &base);
	feedback->active_base = snapshot->active;
	return 0;
}

static int add_decision(struct nm_feedback *feedback, uint64_t decision)
{
	size_t count = feedback->nr_decisions;
	if (count > 0 && feedback->decisions[count - 1] == decision)
		return 0;
	int r = nm_reserve((void **)&feedback->decisions, &feedback->decision_capacity, count,
			   sizeof(*feedback->decisions));
	if (r < 0)
		return r;
	feedback->decisions[feedback->nr_decisions++] = decision;
	return 0;
}

int nm_feedback_moved(struct nm_feedback *feedback, const struct nm_snapshot *snapshot,
		      uint64_t decision, uint32_t pid, bool rollback)
{
	int r = add_pid(&feedback->disturbed, &feedback->nr_disturbed,
			&feedback->disturbed_capacity, pid);
	if (r < 0 || rollback)
		return r;
	if (feedback->nr_decisions == 0)
		r = open_judgement(feedback, snapshot);
	if (r == 0)
		r = add_pid(&feedback->moved, &feedback->nr_moved, &feedback->moved_capacity, pid);
	return r < 0 ? r : add_decision(feedback, decision);
}
