/* SPDX-License-Identifier: MIT */
/* The location of the private memory of a process, as counted by the kernel. */
#include "policy/balance.h"
#include "policy/homes.h"
#include "platform/maps.h"
#include "mover/mover.h"

/* For numa_maps the kernel walks all pages, and the process cannot map memory meanwhile; therefore
 * only a sample of a larger process is queried. */
#define WHOLE_MAX_BYTES (UINT64_C(64) << 20)
#define SAMPLE_MIN 64U	     /* pages */
#define ANSWER_INTERVALS 10U /* time limit of an answer for policy "balance" */

int nm_location_query(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		      uint64_t bytes, uint64_t *ret_query_id)
{
	const struct nm_memory_query query = {
		.kind = bytes > WHOLE_MAX_BYTES ? NM_MEMORY_QUERY_PAGES : NM_MEMORY_QUERY_NUMA_MAPS,
		.pid = pid,
		.start_ticks = start_ticks,
	};
	return platform->ops->memory_query(platform, &query, ret_query_id);
}

void nm_location_cancel(struct nm_platform *platform, uint64_t *query_id)
{
	if (*query_id)
		platform->ops->memory_cancel(platform, *query_id);
	*query_id = 0;
}

/* Too small a sample counts as no pages. */
static void add_pages(const struct nm_topology *topology, const uint64_t *by_number, bool whole,
		      double *pages)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < NM_NODE_NUMBERS; i++)
		all += by_number[i];
	for (unsigned i = 0; i < topology->nr_nodes && (whole || all >= SAMPLE_MIN); i++)
		if (topology->nodes[i].os_id < NM_NODE_NUMBERS)
			pages[i] += (double)by_number[topology->nodes[i].os_id];
}

int nm_location_poll(struct nm_platform *platform, const struct nm_topology *topology,
		     uint64_t *query_id, struct nm_location *ret)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, *query_id, &answer);
	if (r == -EAGAIN)
		return r;
	*query_id = 0;
	if (r < 0 || answer.result < 0)
		return r < 0 ? r : answer.result;
	const struct nm_node_pages *pages = answer.pages;
	ret->whole = pages->whole;
	ret->own_bytes = pages->own_bytes;
	ret->huge_bytes = pages->huge_bytes;
	add_pages(topology, pages->own, pages->whole, ret->pages);
	add_pages(topology, pages->staying, pages->whole, ret->staying);
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
	if (!query->query_id)
		return true;
	nm_autofree double *pages = nm_must(calloc(2 * (size_t)nr_nodes, sizeof(*pages)));
	struct nm_location location = {.pages = pages, .staying = pages + nr_nodes};
	int r = nm_location_poll(platform, balancer->topology, &query->query_id, &location);
	if (r == -EAGAIN && snapshot->interval - query->interval < ANSWER_INTERVALS)
		return false;
	if (r == 0)
		nm_balancer_set_pages(balancer, query->pid, query->start_ticks, pages,
				      snapshot->time_ns);
	nm_location_cancel(platform, &query->query_id);
	return true;
}

void nm_balancer_locate(struct nm_platform *platform, struct nm_balancer *balancer,
			const struct nm_snapshot *snapshot, bool due)
{
	struct nm_residence *next = NULL;
	uint64_t query_id = 0;
	if (!due && !balancer->query.query_id)
		return;
	nm_balancer_follow_pages(balancer, snapshot);
	if (take_answer(platform, balancer, snapshot) && due)
		next = nm_balancer_next_query(balancer, snapshot->time_ns);
	if (!next)
		return;
	int r = nm_location_query(platform, next->pid, next->start_ticks, next->rss_bytes,
				  &query_id);
	nm_balancer_note_query(balancer, next, query_id, r, snapshot);
}
