/* SPDX-License-Identifier: MIT */
/* Rings are drained one after another, but a thread must be known before its children. */
#include <stdlib.h>

#include "numa-migrd/base.h"
#include "numa-migrd/sample.h"

/* Events with the same time keep the order of reading. Pointers are sorted; the records stay in
 * place. */
static int compare_events(const void *a, const void *b)
{
	const struct nm_task_event *left = *(const struct nm_task_event *const *)a;
	const struct nm_task_event *right = *(const struct nm_task_event *const *)b;
	return NM_COMPARE(left->time_ns, right->time_ns) ?: NM_COMPARE(left, right);
}

static size_t count_forks(struct nm_task_event **events, size_t count)
{
	size_t forks = 0;
	for (size_t i = 0; i < count; i++)
		forks += events[i]->kind == NM_TASK_FORK;
	return forks;
}

static int mark_reused(struct nm_task_event **events, size_t count)
{
	nm_auto(nm_tidmap_freep) struct nm_tidmap *later = nm_tidmap_new();
	if (count_forks(events, count) < 2)
		return 0;
	int r = 0;
	for (size_t i = count; r == 0 && i-- > 0;) {
		if (events[i]->kind != NM_TASK_FORK)
			continue;
		events[i]->reused = nm_tidmap_get(later, events[i]->tid) != NM_TIDMAP_NONE;
		if (!events[i]->reused)
			r = nm_tidmap_set(later, events[i]->tid, 0);
	}
	return r == -ERANGE ? 0 : r;
}

int nm_task_events_order(struct nm_task_event *events, size_t count, struct nm_task_event **ret)
{
	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		ret[i] = &events[i];
	qsort(ret, count, sizeof(struct nm_task_event *), compare_events);
	return mark_reused(ret, count);
}
