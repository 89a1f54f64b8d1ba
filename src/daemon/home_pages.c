/* SPDX-License-Identifier: MIT */
/*
 * Policy "auto": queries the location of the memory of a process, as counted by the kernel. The
 * first thread of a program may have touched all of it before the others ran, so that the CPUs on
 * which threads run do not show the location.
 */
#include <string.h>
#include <unistd.h>

#include "home_stage.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/regions.h"

/*
 * For numa_maps the kernel walks all pages; therefore only a sample of a large process is queried.
 */
static void query_location(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t anon_bytes,
			   uint64_t now_ns)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	bool pages = anon_bytes > daemon->config->threads.residency_maps_mb << 20;
	const struct nm_memory_query question = {
		.kind = pages ? NM_MEMORY_QUERY_PAGES : NM_MEMORY_QUERY_NUMA_MAPS,
		.pid = placed->pid,
		.start_ticks = placed->start_ticks,
	};
	placed->count.anon_bytes = anon_bytes; /* also if the query fails */
	placed->count.asked_ns = now_ns;
	placed->count.pages = pages;
	placed->memory.checked = true;
	if (platform->ops->memory_query(platform, &question, &placed->count.ticket) < 0)
		placed->count.ticket = 0;
}

void nm_home_stage_cancel_query(struct nm_daemon *daemon, struct nm_placed *placed)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	if (placed->count.ticket)
		platform->ops->memory_cancel(platform, placed->count.ticket);
	placed->count.ticket = 0;
}

/* RssAnon does not include huge pages from the pool, which stay where they are while the pools of
 * other nodes are used up. */
static void count_pages(const struct nm_topology *topology, char *text, double *pages,
			struct nm_placed *placed)
{
	const double page_bytes = (double)sysconf(_SC_PAGESIZE);
	struct nm_mapped mapped;
	placed->count.huge_bytes = 0;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (!strstr(line, " anon=")) /* pages that other processes also map existed before,
					      * and stay */
			continue;
		if (nm_mapped_parse_policy(line, &mapped) == 0 && mapped.huge)
			placed->count.huge_bytes += mapped.resident * mapped.page_bytes;
		(void)nm_residency_read_numa_maps_line(line, topology, page_bytes, pages);
	}
}

static void count_nodes(const struct nm_topology *topology, const struct nm_memory_answer *answer,
			double *pages)
{
	for (unsigned i = 0; i < answer->count && answer->count >= NM_RESIDENCY_FEWEST; i++) {
		int node = answer->nodes[i] < 0
				   ? -1
				   : nm_topology_node_index(topology, (unsigned)answer->nodes[i]);
		if (node >= 0)
			pages[node]++;
	}
}

static void poll_count(struct nm_daemon *daemon, struct nm_placed *placed)
{
	const struct nm_topology *topology = daemon->pipeline.topology;
	struct nm_platform *platform = daemon->pipeline.platform;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, placed->count.ticket, &answer);
	if (r == -EAGAIN)
		return;
	placed->count.ticket = 0;
	nm_autofree double *pages = calloc(topology->nr_nodes, sizeof(*pages));
	bool again = placed->home >= 0 && placed->memory.state == NM_BRING_DONE;
	if (r < 0 || answer.result < 0 || (placed->home >= 0 && placed->located && !again) ||
	    !pages)
		return;
	if (answer.text && !placed->count.pages)
		count_pages(topology, answer.text, pages, placed);
	if (placed->count.pages)
		count_nodes(topology, &answer, pages);
	nm_placed_locate(placed, pages, topology->nr_nodes);
	if (again)
		nm_placed_reconsider_memory(placed, topology);
}

void nm_home_stage_locate(struct nm_daemon *daemon, struct nm_placed *placed, uint64_t now_ns)
{
	if (placed->count.ticket)
		poll_count(daemon, placed);
	if (nm_placed_wants_query(placed, nm_balances_nodes(daemon->machine.balancing), now_ns))
		query_location(daemon, placed, placed->anon_bytes, now_ns);
}
