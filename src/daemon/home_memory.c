/* SPDX-License-Identifier: MIT */
/* Policy "auto": the mover migrates the memory of a process to its home, once, when the benefit
 * exceeds the cost. */
#include <math.h>
#include <string.h>

#include "home_stage.h"

/* If the location of a process's memory is not known, at most this amount is moved. */
#define ASSUMED_MAX_BYTES (UINT64_C(64) << 20)
#define AHEAD_S 0.25 /* work handed to the mover in addition to the current batch, in seconds;
		      * waiting work can still be reordered by the latest measurements */
#define FULL_NS (12 * NM_NSEC_PER_SEC) /* time after which memory that found little room is tried
					* again; a verdict is given meanwhile */
#define GUESSED_S 0.05 /* the same while the cost is an estimate */

static uint64_t domain_of(const struct nm_daemon *daemon, const struct nm_home_state *state)
{
	return nm_roster_domain(daemon->pipeline.roster, state->pid);
}

static int submit(struct nm_daemon *daemon, const struct nm_home_state *state,
		  struct nm_page_batch *batch)
{
	batch->pid = state->pid;
	batch->start_ticks = state->start_ticks;
	batch->bulk = true;
	batch->domain = domain_of(daemon, state);
	return nm_mover_submit(daemon->pipeline.mover, batch);
}

/* ---- rollback ---- */

/* The location of its memory is assumed from the pages that were moved. */
static void assume_location(struct nm_home_state *state, const struct nm_base_pages *origins,
			    size_t nr_origins, unsigned nr_nodes)
{
	nm_autofree double *pages = calloc(nr_nodes, sizeof(*pages));
	for (size_t i = 0; pages && i < nr_origins; i++)
		if (origins[i].was_on >= 0 && (unsigned)origins[i].was_on < nr_nodes)
			pages[origins[i].was_on] += origins[i].pages;
	if (pages)
		nm_home_state_locate(state, pages, nr_nodes);
	state->location.anon_bytes = 0; /* so that its location is queried again */
}

static void roll_back(struct nm_daemon *daemon, struct nm_home_state *state, uint64_t decision,
		      struct nm_base_pages *origins, size_t nr_origins)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));
	if (!batch || nr_origins == 0) {
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
	const uint64_t domain = domain_of(daemon, state);
	struct nm_usage usage = {0};
	for (size_t i = 0; i < placement->processes.count; i++) {
		const uint64_t holder = domain_of(daemon, nm_home_state_at(placement, i));
		nm_usage_add(&usage, domain, holder,
			     nm_home_state_at(placement, i)->migration.nr_origins);
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
		reallocarray(migration->origins, count + 1, sizeof(*origins));
	if (!origins)
		return;
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
	nm_home_state_refuse(state, batch->error);
	migration->ended_bytes = batch->error == 0 ? state->anon_bytes : 0;
	migration->ended_ns = nm_daemon_now_ns(daemon);
	bool full = batch->error == -ENOSPC && batch->bytes < migration->away_bytes;
	migration->state = full ? NM_MIGRATION_DEFERRED : NM_MIGRATION_DONE;
	if (full) {
		bool few = batch->bytes < migration->away_bytes / 2;
		migration->retry_ns = few ? migration->ended_ns + FULL_NS : 0;
		migration->away_bytes -= batch->bytes;
	}
	/* Memory that must not move is not in the batch. If nothing was known of it and little has
	 * moved, the rest is either at home or stays elsewhere, which a query shows. */
	bool unknown = !nm_home_state_shares(state) && 2 * batch->bytes < state->anon_bytes;
	if (unknown)
		state->location.anon_bytes = 0; /* so that its location is queried again */
	if (batch->error != 0 || unknown)
		return;
	for (unsigned k = 0; k < daemon->pipeline.topology->nr_nodes; k++)
		state->located_on[k] = (int)k == state->home;
	state->located = true;
}

static void handle_batch(struct nm_daemon *daemon, struct nm_page_batch *batch)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_home_state *state = nm_home_state_find(placement, batch->pid);
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
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch = calloc(1, sizeof(*batch));
	if (!batch)
		return;
	batch->decision = state->decision;
	batch->to = (int16_t)state->home;
	int r = submit(daemon, state, batch);
	if (r == 0)
		(void)NM_TAKE(batch);
	if (r != -EAGAIN)
		state->migration.state = r == 0 ? NM_MIGRATION_RUNNING : NM_MIGRATION_DONE;
	nm_home_state_refuse(state, r);
}

static double cost_s(const struct nm_placement *placement, const struct nm_home_state *state)
{
	return nm_place_migration_cost_s(placement->page_cost.page_ns,
					 (double)state->migration.away_bytes);
}

static bool is_cost_unknown(const struct nm_placement *placement)
{
	return placement->page_cost.page_ns == 0;
}

/*
 * Returns the process that has lost most for each second that its migration takes. While that time
 * is an estimate, returns the process that is moved fastest, to measure the cost for the others.
 * NULL: none is to be moved now.
 */
static struct nm_home_state *find_most_urgent(const struct nm_placement *placement)
{
	struct nm_home_state *first = NULL;
	double most = 0;
	for (size_t i = 0; i < placement->processes.count; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		double worth = (is_cost_unknown(placement) ? 1 : state->lost_s) /
			       fmax(cost_s(placement, state), 1e-9);
		if (state->migration.state != NM_MIGRATION_READY || state->migration.waits ||
		    worth < most)
			continue;
		most = worth;
		first = state;
	}
	return first;
}

static double running_s(const struct nm_daemon *daemon, uint64_t domain, unsigned *ret_count)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	double sum = 0;
	*ret_count = 0;
	for (size_t i = 0; i < placement->processes.count; i++) {
		if (nm_home_state_at(placement, i)->migration.state != NM_MIGRATION_RUNNING ||
		    domain_of(daemon, nm_home_state_at(placement, i)) != domain)
			continue;
		sum += cost_s(placement, nm_home_state_at(placement, i));
		(*ret_count)++;
	}
	return sum;
}

static bool is_pending(const struct nm_home_state *state)
{
	return state->migration.state == NM_MIGRATION_READY ||
	       state->migration.state == NM_MIGRATION_DEFERRED;
}

bool nm_home_stage_is_reclaimed(struct nm_daemon *daemon, unsigned node)
{
	return nm_node_is_reclaimed(daemon->pipeline.platform,
				    &daemon->pipeline.home_reclaim,
				    daemon->pipeline.topology->nodes[node].os_id,
				    daemon->last_tick_ns);
}

/* The mover moves all remote memory, including memory whose location was not known. */
static bool may_move_memory(const struct nm_home_state *state)
{
	return nm_home_state_shares(state) || nm_home_state_bytes(state) <= ASSUMED_MAX_BYTES;
}

/* The cost of remote accesses grows, and the cost of the migration becomes known better. */
static void update_migration(const struct nm_placement *placement, struct nm_home_state *state,
			     double interval_s, uint64_t now_ns, const bool *reclaimed)
{
	struct nm_memory_migration *migration = &state->migration;
	if (!is_pending(state))
		return;
	state->lost_s +=
		interval_s * nm_place_lost_cpus(state->demand_cpus, migration->away_distance);
	bool worthwhile = nm_place_expected_rest(state->lost_s) >= cost_s(placement, state) &&
			  may_move_memory(state) && !reclaimed[state->home] &&
			  !nm_home_state_is_suspended(state) && now_ns >= migration->retry_ns;
	if (worthwhile && migration->state == NM_MIGRATION_DEFERRED)
		state->judged = false; /* again, with its memory at home */
	migration->state = worthwhile ? NM_MIGRATION_READY : NM_MIGRATION_DEFERRED;
}

/* Returns 0, or -ENOMEM if nothing is handed over now. */
static int update_migrations(struct nm_daemon *daemon, double interval_s)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_platform *platform = daemon->pipeline.platform;
	unsigned nr_nodes = daemon->pipeline.topology->nr_nodes;
	uint64_t now_ns = platform->ops->now_ns(platform);
	bool any = false;
	for (size_t i = 0; i < placement->processes.count; i++) {
		nm_home_state_at(placement, i)->migration.waits = false;
		any |= is_pending(nm_home_state_at(placement, i));
	}
	nm_autofree bool *reclaimed = calloc(nr_nodes, sizeof(*reclaimed));
	if (!reclaimed)
		return -ENOMEM;
	for (unsigned k = 0; any && k < nr_nodes; k++)
		reclaimed[k] = nm_home_stage_is_reclaimed(daemon, k);
	for (size_t i = 0; any && i < placement->processes.count; i++)
		update_migration(placement, nm_home_state_at(placement, i), interval_s, now_ns,
				 reclaimed);
	return 0;
}

static void defer_domain(struct nm_daemon *daemon, uint64_t domain)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	for (size_t i = 0; i < placement->processes.count; i++)
		if (domain_of(daemon, nm_home_state_at(placement, i)) == domain)
			nm_home_state_at(placement, i)->migration.waits = true;
}

/* Returns whether enough memory of the same domain is being moved: the mover serves domains in
 * turns. */
static bool is_domain_busy(const struct nm_daemon *daemon, const struct nm_home_state *next,
			   uint64_t domain)
{
	const struct nm_placement *placement = daemon->pipeline.placement;
	unsigned nr_ahead;
	double ahead_s = running_s(daemon, domain, &nr_ahead) + cost_s(placement, next);
	return is_cost_unknown(placement) ? nr_ahead > 0 && ahead_s > GUESSED_S
					  : nr_ahead > 1 && ahead_s > AHEAD_S;
}

void nm_home_stage_migrate(struct nm_daemon *daemon, uint64_t interval_ns)
{
	struct nm_placement *placement = daemon->pipeline.placement;
	struct nm_home_state *next;
	if (update_migrations(daemon, (double)interval_ns / (double)NM_NSEC_PER_SEC) < 0)
		return;
	while ((next = find_most_urgent(placement))) {
		uint64_t domain = domain_of(daemon, next);
		if (!is_domain_busy(daemon, next, domain))
			migrate(daemon, next);
		if (next->migration.state == NM_MIGRATION_READY)
			defer_domain(daemon, domain);
	}
}
