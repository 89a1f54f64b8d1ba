// SPDX-License-Identifier: MIT
/*
 * The only operations here that can wait forever are system calls on the memory map of another
 * process. The client abandons such a worker, which exits when it is no longer blocked, because its
 * socket is closed.
 */
#include "serve.h"
#include "numa-migrd/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../fds.h"
#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"
#include "numa_calls.h"
#include "query.h"

#define PIECE 2048U /* pages per query */
_Static_assert(sizeof(struct nm_node_pages) <= NM_WORKER_BODY_MOST, "counts fit");

/* ---- identity checks ---- */

/*
 * Checks which file the descriptor refers to, without following the link. The process that opened
 * it, the helper or an earlier worker, had a mount of /proc of its own, which is not part of the
 * path that is read here.
 */
static int require_file(int proc_fd, int fd, const char *name)
{
	char path[48], link[PATH_MAX];
	struct statfs of;

	if (fstatfs(fd, &of) < 0)
		return -errno;
	if (of.f_type != PROC_SUPER_MAGIC)
		return -EPERM;
	(void)snprintf(path, sizeof(path), "%d/fd/%d", getpid(), fd);
	ssize_t length = readlinkat(proc_fd, path, link, sizeof(link) - 1);
	if (length < 0)
		return -errno;
	link[length] = '\0';
	const char *last = strrchr(link, '/');
	return last && strcmp(last + 1, name) == 0 ? 0 : -EPERM;
}

/* ---- operations ---- */

static int where(void *context, unsigned count, const uint64_t *addresses, int *ret_statuses)
{
	const struct nm_job *job = context;
	int r = nm_job_may_name(job);

	return r < 0 ? r : nm_numa_where(job->request->pid, count, addresses, ret_statuses);
}

static int move(void *context, unsigned count, const uint64_t *addresses, const int *nodes,
		int *statuses, uint64_t *ret_held_ns)
{
	const struct nm_job *job = context;
	uint64_t before_ns = nm_clock_ns();
	int r = nm_job_may_name(job);

	if (r == 0)
		r = nm_numa_move(job->request->pid, count, addresses, nodes, statuses);
	*ret_held_ns = nm_clock_ns() - before_ns;
	return r;
}

static int perform_round(const struct nm_job *job, const struct nm_worker_order *order,
			 struct nm_worker_moved *ret)
{
	const struct nm_worker_request *request = &order->request;
	const struct nm_page_round round = {.count = request->count,
					    .addresses = order->addresses,
					    .nodes = order->nodes,
					    .last_offset = request->last_offset,
					    .slow_ns = request->budget_ns};
	const struct nm_round_calls calls = {where, move, (void *)job};

	return nm_round_perform(&round, &calls, ret);
}

static int open_maps(const struct nm_job *job, int *ret_fd)
{
	int r = nm_job_may_name(job);

	if (r == 0)
		r = nm_job_open(job, job->request->file == NM_NUMA_MAPS ? "numa_maps" : "maps");
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}

/* Reads in pieces, as long as there is time and space for another one. */
static int read_pieces(const struct nm_job *job, int fd, size_t piece, char *text)
{
	const struct nm_worker_request *request = job->request;
	uint64_t until_ns = nm_clock_ns() + request->budget_ns;
	size_t used = 0;

	do {
		size_t room = request->count - used;
		int r = nm_job_require_client(job);
		if (r < 0)
			return r;
		ssize_t got = read(fd, text + used, room < piece ? room : piece);
		if (got < 0 && used == 0)
			return -errno;
		if (got <= 0)
			break;
		used += (size_t)got;
	} while (used + piece <= request->count && nm_clock_ns() < until_ns);
	return (int)used;
}

static int read_maps(const struct nm_job *job, int fd, char *text)
{
	if (require_file(job->proc_fd, fd, "numa_maps") == 0)
		return read_pieces(job, fd, NM_NUMA_MAPS_PIECE, text);
	int r = require_file(job->proc_fd, fd, "maps");
	return r < 0 ? r : read_pieces(job, fd, NM_MAPS_PIECE, text);
}

/* ---- finding pages ---- */

/* Queries the node of every page. /proc/PID/pagemap would show faster which pages are in memory,
 * but only the owner of the process may read it. */
struct search {
	const struct nm_job *job;
	uint64_t until_ns;
	struct nm_worker_found *found;
};

/* Returns 1 if the range was searched, 0 if there is no more space or time (at least one piece was
 * searched), or a negative errno. */
static int search_range(struct search *search, const struct nm_worker_range *range)
{
	struct nm_worker_found *found = search->found;
	uint64_t before = found->count, most = range->resident ? range->resident : UINT64_MAX;
	uint64_t addresses[PIECE];
	int nodes[PIECE];

	for (found->next = range->start; found->next < range->end;) {
		uint64_t left = (range->end - found->next) / range->page_bytes;
		uint64_t count = left < PIECE ? left : PIECE;
		for (uint64_t i = 0; i < count; i++)
			addresses[i] = found->next + i * range->page_bytes;
		int r = where((void *)search->job, (unsigned)count, addresses, nodes);
		if (r < 0)
			return r;
		for (uint64_t i = 0; i < count; i++, found->next += range->page_bytes) {
			if (nodes[i] < 0)
				continue;
			if (found->count == NM_WORKER_PAGES_MOST)
				return 0;
			found->addresses[found->count] = found->next;
			found->nodes[found->count++] = nodes[i];
		}
		if (found->count - before >= most)
			found->next = range->end;
		if (nm_clock_ns() >= search->until_ns)
			return 0;
	}
	return 1;
}

static int find_pages(const struct nm_job *job, const struct nm_worker_order *order,
		      struct nm_worker_found *ret)
{
	uint64_t until_ns = nm_clock_ns() + order->request.budget_ns;
	struct search search = {job, until_ns < job->until_ns ? until_ns : job->until_ns,
				.found = ret};
	int r = 1;

	ret->count = 0;
	for (uint32_t i = 0; i < order->request.count && r > 0; i++)
		r = search_range(&search, &order->ranges[i]);
	return r < 0 ? r : 0;
}

static void act(const struct nm_job *job, const struct nm_worker_order *order, int fd, void *body,
		struct nm_worker_outcome *ret)
{
	const struct nm_worker_request *request = &order->request;

	switch (request->act) {
	case NM_WORKER_WHERE:
		ret->result = where((void *)job, request->count, order->addresses, body);
		ret->bytes = ret->result < 0 ? 0 : 4 * request->count;
		break;
	case NM_WORKER_ROUND: /* the time of a failed call is reported, too */
		ret->result = perform_round(job, order, body);
		ret->bytes = (uint32_t)NM_WORKER_MOVED_BYTES(ret->result < 0 ? 0 : request->count);
		break;
	case NM_WORKER_OPEN_MAPS:
		ret->result = open_maps(job, &ret->fd);
		break;
	case NM_WORKER_READ_MAPS:
		ret->result = read_maps(job, fd, body);
		ret->bytes = ret->result < 0 ? 0 : (uint32_t)ret->result;
		break;
	case NM_WORKER_FIND:
		ret->result = find_pages(job, order, body);
		ret->bytes = ret->result < 0 ? 0 : sizeof(struct nm_worker_found);
		break;
	case NM_WORKER_COUNT:
	case NM_WORKER_SAMPLE:
		ret->result = request->act == NM_WORKER_COUNT ? nm_query_count(job, body)
							      : nm_query_sample(job, body);
		ret->bytes = ret->result < 0 ? 0 : sizeof(struct nm_node_pages);
		break;
	case NM_WORKER_IDENTIFY:
		ret->result = nm_query_program(job);
		break;
	default: /* NM_WORKER_HELLO */
		ret->result = getpid();
		break;
	}
}

/* The process is identified by its number. If another process has got the number in the meantime,
 * no result is reported. */
void nm_worker_perform(int proc_fd, int socket, const struct nm_worker_order *order, int fd,
		       void *body, struct nm_worker_outcome *ret)
{
	const struct nm_job job = {proc_fd, socket, &order->request,
				   nm_clock_ns() + NM_WORKER_JOB_NS};
	bool names_process = order->request.act != NM_WORKER_HELLO && fd < 0;

	*ret = (struct nm_worker_outcome){.fd = -1};
	act(&job, order, fd, body, ret);
	int r = names_process ? nm_job_require_process(&job) : 0;
	if (r < 0) {
		nm_closep(&ret->fd);
		*ret = (struct nm_worker_outcome){.result = r, .fd = -1};
	}
}

/* ---- the socket ---- */

/* Returns 1 if there may be more. A malformed request ends the connection. */
static int serve_one(int proc_fd, int socket, void *message, void *body)
{
	nm_auto(nm_fds_close) struct nm_fds fds = {-1, -1};
	struct iovec part = {message, NM_WORKER_REQUEST_MOST};
	struct nm_worker_order order;
	struct nm_worker_outcome outcome;
	ssize_t length = nm_fds_receive(socket, &part, 1, 0, &fds);

	if (length <= 0)
		return (int)length;
	int r = fds.second >= 0 ? -EINVAL
				: nm_worker_parse(message, (size_t)length, fds.first >= 0, &order);
	if (r < 0)
		return r;
	uint64_t before_ns = nm_clock_ns();
	nm_worker_perform(proc_fd, socket, &order, fds.first, body, &outcome);
	struct nm_worker_reply reply = {.version = NM_WORKER_VERSION,
					.result = outcome.result,
					.bytes = outcome.bytes,
					.held_ns = nm_clock_ns() - before_ns};
	const struct iovec parts[] = {{&reply, sizeof(reply)}, {body, outcome.bytes}};
	r = nm_fds_send(socket, parts, NM_ARRAY_SIZE(parts), (struct nm_fds){outcome.fd, -1}, 0);
	nm_closep(&outcome.fd);
	return r < 0 ? r : 1;
}

int nm_worker_serve(int proc_fd, int socket)
{
	nm_autofree void *message = nm_must(malloc(NM_WORKER_REQUEST_MOST));
	nm_autofree void *body = nm_must(calloc(1, NM_WORKER_BODY_MOST));
	int r = 1;

	while (r > 0)
		r = serve_one(proc_fd, socket, message, body);
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
