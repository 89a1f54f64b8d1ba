/* SPDX-License-Identifier: MIT */
/* Reads the mappings of processes, and migrates their ranges. */
#include <string.h>

#include "daemon.h"

#define MAP_INTERVALS 10 /* between two readings of a process's mappings */
#define REGIONS_MAX 256U /* per process */

/* ---- once per interval ---- */

static void report_unreadable(struct nm_daemon *daemon, struct nm_page_process *process, int error)
{
	if (process->unreadable || (error != -EPERM && error != -EFBIG))
		return;
	process->unreadable = true;
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING, "Pages of %s[%u] stay: %s",
		  process->comm, process->pid,
		  error == -EFBIG ? "too many mappings, or more than 256 GiB of memory"
				  : "mappings not readable (CAP_SYS_PTRACE of the worker)");
}

static void read_mappings(struct nm_daemon *daemon, struct nm_page_process *process)
{
	uint64_t now = daemon->tally.intervals;
	nm_autofree struct nm_range *ranges = NULL;
	size_t count = 0;

	if (process->regions && now - process->mapped < MAP_INTERVALS)
		return;
	int r = nm_mover_ranges(daemon->pipeline.mover, process->pid, process->start_ticks,
				nm_roster_domain(daemon->pipeline.roster, process->pid), &ranges,
				&count);
	report_unreadable(daemon, process, r);
	if (r < 0)
		return;
	if (!process->regions)
		nm_regions_new(daemon->pipeline.topology->nr_nodes, REGIONS_MAX, &process->regions);
	if (nm_regions_set_ranges(process->regions, ranges, count) < 0)
		return;
	nm_page_set_mappings(process, NM_TAKE(ranges), count);
	process->mapped = now;
}

void nm_page_ranges_update(struct nm_daemon *daemon, struct nm_page_process *process,
			   uint64_t interval_ns)
{
	nm_page_ranges_age(process, daemon->config, interval_ns);
	read_mappings(daemon, process);
}

/* ---- moving ---- */

static int submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  struct nm_page_process *process, const struct nm_page_choices *choices)
{
	struct nm_pages_reason reason = {.reason = choices->reason,
					 .exclusivity = choices->exclusivity};
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));

	batch->count = choices->count;
	batch->steps = nm_must(calloc(choices->count, sizeof(*batch->steps)));
	memcpy(batch->steps, choices->items, choices->count * sizeof(*batch->steps));
	return nm_page_stage_submit(daemon, snapshot, process, &reason, &batch);
}

/* Moves pages of one process; items has room for the whole budget. */
static int move_ranges(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       struct nm_page_process *process, struct nm_page_budget *room,
		       struct nm_page_step *items)
{
	const struct nm_page_input input = {
		.topology = daemon->pipeline.topology,
		.config = daemon->config,
		.memory = daemon->pipeline.memory,
		.contention = &daemon->pipeline.pages->contention,
		.interval = daemon->tally.intervals,
		.cooldown = nm_page_cooldown(daemon->config),
	};
	struct nm_page_choices choices = {.items = items, .most = room->pages};

	nm_page_ranges_choose(&input, process, room, &choices);
	if (choices.count == 0)
		return 0;
	int r = submit(daemon, snapshot, process, &choices);
	if (r < 0)
		nm_page_ranges_restore(process, &choices);
	return r;
}

/* Each interval starts with another process. */
void nm_page_stage_by_range(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			   struct nm_page_budget *room)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	size_t count = stage->processes.count;
	nm_autofree struct nm_page_step *items = nm_must(calloc(room->pages + 1, sizeof(*items)));

	for (size_t i = 0; i < count && room->pages > 0; i++) {
		struct nm_page_process *process =
			nm_page_process_at(&stage->processes, (snapshot->interval + i) % count);
		if (process->owner && move_ranges(daemon, snapshot, process, room, items) < 0)
			return;
	}
}
