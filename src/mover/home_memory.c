/* SPDX-License-Identifier: MIT */
/* The memory of the processes of policy "auto": its location, and its migration to their homes. */
#include <stdlib.h>

#include "policy/homes.h"
#include "policy/judge.h"
#include "mover/mover.h"
#include "numa-migrd/proc.h"

/* Available memory is read again after this time. */
#define AVAILABLE_AGE_NS (500 * NM_NSEC_PER_MSEC)

/* ---- location ---- */

/* The first thread of a program may have touched all of its memory before the others ran, so that
 * the CPUs on which threads run do not show the location. */
void nm_home_locate(const struct nm_home_memory *memory, struct nm_home_state *state,
		    bool kernel_moves, uint64_t now_ns)
{
	uint64_t *query_id = &state->location.query_id;
	unsigned nr_nodes = memory->topology->nr_nodes;
	if (*query_id) {
		nm_autofree double *pages = nm_must(calloc(2 * (size_t)nr_nodes, sizeof(*pages)));
		bool shared_moves = memory->config->pages.also & NM_ALSO_SHARED;
		struct nm_location location = {.pages = pages,
					       .staying = shared_moves ? pages : pages + nr_nodes};
		if (nm_location_poll(memory->platform, memory->topology, query_id, &location) == 0)
			nm_home_state_answer(state, memory->topology, &location);
	}
	if (nm_home_state_must_query(state, kernel_moves, now_ns))
		(void)nm_location_query(memory->platform, state->pid, state->start_ticks,
					state->anon_bytes + state->shared_bytes, query_id);
}

/* ---- memory of nodes ---- */

static bool is_reclaimed(const struct nm_home_memory *memory, unsigned node)
{
	return nm_node_is_reclaimed(memory->platform, &memory->placement->reclaim,
				    memory->topology->nodes[node].os_id, memory->ticked_ns);
}

void nm_home_read_available(const struct nm_home_memory *memory, uint64_t now_ns)
{
	struct nm_placement *placement = memory->placement;
	double keep_free = memory->config->pages.keep_free_percent / 100;
	if (placement->available_ns && now_ns - placement->available_ns < AVAILABLE_AGE_NS)
		return;
	struct nm_watermarks watermarks = nm_watermarks_read(memory->platform);
	for (unsigned k = 0; k < placement->nr_nodes; k++) {
		uint64_t *bytes = &placement->available_bytes[k];
		*bytes = 0;
		if (!is_reclaimed(memory, k) &&
		    nm_node_available_read(memory->platform, memory->topology->nodes[k].os_id,
					   &watermarks, keep_free, bytes) < 0)
			*bytes = UINT64_MAX; /* no limit if the kernel does not report it */
	}
	placement->available_ns = now_ns;
}

/* ---- migration ---- */

/* A home that has ended meanwhile is not concerned. */
static void handle_batch(const struct nm_home_memory *memory, const struct nm_page_batch *batch)
{
	struct nm_platform *platform = memory->platform;
	struct nm_home_state *state = nm_home_state_find(memory->placement, batch->pid);
	const struct nm_home_result result = {
		.error = batch->error,
		.moved = batch->moved,
		.bytes = batch->bytes,
		.stayed_bytes = batch->stayed_bytes,
	};
	nm_feedback_disturb(memory->feedback, batch->pid);
	if (batch->calls > 0)
		nm_place_add_cost(&memory->placement->page_cost, batch->domain, batch->moved,
				  batch->call_ns);
	if (state && state->home >= 0 && state->decision == batch->decision)
		nm_home_state_end_batch(state, &result, memory->topology->nr_nodes,
					platform->ops->now_ns(platform));
}

void nm_home_collect(const struct nm_home_memory *memory, uint64_t *pages, uint64_t *bytes)
{
	for (struct nm_page_batch *batch; (batch = nm_mover_collect(memory->mover, true));) {
		handle_batch(memory, batch);
		*pages += batch->moved;
		*bytes += batch->bytes;
		nm_page_batch_free(batch);
	}
}

static int migrate(const struct nm_home_memory *memory, const struct nm_home_state *state)
{
	nm_auto(nm_page_batch_freep) struct nm_page_batch *batch =
		nm_must(calloc(1, sizeof(*batch)));
	*batch = (struct nm_page_batch){
		.decision = state->decision,
		.pid = state->pid,
		.start_ticks = state->start_ticks,
		.domain = state->domain,
		.bulk = true,
		.to = (int16_t)state->home,
	};
	int r = nm_mover_submit(memory->mover, batch);
	if (r == 0)
		(void)NM_TAKE(batch);
	return r;
}

void nm_home_migrate(const struct nm_home_memory *memory, double interval_s)
{
	struct nm_placement *placement = memory->placement;
	struct nm_platform *platform = memory->platform;
	unsigned nr_nodes = memory->topology->nr_nodes;
	nm_autofree bool *reclaimed = nm_must(calloc(nr_nodes, sizeof(*reclaimed)));
	for (unsigned k = 0; k < nr_nodes && nm_placement_has_migrations(placement); k++)
		reclaimed[k] = is_reclaimed(memory, k);
	nm_placement_update_migrations(placement, interval_s, platform->ops->now_ns(platform),
				       reclaimed);
	for (struct nm_home_state *next; (next = nm_placement_next_migration(placement));)
		nm_placement_submitted(placement, next, migrate(memory, next));
}
