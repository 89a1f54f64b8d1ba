/* SPDX-License-Identifier: MIT */
#include "queue.h"

uint32_t lab_queue_wait(uint32_t service_cycles, uint32_t load_permille)
{
	uint32_t load =
		load_permille < LAB_LOAD_MAX_PERMILLE ? load_permille : LAB_LOAD_MAX_PERMILLE;

	return 11 * service_cycles * load / (10 * (1000 - load));
}

/* One thread alone closes a window; lines that others serve meanwhile fall into either. */
static void close_window(struct lab_queue *queue, uint32_t service_cycles, uint64_t before,
			 uint64_t now)
{
	uint64_t served, passed = now - before, load = queue->load_permille;

	if (!atomic_compare_exchange_strong(&queue->window, &before, now))
		return;
	served = atomic_exchange(&queue->lines, 0);
	load = (load + served * service_cycles * 1000 / LAB_WINDOW_CYCLES) / 2;
	queue->load_permille = passed > 32 ? 0 : (uint32_t)(load >> (passed - 1));
}

uint32_t lab_queue_serve(struct lab_queue *queue, uint32_t service_cycles, uint64_t now_cycles)
{
	uint64_t now = now_cycles / LAB_WINDOW_CYCLES, before = queue->window;

	if (now > before)
		close_window(queue, service_cycles, before, now);
	atomic_fetch_add(&queue->lines, 1);
	return lab_queue_wait(service_cycles, queue->load_permille);
}
