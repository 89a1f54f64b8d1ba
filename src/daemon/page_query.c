/* SPDX-License-Identifier: MIT */
#include "page_query.h"

#include <string.h>
#include <unistd.h>

#include "numa-migrd/regions.h"

/* For numa_maps the kernel walks all pages, and the process cannot map memory meanwhile; therefore
 * only a sample of a larger process is queried. */
#define WHOLE_MAX_BYTES (UINT64_C(64) << 20)
#define SAMPLE_MIN 64U /* pages */

int nm_page_query_send(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		       uint64_t bytes, struct nm_page_query *ret)
{
	struct nm_page_query query = {.sampled = bytes > WHOLE_MAX_BYTES};
	const struct nm_memory_query request = {
		.kind = query.sampled ? NM_MEMORY_QUERY_PAGES : NM_MEMORY_QUERY_NUMA_MAPS,
		.pid = pid,
		.start_ticks = start_ticks,
	};
	int r = platform->ops->memory_query(platform, &request, &query.ticket);
	*ret = r < 0 ? (struct nm_page_query){0} : query;
	return r;
}

void nm_page_query_cancel(struct nm_platform *platform, struct nm_page_query *query)
{
	if (query->ticket)
		platform->ops->memory_cancel(platform, query->ticket);
	query->ticket = 0;
}

/* Huge pages from the pool stay where they are while the pools of other nodes are used up. */
static uint64_t count_whole(const struct nm_topology *topology, char *text, double *pages)
{
	const double page_bytes = (double)sysconf(_SC_PAGESIZE);
	uint64_t huge_bytes = 0;
	struct nm_mapped mapped;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		if (!strstr(line, " anon=")) /* pages that other processes also map existed before,
					      * and stay */
			continue;
		if (nm_mapped_parse_policy(line, &mapped) == 0 && mapped.huge)
			huge_bytes += mapped.resident * mapped.page_bytes;
		(void)nm_mapped_count_pages(line, topology, page_bytes, pages);
	}
	return huge_bytes;
}

static void count_sample(const struct nm_topology *topology, const struct nm_memory_answer *answer,
			 double *pages)
{
	for (unsigned i = 0; i < answer->count && answer->count >= SAMPLE_MIN; i++) {
		int node = answer->nodes[i] < 0
				   ? -1
				   : nm_topology_node_index(topology, (unsigned)answer->nodes[i]);
		if (node >= 0)
			pages[node]++;
	}
}

int nm_page_query_poll(struct nm_platform *platform, const struct nm_topology *topology,
		       struct nm_page_query *query, double *pages, uint64_t *ret_huge_bytes)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {0};
	int r = platform->ops->memory_poll(platform, query->ticket, &answer);
	if (r == -EAGAIN)
		return r;
	query->ticket = 0;
	if (r < 0 || answer.result < 0)
		return r < 0 ? r : answer.result;
	*ret_huge_bytes = 0;
	if (query->sampled)
		count_sample(topology, &answer, pages);
	else if (answer.text)
		*ret_huge_bytes = count_whole(topology, answer.text, pages);
	return 0;
}
