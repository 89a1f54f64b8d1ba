// SPDX-License-Identifier: MIT
/*
 * Two callers, each with a worker and one call at a time: the queries of the main loop, and the
 * mover. No function here waits.
 */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"
#include "worker_memory.h"

#define NEWS_MOST 16U /* shared: first */
/* The user and cgroup of a process are read again after this time. */
#define SUBJECT_AGE_NS NM_NSEC_PER_SEC

struct caller {
	struct nm_worker_link link;
	bool inside; /* an operation is in progress */

	/* The operation in progress: */
	bool greeting;			  /* the first reply of the worker is awaited */
	struct nm_worker_call *call;	  /* to be sent after that */
	struct nm_worker_subject subject; /* the process of the call */
	uint64_t identified_ns;		  /* when it was read */
	uint64_t deadline_ns;
};

struct nm_worker_client {
	char *socket_path, *program;
	uint64_t deadline_ns;
	int proc_fd;
	struct nm_unresponsive_list *memory, *own; /* own: the same, or NULL if it was given */

	struct caller callers[NM_WORKER_CALLERS];
	bool absent_reported;
	struct nm_worker_news news[NEWS_MOST]; /* further ones are not kept */
	unsigned news_count;
};

/* Returns whether the call is about the same thread as the last one, which was read recently. The
 * worker verifies the start time. */
static bool is_identified(const struct caller *caller, uint32_t tid, uint64_t start_ticks)
{
	return caller->identified_ns && start_ticks && caller->subject.pid == tid &&
	       caller->subject.start_ticks == start_ticks &&
	       nm_clock_ns() - caller->identified_ns < SUBJECT_AGE_NS;
}

int nm_worker_client_identify(struct nm_worker_client *client, uint32_t tid, uint64_t start_ticks,
			      struct nm_worker_subject *ret)
{
	return nm_worker_subject_of(client->proc_fd, tid, start_ticks, ret);
}

/* Sets the process of the call in the request. Identifies it, unless it is that of the last
 * call. */
static int find_subject(struct nm_worker_client *client, struct nm_worker_call *call,
			struct caller *caller)
{
	int r = 0;

	if (!is_identified(caller, call->pid, call->start_ticks)) {
		r = nm_worker_client_identify(client, call->pid, call->start_ticks,
					      &caller->subject);
		caller->identified_ns = r == 0 ? nm_clock_ns() : 0;
	}
	if (r < 0)
		return r;
	call->request.version = NM_WORKER_VERSION;
	call->request.pid = (int32_t)caller->subject.pid;
	call->request.start_ticks = caller->subject.start_ticks;
	return 0;
}

static void add_news(struct nm_worker_client *client, const struct nm_worker_news *news)
{
	if (client->news_count < NEWS_MOST)
		client->news[client->news_count++] = *news;
}

/* ---- the operation in progress ---- */

static const struct nm_worker_call hello = {
	.request = {.version = NM_WORKER_VERSION, .act = NM_WORKER_HELLO}};

/* The first reply has a longer deadline, and no process is charged for it. */
static int end_greeting(struct nm_worker_client *client, struct caller *caller, int r, int result)
{
	struct nm_worker_link *link = &caller->link;
	struct nm_proc_stat stat;
	char path[32];

	caller->greeting = false;
	r = r < 0 ? r : result < 0 ? result : 0;
	if (r < 0) {
		nm_unresponsive_list_let_go(client->memory, link);
	} else {
		(void)snprintf(path, sizeof(path), "%d/stat", result);
		if (nm_proc_stat_at(client->proc_fd, path, &stat) == 0) {
			link->pid = stat.tid;
			link->start_ticks = stat.start_ticks;
		}
	}
	bool absent = r < 0 && r != -ECANCELED;
	if (absent && !client->absent_reported)
		add_news(client, &(struct nm_worker_news){.error = r});
	client->absent_reported = absent || (r < 0 && client->absent_reported);
	return r == -ETIMEDOUT ? -ENOTCONN : r;
}

/* Opens a connection, unless there is one and its worker has not exited. */
static int have_link(struct nm_worker_client *client, struct caller *caller)
{
	if (caller->link.fd >= 0 && !nm_worker_link_stirs(&caller->link))
		return 0;
	nm_unresponsive_list_let_go(client->memory, &caller->link);
	return nm_worker_link_open(client->socket_path, client->program, &caller->link);
}

/* Returns 0 if there is a worker, 1 if one is starting, or a negative errno. */
static int have_worker(struct nm_worker_client *client, struct caller *caller)
{
	int r = have_link(client, caller);
	if (r == 0 && caller->link.pid > 0)
		return 0;
	if (r == 0)
		r = nm_worker_link_send(&caller->link, &hello);
	if (r < 0)
		return end_greeting(client, caller, r, 0);
	caller->deadline_ns = nm_clock_ns() + NM_WORKER_HELLO_NS;
	caller->greeting = true;
	return 1;
}

/* A worker that is still running has missed nothing. */
static int end_call(struct nm_worker_client *client, struct caller *caller, int r)
{
	const struct nm_worker_news news = {
		.pid = caller->subject.pid,
		.uid = caller->subject.uid,
		.act = (enum nm_worker_act)caller->call->request.act,
		.error = r,
	};

	if (r == -ETIMEDOUT && nm_worker_link_is_at_work(&caller->link, client->proc_fd))
		r = -EINPROGRESS;
	nm_unresponsive_list_end(client->memory, &caller->subject, &caller->link, r);
	if (r == -ETIMEDOUT)
		add_news(client, &news);
	return r;
}

/* Continues when there is a worker, or with the error `r`. Returns 1 if the call is in progress. */
static int go_on(struct nm_worker_client *client, struct caller *caller, int r)
{
	if (r < 0)
		return r;
	r = nm_unresponsive_list_begin(client->memory, &caller->subject);
	if (r < 0)
		return r;
	caller->deadline_ns = nm_clock_ns() + client->deadline_ns;
	r = nm_worker_link_send(&caller->link, caller->call);
	return r < 0 ? end_call(client, caller, r) : 1;
}

/* Returns 1 if the operation is in progress. */
static int start(struct nm_worker_client *client, struct caller *caller,
		 struct nm_worker_call *call)
{
	if (caller->inside)
		return -EALREADY;
	caller->call = call;
	int r = find_subject(client, call, caller);
	if (r == 0)
		r = have_worker(client, caller);
	if (r <= 0)
		r = go_on(client, caller, r);
	caller->inside = r > 0;
	return r;
}

/* Returns true if the operation has ended, with the result in *ret. */
static bool conclude(struct nm_worker_client *client, struct caller *caller, int r, int result,
		     int *ret)
{
	if (caller->greeting) {
		r = go_on(client, caller, end_greeting(client, caller, r, result));
		result = 0;
	} else {
		r = end_call(client, caller, r);
	}
	if (r > 0)
		return false;
	if (r < 0)
		caller->call->body_size = 0;
	*ret = r < 0 ? r : result;
	caller->inside = false;
	return true;
}

void nm_worker_client_start(struct nm_worker_client *client)
{
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++)
		(void)have_link(client, &client->callers[i]);
}

int nm_worker_client_send(struct nm_worker_client *client, enum nm_worker_caller which,
			  struct nm_worker_call *call)
{
	call->held_ns = 0;
	return start(client, &client->callers[which], call);
}

bool nm_worker_client_receive(struct nm_worker_client *client, enum nm_worker_caller which,
			      int *ret_result)
{
	struct caller *caller = &client->callers[which];
	struct nm_worker_call greeting = hello;
	int result = 0;
	int r = nm_worker_link_receive(&caller->link, caller->greeting ? &greeting : caller->call,
				       &result);

	if (r == -EAGAIN && nm_clock_ns() < caller->deadline_ns)
		return false;
	return conclude(client, caller, r == -EAGAIN ? -ETIMEDOUT : r, result, ret_result);
}

void nm_worker_client_cancel(struct nm_worker_client *client, enum nm_worker_caller which)
{
	int result;

	if (client->callers[which].inside)
		(void)conclude(client, &client->callers[which], -ECANCELED, 0, &result);
}

bool nm_worker_client_awaits(const struct nm_worker_client *client, enum nm_worker_caller which,
			     int *ret_fd, uint64_t *ret_deadline_ns)
{
	const struct caller *caller = &client->callers[which];

	if (!caller->inside)
		return false;
	*ret_fd = caller->link.fd;
	*ret_deadline_ns = caller->deadline_ns;
	return true;
}

/* ---- events and counts ---- */

bool nm_worker_client_news(struct nm_worker_client *client, struct nm_worker_news *ret)
{
	if (client->news_count == 0)
		return false;
	*ret = client->news[0];
	memmove(client->news, client->news + 1, --client->news_count * sizeof(*client->news));
	return true;
}

struct nm_worker_counts nm_worker_client_counts(struct nm_worker_client *client)
{
	return nm_unresponsive_list_counts(client->memory);
}

/* ---- construction ---- */

void nm_worker_client_new(const struct nm_worker_options *options, struct nm_worker_client **ret)
{
	struct nm_worker_client *client = nm_must(calloc(1, sizeof(*client)));

	if (!options->memory)
		nm_unresponsive_list_new(&client->own);
	client->memory = options->memory ? options->memory : client->own;
	client->proc_fd = options->proc_fd;
	client->socket_path = options->socket_path ? nm_must(strdup(options->socket_path)) : NULL;
	client->program = options->program ? nm_must(strdup(options->program)) : NULL;
	client->deadline_ns = options->deadline_ns ? options->deadline_ns : NM_WORKER_DEADLINE_NS;
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++)
		client->callers[i] = (struct caller){.link = NM_WORKER_LINK_NONE};
	*ret = client;
}

void nm_worker_client_free(struct nm_worker_client *client)
{
	if (!client)
		return;
	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++) {
		nm_worker_client_cancel(client, (enum nm_worker_caller)i);
		nm_unresponsive_list_let_go(client->memory, &client->callers[i].link);
	}
	nm_unresponsive_list_free(client->own);
	free(client->socket_path);
	free(client->program);
	free(client);
}
