// SPDX-License-Identifier: MIT
/*
 * The queries of the main loop about the memory of other processes. An answer is a series of calls
 * of a worker; a step takes the result of one and prepares the next. No function here waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "linux.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"
#include "private_pages.h"
#include "worker_memory.h"

#define NUMA_MAPS_BYTES (1U << 20) /* limit on a numa_maps, kept whole: about 10,000 mappings */
#define MAPS_MOST (4U << 20)	   /* limit on a maps, read in pieces: about 40,000 mappings */
#define MAPS_BYTES (4 * NM_WORKER_TEXT_MOST)
#define PAGES_SAMPLED 512U
#define STAYING_SAMPLED 256U
#define EVENTS_MOST 16
#define READ_BUDGET_NS (5 * NM_NSEC_PER_MSEC)

struct nm_linux_queries {
	struct nm_worker_client *workers; /* those of the platform */
	struct nm_asker *asker;
	int epoll_fd, timer_fd;

	/* The query in progress: */
	const struct nm_memory_query *query; /* NULL: none */
	/* Takes the result of a call. Returns true if `call` is the next one, or false if the
	 * answer is complete. */
	bool (*step)(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret);
	struct nm_worker_call call;
	uint64_t sent_ns;
	int maps; /* descriptor of its maps or numa_maps, or -1 */
	char *text;
	size_t size, used, total; /* of the text: capacity; in use; read from the file so far */
	struct nm_private_pages pages;
	struct nm_program_search search;
	uint64_t *addresses; /* those of its own memory, then those of memory that stays */
	unsigned nr_own;
	int *nodes;
};

static bool end(struct nm_memory_answer *ret, int r)
{
	ret->result = r;
	return false;
}

static struct nm_worker_call call_of(const struct nm_linux_queries *self, enum nm_worker_act act)
{
	return (struct nm_worker_call){.request = {.act = act},
				       .pid = self->query->pid,
				       .start_ticks = self->query->start_ticks,
				       .fd = -1};
}

/* ---- nodes of pages ---- */

static bool take_nodes(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret);

static bool ask_where(struct nm_linux_queries *self, unsigned count, const uint64_t *addresses,
		      struct nm_memory_answer *ret)
{
	free(self->nodes);
	self->nodes = nm_must(calloc(count + 1, sizeof(*self->nodes)));
	self->call = call_of(self, NM_WORKER_WHERE);
	self->call.request.count = count;
	self->call.addresses = addresses;
	self->call.body = self->nodes;
	self->call.body_size = count * sizeof(*self->nodes);
	self->step = take_nodes;
	return count > 0 || take_nodes(self, 0, ret);
}

/* Queries `count` pages of its own memory, and some of memory that stays. The answer contains those
 * that are in memory, at most 512 of its own. */
static bool sample_pages(struct nm_linux_queries *self, unsigned count,
			 struct nm_memory_answer *ret)
{
	free(self->addresses);
	self->addresses = nm_must(calloc(count + STAYING_SAMPLED, sizeof(*self->addresses)));
	self->nr_own = nm_extents_choose(&self->pages.own, count, self->addresses);
	unsigned staying = nm_extents_choose(&self->pages.staying, STAYING_SAMPLED,
					     self->addresses + self->nr_own);
	return ask_where(self, self->nr_own + staying, self->addresses, ret);
}

/* Keeps the nodes of up to `most` pages that are in memory, of those from `first` to `end`. Returns
 * their number. */
static unsigned keep_found(int *nodes, unsigned kept, unsigned first, unsigned end, unsigned most)
{
	unsigned count = 0;

	for (unsigned i = first; i < end && count < most; i++)
		if (nodes[i] >= 0)
			nodes[kept + count++] = nodes[i];
	return count;
}

/* If little of the address space is in memory, more of it is queried. */
static bool take_nodes(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret)
{
	unsigned count = self->call.request.count;

	if (r == 0 && self->call.body_size != count * sizeof(*self->nodes))
		r = -EPROTO;
	if (r < 0)
		return end(ret, r);
	if (self->query->kind == NM_MEMORY_QUERY_PAGES) {
		unsigned kept = keep_found(self->nodes, 0, 0, self->nr_own, PAGES_SAMPLED);
		if (kept < PAGES_SAMPLED / 4 && self->nr_own == PAGES_SAMPLED)
			return sample_pages(self, NM_WORKER_PAGES_MOST - STAYING_SAMPLED, ret);
		ret->nr_staying =
			keep_found(self->nodes, kept, self->nr_own, count, STAYING_SAMPLED);
		ret->own_huge_bytes = self->pages.own_huge_bytes;
		count = kept + ret->nr_staying;
	}
	ret->nodes = NM_TAKE(self->nodes);
	ret->count = count;
	return end(ret, 0);
}

/* ---- maps and numa_maps ---- */

static bool take_text(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret);

static bool read_on(struct nm_linux_queries *self, struct nm_memory_answer *ret)
{
	size_t room = self->size - 1 - self->used;

	if (room == 0 || self->total >= MAPS_MOST)
		return end(ret, -EFBIG);
	self->call = call_of(self, NM_WORKER_READ_MAPS);
	self->call.fd = self->maps;
	self->call.body = self->text + self->used;
	self->call.body_size = room < NM_WORKER_TEXT_MOST ? room : NM_WORKER_TEXT_MOST;
	self->call.request.count = (uint32_t)self->call.body_size;
	self->call.request.budget_ns = READ_BUDGET_NS;
	self->step = take_text;
	return true;
}

static bool take_text(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret)
{
	size_t got = self->call.body_size;

	if (r < 0)
		return end(ret, r);
	self->used += got;
	self->total += got;
	self->text[self->used] = '\0';
	if (self->query->kind == NM_MEMORY_QUERY_NUMA_MAPS) {
		if (got > 0)
			return read_on(self, ret);
		ret->text = nm_must(realloc(self->text, self->used + 1));
		self->text = NULL;
		return end(ret, 0);
	}
	if (self->query->kind == NM_MEMORY_QUERY_PAGES) {
		ssize_t taken = nm_private_pages_add(&self->pages, self->text, self->used);
		if (taken < 0)
			return end(ret, (int)taken);
		self->used -= (size_t)taken;
		memmove(self->text, self->text + taken, self->used);
		return got > 0 ? read_on(self, ret) : sample_pages(self, PAGES_SAMPLED, ret);
	}
	nm_program_search(&self->search, self->text, got);
	self->used = 0;
	if (got == 0 || self->search.known)
		return end(ret, (int)self->search.program);
	return read_on(self, ret);
}

static bool take_file(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret)
{
	if (r < 0)
		return end(ret, r);
	bool whole = self->query->kind == NM_MEMORY_QUERY_NUMA_MAPS;
	self->maps = self->call.ret_fd;
	self->size = whole ? NUMA_MAPS_BYTES : MAPS_BYTES;
	self->text = nm_must(malloc(self->size));
	return read_on(self, ret);
}

/* ---- a query ---- */

/* Begins the query when there is a worker, or ends it with the error `r`. */
static bool begin(struct nm_linux_queries *self, int r, struct nm_memory_answer *ret)
{
	const struct nm_memory_query *query = self->query;
	bool numa_maps = query->kind == NM_MEMORY_QUERY_NUMA_MAPS;

	if (r < 0)
		return end(ret, r);
	if (query->kind == NM_MEMORY_QUERY_WHERE)
		return ask_where(self, query->count, query->addresses, ret);
	self->call = call_of(self, NM_WORKER_OPEN_MAPS);
	self->call.request.file = numa_maps ? NM_NUMA_MAPS : NM_MAPS;
	self->step = take_file;
	return true;
}

static void clear(struct nm_linux_queries *self)
{
	nm_closep(&self->maps);
	free(self->text);
	free(self->addresses);
	free(self->nodes);
	nm_private_pages_clear(&self->pages);
	*self = (struct nm_linux_queries){.workers = self->workers,
					  .asker = self->asker,
					  .epoll_fd = self->epoll_fd,
					  .timer_fd = self->timer_fd,
					  .maps = -1};
}

/* Begins an operation or continues it. Returns true if *ret is its result. */
static bool await_result(struct nm_linux_queries *self, const struct nm_memory_query *query,
			 int *ret)
{
	if (!self->query) {
		self->query = query;
		self->step = begin;
		*ret = nm_worker_client_prepare(self->workers, NM_WORKER_LOOP);
		return *ret <= 0;
	}
	if (!nm_worker_client_receive(self->workers, NM_WORKER_LOOP, ret))
		return false;
	if (self->step != begin)
		nm_asker_charge(self->asker, self->call.held_ns ? self->call.held_ns
								: nm_clock_ns() - self->sent_ns);
	return true;
}

/* Implements nm_memory_answer_fn. */
static bool answer(void *context, const struct nm_memory_query *query, struct nm_memory_answer *ret)
{
	struct nm_linux_queries *self = context;
	int r;

	if (!await_result(self, query, &r))
		return false;
	while (self->step(self, r, ret)) {
		r = nm_asker_goes_on(self->asker);
		if (r == 0) {
			self->sent_ns = nm_clock_ns();
			r = nm_worker_client_send(self->workers, NM_WORKER_LOOP, &self->call);
		}
		if (r > 0)
			return false;
	}
	clear(self);
	return true;
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
	nm_asker_progress(self->asker);
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
			  uint64_t *ret_ticket)
{
	struct nm_linux *self = nm_linux(platform);
	struct nm_memory_query own = *query;
	struct nm_worker_subject subject;

	if (query->count > NM_WORKER_PAGES_MOST)
		return -EINVAL;
	int r = nm_worker_client_identify(self->workers, query->pid, query->start_ticks, &subject);
	if (r < 0)
		return r;
	own.domain = subject.domain;
	own.start_ticks = subject.start_ticks;
	use_survivor(platform, &own);
	r = nm_asker_ask(self->queries->asker, &own, ret_ticket);
	if (r == 0)
		nm_linux_watch(self->queries);
	return r;
}

int nm_linux_memory_poll(struct nm_platform *platform, uint64_t ticket,
			 struct nm_memory_answer *ret)
{
	struct nm_asker *asker = nm_linux(platform)->queries->asker;
	int r = nm_asker_take(asker, ticket, ret);

	if (r != -EAGAIN)
		return r;
	nm_linux_query_progress(platform);
	return nm_asker_take(asker, ticket, ret);
}

void nm_linux_memory_cancel(struct nm_platform *platform, uint64_t ticket)
{
	nm_asker_forget(nm_linux(platform)->queries->asker, ticket);
}

/* ---- construction ---- */

int nm_linux_queries_new(struct nm_worker_client *workers, struct nm_linux_queries **ret)
{
	struct nm_linux_queries *self = nm_must(calloc(1, sizeof(*self)));
	struct epoll_event event = {.events = EPOLLIN};

	self->workers = workers;
	self->maps = -1;
	nm_asker_new(answer, self, &self->asker);
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
	clear(self);
	nm_asker_free(self->asker);
	nm_closep(&self->timer_fd);
	nm_closep(&self->epoll_fd);
	free(self);
}
