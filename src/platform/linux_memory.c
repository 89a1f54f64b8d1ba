// SPDX-License-Identifier: MIT
/* Accesses the memory of other processes: each operation is a call of a worker, with a deadline
 * (worker.h). */
#include <errno.h>
#include <string.h>

#include "linux.h"

bool nm_linux_worker_news(struct nm_platform *platform, struct nm_worker_news *ret)
{
	return nm_worker_client_news(nm_linux(platform)->workers, ret);
}

void nm_linux_worker_counts(struct nm_platform *platform, struct nm_worker_counts *ret)
{
	*ret = nm_worker_client_counts(nm_linux(platform)->workers);
}

/* ---- nm_platform_ops: called by the mover ---- */

static int begin(struct nm_platform *platform, const struct nm_worker_call *call,
		 uint64_t *ret_held_ns)
{
	struct nm_linux *self = nm_linux(platform);

	self->pages_call = *call;
	self->ret_held_ns = ret_held_ns;
	int r = nm_worker_client_send(self->workers, NM_WORKER_MOVER, &self->pages_call);
	nm_linux_watch(self->queries);
	return r > 0 ? NM_CALL_BEGUN : r;
}

int nm_linux_mappings_read(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   const struct nm_mappings_order *order, struct nm_mappings_piece *ret,
			   uint64_t *ret_held_ns)
{
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_MAPPINGS},
					    .pid = (uint32_t)tid,
					    .start_ticks = start_ticks,
					    .arguments = order,
					    .arguments_size = sizeof(*order),
					    .body = ret,
					    .body_size = sizeof(*ret)};

	return begin(platform, &call, ret_held_ns);
}

int nm_linux_units_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			const struct nm_units_order *order, struct nm_units_moved *ret)
{
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_UNITS},
					    .pid = (uint32_t)tid,
					    .start_ticks = start_ticks,
					    .arguments = order,
					    .arguments_size = NM_UNITS_ORDER_BYTES(order->count),
					    .body = ret,
					    .body_size = sizeof(*ret)};

	ret->nr_tries = 0;
	ret->tried_bytes = 0;
	return begin(platform, &call, NULL);
}

int nm_linux_ranges_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_ranges_order *order, struct nm_ranges_moved *ret)
{
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_RANGES},
					    .pid = (uint32_t)tid,
					    .start_ticks = start_ticks,
					    .arguments = order,
					    .arguments_size = NM_RANGES_ORDER_BYTES(order->count),
					    .body = ret,
					    .body_size = sizeof(*ret)};

	ret->nr_tries = 0;
	ret->tried_bytes = 0;
	return begin(platform, &call, NULL);
}

static int units_result(const struct nm_worker_call *call, int r)
{
	struct nm_units_moved *moved = call->body;

	if (call->body_size > 0) {
		int unpacked = nm_units_moved_unpack(moved, call->body_size, call->arguments);
		if (unpacked == 0)
			return r;
		r = unpacked;
	}
	moved->nr_tries = 0;
	return r < 0 ? r : -EPROTO;
}

static int ranges_result(const struct nm_worker_call *call, int r)
{
	struct nm_ranges_moved *moved = call->body;

	if (call->body_size == sizeof(*moved) && moved->nr_tries <= 2 &&
	    (r < 0 || nm_ranges_moved_is_valid(moved, call->arguments)))
		return r;
	moved->nr_tries = 0;
	return r < 0 ? r : -EPROTO;
}

/* Returns the worker's result, or -EPROTO if its answer is none. Without an answer there are no
 * tries. */
static int result_of(const struct nm_worker_call *call, int r)
{
	switch (call->request.act) {
	case NM_WORKER_MAPPINGS:
		return r >= 0 && call->body_size != sizeof(struct nm_mappings_piece) ? -EPROTO : r;
	case NM_WORKER_UNITS:
		return units_result(call, r);
	case NM_WORKER_RANGES:
		return ranges_result(call, r);
	default:
		return r;
	}
}

bool nm_linux_pages_poll(struct nm_platform *platform, int *ret)
{
	struct nm_linux *self = nm_linux(platform);
	struct nm_worker_call *call = &self->pages_call;
	int r = 0;
	bool ended = nm_worker_client_receive(self->workers, NM_WORKER_MOVER, &r);

	nm_linux_watch(self->queries);
	if (!ended)
		return false;
	if (self->ret_held_ns)
		*self->ret_held_ns = call->held_ns;
	*ret = result_of(call, r);
	return true;
}

void nm_linux_pages_cancel(struct nm_platform *platform)
{
	nm_worker_client_cancel(nm_linux(platform)->workers, NM_WORKER_MOVER);
}
