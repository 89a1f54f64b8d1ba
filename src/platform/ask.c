// SPDX-License-Identifier: MIT
#include "numa-migrd/platform.h"

#include <math.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

enum state { FREE, WAITING, UNDER_WAY, FORGOTTEN, ANSWERED };

struct entry {
	enum state state; /* FORGOTTEN: in progress, but cancelled */
	uint64_t ticket;
	struct nm_memory_query question;
	uint64_t *addresses; /* those of the question */
	struct nm_memory_answer answer;
};

struct nm_asker {
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

static struct entry *find(struct nm_asker *asker, uint64_t ticket)
{
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (asker->entries[i].ticket == ticket)
			return &asker->entries[i];
	return NULL;
}

/* ---- order ---- */

static double rest_of(const struct nm_asker *asker, uint64_t domain)
{
	return nm_quota_of(&asker->rests, domain);
}

static void pass_time(struct nm_asker *asker, uint64_t now_ns)
{
	nm_quota_repay(&asker->rests, (double)(now_ns - asker->rested_ns));
	asker->rested_ns = now_ns;
}

/* Queries of resting domains come last; otherwise the longest wait comes first. */
static bool is_before(const struct nm_asker *asker, const struct entry *a, const struct entry *b)
{
	double one = rest_of(asker, a->question.domain), other = rest_of(asker, b->question.domain);

	return one != other ? one < other : a->ticket < b->ticket;
}

/* Returns NULL if none is waiting. */
static struct entry *first_waiting(struct nm_asker *asker)
{
	struct entry *first = NULL;

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++) {
		struct entry *entry = &asker->entries[i];
		if (entry->state == WAITING && (!first || is_before(asker, entry, first)))
			first = entry;
	}
	return first;
}

const struct nm_memory_query *nm_asker_next(struct nm_asker *asker, uint64_t now_ns)
{
	struct entry *entry = NULL;

	pass_time(asker, now_ns);
	while (!asker->under_way && (entry = first_waiting(asker))) {
		if (rest_of(asker, entry->question.domain) <=
		    NM_ANSWER_REST_SHARE * NM_ANSWER_USUAL_NS) {
			entry->state = UNDER_WAY;
			asker->under_way = entry;
			return &entry->question;
		}
		entry->answer.result = -EALREADY;
		entry->state = ANSWERED;
	}
	return NULL;
}

/* A rest that is longer than the new one stays. */
void nm_asker_answer(struct nm_asker *asker, struct nm_memory_answer *answer, uint64_t now_ns)
{
	struct entry *entry = NM_TAKE(asker->under_way);
	double rest_ns = (double)NM_ANSWER_REST_SHARE * (double)answer->took_ns;

	pass_time(asker, now_ns);
	nm_quota_add(&asker->rests, entry->question.domain,
		     rest_ns - rest_of(asker, entry->question.domain));
	entry->answer = *answer;
	*answer = (struct nm_memory_answer){0};
	if (entry->state == FORGOTTEN)
		empty(entry);
	else
		entry->state = ANSWERED;
}

/* ---- queries and answers ---- */

int nm_asker_ask(struct nm_asker *asker, const struct nm_memory_query *question,
		 uint64_t *ret_ticket)
{
	struct entry *place = find(asker, 0);
	size_t size = question->count * sizeof(*question->addresses);
	struct nm_quota quota = {.limit = NM_QUERIES_MOST};

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (asker->entries[i].state != FREE)
			nm_quota_count(&quota, question->domain, asker->entries[i].question.domain,
				       1);
	if (!place || !nm_quota_permits(&quota, question->domain))
		return -EAGAIN;
	*place =
		(struct entry){.state = WAITING, .ticket = ++asker->tickets, .question = *question};
	if (question->count > 0) {
		place->addresses = nm_must(malloc(size));
		memcpy(place->addresses, question->addresses, size);
		place->question.addresses = place->addresses;
	}
	*ret_ticket = place->ticket;
	return 0;
}

int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret)
{
	struct entry *entry = ticket ? find(asker, ticket) : NULL;

	if (!entry || entry->state == FORGOTTEN)
		return -ENOENT;
	if (entry->state != ANSWERED)
		return -EAGAIN;
	*ret = entry->answer;
	entry->answer = (struct nm_memory_answer){0};
	empty(entry);
	return 0;
}

void nm_asker_forget(struct nm_asker *asker, uint64_t ticket)
{
	struct entry *entry = ticket ? find(asker, ticket) : NULL;

	if (entry && entry->state == UNDER_WAY)
		entry->state = FORGOTTEN;
	else if (entry && entry->state != FORGOTTEN)
		empty(entry);
}

/* ---- construction ---- */

void nm_asker_new(struct nm_asker **ret)
{
	struct nm_asker *asker = nm_must(calloc(1, sizeof(*asker)));

	asker->rests.limit = INFINITY;
	*ret = asker;
}

void nm_asker_free(struct nm_asker *asker)
{
	if (!asker)
		return;
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		empty(&asker->entries[i]);
	free(asker);
}
