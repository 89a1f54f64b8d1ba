/* SPDX-License-Identifier: MIT */
/* Policy "auto": the mover migrates the memory of a process to its home, once, when the benefit
 * exceeds the cost. */
#include <math.h>
#include <string.h>

#include "home_stage.h"

/* If the location of a process's memory is not known, at most this amount is moved. */
#define ASSUMED_MOST_BYTES (UINT64_C(64) << 20)
#define AHEAD_S 0.25 /* work handed to the mover in addition to the current batch, in seconds;
		      * waiting work can still be reordered by the latest measurements */
#define FULL_NS (12 * NM_NSEC_PER_SEC) /* time after which memory that found little room is tried
					* again; a verdict is given meanwhile */
#define GUESSED_S 0.05 /* the same while the cost is an estimate */

static struct nm_tenant tenant_of(const struct nm_daemon *daemon, const struct nm_placed *placed)
{
	return nm_roster_tenant(daemon->pipeline.roster, placed->pid);
}

static int submit(struct nm_daemon *daemon, const struct nm_placed *placed, struct nm_page_batch *batch)
{
	batch->pid = placed->pid;
	batch->start_ticks = placed->start_ticks;
	batch->bulk = true;
	batch->tenant = tenant_of(daemon, placed);
	int r = nm_mover_submit(daemon->pipeline.mover, batch);
	nm_recorder_mover(daemon, "mover_submit", r);
	return r;
}

/* ---- rollback ---- */

/* The location of its memory is assumed from the pages that were moved. */
static void assume_location(struct nm_placed *placed, const struct nm_base_pages *was,
			    size_t nr_was, unsigned nr_nodes)
{
	nm_autofree double *pages = calloc(nr_nodes, sizeof(*pages));
	for (size_t i = 0; pages && i < nr_was; i++)
		if (was[i].was_on >= 0 && (unsigned)was[i].was_on < nr_nodes)
			pages[was[i].was_on] += was[i].pages;
	if (pages)
		nm_placed_locate(placed, pages, nr_nodes);
	placed->count.anon_bytes = 0; /* so that its location is queried again */
}

static void go_back(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t decision,
		    struct nm_base_pages *was, size_t nr_was)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));
	if (!batch || nr_was == 0) {
		free(was);
		return;
	}
	assume_location(placed, was, nr_was, daemon->pipeline.topology->nr_nodes);
	batch->decision = decision;
	batch->rollback = true;
	batch->to = -1;
	batch->back = was;
	batch->nr_back = nr_was;
	if (submit(daemon, placed, batch) == 0)
		(void)NM_TAKE(batch);
}

void nm_home_stage_send_back(struct nm_daemon *daemon, struct nm_placed *placed)
{
	placed->undone = placed->decision;
	go_back(daemon, placed, placed->decision, NM_TAKE(placed->memory.was), placed->memory.nr_was);
}

/* ---- migration to the home ---- */

static bool has_room_for_origins(const struct nm_daemon *daemon, const struct nm_placed *placed)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	const struct nm_tenant tenant = tenant_of(daemon, placed);
	struct nm_usage usage = {0};
	for (size_t i = 0; i < placement->processes.count; i++) {
		const struct nm_tenant holder = tenant_of(daemon, nm_placed_at(placement, i));
		nm_usage_add(&usage, &tenant, &holder, nm_placed_at(placement, i)->memory.nr_was);
	}
	return nm_share_has_room(NM_SHARE_ORIGINS, &usage);
}

/*
 * Appends to the origins of earlier batches. If memory is short, these pages are not rolled back.
 */
static void remember_origins(const struct nm_daemon *daemon, struct nm_placed *placed,
			     const struct nm_page_batch *batch)
{
	struct nm_bring_memory *memory = &placed->memory;
	if (!has_room_for_origins(daemon, placed))
		return;
	size_t count = memory->nr_was + batch->nr_base_pages;
	struct nm_base_pages *was = reallocarray(memory->was, count + 1, sizeof(*was));
	if (!was)
		return;
	if (batch->nr_base_pages > 0)
		memcpy(was + memory->nr_was, batch->base_pages,
		       batch->nr_base_pages * sizeof(*was));
	memory->was = was;
	memory->nr_was = count;
}

/* All of its memory is there now, except after an interrupted batch, which is continued later. */
static void settle_batch(const struct nm_daemon *daemon, struct nm_placed *placed,
			 const struct nm_page_batch *batch)
{
	struct nm_bring_memory *memory = &placed->memory;
	remember_origins(daemon, placed, batch);
	memory->moved += batch->moved;
	/* After an error, pages elsewhere do not show that they cannot be moved. */
	memory->checked = batch->error != 0;
	memory->settled_bytes = batch->error == 0 ? placed->anon_bytes : 0;
	memory->settled_ns = daemon->pipeline.platform->ops->now_ns(daemon->pipeline.platform);
	bool full = batch->error == -ENOSPC && batch->bytes < memory->away_bytes;
	memory->state = full ? NM_BRING_LATER : NM_BRING_DONE;
	if (full) {
		bool few = batch->bytes < memory->away_bytes / 2;
		memory->again_ns = few ? memory->settled_ns + FULL_NS : 0;
		memory->away_bytes -= batch->bytes;
	}
	for (unsigned k = 0; batch->error == 0 && k < daemon->pipeline.topology->nr_nodes; k++)
		placed->located_on[k] = (int)k == placed->home;
	placed->located |= batch->error == 0;
}

static void take_batch(struct nm_daemon *daemon, struct nm_page_batch *batch)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed *placed = nm_placed_find(placement, batch->pid);
	if (batch->calls > 0)
		nm_place_learn_cost(&placement->page_cost, batch->moved, batch->call_ns);
	nm_recorder_batch(daemon, batch);
	if (!batch->rollback) {
		daemon->tally.homes.pages += batch->moved;
		daemon->tally.homes.bytes += batch->bytes;
	}
	if (!placed || batch->rollback)
		return;
	if (placed->home >= 0 && placed->decision == batch->decision)
		settle_batch(daemon, placed, batch);
	else if (placed->undone == batch->decision)
		go_back(daemon, placed, batch->decision, NM_TAKE(batch->base_pages),
			batch->nr_base_pages);
}

void nm_home_stage_collect(struct nm_daemon *daemon)
{
	for (struct nm_page_batch *batch;
	     (batch = nm_mover_collect(daemon->pipeline.mover, true));) {
		take_batch(daemon, batch);
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
	batch->to = (int16_t)placed->home;
	int r = submit(daemon, placed, batch);
	if (r == 0)
		(void)NM_TAKE(batch);
	if (r != -EAGAIN)
		placed->memory.state = r == 0 ? NM_BRING_UNDER_WAY : NM_BRING_DONE;
}

static double cost_s(const struct nm_placement *placement, const struct nm_placed *placed)
{
	return nm_place_move_s(&placement->page_cost, (double)placed->memory.away_bytes);
}

static bool is_guess(const struct nm_placement *placement)
{
	return placement->page_cost.ns == 0;
}

/*
 * Returns the process that has lost most for each second that its migration takes. While that time
 * is an estimate, returns the process that is moved fastest, to measure the cost for the others.
 * NULL: none is to be moved now.
 */
static struct nm_placed *most_urgent(const struct nm_placement *placement)
{
	struct nm_placed *first = NULL;
	double most = 0;
	for (size_t i = 0; i < placement->processes.count; i++) {
		struct nm_placed *placed = nm_placed_at(placement, i);
		double worth = (is_guess(placement) ? 1 : placed->lost_s) /
			       fmax(cost_s(placement, placed), 1e-9);
		if (placed->memory.state != NM_BRING_WANTED || placed->memory.waits || worth < most)
			continue;
		most = worth;
		first = placed;
	}
	return first;
}

static double under_way_s(const struct nm_daemon *daemon, uint64_t domain, unsigned *ret_count)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	double sum = 0;
	*ret_count = 0;
	for (size_t i = 0; i < placement->processes.count; i++) {
		if (nm_placed_at(placement, i)->memory.state != NM_BRING_UNDER_WAY ||
		    tenant_of(daemon, nm_placed_at(placement, i)).domain != domain)
			continue;
		sum += cost_s(placement, nm_placed_at(placement, i));
		(*ret_count)++;
	}
	return sum;
}

static bool is_to_come(const struct nm_placed *placed)
{
	return placed->memory.state == NM_BRING_WANTED || placed->memory.state == NM_BRING_LATER;
}

bool nm_home_stage_is_reclaimed(struct nm_daemon *daemon, unsigned node)
{
	return nm_node_is_reclaimed(daemon->pipeline.platform,
				    &daemon->pipeline.home_reclaim,
				    daemon->pipeline.topology->nodes[node].os_id,
				    daemon->last_tick_ns);
}

/* The mover moves all remote memory, including memory whose location was not known. */
static bool may_move_memory(const struct nm_placed *placed)
{
	return nm_placed_shares(placed) || nm_placed_bytes(placed) <= ASSUMED_MOST_BYTES;
}

/* The cost of remote accesses grows, and the cost of the migration becomes known better. */
static void consider_process(const struct nm_placement *placement, struct nm_placed *placed,
			     double interval_s, uint64_t now_ns, const bool *reclaimed)
{
	struct nm_bring_memory *memory = &placed->memory;
	if (!is_to_come(placed))
		return;
	placed->lost_s +=
		interval_s * nm_place_lost_cpus(placed->demand_cpus, memory->away_distance);
	bool worthwhile = nm_place_to_come(placed->lost_s) >= cost_s(placement, placed) &&
			  may_move_memory(placed) && !reclaimed[placed->home] &&
			  now_ns >= memory->again_ns;
	if (worthwhile && memory->state == NM_BRING_LATER)
		placed->judged = false; /* again, with its memory at home */
	memory->state = worthwhile ? NM_BRING_WANTED : NM_BRING_LATER;
}

/* Returns 0, or -ENOMEM if nothing is handed over now. */
static int consider_all(struct nm_daemon *daemon, double interval_s)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_platform *platform = daemon->pipeline.platform;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	uint64_t now_ns = platform->ops->now_ns(platform);
	bool any = false;
	for (size_t i = 0; i < placement->processes.count; i++) {
		nm_placed_at(placement, i)->memory.waits = false;
		any |= is_to_come(nm_placed_at(placement, i));
	}
	nm_autofree bool *reclaimed = calloc(nr_nodes, sizeof(*reclaimed));
	if (!reclaimed)
		return -ENOMEM;
	for (unsigned k = 0; any && k < nr_nodes; k++)
		reclaimed[k] = nm_home_stage_is_reclaimed(daemon, k);
	for (size_t i = 0; any && i < placement->processes.count; i++)
		consider_process(placement, nm_placed_at(placement, i), interval_s, now_ns,
				 reclaimed);
	return 0;
}

static void let_domain_wait(struct nm_daemon *daemon, uint64_t domain)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->processes.count; i++)
		if (tenant_of(daemon, nm_placed_at(placement, i)).domain == domain)
			nm_placed_at(placement, i)->memory.waits = true;
}

/* Returns whether enough memory of the same domain is being moved: the mover serves domains in
 * turns. */
static bool is_enough_under_way(const struct nm_daemon *daemon, const struct nm_placed *next,
				uint64_t domain)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_ahead;
	double ahead_s = under_way_s(daemon, domain, &nr_ahead) + cost_s(placement, next);
	return is_guess(placement) ? nr_ahead > 0 && ahead_s > GUESSED_S
				   : nr_ahead > 1 && ahead_s > AHEAD_S;
}

void nm_home_stage_bring(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_placed *next;
	if (consider_all(daemon, (double)interval_ns / (double)NM_NSEC_PER_SEC) < 0)
		return;
	while ((next = most_urgent(placement))) {
		uint64_t domain = tenant_of(daemon, next).domain;
		if (!is_enough_under_way(daemon, next, domain))
			bring(daemon, next);
		if (next->memory.state == NM_BRING_WANTED)
			let_domain_wait(daemon, domain);
	}
}
