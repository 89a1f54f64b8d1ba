/* SPDX-License-Identifier: MIT */
/* Policy "auto": the mover migrates the memory of a process to its home, once, when the benefit
 * exceeds the cost. */
#include "home_stage.h"

/* Time after which memory is tried again of which little has moved: the first, in which a verdict
 * is given, is doubled by each further try, up to the second. */
#define AGAIN_NS (12 * NM_NSEC_PER_SEC)
#define AGAIN_MOST_NS (600 * NM_NSEC_PER_SEC)

/* ---- rollback ---- */

/* Returns what is known of a process that has lost its home. If the mover is full, the next call
 * tries again. */
static void roll_back(struct nm_daemon *daemon, struct nm_migration *one)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	unsigned nr_nodes = pipeline->topology->nr_nodes;
	const struct nm_step *step = &one->decision.steps[0];
	struct nm_home_state *state = nm_home_state_find(nm_placement_of(daemon), step->pid);
	nm_autofree double *pages = nm_must(calloc(nr_nodes, sizeof(*pages)));
	/* It may have the next home already. */
	if (!state || state->start_ticks != step->start_ticks ||
	    (state->home >= 0 && state->decision != one->decision.id))
		one->nr_origins = 0;
	for (size_t i = 0; i < one->nr_origins; i++)
		if ((unsigned)one->origins[i].was_on < nr_nodes)
			pages[one->origins[i].was_on] += one->origins[i].pages;
	if (nm_migration_roll_back(&pipeline->migrations, pipeline->mover, one, NULL) < 0)
		return;
	/* The location of its memory is assumed from these pages until it is queried. */
	nm_home_state_locate(state, pages, nr_nodes);
	state->location.anon_bytes = 0;
}

void nm_home_stage_end_migration(struct nm_daemon *daemon, const struct nm_home_state *state,
				 bool rolls_back)
{
	struct nm_migration *one =
		nm_migration_find(&daemon->pipeline.migrations, state->decision);
	if (!one || !rolls_back) {
		nm_migration_drop(&daemon->pipeline.migrations, one);
		return;
	}
	one->roll_back = true;
	roll_back(daemon, one);
}

/* ---- migration to the home ---- */

/* All of its memory is there now, except after an interrupted batch, which is continued later. */
static void finish_batch(const struct nm_daemon *daemon, struct nm_home_state *state,
			 const struct nm_page_batch *batch)
{
	struct nm_memory_migration *migration = &state->migration;
	migration->moved += batch->moved;
	migration->failed &= batch->error != 0;
	/* After an error, pages elsewhere do not show that they cannot be moved. */
	migration->checked = batch->error != 0;
	bool later = nm_home_state_refuse(state, batch->error) &&
		     batch->bytes < migration->away_bytes;
	if (batch->error == 0 && batch->stayed_bytes > batch->bytes)
		(void)nm_home_state_refuse(state, -EBUSY);
	migration->ended_bytes = batch->error == 0 ? state->anon_bytes : 0;
	migration->ended_ns = nm_daemon_now_ns(daemon);
	migration->state = later ? NM_MIGRATION_DEFERRED : NM_MIGRATION_DONE;
	if (later) {
		bool few = batch->bytes < migration->away_bytes / 2;
		uint64_t pause_ns = migration->pause_ns ? 2 * migration->pause_ns : AGAIN_NS;
		if (pause_ns > AGAIN_MOST_NS)
			pause_ns = AGAIN_MOST_NS;
		migration->pause_ns = few ? pause_ns : 0;
		migration->retry_ns = few ? migration->ended_ns + migration->pause_ns : 0;
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
	struct nm_placement *placement = nm_placement_of(daemon);
	struct nm_home_state *state = nm_home_state_find(placement, batch->pid);
	struct nm_migration *one =
		nm_migration_find(&daemon->pipeline.migrations, batch->decision);
	nm_feedback_disturb(daemon->pipeline.feedback, batch->pid);
	if (batch->calls > 0)
		nm_place_add_cost(&placement->page_cost, batch->domain, batch->moved,
				  batch->call_ns);
	if (!batch->rollback) {
		daemon->tally.homes.pages += batch->moved;
		daemon->tally.homes.bytes += batch->bytes;
	}
	if (batch->rollback || !one)
		return;
	one->moving = false;
	(void)nm_migration_remember(&daemon->pipeline.migrations, one, batch, daemon->config);
	if (state && !one->roll_back)
		finish_batch(daemon, state, batch);
}

void nm_home_stage_collect(struct nm_daemon *daemon)
{
	for (struct nm_page_batch *batch;
	     (batch = nm_mover_collect(daemon->pipeline.mover, true));) {
		handle_batch(daemon, batch);
		nm_page_batch_free(batch);
	}
	for (size_t i = daemon->pipeline.migrations.count; i-- > 0;) {
		struct nm_migration *one = &daemon->pipeline.migrations.items[i];
		if (one->decision.kind == NM_DECISION_HOME && one->roll_back)
			roll_back(daemon, one);
	}
}

static void migrate(struct nm_daemon *daemon, struct nm_home_state *state)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));
	const struct nm_migration one = {
		.decision = nm_decision_of_process(NM_DECISION_HOME, state->decision, state->pid,
						   state->start_ticks, ""),
		.domain = state->domain,
	};
	batch->bulk = true;
	batch->to = (int16_t)state->home;
	int r = nm_migration_begin(&daemon->pipeline.migrations, daemon->pipeline.mover, &one,
				   &batch);
	if (r == -EAGAIN)
		nm_placement_defer_domain(nm_placement_of(daemon), state->domain);
	else
		state->migration.state = r == 0 ? NM_MIGRATION_RUNNING : NM_MIGRATION_DONE;
	(void)nm_home_state_refuse(state, r);
}

bool nm_home_stage_is_reclaimed(struct nm_daemon *daemon, unsigned node)
{
	return nm_node_is_reclaimed(daemon->pipeline.platform,
				    &nm_placement_of(daemon)->reclaim,
				    daemon->pipeline.topology->nodes[node].os_id,
				    daemon->last_tick_ns);
}

static void update_migrations(struct nm_daemon *daemon, double interval_s)
{
	struct nm_placement *placement = nm_placement_of(daemon);
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	nm_autofree bool *reclaimed = nm_must(calloc(nr_nodes, sizeof(*reclaimed)));
	for (unsigned k = 0; k < nr_nodes && nm_placement_has_migrations(placement); k++)
		reclaimed[k] = nm_home_stage_is_reclaimed(daemon, k);
	nm_placement_update_migrations(placement, interval_s, nm_daemon_now_ns(daemon), reclaimed);
}

void nm_home_stage_migrate(struct nm_daemon *daemon, double interval_s)
{
	struct nm_home_state *next;
	update_migrations(daemon, interval_s);
	while ((next = nm_placement_next_migration(nm_placement_of(daemon))))
		migrate(daemon, next);
}
