/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": queries the location of the memory of a process. The first thread of a program may
 * have touched all of it before the others ran, so that the CPUs on which threads run do not show
 * the location.
 */
#include "home_stage.h"

static void query_location(struct nm_daemon *daemon, struct nm_home_state *state, uint64_t now_ns)
{
	state->location.anon_bytes = state->anon_bytes; /* also if the query fails */
	state->location.asked_ns = now_ns;
	state->migration.checked = true;
	(void)nm_location_query(daemon->pipeline.platform, state->pid, state->start_ticks,
				state->anon_bytes, &state->location.ticket);
}

static void take_answer(struct nm_daemon *daemon, struct nm_home_state *state)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	nm_autofree double *pages = nm_must(calloc(topology->nr_nodes, sizeof(*pages)));
	bool again = state->home >= 0 && state->migration.state == NM_MIGRATION_DONE;
	uint64_t huge_bytes = state->location.huge_bytes;
	if (nm_location_poll(daemon->pipeline.platform, topology, &state->location.ticket, pages,
			     &huge_bytes) < 0)
		return;
	if (state->home >= 0 && state->located && !again)
		return;
	state->location.huge_bytes = huge_bytes;
	nm_home_state_locate(state, pages, topology->nr_nodes);
	if (again)
		nm_home_state_schedule_migration(state, topology);
}

void nm_home_stage_locate(struct nm_daemon *daemon, struct nm_home_state *state, uint64_t now_ns)
{
	if (state->location.ticket)
		take_answer(daemon, state);
	if (nm_home_state_needs_query(state, nm_balances_nodes(daemon->machine.balancing), now_ns))
		query_location(daemon, state, now_ns);
}
