/* SPDX-License-Identifier: MIT */
/* Policy "auto": a process's memory follows its threads to their home, once, by the mover. */
#include "daemon.h"
#include "placement_stage.h"

void nm_placement_collect(struct nm_daemon *daemon)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (struct nm_page_batch *batch; (batch = nm_mover_collect(placement->mover));) {
		struct nm_placed *placed = nm_placed_find(placement, batch->pid);
		if (placed && placed->decision == batch->decision)
			placed->memory = (struct nm_bring_memory){.state = NM_BRING_DONE,
								  .moved = batch->moved};
		nm_recorder_batch(daemon, batch);
		nm_page_batch_free(batch);
	}
	nm_recorder_batch(daemon, NULL);
}

static void bring(struct nm_daemon *daemon, struct nm_placed *placed)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));
	if (!batch)
		return;
	batch->decision = placed->decision;
	batch->pid = placed->pid;
	batch->start_ticks = placed->start_ticks;
	batch->bulk = true;
	batch->to = (int16_t)placed->home;
	int r = nm_mover_submit(daemon->pipeline.placement->mover, batch);
	nm_recorder_mover(daemon, "mover_submit", r);
	if (r == 0)
		(void)NM_TAKE(batch);
	if (r != -EAGAIN)
		placed->memory.state = r == 0 ? NM_BRING_UNDER_WAY : NM_BRING_DONE;
}

void nm_placement_bring(struct nm_daemon *daemon)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->count; i++)
		if (placement->items[i].memory.state == NM_BRING_WANTED)
			bring(daemon, &placement->items[i]);
}
