// SPDX-License-Identifier: MIT
#include "numa-migrd/ask.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "numa-migrd/clock.h"
#include "numa-migrd/file.h"

#define RESTING_MOST 128U  /* tenants and domains; the one with the earliest end is replaced */
#define ANY_UID UINT32_MAX /* no user has it (chown(2)): a whole domain */

enum state { FREE, WAITING, UNDER_WAY, FORGOTTEN, ANSWERED };

struct entry {
	enum state state; /* FORGOTTEN: under way, and nobody wants it any more */
	uint64_t ticket;
	struct nm_memory_query question;
	uint64_t *addresses; /* the question's */
	struct nm_memory_answer answer;
};

/* Whose questions come last, for a while. */
struct resting {
	struct nm_tenant tenant;
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
	struct entry entries[NM_QUERIES_MOST];
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
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (asker->entries[i].ticket == ticket)
			return &asker->entries[i];
	return NULL;
}

static struct nm_tenant domain_of(const struct entry *entry)
{
	return (struct nm_tenant){.domain = entry->question.tenant.domain, .uid = ANY_UID};
}

/* Its rest, or NULL. */
static const struct resting *rest_of(const struct nm_asker *asker, const struct nm_tenant *tenant,
				     uint64_t now)
{
	for (unsigned i = 0; i < RESTING_MOST; i++)
		if (now < asker->resting[i].until_ns &&
		    nm_tenant_same(&asker->resting[i].tenant, tenant))
			return &asker->resting[i];
	return NULL;
}

static void begin_rest(struct nm_asker *asker, const struct nm_tenant *tenant, uint64_t took_ns)
{
	struct resting *place = &asker->resting[0];

	for (unsigned i = 1; i < RESTING_MOST && !nm_tenant_same(&place->tenant, tenant); i++)
		if (nm_tenant_same(&asker->resting[i].tenant, tenant) ||
		    asker->resting[i].until_ns < place->until_ns)
			place = &asker->resting[i];
	*place = (struct resting){.tenant = *tenant,
				  .until_ns = nm_clock_ns() + NM_ANSWER_REST_SHARE * took_ns,
				  .barred = took_ns > NM_ANSWER_USUAL_NS};
}

static uint64_t rests_until(const struct nm_asker *asker, struct nm_tenant tenant, uint64_t now)
{
	const struct resting *rest = rest_of(asker, &tenant, now);

	return rest ? rest->until_ns : 0;
}

/* Domains, then tenants, that rest come last; otherwise the longest wait comes first. */
static bool is_before(const struct nm_asker *asker, const struct entry *a, const struct entry *b,
		      uint64_t now)
{
	uint64_t one = rests_until(asker, domain_of(a), now);
	uint64_t other = rests_until(asker, domain_of(b), now);

	if (one != other)
		return one < other;
	one = rests_until(asker, a->question.tenant, now);
	other = rests_until(asker, b->question.tenant, now);
	return one != other ? one < other : a->ticket < b->ticket;
}

/* NULL: none waits. */
static struct entry *next(struct nm_asker *asker, uint64_t now)
{
	struct entry *first = NULL;

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++) {
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
	const struct nm_tenant domain = domain_of(entry);
	begin_rest(asker, &entry->question.tenant, answer.took_ns);
	begin_rest(asker, &domain, answer.took_ns);
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
			entry ? rest_of(asker, &entry->question.tenant, now) : NULL;
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

static int copy(const struct nm_memory_query *question, struct entry *ret)
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

static bool has_room(const struct nm_asker *asker, const struct nm_tenant *tenant)
{
	struct nm_usage usage = {0};

	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		if (asker->entries[i].state != FREE)
			nm_usage_add(&usage, tenant, &asker->entries[i].question.tenant, 1);
	return nm_share_has_room(NM_SHARE_QUERIES, &usage);
}

static int put(struct nm_asker *asker, struct entry *wanted)
{
	struct entry *place = has_room(asker, &wanted->question.tenant) ? find(asker, 0) : NULL;
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

int nm_asker_ask(struct nm_asker *asker, const struct nm_memory_query *question,
		 uint64_t *ret_ticket)
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
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
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
	for (unsigned i = 0; i < NM_QUERIES_MOST; i++)
		empty(&asker->entries[i]);
	pthread_cond_destroy(&asker->wake);
	pthread_mutex_destroy(&asker->lock);
	free(asker);
}
