/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "readings.h"

int nm_readings_take(const struct nm_snapshot *snapshot, const struct nm_config *config,
		     struct nm_readings *ret)
{
	struct nm_readings readings = {
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
				(struct nm_reading){.tid = thread->tid,
						    .pid = thread->pid,
						    .start_ticks = thread->start_ticks,
						    .adopted_ns = thread->adopted_ns,
						    .performance = thread->performance};
	}
	*ret = readings;
	return 0;
}

int nm_readings_copy(const struct nm_readings *readings, struct nm_readings *ret)
{
	struct nm_readings copy = *readings;
	copy.items = calloc(copy.count + 1, sizeof(*copy.items));
	if (!copy.items)
		return -ENOMEM;
	if (copy.count > 0)
		memcpy(copy.items, readings->items, copy.count * sizeof(*copy.items));
	*ret = copy;
	return 0;
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

/* One course for each thread measured in both; then those of a process become one. */
static size_t list_common(const struct nm_readings *before, const struct nm_readings *after,
			  struct nm_course *courses)
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
			courses[count++] =
				(struct nm_course){.pid = reading->pid,
						   .first = (uint32_t)i,
						   .before = before->items[position].performance,
						   .after = reading->performance};
	}
	return count;
}

static size_t merge_neighbours(struct nm_course *courses, size_t count)
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

static int by_pid(const void *left, const void *right)
{
	const struct nm_course *a = left, *b = right;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int by_pid_and_place(const void *left, const void *right)
{
	const struct nm_course *a = left, *b = right;
	int order = by_pid(left, right);
	return order ? order : (a->first > b->first) - (a->first < b->first);
}

static bool ascends(const struct nm_course *courses, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (courses[i].pid <= courses[i - 1].pid)
			return false;
	return true;
}

/* Threads of a process mostly have ids in a row, so that there is little or nothing to sort. */
static size_t merge_processes(struct nm_course *courses, size_t count)
{
	size_t merged = merge_neighbours(courses, count);
	if (ascends(courses, merged))
		return merged;
	qsort(courses, merged, sizeof(*courses), by_pid_and_place);
	return merge_neighbours(courses, merged);
}

int nm_courses_compare(const struct nm_readings *before, const struct nm_readings *after,
		       struct nm_courses *ret)
{
	struct nm_course *courses = calloc(after->count + 1, sizeof(*courses));
	if (!courses)
		return -ENOMEM;
	ret->count = merge_processes(courses, list_common(before, after, courses));
	ret->items = courses;
	return 0;
}

void nm_courses_clear(struct nm_courses *courses)
{
	free(courses->items);
	*courses = (struct nm_courses){0};
}

const struct nm_course *nm_course_of(const struct nm_courses *courses, uint32_t pid)
{
	const struct nm_course key = {.pid = pid};
	if (courses->count == 0)
		return NULL;
	return bsearch(&key, courses->items, courses->count, sizeof(key), by_pid);
}

struct nm_course nm_courses_sum(const struct nm_courses *courses)
{
	struct nm_course sum = {0};
	for (size_t i = 0; i < courses->count; i++) {
		sum.before += courses->items[i].before;
		sum.after += courses->items[i].after;
	}
	return sum;
}
