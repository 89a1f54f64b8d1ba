/* SPDX-License-Identifier: MIT */
/* The location of the private memory of a process, as counted by the kernel. */
#include <string.h>
#include <unistd.h>

#include "numa-migrd/balance.h"
#include "numa-migrd/homes.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/proc.h"
#include "numa-migrd/regions.h"

/* For numa_maps the kernel walks all pages, and the process cannot map memory meanwhile; therefore
 * only a sample of a larger process is queried. */
#define WHOLE_MAX_BYTES (UINT64_C(64) << 20)
#define SAMPLE_MIN 64U	     /* pages */
#define ANSWER_INTERVALS 10U /* time limit of an answer for policy "balance" */

int nm_location_query(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		      uint64_t bytes, uint64_t *ret_ticket)
{
	const struct nm_memory_query query = {
		.kind = bytes > WHOLE_MAX_BYTES ? NM_MEMORY_QUERY_PAGES : NM_MEMORY_QUERY_NUMA_MAPS,
		.pid = pid,
		.start_ticks = start_ticks,
	};
	return platform->ops->memory_query(platform, &query, ret_ticket);
}

void nm_location_cancel(struct nm_platform *platform, uint64_t *ticket)
{
	if (*ticket)
		platform->ops->memory_cancel(platform, *ticket);
	*ticket = 0;
}

/* Returns whether these pages stay where they are: memory that other processes can map, data of
 * files, and huge pages of files. Programs and libraries do not count. */
static bool stays(const struct nm_mapped *mapped)
{
	return mapped->file && (mapped->huge || mapped->written ||
				mapped->resident * mapped->page_bytes > NM_PROC_PROGRAM_BYTES);
}

/* Huge pages from the pool stay where they are while the pools of other nodes are used up. */
static void count_whole(const struct nm_topology *topology, char *text, struct nm_location *ret)
{
	const double page_bytes = (double)sysconf(_SC_PAGESIZE);
	struct nm_mapped mapped;
	ret->whole = true;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (nm_mapped_parse_policy(line, &mapped) < 0)
			continue;
		bool own = strstr(line, " anon=") && !(mapped.file && mapped.huge);
		if (!own && !stays(&mapped))
			continue;
		if (own && mapped.huge)
			ret->huge_bytes += mapped.resident * mapped.page_bytes;
		else if (own)
			ret->own_bytes += mapped.resident * mapped.page_bytes;
		(void)nm_mapped_count_pages(line, topology, page_bytes,
					    own ? ret->pages : ret->staying);
	}
}

static void count_nodes(const struct nm_topology *topology, const int *nodes, unsigned count,
			double *pages)
{
	for (unsigned i = 0; i < count && count >= SAMPLE_MIN; i++) {
		int node = nodes[i] < 0 ? -1 : nm_topology_node_index(topology, (unsigned)nodes[i]);
		if (node >= 0)
			pages[node]++;
	}
}

static void count_sample(const struct nm_topology *topology, const struct nm_memory_answer *answer,
			 struct nm_location *ret)
{
	unsigned own = answer->count - answer->nr_staying;
	count_nodes(topology, answer->nodes, own, ret->pages);
	count_nodes(topology, answer->nodes + own, answer->nr_staying, ret->staying);
	ret->huge_bytes = answer->own_huge_bytes;
}

int nm_location_poll(struct nm_platform *platform, const struct nm_topology *topology,
		     uint64_t *ticket, struct nm_location *ret)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, *ticket, &answer);
	if (r == -EAGAIN)
		return r;
	*ticket = 0;
	if (r < 0 || answer.result < 0)
		return r < 0 ? r : answer.result;
	if (answer.text)
		count_whole(topology, answer.text, ret);
	else
		count_sample(topology, &answer, ret);
	return 0;
}

/* ---- policy "balance" ---- */

/* Returns true if no query is pending any more. A query without an answer for a long time is
 * cancelled. */
static bool take_answer(struct nm_platform *platform, struct nm_balancer *balancer,
			const struct nm_snapshot *snapshot)
{
	struct nm_balancer_query *query = &balancer->query;
	unsigned nr_nodes = balancer->topology->nr_nodes;
	if (!query->ticket)
		return true;
	nm_autofree double *pages = nm_must(calloc(2 * (size_t)nr_nodes, sizeof(*pages)));
	struct nm_location location = {.pages = pages, .staying = pages + nr_nodes};
	int r = nm_location_poll(platform, balancer->topology, &query->ticket, &location);
	if (r == -EAGAIN && snapshot->interval - query->interval < ANSWER_INTERVALS)
		return false;
	if (r == 0)
		nm_balancer_set_pages(balancer, query->pid, query->start_ticks, pages,
				      snapshot->time_ns);
	nm_location_cancel(platform, &query->ticket);
	return true;
}

void nm_balancer_locate(struct nm_platform *platform, struct nm_balancer *balancer,
			const struct nm_snapshot *snapshot, bool due)
{
	struct nm_residence *next = NULL;
	uint64_t ticket = 0;
	if (!due && !balancer->query.ticket)
		return;
	nm_balancer_follow_pages(balancer, snapshot);
	if (take_answer(platform, balancer, snapshot) && due)
		next = nm_balancer_next_query(balancer, snapshot->time_ns);
	if (!next)
		return;
	int r = nm_location_query(platform, next->pid, next->start_ticks, next->rss_bytes, &ticket);
	nm_balancer_note_query(balancer, next, ticket, r, snapshot);
}
