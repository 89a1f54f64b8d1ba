/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": queries the location of the memory of a process. The first thread of a program may
 * have touched all of it before the others ran, so that the CPUs on which threads run do not show
 * the location.
 */
#include "home_stage.h"
#include "page_query.h"

static void query_location(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t now_ns)
{
	placed->count.anon_bytes = placed->anon_bytes; /* also if the query fails */
	placed->count.asked_ns = now_ns;
	placed->memory.checked = true;
	(void)nm_page_query_send(daemon->pipeline.platform, placed->pid, placed->start_ticks,
				 placed->anon_bytes, &placed->count.query);
}

void nm_home_stage_cancel_query(struct nm_daemon *daemon, struct nm_placed *placed)
{
	nm_page_query_cancel(daemon->pipeline.platform, &placed->count.query);
}

static void take_answer(struct nm_daemon *daemon, struct nm_placed *placed)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	nm_autofree double *pages = calloc(topology->nr_nodes, sizeof(*pages));
	bool again = placed->home >= 0 && placed->memory.state == NM_BRING_DONE;
	uint64_t huge_bytes;
	if (!pages || nm_page_query_poll(daemon->pipeline.platform, topology,
					 &placed->count.query, pages, &huge_bytes) < 0)
		return;
	if (placed->home >= 0 && placed->located && !again)
		return;
	if (!placed->count.query.sampled)
		placed->count.huge_bytes = huge_bytes;
	nm_placed_locate(placed, pages, topology->nr_nodes);
	if (again)
		nm_placed_reconsider_memory(placed, topology);
}

void nm_home_stage_locate(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t now_ns)
{
	if (placed->count.query.ticket)
		take_answer(daemon, placed);
	if (nm_placed_wants_query(placed, nm_balances_nodes(daemon->machine.balancing), now_ns))
		query_location(daemon, placed, now_ns);
}
