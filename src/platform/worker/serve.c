// SPDX-License-Identifier: MIT
#include "serve.h"

#include <stdlib.h>
#include <unistd.h>

#include "../fds.h"
#include "numa_calls.h"

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

static bool has_time(void *context)
{
	const struct nm_job *job = context;

	return nm_clock_ns() < job->until_ns;
}

/* The tries of a failed job are reported, too. */
static void move_units(const struct nm_job *job, const struct nm_units_order *order,
		       struct nm_units_moved *body, struct nm_worker_outcome *ret)
{
	const struct nm_page_calls calls = {where, move, has_time, (void *)job};

	ret->result = nm_units_move(order, &calls, body);
	ret->bytes = (uint32_t)nm_units_moved_pack(body);
}

static void move_ranges(struct nm_job *job, const struct nm_ranges_order *order,
			struct nm_ranges_moved *body, struct nm_worker_outcome *ret)
{
	const struct nm_page_calls calls = {where, move, has_time, job};
	uint64_t until_ns = nm_clock_ns() + order->search_ns;

	if (until_ns < job->until_ns)
		job->until_ns = until_ns;
	ret->result = nm_ranges_move(order, &calls, body);
	ret->bytes = sizeof(*body);
}

static void act(struct nm_worker *worker, struct nm_job *job, const struct nm_worker_order *order,
		void *body, struct nm_worker_outcome *ret)
{
	const struct nm_worker_request *request = &order->request;

	switch (request->act) {
	case NM_WORKER_WHERE:
		ret->result = where(job, request->count, order->addresses, body);
		ret->bytes = ret->result < 0 ? 0 : 4 * request->count;
		break;
	case NM_WORKER_MAPPINGS:
		ret->result = nm_reading_go_on(&worker->reading, job, order->mappings, body);
		ret->bytes = ret->result < 0 ? 0 : sizeof(struct nm_mappings_piece);
		break;
	case NM_WORKER_UNITS:
		move_units(job, order->units, body, ret);
		break;
	case NM_WORKER_RANGES:
		move_ranges(job, order->ranges, body, ret);
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
void nm_worker_perform(struct nm_worker *worker, const struct nm_worker_order *order, void *body,
		       struct nm_worker_outcome *ret)
{
	struct nm_job job = {worker->proc_fd, worker->socket, &order->request,
			     nm_clock_ns() + NM_WORKER_JOB_NS};

	*ret = (struct nm_worker_outcome){0};
	act(worker, &job, order, body, ret);
	int r = order->request.act == NM_WORKER_HELLO ? 0 : nm_job_require_process(&job);
	if (r < 0)
		*ret = (struct nm_worker_outcome){.result = r};
}

/* ---- the socket ---- */

/* Returns 1 if there may be more. A malformed request ends the connection. */
static int serve_one(struct nm_worker *worker, void *message, void *body)
{
	nm_auto(nm_fds_close) struct nm_fds fds = {-1, -1};
	struct iovec part = {message, NM_WORKER_REQUEST_MOST};
	struct nm_worker_order order;
	struct nm_worker_outcome outcome;
	ssize_t length = nm_fds_receive(worker->socket, &part, 1, 0, &fds);

	if (length <= 0)
		return (int)length;
	int r = fds.first >= 0 ? -EINVAL : nm_worker_parse(message, (size_t)length, &order);
	if (r < 0)
		return r;
	uint64_t before_ns = nm_clock_ns();
	nm_worker_perform(worker, &order, body, &outcome);
	struct nm_worker_reply reply = {.version = NM_WORKER_VERSION,
					.result = outcome.result,
					.bytes = outcome.bytes,
					.held_ns = nm_clock_ns() - before_ns};
	const struct iovec parts[] = {{&reply, sizeof(reply)}, {body, outcome.bytes}};
	r = nm_fds_send(worker->socket, parts, NM_ARRAY_SIZE(parts), (struct nm_fds){-1, -1}, 0);
	return r < 0 ? r : 1;
}

int nm_worker_serve(int proc_fd, int socket)
{
	nm_autofree void *message = nm_must(malloc(NM_WORKER_REQUEST_MOST));
	nm_autofree void *body = nm_must(calloc(1, NM_WORKER_BODY_MOST));
	struct nm_worker worker = {proc_fd, socket, {.fd = -1}};
	int r = 1;

	while (r > 0)
		r = serve_one(&worker, message, body);
	nm_reading_end(&worker.reading);
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
