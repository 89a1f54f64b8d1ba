/* SPDX-License-Identifier: MIT */
/*
 * Queries about memory (nm_platform_ops.memory_query), answered at once by what fake_asked
 * contains. While fake_asked.hangs is set, queries are never answered.
 */
#ifndef NUMA_MIGRD_TESTS_FAKE_ASK_H
#define NUMA_MIGRD_TESTS_FAKE_ASK_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "platform/maps.h"
#include "numa-migrd/platform.h"

#define FAKE_ASKED_MOST 256U

static struct {
	bool hangs;
	unsigned late;	  /* number of polls without an answer yet */
	bool hides_nodes; /* `where` is not called: -EPERM */
	int (*where)(struct nm_platform *platform, unsigned count, const uint64_t *addresses,
		     int *ret);
	const char *numa_maps; /* of every process; NULL: -ENOENT */
	const int *pages;      /* nodes of the pages of every process; NULL: no answer */
	unsigned nr_pages, pages_asked;
	int program; /* of every process: its number in nm_excluded_programs, or an error */
	uint64_t tickets;
	unsigned open; /* neither taken nor cancelled */
	struct {
		uint64_t query_id; /* 0: free */
		bool hangs;
		unsigned late;
		struct nm_memory_answer answer;
	} places[FAKE_ASKED_MOST];
} fake_asked __attribute__((unused));

static inline int fake_answer_where(struct nm_platform *platform,
				    const struct nm_memory_query *question,
				    struct nm_memory_answer *ret)
{
	nm_autofree int *nodes = calloc(question->count + 1, sizeof(*nodes));
	int r = fake_asked.where && !fake_asked.hides_nodes
			? fake_asked.where(platform, question->count, question->addresses, nodes)
			: -EPERM;
	if (r < 0)
		return r;
	ret->nodes = NM_TAKE(nodes);
	ret->count = question->count;
	return 0;
}

static inline int fake_answer_numa_maps(struct nm_memory_answer *ret)
{
	char text[65536], *rest = text;

	if (!fake_asked.numa_maps)
		return -ENOENT;
	(void)snprintf(text, sizeof(text), "%s", fake_asked.numa_maps);
	ret->pages = nm_must(calloc(1, sizeof(*ret->pages)));
	ret->pages->whole = true;
	for (char *line; (line = strsep(&rest, "\n"));)
		nm_node_pages_add(ret->pages, line, (uint64_t)sysconf(_SC_PAGESIZE));
	return 0;
}

static inline int fake_answer_pages(struct nm_memory_answer *ret)
{
	fake_asked.pages_asked++;
	if (!fake_asked.pages)
		return -EPERM;
	ret->pages = nm_must(calloc(1, sizeof(*ret->pages)));
	for (unsigned i = 0; i < fake_asked.nr_pages; i++)
		ret->pages->own[fake_asked.pages[i]]++;
	return 0;
}

static inline int fake_ask(struct nm_platform *platform, const struct nm_memory_query *question,
			   uint64_t *ret_query_id)
{
	unsigned i = 0;
	while (i < FAKE_ASKED_MOST && fake_asked.places[i].query_id)
		i++;
	if (i == FAKE_ASKED_MOST)
		return -EAGAIN;
	struct nm_memory_answer *answer = &fake_asked.places[i].answer;
	fake_asked.places[i].hangs = fake_asked.hangs;
	fake_asked.places[i].late = fake_asked.late;
	if (fake_asked.hangs)
		answer->result = 0;
	else if (question->kind == NM_MEMORY_QUERY_WHERE)
		answer->result = fake_answer_where(platform, question, answer);
	else if (question->kind == NM_MEMORY_QUERY_NUMA_MAPS)
		answer->result = fake_answer_numa_maps(answer);
	else if (question->kind == NM_MEMORY_QUERY_PAGES)
		answer->result = fake_answer_pages(answer);
	else
		answer->result = fake_asked.program;
	*ret_query_id = fake_asked.places[i].query_id = ++fake_asked.tickets;
	fake_asked.open++;
	return 0;
}

static inline int fake_take(struct nm_platform *platform, uint64_t query_id,
			    struct nm_memory_answer *ret)
{
	(void)platform;
	for (unsigned i = 0; i < FAKE_ASKED_MOST; i++) {
		if (query_id == 0 || fake_asked.places[i].query_id != query_id)
			continue;
		if (fake_asked.places[i].late > 0) {
			fake_asked.places[i].late--;
			return -EAGAIN;
		}
		if (fake_asked.places[i].hangs)
			return -EAGAIN;
		*ret = fake_asked.places[i].answer;
		fake_asked.places[i].answer = (struct nm_memory_answer){0};
		fake_asked.places[i].query_id = 0;
		fake_asked.open--;
		return 0;
	}
	return -ENOENT;
}

static inline void fake_forget(struct nm_platform *platform, uint64_t query_id)
{
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer unwanted = {0};
	for (unsigned i = 0; i < FAKE_ASKED_MOST; i++)
		if (query_id && fake_asked.places[i].query_id == query_id) {
			fake_asked.places[i].hangs = false;
			fake_asked.places[i].late = 0;
		}
	(void)fake_take(platform, query_id, &unwanted);
}

#define FAKE_ASK .memory_query = fake_ask, .memory_poll = fake_take, .memory_cancel = fake_forget

#endif
