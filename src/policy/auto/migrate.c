/* SPDX-License-Identifier: MIT */
/* Decides which process's memory is migrated to its home next: when the benefit exceeds the cost,
 * in descending order of lost time per byte. */
#include <math.h>

#include "policy/homes.h"

/* If the location of a process's memory is not known, at most this amount is moved. */
#define ASSUMED_MAX_BYTES (UINT64_C(64) << 20)
#define AHEAD_S                                                                                    \
	0.25	       /* work handed to the mover in addition to the current batch, in seconds;   \
			* waiting work can still be reordered by the latest measurements */
#define GUESSED_S 0.05 /* the same while the cost is an estimate */

/* Time after which memory is tried again of which little has moved: the first, in which a verdict
 * is given, is doubled by each further try, up to the second. */
#define AGAIN_NS (12 * NM_NSEC_PER_SEC)
#define AGAIN_MOST_NS (600 * NM_NSEC_PER_SEC)

static bool is_pending(const struct nm_home_state *state)
{
	return state->migration.state == NM_MIGRATION_READY ||
	       state->migration.state == NM_MIGRATION_DEFERRED;
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

/* ---- one interval ---- */

bool nm_placement_has_migrations(const struct nm_placement *placement)
{
	for (size_t i = 0; i < placement->processes.count; i++)
		if (is_pending(nm_home_state_at(placement, i)))
			return true;
	return false;
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
	state->lost_s +=
		interval_s * nm_place_lost_cpus(state->input.demand_cpus, migration->away_distance);
	bool worthwhile = nm_place_expected_rest(state->lost_s) >= cost_s(placement, state) &&
			  may_move_memory(state) && !reclaimed[state->home] &&
			  !nm_home_state_is_suspended(state) && now_ns >= migration->retry_ns;
	if (worthwhile && migration->state == NM_MIGRATION_DEFERRED)
		state->judged = false; /* again, with its memory at home */
	migration->state = worthwhile ? NM_MIGRATION_READY : NM_MIGRATION_DEFERRED;
}

void nm_placement_update_migrations(struct nm_placement *placement, double interval_s,
				    uint64_t now_ns, const bool *reclaimed)
{
	for (size_t i = 0; i < placement->processes.count; i++) {
		struct nm_home_state *state = nm_home_state_at(placement, i);
		state->migration.waits = false;
		if (is_pending(state))
			update_migration(placement, state, interval_s, now_ns, reclaimed);
	}
}

/* ---- the next migration ---- */

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

/* Returns whether enough memory of the same domain is being moved: the mover serves domains in
 * turns. */
static bool is_domain_busy(const struct nm_placement *placement, const struct nm_home_state *next)
{
	double ahead_s = cost_s(placement, next);
	unsigned nr_ahead = 0;
	for (size_t i = 0; i < placement->processes.count; i++) {
		const struct nm_home_state *state = nm_home_state_at(placement, i);
		if (state->migration.state != NM_MIGRATION_RUNNING || state->domain != next->domain)
			continue;
		ahead_s += cost_s(placement, state);
		nr_ahead++;
	}
	return is_cost_unknown(placement) ? nr_ahead > 0 && ahead_s > GUESSED_S
					  : nr_ahead > 1 && ahead_s > AHEAD_S;
}

static void defer_domain(struct nm_placement *placement, uint64_t domain)
{
	for (size_t i = 0; i < placement->processes.count; i++)
		if (nm_home_state_at(placement, i)->domain == domain)
			nm_home_state_at(placement, i)->migration.waits = true;
}

struct nm_home_state *nm_placement_next_migration(struct nm_placement *placement)
{
	struct nm_home_state *next;
	while ((next = find_most_urgent(placement)) && is_domain_busy(placement, next))
		defer_domain(placement, next->domain);
	return next;
}

/* ---- results ---- */

/* Records that its memory could not be moved, which ends a home that rested on it. Errors that do
 * not concern the memory are ignored. Returns whether to try again later: its home lacked memory,
 * or the worker or a thread failed for the first time. */
static bool refuse(struct nm_home_state *state, int error)
{
	switch (error) {
	case 0:
	case -EAGAIN: /* nothing was tried: see struct nm_page_batch */
	case -ECANCELED:
	case -ESTALE:
	case -EROFS:
		return false;
	case -ENOSPC:	/* our own rule: the node may have memory later */
	case -EALREADY: /* it or its domain has to wait for a worker (worker.h) */
		return true;
	case -ESRCH:	  /* if the process continues, a thread was exiting */
	case -ECONNRESET: /* the worker failed, not the move, unless it fails again */
	case -EPIPE:
	case -ETIMEDOUT:
	case -ENOTCONN:
	case -EPROTO:
		if (!state->migration.failed)
			return state->migration.failed = true;
		break;
	}
	state->input.memory_stays = true; /* until its cpuset changes */
	return false;
}

void nm_placement_submitted(struct nm_placement *placement, struct nm_home_state *state, int error)
{
	if (error == -EAGAIN)
		defer_domain(placement, state->domain);
	else
		state->migration.state = error == 0 ? NM_MIGRATION_RUNNING : NM_MIGRATION_DONE;
	(void)refuse(state, error);
}

/* The rest is tried later: at once if most of it has moved. */
static void defer_rest(struct nm_memory_migration *migration, uint64_t moved_bytes)
{
	bool few = moved_bytes < migration->away_bytes / 2;
	uint64_t pause_ns = migration->pause_ns ? 2 * migration->pause_ns : AGAIN_NS;
	if (pause_ns > AGAIN_MOST_NS)
		pause_ns = AGAIN_MOST_NS;
	migration->pause_ns = few ? pause_ns : 0;
	migration->retry_ns = few ? migration->ended_ns + pause_ns : 0;
	migration->away_bytes -= moved_bytes;
}

/* The memory that can follow is at home now. */
static void move_location(struct nm_home_state *state, unsigned nr_nodes)
{
	double stay = 0;
	for (unsigned k = 0; k < nr_nodes; k++) {
		double staying = state->located ? state->located_on[k] * state->stays_on[k] : 0;
		state->located_on[k] = staying;
		stay += staying;
		if (state->located && (int)k != state->home)
			state->stays_on[k] = 1;
	}
	double *here = &state->located_on[state->home];
	if (state->located)
		state->stays_on[state->home] = stay < 1 ? *here / (*here + 1 - stay) : 1;
	*here += 1 - stay;
	state->located = true;
}

void nm_home_state_end_batch(struct nm_home_state *state, const struct nm_home_result *result,
			     unsigned nr_nodes, uint64_t now_ns)
{
	struct nm_memory_migration *migration = &state->migration;
	migration->moved += result->moved;
	migration->failed &= result->error != 0;
	/* After an error, pages elsewhere do not show that they cannot be moved. */
	migration->checked = result->error != 0;
	bool later = refuse(state, result->error) && result->bytes < migration->away_bytes;
	if (result->error == 0 && result->stayed_bytes > result->bytes)
		(void)refuse(state, -EBUSY);
	migration->ended_bytes = result->error == 0 ? state->anon_bytes : 0;
	migration->ended_ns = now_ns;
	migration->state = later ? NM_MIGRATION_DEFERRED : NM_MIGRATION_DONE;
	if (later)
		defer_rest(migration, result->bytes);
	/* Memory that must not move is not in the batch. If nothing was known of it and little has
	 * moved, the rest is either at home or stays elsewhere, which a query shows. */
	bool unknown = !nm_home_state_shares(state) && 2 * result->bytes < state->anon_bytes;
	if (unknown)
		state->location.anon_bytes = 0; /* so that its location is queried again */
	if (result->error != 0 || unknown || state->input.memory_stays)
		return;
	move_location(state, nr_nodes);
}
