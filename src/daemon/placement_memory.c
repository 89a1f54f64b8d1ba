/* SPDX-License-Identifier: MIT */
/* Policy "auto": a process's memory follows its threads to their home, once, by the mover. */
#include <string.h>

#include "daemon.h"
#include "placement_stage.h"

#define SMALL_BYTES 4096ULL
#define HUGE_BYTES NM_REGION_LEAST_BYTES
#define BATCH_STEPS 1024U
#define AGAIN_MOST 3U
#define WAITING_MOST 16U /* batches of one process that the mover has */

void nm_bring_clear(struct nm_bring_memory *memory)
{
	free(memory->ranges);
	*memory = (struct nm_bring_memory){0};
}

/* ---- what became of it ---- */

/* Its mappings were not known any more: they are looked at again, from the first. */
static void start_again(struct nm_bring_memory *memory)
{
	free(NM_TAKE(memory->ranges));
	memory->nr_ranges = memory->range = 0;
	memory->state = memory->again++ < AGAIN_MOST ? NM_BRING_WANTED : NM_BRING_DONE;
}

void nm_placement_collect(struct nm_daemon *daemon)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (struct nm_page_batch *batch; (batch = nm_mover_collect(placement->mover));) {
		struct nm_placed *placed = nm_placed_find(placement, batch->pid);
		if (placed && placed->decision == batch->decision) {
			struct nm_bring_memory *memory = &placed->memory;
			memory->waiting -= memory->waiting > 0;
			memory->moved += batch->moved;
			if (batch->error == -ESTALE)
				start_again(memory);
			else if (batch->error < 0)
				memory->state = NM_BRING_DONE;
		}
		nm_recorder_batch(daemon, batch);
		nm_page_batch_free(batch);
	}
	nm_recorder_batch(daemon, NULL);
}

/* ---- what is next ---- */

static void learn_ranges(struct nm_daemon *daemon, struct nm_placed *placed)
{
	struct nm_bring_memory *memory = &placed->memory;
	int r = nm_mover_ranges(daemon->pipeline.placement->mover, placed->pid,
				placed->start_ticks, &memory->ranges, &memory->nr_ranges);
	nm_recorder_ranges(daemon, placed->pid, r, memory->ranges, memory->nr_ranges);
	if (r == -EAGAIN)
		return;
	memory->state = r < 0 || memory->nr_ranges == 0 ? NM_BRING_DONE : NM_BRING_UNDER_WAY;
	if (memory->state == NM_BRING_UNDER_WAY)
		memory->next = memory->ranges[0].start;
}

/* Whole huge pages where they can be; false: all has been handed on. */
static bool next_step(struct nm_bring_memory *memory, int home, struct nm_page_step *ret)
{
	while (memory->range < memory->nr_ranges &&
	       memory->next >= memory->ranges[memory->range].end) {
		memory->range++;
		if (memory->range < memory->nr_ranges)
			memory->next = memory->ranges[memory->range].start;
	}
	if (memory->range == memory->nr_ranges)
		return false;
	const struct nm_range *range = &memory->ranges[memory->range];
	uint64_t huge = range->page_bytes > HUGE_BYTES ? range->page_bytes : HUGE_BYTES;
	uint64_t bytes = memory->next % huge == 0 && range->end - memory->next >= huge
				 ? huge
				 : SMALL_BYTES;
	*ret = (struct nm_page_step){
		.address = memory->next,
		.bytes = bytes,
		.from = -1,
		.to = (int16_t)home,
	};
	memory->next += bytes;
	return true;
}

static struct nm_page_batch *make_batch(struct nm_placed *placed, size_t room)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));
	size_t most = room < BATCH_STEPS ? room : BATCH_STEPS;
	if (!batch)
		return NULL;
	batch->decision = placed->decision;
	batch->pid = placed->pid;
	batch->start_ticks = placed->start_ticks;
	batch->bulk = true;
	batch->steps = calloc(most + 1, sizeof(*batch->steps));
	while (batch->steps && batch->count < most &&
	       next_step(&placed->memory, placed->home, &batch->steps[batch->count]))
		batch->count++;
	return batch->count > 0 ? NM_TAKE(batch) : NULL;
}

/* Returns how many steps were handed on. */
static size_t go_on(struct nm_daemon *daemon, struct nm_placed *placed, size_t room)
{
	struct nm_bring_memory *memory = &placed->memory;
	struct nm_bring_memory before = *memory;
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = make_batch(placed, room);
	if (!batch) {
		if (memory->range == memory->nr_ranges && memory->waiting == 0)
			memory->state = NM_BRING_DONE;
		return 0;
	}
	size_t steps = batch->count;
	int r = nm_mover_submit(daemon->pipeline.placement->mover, batch);
	nm_recorder_mover(daemon, "mover_submit", r);
	if (r < 0) {
		memory->range = before.range;
		memory->next = before.next;
		return 0;
	}
	(void)NM_TAKE(batch);
	memory->waiting++;
	return steps;
}

void nm_placement_bring(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	size_t room = nm_mover_room(placement->mover, now_ns);
	nm_recorder_mover(daemon, "mover_room", (int64_t)room);
	for (size_t i = 0; i < placement->count && room > 0; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (placed->home < 0)
			continue;
		if (placed->memory.state == NM_BRING_WANTED)
			learn_ranges(daemon, placed);
		size_t steps = 1;
		while (placed->memory.state == NM_BRING_UNDER_WAY && room > 0 && steps > 0 &&
		       placed->memory.waiting < WAITING_MOST) {
			steps = go_on(daemon, placed, room);
			room -= steps;
		}
	}
}
