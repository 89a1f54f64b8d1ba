// SPDX-License-Identifier: MIT
#include "numa-migrd/platform.h"

#include <math.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

enum state { FREE, WAITING, UNDER_WAY, FORGOTTEN, ANSWERED };

struct entry {
	enum state state; /* FORGOTTEN: in progress, but cancelled */
	uint64_t query_id;
	struct nm_memory_query question;
	uint64_t *addresses; /* those of the question */
	struct nm_memory_answer answer;
};

struct nm_query_queue {
	uint64_t tickets;
	struct entry entries[NM_QUERIES_MOST];
	struct entry *under_way; /* NULL: none */
	struct nm_quota rests;	 /* in nanoseconds, which pass */
	uint64_t rested_ns;	 /* up to this time */
};

static void empty(struct entry *entry)
{
	free(entry->addresses);
	nm_memory_answer_clear(&entry->answer);
	*entry = (struct entry){0};
}

static struct entry *find(struct nm_query_queue *queue, uint64_t query_id)
{
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (queue->entries[i].query_id == query_id)
			return &queue->entries[i];
	return NULL;
}

/* ---- order ---- */

static double rest_of(const struct nm_query_queue *queue, uint64_t domain)
{
	return nm_quota_of(&queue->rests, domain);
}

static void pass_time(struct nm_query_queue *queue, uint64_t now_ns)
{
	nm_quota_repay(&queue->rests, (double)(now_ns - queue->rested_ns));
	queue->rested_ns = now_ns;
}

/* Queries of resting domains come last; otherwise the longest wait comes first. */
static bool is_before(const struct nm_query_queue *queue, const struct entry *a,
		      const struct entry *b)
{
	double one = rest_of(queue, a->question.domain), other = rest_of(queue, b->question.domain);

	return one != other ? one < other : a->query_id < b->query_id;
}

/* Returns NULL if none is waiting. */
static struct entry *first_waiting(struct nm_query_queue *queue)
{
	struct entry *first = NULL;

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++) {
		struct entry *entry = &queue->entries[i];
		if (entry->state == WAITING && (!first || is_before(queue, entry, first)))
			first = entry;
	}
	return first;
}

const struct nm_memory_query *nm_queue_next(struct nm_query_queue *queue, uint64_t now_ns)
{
	struct entry *entry = NULL;

	pass_time(queue, now_ns);
	while (!queue->under_way && (entry = first_waiting(queue))) {
		if (rest_of(queue, entry->question.domain) <=
		    NM_ANSWER_REST_SHARE * NM_ANSWER_USUAL_NS) {
			entry->state = UNDER_WAY;
			queue->under_way = entry;
			return &entry->question;
		}
		entry->answer.result = -EALREADY;
		entry->state = ANSWERED;
	}
	return NULL;
}

/* A rest that is longer than the new one stays. */
void nm_queue_answer(struct nm_query_queue *queue, struct nm_memory_answer *answer, uint64_t now_ns)
{
	struct entry *entry = NM_TAKE(queue->under_way);
	double rest_ns = (double)NM_ANSWER_REST_SHARE * (double)answer->took_ns;

	pass_time(queue, now_ns);
	nm_quota_add(&queue->rests, entry->question.domain,
		     rest_ns - rest_of(queue, entry->question.domain));
	entry->answer = *answer;
	*answer = (struct nm_memory_answer){0};
	if (entry->state == FORGOTTEN)
		empty(entry);
	else
		entry->state = ANSWERED;
}

/* ---- queries and answers ---- */

int nm_queue_ask(struct nm_query_queue *queue, const struct nm_memory_query *question,
		 uint64_t *ret_query_id)
{
	struct entry *place = find(queue, 0);
	size_t size = question->count * sizeof(*question->addresses);
	struct nm_quota quota = {.limit = NM_QUERIES_MOST};

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (queue->entries[i].state != FREE)
			nm_quota_count(&quota, question->domain, queue->entries[i].question.domain,
				       1);
	if (!place || !nm_quota_permits(&quota, question->domain))
		return -EAGAIN;
	*place = (struct entry){
		.state = WAITING, .query_id = ++queue->tickets, .question = *question};
	if (question->count > 0) {
		place->addresses = nm_must(malloc(size));
		memcpy(place->addresses, question->addresses, size);
		place->question.addresses = place->addresses;
	}
	*ret_query_id = place->query_id;
	return 0;
}

int nm_queue_take(struct nm_query_queue *queue, uint64_t query_id, struct nm_memory_answer *ret)
{
	struct entry *entry = query_id ? find(queue, query_id) : NULL;

	if (!entry || entry->state == FORGOTTEN)
		return -ENOENT;
	if (entry->state != ANSWERED)
		return -EAGAIN;
	*ret = entry->answer;
	entry->answer = (struct nm_memory_answer){0};
	empty(entry);
	return 0;
}

void nm_queue_forget(struct nm_query_queue *queue, uint64_t query_id)
{
	struct entry *entry = query_id ? find(queue, query_id) : NULL;

	if (entry && entry->state == UNDER_WAY)
		entry->state = FORGOTTEN;
	else if (entry && entry->state != FORGOTTEN)
		empty(entry);
}

/* ---- construction ---- */

void nm_queue_new(struct nm_query_queue **ret)
{
	struct nm_query_queue *queue = nm_must(calloc(1, sizeof(*queue)));

	queue->rests.limit = INFINITY;
	*ret = queue;
}

void nm_queue_free(struct nm_query_queue *queue)
{
	if (!queue)
		return;
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		empty(&queue->entries[i]);
	free(queue);
}
