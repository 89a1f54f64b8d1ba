/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "waiting.h"

bool nm_waiting_may_run(const struct nm_balance_thread *thread, uint32_t cpu)
{
	return thread->everywhere || hwloc_bitmap_isset(thread->allowed, cpu);
}

static bool may_be_moved(const struct nm_balance_thread *thread)
{
	return thread->cpu >= 0 && thread->waiting && thread->movable && !isnan(thread->load);
}

void nm_waiting_clear(struct nm_waiting *waiting)
{
	for (unsigned cpu = 0; waiting->queues && cpu < waiting->nr_cpus; cpu++)
		hwloc_bitmap_free(waiting->queues[cpu].reach);
	free(waiting->queues);
	free(waiting->items);
	*waiting = (struct nm_waiting){0};
}

static void fill_queues(struct nm_waiting *waiting, const struct nm_balance_input *input)
{
	for (size_t i = 0; i < input->nr_threads; i++)
		if (may_be_moved(&input->threads[i]))
			waiting->queues[input->threads[i].cpu].count++;
	for (unsigned cpu = 0; cpu < waiting->nr_cpus; cpu++) {
		struct nm_queue *queue = &waiting->queues[cpu];
		queue->first = (uint32_t)waiting->total;
		waiting->total += queue->count;
		queue->count = 0;
	}
	for (size_t i = 0; i < input->nr_threads; i++) {
		if (!may_be_moved(&input->threads[i]))
			continue;
		struct nm_queue *queue = &waiting->queues[input->threads[i].cpu];
		waiting->items[queue->first + queue->count++] =
			(struct nm_waiter){.start_ticks = input->threads[i].start_ticks,
					   .tid = input->threads[i].tid,
					   .thread = (uint32_t)i};
	}
}

void nm_waiting_init(struct nm_waiting *waiting, const struct nm_balance_input *input)
{
	*waiting = (struct nm_waiting){
		.threads = input->threads,
		.items = nm_must(calloc(input->nr_threads + 1, sizeof(*waiting->items))),
		.queues = nm_must(calloc(input->topology->nr_cpus + 1U, sizeof(*waiting->queues))),
		.nr_cpus = input->topology->nr_cpus,
	};
	fill_queues(waiting, input);
}

static int compare(const void *left, const void *right)
{
	const struct nm_waiter *a = left, *b = right;
	return NM_COMPARE(a->start_ticks, b->start_ticks) ?: NM_COMPARE(a->tid, b->tid);
}

static void find_reach(const struct nm_waiting *waiting, struct nm_queue *queue)
{
	for (uint32_t i = 0; i < queue->count && !queue->everywhere; i++)
		queue->everywhere =
			waiting->threads[waiting->items[queue->first + i].thread].everywhere;
	if (queue->everywhere)
		return;
	queue->reach = nm_must(hwloc_bitmap_alloc());
	for (uint32_t i = 0; i < queue->count; i++) {
		uint32_t thread = waiting->items[queue->first + i].thread;
		nm_must_do(hwloc_bitmap_or(queue->reach, queue->reach,
					   waiting->threads[thread].allowed));
	}
}

void nm_waiting_prepare(struct nm_waiting *waiting, uint32_t cpu)
{
	struct nm_queue *queue = &waiting->queues[cpu];
	if (queue->ready)
		return;
	queue->ready = true;
	qsort(waiting->items + queue->first, queue->count, sizeof(*waiting->items), compare);
	find_reach(waiting, queue);
}

bool nm_waiting_reaches(const struct nm_waiting *waiting, uint32_t cpu, uint32_t to)
{
	const struct nm_queue *queue = &waiting->queues[cpu];
	return queue->everywhere || hwloc_bitmap_isset(queue->reach, to);
}

void nm_waiting_remove(struct nm_waiting *waiting, uint32_t cpu, uint32_t position)
{
	struct nm_queue *queue = &waiting->queues[cpu];
	struct nm_waiter *item = waiting->items + queue->first + position;
	queue->count--;
	memmove(item, item + 1, (queue->count - position) * sizeof(*item));
}
