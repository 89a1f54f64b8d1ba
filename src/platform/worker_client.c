// SPDX-License-Identifier: MIT
/*
 * Two callers, each with a worker and one call at a time: the loop's thread of questions, and the
 * mover's. The lock is held for moments, never over a call, and neither caller waits for the other.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "worker_memory.h"
#include "numa-migrd/clock.h"

#define NEWS_MOST 16U

struct caller {
	struct nm_worker_link link;
	int stop_fd; /* eventfd */
	bool stopping;
	bool inside;		 /* a thread is in a function of this caller */
	uint64_t stops, entered; /* how often it was stopped; likewise when that thread came in */
	uint64_t until_ns; /* of its round; 0: none has begun */
};

struct nm_worker_client {
	char *socket_path, *program;
	uint64_t deadline_ns[NM_WORKER_CALLERS];
	int proc_fd;
	struct nm_unresponsive_list *memory; /* a reference */

	pthread_mutex_t lock;
	struct caller callers[NM_WORKER_CALLERS];
	bool absent_reported;
	struct nm_worker_news news[NEWS_MOST]; /* more are counted only */
	unsigned news_count;
};

static int find_subject(const struct nm_worker_client *client, const struct nm_worker_call *call,
			struct nm_worker_subject *ret)
{
	if (call->pid == 0)
		return nm_worker_subject_at(call->directory, ret);
	return nm_worker_subject_of(client->proc_fd, call->pid, call->start_ticks, ret);
}

/* ---- under the lock ---- */

static void add_news(struct nm_worker_client *client, const struct nm_worker_news *news)
{
	if (client->news_count < NEWS_MOST)
		client->news[client->news_count++] = *news;
}

/* Also if calls are allowed again by now: a mover that was stopped does not go on. */
static bool is_cancelled(const struct caller *caller)
{
	return caller->stopping || caller->stops != caller->entered;
}

static int begin(struct nm_worker_client *client, const struct caller *caller,
		 const struct nm_worker_subject *subject)
{
	if (is_cancelled(caller))
		return -ECANCELED;
	if (caller->until_ns && nm_clock_ns() >= caller->until_ns)
		return -EINPROGRESS;
	return nm_unresponsive_list_begin(client->memory, subject);
}

static void end(struct nm_worker_client *client, struct caller *caller,
		const struct nm_worker_subject *subject, enum nm_worker_act act, int r)
{
	const struct nm_worker_news news = {
		.pid = subject->pid, .uid = subject->tenant.uid, .act = act, .error = r};

	nm_unresponsive_list_end(client->memory, subject, &caller->link, r);
	if (r == -ETIMEDOUT)
		add_news(client, &news);
}

static void report_absence(struct nm_worker_client *client, int error)
{
	const struct nm_worker_news news = {.error = error};

	pthread_mutex_lock(&client->lock);
	if (error < 0 && error != -ECANCELED && !client->absent_reported)
		add_news(client, &news);
	client->absent_reported = error < 0 && (client->absent_reported || error != -ECANCELED);
	pthread_mutex_unlock(&client->lock);
}

/* ---- a call: without the lock ---- */

static int greet(const struct nm_worker_client *client, struct nm_worker_link *link, int stop_fd)
{
	struct nm_worker_call hello = {
		.request = {.version = NM_WORKER_VERSION, .act = NM_WORKER_HELLO},
		.fd = -1,
		.ret_fd = -1};
	char path[32];
	int result = 0;
	int r = nm_worker_link_call(link, &hello, stop_fd, nm_clock_ns() + NM_WORKER_HELLO_NS,
				    &result);

	if (r < 0 || result < 0)
		return r < 0 ? r : result;
	(void)snprintf(path, sizeof(path), "%d/stat", result);
	(void)nm_worker_read_start(client->proc_fd, path, &link->pid, &link->start_ticks);
	return 0;
}

/* Its first word is waited for longer, and at nobody's expense. */
static int have_worker(struct nm_worker_client *client, struct caller *caller)
{
	if (caller->link.fd >= 0 && !nm_worker_link_stirs(&caller->link))
		return 0;
	nm_unresponsive_list_let_go(client->memory, &caller->link);
	int r = nm_worker_link_open(client->socket_path, client->program, &caller->link);
	if (r == 0)
		r = greet(client, &caller->link, caller->stop_fd);
	if (r < 0)
		nm_unresponsive_list_let_go(client->memory, &caller->link);
	report_absence(client, r);
	return r == -ETIMEDOUT ? -ENOTCONN : r;
}

/* -EALREADY: an earlier mover's thread has not returned from its call. */
static int enter(struct nm_worker_client *client, struct caller *caller)
{
	pthread_mutex_lock(&client->lock);
	int r = caller->inside ? -EALREADY : 0;
	if (r == 0)
		caller->entered = caller->stops;
	caller->inside = true;
	pthread_mutex_unlock(&client->lock);
	return r;
}

static void leave(struct nm_worker_client *client, struct caller *caller)
{
	pthread_mutex_lock(&client->lock);
	caller->inside = false;
	pthread_mutex_unlock(&client->lock);
}

int nm_worker_client_ready(struct nm_worker_client *client, enum nm_worker_caller which)
{
	struct caller *caller = &client->callers[which];
	int r = enter(client, caller);

	if (r < 0)
		return r;
	r = have_worker(client, caller);
	caller->until_ns = nm_clock_ns() + NM_WORKER_ROUND_CALLS * client->deadline_ns[which];
	leave(client, caller);
	return r;
}

/* A worker that is at work, or had less than its deadline since the round ends, has missed nothing. */
static int exchange(const struct nm_worker_client *client, const struct caller *caller,
		    struct nm_worker_call *call, uint64_t deadline_ns, int *ret_result)
{
	uint64_t until_ns = nm_clock_ns() + deadline_ns;
	bool cut = caller->until_ns && caller->until_ns < until_ns;
	int r = nm_worker_link_call(&caller->link, call, caller->stop_fd,
				    cut ? caller->until_ns : until_ns, ret_result);

	if (r == -ETIMEDOUT && (cut || nm_worker_link_is_at_work(&caller->link, client->proc_fd)))
		return -EINPROGRESS;
	return r;
}

static int call_about(struct nm_worker_client *client, enum nm_worker_caller which,
		      const struct nm_worker_subject *subject, struct nm_worker_call *call)
{
	struct caller *caller = &client->callers[which];
	int result = 0;
	int r = have_worker(client, caller);

	if (r < 0)
		return r;
	call->request.version = NM_WORKER_VERSION;
	call->request.pid = (int32_t)subject->tid;
	call->request.start_ticks = subject->tid_ticks;
	pthread_mutex_lock(&client->lock);
	r = begin(client, caller, subject);
	pthread_mutex_unlock(&client->lock);
	if (r < 0)
		return r;
	r = exchange(client, caller, call, client->deadline_ns[which], &result);
	pthread_mutex_lock(&client->lock);
	end(client, caller, subject, (enum nm_worker_act)call->request.act, r);
	pthread_mutex_unlock(&client->lock);
	return r < 0 ? r : result;
}

int nm_worker_client_call(struct nm_worker_client *client, enum nm_worker_caller which,
			  struct nm_worker_call *call)
{
	struct nm_worker_subject subject = {0};

	call->ret_fd = -1;
	call->held_ns = 0;
	int r = enter(client, &client->callers[which]);
	if (r < 0)
		return r;
	r = find_subject(client, call, &subject);
	if (r == 0)
		r = call_about(client, which, &subject, call);
	leave(client, &client->callers[which]);
	return r;
}

void nm_worker_client_stop(struct nm_worker_client *client, enum nm_worker_caller which, bool stop)
{
	struct caller *caller = &client->callers[which];
	uint64_t count = 1;

	pthread_mutex_lock(&client->lock);
	if (stop && !caller->stopping)
		(void)!write(caller->stop_fd, &count, sizeof(count));
	else if (!stop && caller->stopping)
		(void)!read(caller->stop_fd, &count, sizeof(count));
	caller->stops += stop;
	caller->stopping = stop;
	pthread_mutex_unlock(&client->lock);
}

/* ---- what is told ---- */

bool nm_worker_client_news(struct nm_worker_client *client, struct nm_worker_news *ret)
{
	pthread_mutex_lock(&client->lock);
	bool any = client->news_count > 0;
	if (any) {
		*ret = client->news[0];
		memmove(client->news, client->news + 1,
			--client->news_count * sizeof(*client->news));
	}
	pthread_mutex_unlock(&client->lock);
	return any;
}

struct nm_worker_counts nm_worker_client_counts(struct nm_worker_client *client)
{
	return nm_unresponsive_list_counts(client->memory);
}

/* ---- life ---- */

static int fill_in(struct nm_worker_client *client, const struct nm_worker_options *options)
{
	static const uint64_t deadlines[] = {[NM_WORKER_LOOP] = NM_WORKER_QUERY_NS,
					     [NM_WORKER_MOVER] = NM_WORKER_MOVE_NS};
	const uint64_t *deadline = options->deadline_ns ? options->deadline_ns : deadlines;
	int r = options->memory ? 0 : nm_unresponsive_list_new(&client->memory);

	if (r < 0)
		return r;
	if (options->memory)
		client->memory = nm_unresponsive_list_ref(options->memory);
	client->proc_fd = options->proc_fd;
	client->socket_path = options->socket_path ? strdup(options->socket_path) : NULL;
	client->program = options->program ? strdup(options->program) : NULL;
	if ((options->socket_path && !client->socket_path) ||
	    (options->program && !client->program))
		return -ENOMEM;
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++) {
		client->deadline_ns[i] = deadline[i];
		client->callers[i].stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (client->callers[i].stop_fd < 0)
			return -errno;
	}
	return 0;
}

int nm_worker_client_new(const struct nm_worker_options *options, struct nm_worker_client **ret)
{
	struct nm_worker_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++)
		client->callers[i] = (struct caller){.link = NM_WORKER_LINK_NONE, .stop_fd = -1};
	pthread_mutex_init(&client->lock, NULL);
	int r = fill_in(client, options);
	if (r < 0) {
		nm_worker_client_free(client);
		return r;
	}
	*ret = client;
	return 0;
}

void nm_worker_client_free(struct nm_worker_client *client)
{
	if (!client)
		return;
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++) {
		if (client->memory)
			nm_unresponsive_list_let_go(client->memory, &client->callers[i].link);
		nm_closep(&client->callers[i].stop_fd);
	}
	nm_unresponsive_list_free(client->memory);
	pthread_mutex_destroy(&client->lock);
	free(client->socket_path);
	free(client->program);
	free(client);
}
