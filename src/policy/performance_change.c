/* SPDX-License-Identifier: MIT */
#include "performance_change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_MIN 3
#define UNKNOWN_SIGMA 0.05
#define FEW_CHANGES 8.0
/* Ratio of the standard deviation of a normal distribution to the median of its absolute values. */
#define SIGMA_BY_MEDIAN 1.4826

void nm_readings_take(const struct nm_snapshot *snapshot, const struct nm_config *config,
		      struct nm_readings *ret)
{
	struct nm_readings readings = {
		.items = nm_must(calloc(snapshot->measured + 1, sizeof(*readings.items))),
		.by_locality = snapshot->by_locality,
		.performance = config->threads.performance,
	};
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->measured)
			readings.items[readings.count++] = (struct nm_reading){
				.tid = thread->tid,
				.pid = thread->pid,
				.start_ticks = thread->start_ticks,
				.adopted_ns = thread->adopted_ns,
				.domain = snapshot->processes[thread->process].domain,
				.performance = thread->performance};
	}
	*ret = readings;
}

void nm_readings_copy(const struct nm_readings *readings, struct nm_readings *ret)
{
	struct nm_readings copy = *readings;
	copy.items = nm_must(calloc(copy.count + 1, sizeof(*copy.items)));
	if (copy.count > 0)
		memcpy(copy.items, readings->items, copy.count * sizeof(*copy.items));
	*ret = copy;
}

void nm_readings_replace(struct nm_readings *old, struct nm_readings *fresh)
{
	free(old->items);
	*old = *fresh;
	*fresh = (struct nm_readings){0};
}

static bool is_same(const struct nm_reading *a, const struct nm_reading *b)
{
	return a->tid == b->tid && a->pid == b->pid && a->start_ticks == b->start_ticks &&
	       a->adopted_ns == b->adopted_ns;
}

/* Lists one change per thread measured in both; those of a process are merged afterwards. */
static size_t list_common(const struct nm_readings *before, const struct nm_readings *after,
			  struct nm_process_change *process_changes)
{
	size_t count = 0, position = 0;
	if (before->by_locality != after->by_locality || before->performance != after->performance)
		return 0;
	for (size_t i = 0; i < after->count; i++) {
		const struct nm_reading *reading = &after->items[i];
		while (position < before->count && before->items[position].tid < reading->tid)
			position++;
		if (position == before->count)
			break;
		if (is_same(&before->items[position], reading))
			process_changes[count++] = (struct nm_process_change){
				.pid = reading->pid,
				.first = (uint32_t)i,
				.domain = reading->domain,
				.before = before->items[position].performance,
				.after = reading->performance};
	}
	return count;
}

static size_t merge_neighbours(struct nm_process_change *process_changes, size_t count)
{
	size_t merged = 0;
	for (size_t i = 0; i < count; i++) {
		if (merged > 0 && process_changes[merged - 1].pid == process_changes[i].pid) {
			process_changes[merged - 1].before += process_changes[i].before;
			process_changes[merged - 1].after += process_changes[i].after;
		} else {
			process_changes[merged++] = process_changes[i];
		}
	}
	return merged;
}

static int by_pid_and_place(const void *left, const void *right)
{
	const struct nm_process_change *a = left, *b = right;
	int order = nm_compare_u32(left, right);
	return order ? order : NM_COMPARE(a->first, b->first);
}

void nm_process_changes_compare(const struct nm_readings *before, const struct nm_readings *after,
				struct nm_process_changes *ret)
{
	struct nm_process_change *process_changes =
		nm_must(calloc(after->count + 1, sizeof(*process_changes)));
	/* Threads of a process mostly have consecutive ids, so that there is little to sort. */
	size_t count =
		merge_neighbours(process_changes, list_common(before, after, process_changes));
	qsort(process_changes, count, sizeof(*process_changes), by_pid_and_place);
	ret->count = merge_neighbours(process_changes, count);
	ret->items = process_changes;
}

void nm_process_changes_clear(struct nm_process_changes *process_changes)
{
	free(process_changes->items);
	*process_changes = (struct nm_process_changes){0};
}

const struct nm_process_change *
nm_process_change_of(const struct nm_process_changes *process_changes, uint32_t pid)
{
	const struct nm_process_change key = {.pid = pid};
	if (process_changes->count == 0)
		return NULL;
	return bsearch(&key, process_changes->items, process_changes->count, sizeof(key),
		       nm_compare_u32);
}

struct nm_process_change nm_process_changes_sum(const struct nm_process_changes *process_changes)
{
	struct nm_process_change sum = {0};
	for (size_t i = 0; i < process_changes->count; i++) {
		sum.before += process_changes->items[i].before;
		sum.after += process_changes->items[i].after;
	}
	return sum;
}

/* ---- variation without moves ---- */

void nm_spread_add(struct nm_spread *spread, double before, double after)
{
	if (!(before > 0) || !(after > 0))
		return;
	if (spread->count == NM_SPREAD_CHANGES)
		memmove(spread->changes, spread->changes + 1,
			(NM_SPREAD_CHANGES - 1) * sizeof(spread->changes[0]));
	else
		spread->count++;
	spread->changes[spread->count - 1] = fabs(log(after / before));
}

static int compare_changes(const void *left, const void *right)
{
	const double *a = left, *b = right;
	return NM_COMPARE(*a, *b);
}

/*
 * With few changes it is widened by 1 + 8/count, to at most twice its value or 0.05, because the
 * median of few values is often much too small (of 8 normal changes, one in 70 exceeds 3 sigmas
 * without the widening, and none in 1000 with it). With fewer than three changes it is 0.05.
 */
double nm_spread_sigma(const struct nm_spread *spread)
{
	double sorted[NM_SPREAD_CHANGES];
	unsigned count = spread->count;
	if (count < CHANGES_MIN)
		return UNKNOWN_SIGMA;
	memcpy(sorted, spread->changes, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare_changes);
	double median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	double sigma = SIGMA_BY_MEDIAN * median;
	return fmin(sigma * (1 + FEW_CHANGES / count), fmax(2 * sigma, UNKNOWN_SIGMA));
}
