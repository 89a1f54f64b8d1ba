/* SPDX-License-Identifier: MIT */
/* Rings are drained one after another, but a thread must be known before its children. */
#include <stdlib.h>

#include "numa-migrd/base.h"
#include "sample/sample.h"

/* Events with the same time keep the order of reading. Pointers are sorted; the records stay in
 * place. */
static int compare_events(const void *a, const void *b)
{
	const struct nm_task_event *left = *(const struct nm_task_event *const *)a;
	const struct nm_task_event *right = *(const struct nm_task_event *const *)b;
	return NM_COMPARE(left->time_ns, right->time_ns) ?: NM_COMPARE(left, right);
}

void nm_task_events_order(struct nm_task_event *events, size_t count, struct nm_task_event **ret)
{
	size_t forks = 0;
	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		ret[i] = &events[i];
		forks += events[i].kind == NM_TASK_FORK;
	}
	qsort(ret, count, sizeof(struct nm_task_event *), compare_events);
	if (forks < 2)
		return;
	nm_auto(nm_tidmap_freep) struct nm_tidmap *later = nm_tidmap_new();
	for (size_t i = count; i-- > 0;) {
		if (ret[i]->kind != NM_TASK_FORK)
			continue;
		ret[i]->reused = nm_tidmap_get(later, ret[i]->tid) != NM_TIDMAP_NONE;
		if (!ret[i]->reused && nm_tidmap_set(later, ret[i]->tid, 0) < 0)
			return; /* no kernel has such a number */
	}
}
