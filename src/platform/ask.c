// SPDX-License-Identifier: MIT
#include "numa-migrd/ask.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "numa-migrd/clock.h"
#include "numa-migrd/file.h"

#define RESTING_MOST 64U /* users; who is through soonest gives way */

enum state { FREE, WAITING, UNDER_WAY, FORGOTTEN, ANSWERED };

struct entry {
	enum state state; /* FORGOTTEN: under way, and nobody wants it any more */
	uint64_t ticket;
	struct nm_question question;
	uint64_t *addresses; /* the question's */
	struct nm_memory_answer answer;
};

/* Whose questions come last, for a while. */
struct resting {
	uint32_t uid;
	uint64_t until_ns;
	bool barred; /* they are not asked at all */
};

struct nm_asker {
	nm_memory_answer_fn answer;
	void *context;
	bool started, stopping;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint64_t tickets;
	struct entry entries[NM_QUESTIONS_MOST];
	const struct entry *under_way; /* and since when */
	uint64_t since_ns;
	struct resting resting[RESTING_MOST];
};

/* ---- under the lock ---- */

static void empty(struct entry *entry)
{
	free(entry->addresses);
	nm_memory_answer_clear(&entry->answer);
	nm_closep(&entry->question.fd);
	*entry = (struct entry){.question.fd = -1};
}

static struct entry *find(struct nm_asker *asker, uint64_t ticket)
{
	for (unsigned i = 0; i < NM_QUESTIONS_MOST; i++)
		if (asker->entries[i].ticket == ticket)
			return &asker->entries[i];
	return NULL;
}

/* His rest, or NULL. */
static const struct resting *rest_of(const struct nm_asker *asker, uint32_t uid, uint64_t now)
{
	for (unsigned i = 0; i < RESTING_MOST; i++)
		if (asker->resting[i].uid == uid && now < asker->resting[i].until_ns)
			return &asker->resting[i];
	return NULL;
}

static void begin_rest(struct nm_asker *asker, uint32_t uid, uint64_t took_ns)
{
	struct resting *place = &asker->resting[0];

	for (unsigned i = 1; i < RESTING_MOST && place->uid != uid; i++)
		if (asker->resting[i].uid == uid || asker->resting[i].until_ns < place->until_ns)
			place = &asker->resting[i];
	*place = (struct resting){.uid = uid,
				  .until_ns = nm_clock_ns() + NM_ANSWER_REST_SHARE * took_ns,
				  .barred = took_ns > NM_ANSWER_USUAL_NS};
}

/* Whoever rests comes behind, and else who has waited longest is first. */
static bool is_before(const struct nm_asker *asker, const struct entry *a, const struct entry *b,
		      uint64_t now)
{
	const struct resting *one = rest_of(asker, a->question.uid, now);
	const struct resting *other = rest_of(asker, b->question.uid, now);
	uint64_t one_ns = one ? one->until_ns : 0;
	uint64_t other_ns = other ? other->until_ns : 0;

	return one_ns != other_ns ? one_ns < other_ns : a->ticket < b->ticket;
}

/* NULL: none waits. */
static struct entry *next(struct nm_asker *asker, uint64_t now)
{
	struct entry *first = NULL;

	for (unsigned i = 0; i < NM_QUESTIONS_MOST; i++) {
		struct entry *entry = &asker->entries[i];
		if (entry->state == WAITING && (!first || is_before(asker, entry, first, now)))
			first = entry;
	}
	return first;
}

static void refuse(struct entry *entry)
{
	entry->answer.result = -EALREADY;
	entry->state = ANSWERED;
}

/* Lets go of the lock meanwhile: a place that is under way stays where it is. */
static void answer_one(struct nm_asker *asker, struct entry *entry)
{
	struct nm_memory_answer answer = {0};

	entry->state = UNDER_WAY;
	asker->under_way = entry;
	asker->since_ns = nm_clock_ns();
	pthread_mutex_unlock(&asker->lock);
	asker->answer(asker->context, &entry->question, &answer);
	pthread_mutex_lock(&asker->lock);
	answer.took_ns = nm_clock_ns() - asker->since_ns;
	begin_rest(asker, entry->question.uid, answer.took_ns);
	asker->under_way = NULL;
	entry->answer = answer;
	if (entry->state == FORGOTTEN)
		empty(entry);
	else
		entry->state = ANSWERED;
}

/* ---- the thread ---- */

static void *run(void *argument)
{
	struct nm_asker *asker = argument;

	pthread_mutex_lock(&asker->lock);
	while (!asker->stopping) {
		uint64_t now = nm_clock_ns();
		struct entry *entry = next(asker, now);
		const struct resting *rest =
			entry ? rest_of(asker, entry->question.uid, now) : NULL;
		if (!entry)
			pthread_cond_wait(&asker->wake, &asker->lock);
		else if (rest && rest->barred)
			refuse(entry);
		else
			answer_one(asker, entry);
	}
	pthread_mutex_unlock(&asker->lock);
	return NULL;
}

/* Signals are the loop's. */
static int start(struct nm_asker *asker)
{
	sigset_t all, before;

	if (asker->started)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&asker->thread, NULL, run, asker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	asker->started = error == 0;
	return -error;
}

/* ---- the loop's ---- */

static int copy(const struct nm_question *question, struct entry *ret)
{
	struct entry entry = {.question = *question};
	size_t size = question->count * sizeof(*entry.addresses);

	if (question->count > 0) {
		entry.addresses = malloc(size);
		if (!entry.addresses)
			return -ENOMEM;
		memcpy(entry.addresses, question->addresses, size);
		entry.question.addresses = entry.addresses;
	}
	*ret = entry;
	return 0;
}

static int put(struct nm_asker *asker, struct entry *wanted)
{
	struct entry *place = find(asker, 0);
	int r = place ? start(asker) : -EAGAIN;

	if (r < 0)
		return r;
	*place = *wanted;
	place->ticket = ++asker->tickets;
	place->state = WAITING;
	wanted->ticket = place->ticket;
	pthread_cond_signal(&asker->wake);
	return 0;
}

int nm_asker_ask(struct nm_asker *asker, const struct nm_question *question, uint64_t *ret_ticket)
{
	struct entry entry = {.question = *question};
	int r = copy(question, &entry);

	if (r == 0) {
		pthread_mutex_lock(&asker->lock);
		r = put(asker, &entry);
		pthread_mutex_unlock(&asker->lock);
	}
	if (r < 0) {
		empty(&entry);
		return r;
	}
	*ret_ticket = entry.ticket;
	return 0;
}

int nm_asker_take(struct nm_asker *asker, uint64_t ticket, struct nm_memory_answer *ret)
{
	int r = -EAGAIN;

	pthread_mutex_lock(&asker->lock);
	struct entry *entry = ticket ? find(asker, ticket) : NULL;
	if (!entry || entry->state == FORGOTTEN) {
		r = -ENOENT;
	} else if (entry->state == ANSWERED) {
		*ret = entry->answer;
		entry->answer = (struct nm_memory_answer){0};
		empty(entry);
		r = 0;
	}
	pthread_mutex_unlock(&asker->lock);
	return r;
}

void nm_asker_forget(struct nm_asker *asker, uint64_t ticket)
{
	pthread_mutex_lock(&asker->lock);
	struct entry *entry = ticket ? find(asker, ticket) : NULL;
	if (entry && entry->state == UNDER_WAY)
		entry->state = FORGOTTEN;
	else if (entry && entry->state != FORGOTTEN)
		empty(entry);
	pthread_mutex_unlock(&asker->lock);
}

void nm_asker_starts(struct nm_asker *asker)
{
	pthread_mutex_lock(&asker->lock);
	asker->since_ns = nm_clock_ns();
	pthread_mutex_unlock(&asker->lock);
}

int nm_asker_goes_on(struct nm_asker *asker)
{
	pthread_mutex_lock(&asker->lock);
	bool wanted = asker->under_way->state == UNDER_WAY;
	uint64_t since_ns = asker->since_ns;
	pthread_mutex_unlock(&asker->lock);
	if (!wanted)
		return -ECANCELED;
	return nm_clock_ns() - since_ns < NM_ANSWER_NS ? 0 : -ETIMEDOUT;
}

/* ---- life ---- */

int nm_asker_new(nm_memory_answer_fn answer, void *context, struct nm_asker **ret)
{
	struct nm_asker *asker = calloc(1, sizeof(*asker));

	if (!asker)
		return -ENOMEM;
	asker->answer = answer;
	asker->context = context;
	for (unsigned i = 0; i < NM_QUESTIONS_MOST; i++)
		asker->entries[i].question.fd = -1;
	pthread_mutex_init(&asker->lock, NULL);
	pthread_cond_init(&asker->wake, NULL);
	*ret = asker;
	return 0;
}

void nm_asker_free(struct nm_asker *asker)
{
	if (!asker)
		return;
	pthread_mutex_lock(&asker->lock);
	asker->stopping = true;
	pthread_cond_signal(&asker->wake);
	pthread_mutex_unlock(&asker->lock);
	if (asker->started)
		pthread_join(asker->thread, NULL);
	for (unsigned i = 0; i < NM_QUESTIONS_MOST; i++)
		empty(&asker->entries[i]);
	pthread_cond_destroy(&asker->wake);
	pthread_mutex_destroy(&asker->lock);
	free(asker);
}
