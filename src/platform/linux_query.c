// SPDX-License-Identifier: MIT
/*
 * The queries of the main loop about the memory of other processes. Each is one job of a worker,
 * one after the other. No function here waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "linux.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "platform/maps.h"
#include "numa-migrd/proc.h"
#include "worker_memory.h"

#define EVENTS_MOST 16

struct nm_linux_queries {
	struct nm_worker_client *workers; /* those of the platform */
	struct nm_query_queue *queue;
	int epoll_fd, timer_fd;

	/* The query in progress: */
	const struct nm_memory_query *query; /* NULL: none */
	struct nm_worker_call call;
	size_t expected; /* size of the body of its reply */
	struct nm_memory_answer answer;
};

/* ---- a query ---- */

static enum nm_worker_act act_of(enum nm_memory_query_kind kind)
{
	static const enum nm_worker_act acts[] = {
		[NM_MEMORY_QUERY_WHERE] = NM_WORKER_WHERE,
		[NM_MEMORY_QUERY_NUMA_MAPS] = NM_WORKER_COUNT,
		[NM_MEMORY_QUERY_PAGES] = NM_WORKER_SAMPLE,
		[NM_MEMORY_QUERY_PROGRAM] = NM_WORKER_IDENTIFY,
	};

	return acts[kind];
}

/* Returns 1 if the query is in progress, or a negative errno. */
static int begin(struct nm_linux_queries *self, const struct nm_memory_query *query)
{
	self->query = query;
	self->call = (struct nm_worker_call){
		.request = {.act = act_of(query->kind), .count = query->count},
		.pid = query->pid,
		.start_ticks = query->start_ticks,
		.arguments = query->addresses,
		.arguments_size = query->count * sizeof(*query->addresses),
	};
	self->expected = 0;
	if (query->kind == NM_MEMORY_QUERY_WHERE) {
		self->expected = query->count * sizeof(*self->answer.nodes);
		self->call.body = self->answer.nodes = nm_must(malloc(self->expected + 1));
	} else if (query->kind == NM_MEMORY_QUERY_NUMA_MAPS ||
		   query->kind == NM_MEMORY_QUERY_PAGES) {
		self->expected = sizeof(*self->answer.pages);
		self->call.body = self->answer.pages = nm_must(malloc(self->expected));
	}
	self->call.body_size = self->expected;
	return nm_worker_client_send(self->workers, NM_WORKER_LOOP, &self->call);
}

/* took_ns: the time that is charged to the domain. */
static void end(struct nm_linux_queries *self, int r, uint64_t took_ns)
{
	const struct nm_memory_query *query = NM_TAKE(self->query);

	if (r >= 0 && self->call.body_size != self->expected)
		r = -EPROTO;
	if (r < 0)
		nm_memory_answer_clear(&self->answer);
	else if (self->answer.pages)
		self->answer.pages->whole = query->kind == NM_MEMORY_QUERY_NUMA_MAPS;
	self->answer.result = r;
	self->answer.count = self->answer.nodes ? query->count : 0;
	self->answer.took_ns = took_ns;
	nm_queue_answer(self->queue, &self->answer, nm_clock_ns());
}

/* Returns the time that the worker has measured, which is not trusted; or its deadline, if it
 * missed it. */
static uint64_t time_of(const struct nm_worker_call *call, int r)
{
	bool late = r == -ETIMEDOUT || r == -EINPROGRESS;

	return late || call->held_ns > NM_WORKER_DEADLINE_NS ? NM_WORKER_DEADLINE_NS
							     : call->held_ns;
}

/* Ends the query in progress, if it has been answered, and begins the next ones until one is in
 * progress. */
static void advance(struct nm_linux_queries *self)
{
	const struct nm_memory_query *query;
	int r;

	if (self->query) {
		if (!nm_worker_client_receive(self->workers, NM_WORKER_LOOP, &r))
			return;
		end(self, r, time_of(&self->call, r));
	}
	while ((query = nm_queue_next(self->queue, nm_clock_ns()))) {
		r = begin(self, query);
		if (r > 0)
			return;
		end(self, r, 0);
	}
}

/* ---- nm_platform_ops ---- */

/* A socket is watched for one event only: that of a stuck worker stays open, and its late reply is
 * not read. */
void nm_linux_watch(struct nm_linux_queries *self)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
	uint64_t first_ns = 0;

	for (unsigned i = 0; i < NM_WORKER_CALLERS; i++) {
		uint64_t deadline_ns;
		int fd;
		if (!nm_worker_client_awaits(self->workers, (enum nm_worker_caller)i, &fd,
					     &deadline_ns))
			continue;
		if (epoll_ctl(self->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0 && errno == ENOENT)
			(void)epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, fd, &event);
		if (first_ns == 0 || deadline_ns < first_ns)
			first_ns = deadline_ns;
	}
	const struct itimerspec until = {
		.it_value = {.tv_sec = (time_t)(first_ns / NM_NSEC_PER_SEC),
			     .tv_nsec = (long)(first_ns % NM_NSEC_PER_SEC)}};
	(void)timerfd_settime(self->timer_fd, TFD_TIMER_ABSTIME, &until, NULL);
}

void nm_linux_query_progress(struct nm_platform *platform)
{
	struct nm_linux_queries *self = nm_linux(platform)->queries;
	struct epoll_event events[EVENTS_MOST];

	/* Takes the events, so that the epoll descriptor is no longer readable. */
	(void)epoll_wait(self->epoll_fd, events, EVENTS_MOST, 0);
	advance(self);
	nm_linux_watch(self);
}

int nm_linux_query_fd(struct nm_platform *platform)
{
	return nm_linux(platform)->queries->epoll_fd;
}

/* The memory of a process whose first thread has exited is found by the number of another one. */
static void use_survivor(struct nm_platform *platform, struct nm_memory_query *query)
{
	struct nm_proc_stat stat;
	char path[32];
	if (nm_proc_stat_of(platform, query->pid, query->pid, &stat) < 0 ||
	    !nm_proc_has_exited(&stat))
		return;
	(void)snprintf(path, sizeof(path), "proc/%" PRIu32 "/task", query->pid);
	int directory = nm_proc_open_survivor(platform, NM_ROOT, path, &stat);
	if (directory < 0)
		return;
	platform->ops->close(platform, directory);
	query->pid = stat.tid;
	query->start_ticks = stat.start_ticks;
}

int nm_linux_memory_query(struct nm_platform *platform, const struct nm_memory_query *query,
			  uint64_t *ret_query_id)
{
	struct nm_linux *self = nm_linux(platform);
	struct nm_memory_query own = *query;
	struct nm_worker_subject subject;

	if (query->count > NM_WORKER_PAGES_MOST ||
	    (query->kind == NM_MEMORY_QUERY_WHERE && query->count == 0))
		return -EINVAL;
	int r = nm_worker_client_identify(self->workers, query->pid, query->start_ticks, &subject);
	if (r < 0)
		return r;
	own.domain = subject.domain;
	own.start_ticks = subject.start_ticks;
	use_survivor(platform, &own);
	r = nm_queue_ask(self->queries->queue, &own, ret_query_id);
	if (r == 0 && !self->queries->query) {
		advance(self->queries);
		nm_linux_watch(self->queries);
	}
	return r;
}

int nm_linux_memory_poll(struct nm_platform *platform, uint64_t query_id,
			 struct nm_memory_answer *ret)
{
	struct nm_query_queue *queue = nm_linux(platform)->queries->queue;
	int r = nm_queue_take(queue, query_id, ret);

	if (r != -EAGAIN)
		return r;
	nm_linux_query_progress(platform);
	return nm_queue_take(queue, query_id, ret);
}

void nm_linux_memory_cancel(struct nm_platform *platform, uint64_t query_id)
{
	nm_queue_forget(nm_linux(platform)->queries->queue, query_id);
}

/* ---- construction ---- */

int nm_linux_queries_new(struct nm_worker_client *workers, struct nm_linux_queries **ret)
{
	struct nm_linux_queries *self = nm_must(calloc(1, sizeof(*self)));
	struct epoll_event event = {.events = EPOLLIN};

	self->workers = workers;
	nm_queue_new(&self->queue);
	self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	self->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (self->epoll_fd < 0 || self->timer_fd < 0 ||
	    epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, self->timer_fd, &event) < 0) {
		int r = -errno;
		nm_linux_queries_free(self);
		return r;
	}
	*ret = self;
	return 0;
}

void nm_linux_queries_free(struct nm_linux_queries *self)
{
	if (!self)
		return;
	nm_worker_client_cancel(self->workers, NM_WORKER_LOOP);
	nm_memory_answer_clear(&self->answer);
	nm_queue_free(self->queue);
	nm_closep(&self->timer_fd);
	nm_closep(&self->epoll_fd);
	free(self);
}
