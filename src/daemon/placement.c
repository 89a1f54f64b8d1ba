/* SPDX-License-Identifier: MIT */
/* Policy "auto": assigns a home node to each process; the work of one interval. */
#include <math.h>

#include "daemon.h"
#include "numa-migrd/node_memory.h"
#include "numa-migrd/numa_balancing.h"
#include "placement_stage.h"

/* Available memory is read again after this time. */
#define AVAILABLE_AGE_NS (100 * NM_NSEC_PER_MSEC)

/* ---- creation and destruction ---- */

void nm_placement_end(struct nm_daemon *daemon)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	if (!placement)
		return;
	nm_mover_free(placement->mover);
	for (size_t i = 0; i < placement->count; i++) {
		nm_placement_forget_count(daemon, &placement->items[i]);
		nm_placement_forget_memory(&placement->items[i]);
		free(placement->items[i].ran_on);
	}
	free(placement->items);
	free(placement->times);
	free(placement->nodes);
	free(placement->beside_cpus);
	free(placement->available_bytes);
	free(placement);
	daemon->pipeline.placement = NULL;
}

static int begin(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	if (pipeline->placement)
		return 0;
	pipeline->placement = calloc(1, sizeof(*pipeline->placement));
	if (!pipeline->placement)
		return -ENOMEM;
	pipeline->placement->saved_s = NM_SAVED_MOST_S;
	pipeline->placement->trend = (struct nm_place_trend){.performance = 1, .distance = 1};
	pipeline->placement->spent_ns = nm_loop_own_ns(daemon);
	int r = (daemon->options.feed ? nm_mover_new_threadless : nm_mover_new)(
		pipeline->machine, pipeline->topology, daemon->config, &pipeline->placement->mover);
	if (r < 0)
		nm_placement_end(daemon);
	return r;
}

void nm_placement_configure(struct nm_daemon *daemon)
{
	if (daemon->pipeline.placement)
		nm_mover_configure(daemon->pipeline.placement->mover, daemon->pipeline.topology,
				   daemon->config);
}

/* ---- homes ---- */

static bool is_barred(struct nm_daemon *daemon)
{
	bool barred = nm_mover_is_barred(daemon->pipeline.placement->mover);
	nm_recorder_mover(daemon, "mover_is_barred", barred);
	return barred;
}

/* Reads the setting again: it may have changed since the start, also by the daemon itself
 * (sampling.inject). */
static bool kernel_brings_memory(struct nm_daemon *daemon)
{
	daemon->balancing = nm_machine_read_balancing(daemon);
	return nm_balances_nodes(daemon->balancing) &&
	       daemon->config->pages.numa_balancing != NM_BALANCING_WARN;
}

static void place(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		  struct nm_placed *placed, const struct nm_place_proposal *proposal)
{
	placed->home = proposal->node;
	placed->home_ran_most = placed->ran_most;
	placed->decision = daemon->next_decision++;
	placed->decided_ns = placed->placed_ns = snapshot->time_ns;
	placed->is_home = false;
	placed->judged = false;
	placed->trend = daemon->pipeline.placement->trend;
	placed->after = (struct nm_place_measure){.distance = NAN, .performance = NAN};
	nm_placement_forget_memory(placed);
	placed->memory = (struct nm_bring_memory){
		.away_bytes = proposal->bytes_away,
		.away_distance = proposal->distance_away,
	};
	/* Once, even with automatic NUMA balancing: its scans take seconds, and it does not reclaim
	 * page cache. */
	if (!nm_daemon_is_dry_run(daemon) && !is_barred(daemon))
		placed->memory.state = NM_BRING_WANTED;
	uint64_t *available = &daemon->pipeline.placement->available_bytes[proposal->node];
	*available -= proposal->bytes_away < *available ? proposal->bytes_away : *available;
	daemon->tally.decisions++;
	daemon->tally.homes.granted++;
	nm_report_placement(daemon, snapshot, placed, proposal);
}

/* A home that was assigned because few threads ran is not valid for many. Its end does not count as
 * a setback and bars nothing. */
static int expire_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			const struct nm_placement_view *view, size_t first, size_t end)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree enum nm_place_reason *reasons = calloc(placement->count + 1, sizeof(*reasons));
	int r = reasons ? nm_place_outgrown(&view->place, reasons) : -ENOMEM;
	for (size_t i = first; r == 0 && i < end; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (placed->home < 0)
			continue;
		placed->reason = reasons[i];
		if (reasons[i] != NM_PLACE_SPREAD && reasons[i] != NM_PLACE_WAKES)
			continue;
		nm_report_placement_end(daemon, &snapshot->processes[placed->process], placed,
					reasons[i] == NM_PLACE_WAKES
						? nm_place_reason_text(NM_PLACE_WAKES)
						: "more threads than when placed");
		daemon->tally.homes.expired++;
		nm_placement_give_up(daemon, placed, false);
		view->groups[i].home = -1;
	}
	return r;
}

static int yield_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		       const struct nm_placement_view *view)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree bool *given_up = calloc(placement->count + 1, sizeof(*given_up));
	int r = given_up ? nm_place_yield(&view->place, given_up) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < placement->count; i++) {
		if (!given_up[i])
			continue;
		nm_report_placement_end(daemon, &snapshot->processes[placement->items[i].process],
					&placement->items[i], "run queue full, other nodes idle");
		daemon->tally.homes.yielded++;
		nm_placement_give_up(daemon, &placement->items[i], false);
		/* Not a setback, because its node was filled by others. It may be assigned another
		 * home next. */
		view->groups[i].home = -1;
		view->groups[i].barred = true;
	}
	return r;
}

/* No limit if the kernel does not report it. */
static uint64_t available_on(struct nm_daemon *daemon, unsigned node,
			     const struct nm_watermarks *watermarks)
{
	uint64_t bytes;
	if (nm_placement_is_reclaimed(daemon, node))
		return 0;
	int r = nm_node_available_read(daemon->pipeline.platform,
				       daemon->pipeline.topology->nodes[node].os_id, watermarks,
				       daemon->config->pages.keep_free, &bytes);
	return r < 0 ? UINT64_MAX : bytes;
}

/* Reading these files costs more than examining a process, so they are read once for all processes
 * that are examined together. */
static void read_available(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	if (placement->available_ns && now_ns - placement->available_ns < AVAILABLE_AGE_NS)
		return;
	struct nm_watermarks watermarks = nm_watermarks_read(daemon->pipeline.platform);
	for (unsigned k = 0; k < placement->nr_nodes; k++)
		placement->available_bytes[k] = available_on(daemon, k, &watermarks);
	placement->available_ns = now_ns;
}

static void fill_memory(struct nm_daemon *daemon, uint64_t now_ns, struct nm_placement_view *view,
			size_t first, size_t end)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	bool anybody = false;
	for (size_t i = first; i < end; i++)
		anybody |= view->groups[i].home < 0 && view->groups[i].running > 0;
	view->place.memory_stays = anybody && is_barred(daemon) && !kernel_brings_memory(daemon);
	if (!anybody)
		return;
	read_available(daemon, now_ns);
	for (unsigned k = 0; k < placement->nr_nodes; k++)
		view->nodes[k].free_bytes = placement->available_bytes[k];
}

static int choose_homes(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			struct nm_placement_view *view, size_t first, size_t end)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	nm_autofree struct nm_place_proposal *proposals =
		calloc(placement->count + 1, sizeof(*proposals));
	fill_memory(daemon, snapshot->time_ns, view, first, end);
	int r = proposals ? nm_place_propose(&view->place, proposals) : -ENOMEM;
	for (size_t i = first; r == 0 && i < end; i++) {
		struct nm_placed *placed = &placement->items[i];
		if (placed->home < 0 || proposals[i].reason != NM_PLACE_HELD)
			placed->reason = proposals[i].reason;
		if (placed->home < 0 && proposals[i].node >= 0)
			place(daemon, snapshot, placed, &proposals[i]);
	}
	return r;
}

int nm_placement_decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_auto(nm_placement_view_clear) struct nm_placement_view view = {0};
	const struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed *placed = nm_placed_find(placement, snapshot->processes[0].pid);
	size_t first = (size_t)(placed - placement->items);
	nm_placement_count(daemon, placed, snapshot->time_ns);
	int r = nm_placement_view_build(daemon, snapshot->time_ns, &view);
	if (r == 0)
		r = expire_homes(daemon, snapshot, &view, first, first + 1);
	if (r == 0)
		r = choose_homes(daemon, snapshot, &view, first, first + 1);
	return r < 0 ? r : nm_placement_act(daemon, snapshot);
}

static int decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot)
{
	nm_auto(nm_placement_view_clear) struct nm_placement_view view = {0};
	size_t count = daemon->pipeline.placement->count;
	int r = nm_placement_view_build(daemon, snapshot->time_ns, &view);
	if (r < 0)
		return r;
	nm_placement_judge(daemon, snapshot, &view);
	r = expire_homes(daemon, snapshot, &view, 0, count);
	if (r == 0)
		r = yield_homes(daemon, snapshot, &view);
	if (r == 0)
		r = choose_homes(daemon, snapshot, &view, 0, count);
	return r < 0 ? r : nm_placement_act(daemon, snapshot);
}

int nm_placement_tick(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
		      uint64_t interval_ns)
{
	double interval_s = (double)interval_ns / (double)NM_NSEC_PER_SEC;
	if (daemon->config->threads.policy != NM_POLICY_AUTO) {
		nm_placement_end(daemon);
		return 0;
	}
	int r = begin(daemon);
	if (r < 0)
		return r;
	nm_placement_pay(daemon, interval_ns);
	nm_placement_collect(daemon);
	r = nm_placement_follow(daemon, snapshot, interval_ns);
	if (r == 0)
		r = nm_placement_follow_nodes(daemon->pipeline.placement, snapshot, interval_s);
	if (r < 0)
		return r;
	for (size_t i = 0; i < daemon->pipeline.placement->count; i++)
		nm_placement_count(daemon, &daemon->pipeline.placement->items[i], snapshot->time_ns);
	r = decide(daemon, snapshot);
	if (r == 0)
		nm_placement_bring(daemon, interval_ns);
	return r;
}
