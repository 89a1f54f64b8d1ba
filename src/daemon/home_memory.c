/* SPDX-License-Identifier: MIT */
/* Policy "auto": the mover migrates the memory of a process to its home, once, when the benefit
 * exceeds the cost. */
#include <string.h>

#include "home_stage.h"

#define AGAIN_NS                                                                                   \
	(12 * NM_NSEC_PER_SEC) /* time after which memory is tried again of which little has       \
				* moved; a verdict is given meanwhile */

static int submit(struct nm_daemon *daemon, const struct nm_home_state *state,
		  struct nm_page_batch *batch)
{
	batch->pid = state->pid;
	batch->start_ticks = state->start_ticks;
	batch->bulk = true;
	batch->domain = state->domain;
	return nm_mover_submit(daemon->pipeline.mover, batch);
}

/* ---- rollback ---- */

/* The location of its memory is assumed from the pages that were moved. */
static void assume_location(struct nm_home_state *state, const struct nm_base_pages *origins,
			    size_t nr_origins, unsigned nr_nodes)
{
	nm_autofree double *pages = nm_must(calloc(nr_nodes, sizeof(*pages)));
	for (size_t i = 0; i < nr_origins; i++)
		if (origins[i].was_on >= 0 && (unsigned)origins[i].was_on < nr_nodes)
			pages[origins[i].was_on] += origins[i].pages;
	nm_home_state_locate(state, pages, nr_nodes);
	state->location.anon_bytes = 0; /* so that its location is queried again */
}

static void roll_back(struct nm_daemon *daemon, struct nm_home_state *state, uint64_t decision,
		      struct nm_base_pages *origins, size_t nr_origins)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));
	if (nr_origins == 0) {
		free(origins);
		return;
	}
	assume_location(state, origins, nr_origins, daemon->pipeline.topology->nr_nodes);
	batch->decision = decision;
	batch->rollback = true;
	batch->to = -1;
	batch->back = origins;
	batch->nr_back = nr_origins;
	if (submit(daemon, state, batch) == 0)
		(void)NM_TAKE(batch);
}

void nm_home_stage_roll_back(struct nm_daemon *daemon, struct nm_home_state *state)
{
	state->rolled_back_decision = state->decision;
	roll_back(daemon, state, state->decision, NM_TAKE(state->migration.origins),
		  state->migration.nr_origins);
}

/* ---- migration to the home ---- */

static bool has_room_for_origins(const struct nm_daemon *daemon, const struct nm_home_state *state)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_usage usage = {0};
	for (size_t i = 0; i < placement->processes.count; i++) {
		const struct nm_home_state *other = nm_home_state_at(placement, i);
		nm_usage_add(&usage, state->domain, other->domain, other->migration.nr_origins);
	}
	return nm_usage_has_room(&usage, NM_ORIGINS_MOST);
}

/*
 * Appends to the origins of earlier batches. If memory is short, these pages are not rolled back.
 */
static void add_origins(const struct nm_daemon *daemon, struct nm_home_state *state,
			const struct nm_page_batch *batch)
{
	struct nm_memory_migration *migration = &state->migration;
	if (!has_room_for_origins(daemon, state))
		return;
	size_t count = migration->nr_origins + batch->nr_base_pages;
	struct nm_base_pages *origins =
		nm_must(reallocarray(migration->origins, count + 1, sizeof(*origins)));
	if (batch->nr_base_pages > 0)
		memcpy(origins + migration->nr_origins, batch->base_pages,
		       batch->nr_base_pages * sizeof(*origins));
	migration->origins = origins;
	migration->nr_origins = count;
}

/* All of its memory is there now, except after an interrupted batch, which is continued later. */
static void finish_batch(const struct nm_daemon *daemon, struct nm_home_state *state,
			 const struct nm_page_batch *batch)
{
	struct nm_memory_migration *migration = &state->migration;
	add_origins(daemon, state, batch);
	migration->moved += batch->moved;
	/* After an error, pages elsewhere do not show that they cannot be moved. */
	migration->checked = batch->error != 0;
	bool later = nm_home_state_refuse(state, batch->error) &&
		     batch->bytes < migration->away_bytes;
	if (batch->stayed_bytes > batch->bytes)
		(void)nm_home_state_refuse(state, -EBUSY);
	migration->ended_bytes = batch->error == 0 ? state->anon_bytes : 0;
	migration->ended_ns = nm_daemon_now_ns(daemon);
	migration->state = later ? NM_MIGRATION_DEFERRED : NM_MIGRATION_DONE;
	if (later) {
		bool few = batch->bytes < migration->away_bytes / 2;
		migration->retry_ns = few ? migration->ended_ns + AGAIN_NS : 0;
		migration->away_bytes -= batch->bytes;
	}
	/* Memory that must not move is not in the batch. If nothing was known of it and little has
	 * moved, the rest is either at home or stays elsewhere, which a query shows. */
	bool unknown = !nm_home_state_shares(state) && 2 * batch->bytes < state->anon_bytes;
	if (unknown)
		state->location.anon_bytes = 0; /* so that its location is queried again */
	if (batch->error != 0 || unknown || state->immovable)
		return;
	for (unsigned k = 0; k < daemon->pipeline.topology->nr_nodes; k++)
		state->located_on[k] = (int)k == state->home;
	state->located = true;
}

static void handle_batch(struct nm_daemon *daemon, struct nm_page_batch *batch)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_home_state *state = nm_home_state_find(placement, batch->pid);
	nm_feedback_disturb(daemon->pipeline.feedback, batch->pid);
	if (batch->calls > 0)
		nm_place_add_cost(&placement->page_cost, batch->domain, batch->moved,
				  batch->call_ns);
	if (!batch->rollback) {
		daemon->tally.homes.pages += batch->moved;
		daemon->tally.homes.bytes += batch->bytes;
	}
	if (!state || batch->rollback)
		return;
	if (state->home >= 0 && state->decision == batch->decision)
		finish_batch(daemon, state, batch);
	else if (state->rolled_back_decision == batch->decision)
		roll_back(daemon, state, batch->decision, NM_TAKE(batch->base_pages),
			  batch->nr_base_pages);
}

void nm_home_stage_collect(struct nm_daemon *daemon)
{
	for (struct nm_page_batch *batch;
	     (batch = nm_mover_collect(daemon->pipeline.mover, true));) {
		handle_batch(daemon, batch);
		nm_page_batch_free(batch);
	}
}

static void migrate(struct nm_daemon *daemon, struct nm_home_state *state)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));
	batch->decision = state->decision;
	batch->to = (int16_t)state->home;
	int r = submit(daemon, state, batch);
	if (r == 0)
		(void)NM_TAKE(batch);
	if (r == -EAGAIN)
		nm_placement_defer_domain(daemon->pipeline.placement, state->domain);
	else
		state->migration.state = r == 0 ? NM_MIGRATION_RUNNING : NM_MIGRATION_DONE;
	(void)nm_home_state_refuse(state, r);
}

bool nm_home_stage_is_reclaimed(struct nm_daemon *daemon, unsigned node)
{
	return nm_node_is_reclaimed(daemon->pipeline.platform,
				    &daemon->pipeline.home_reclaim,
				    daemon->pipeline.topology->nodes[node].os_id,
				    daemon->last_tick_ns);
}

static void update_migrations(struct nm_daemon *daemon, double interval_s)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	nm_autofree bool *reclaimed = nm_must(calloc(nr_nodes, sizeof(*reclaimed)));
	for (unsigned k = 0; k < nr_nodes && nm_placement_has_migrations(placement); k++)
		reclaimed[k] = nm_home_stage_is_reclaimed(daemon, k);
	nm_placement_update_migrations(placement, interval_s, nm_daemon_now_ns(daemon), reclaimed);
}

void nm_home_stage_migrate(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_home_state *next;
	update_migrations(daemon, (double)interval_ns / (double)NM_NSEC_PER_SEC);
	while ((next = nm_placement_next_migration(daemon->pipeline.placement)))
		migrate(daemon, next);
}
