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

int nm_linux_open_maps(struct nm_platform *platform, int directory, const char *name)
{
	enum nm_maps_file file = strcmp(name, "numa_maps") == 0 ? NM_NUMA_MAPS : NM_MAPS;
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS, .file = file},
					    .directory = directory,
					    .fd = -1};

	return begin(platform, &call, NULL);
}

ssize_t nm_linux_read_maps(struct nm_platform *platform, int directory, int fd, char *buffer,
			   size_t size, uint64_t budget_ns, uint64_t *ret_held_ns)
{
	size_t most = size < NM_WORKER_TEXT_MOST ? size : NM_WORKER_TEXT_MOST;
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_READ_MAPS,
							.count = (uint32_t)most,
							.budget_ns = budget_ns},
					    .directory = directory,
					    .fd = fd,
					    .body = buffer,
					    .body_size = most};

	return begin(platform, &call, ret_held_ns);
}

int nm_linux_pages_where(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 unsigned count, const uint64_t *addresses, int *ret)
{
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = count},
					    .pid = (uint32_t)tid,
					    .start_ticks = start_ticks,
					    .addresses = addresses,
					    .fd = -1,
					    .body = ret,
					    .body_size = count * sizeof(*ret)};

	return count > 0 ? begin(platform, &call, NULL) : 0;
}

int nm_linux_pages_find(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			unsigned nr_ranges, const struct nm_worker_range *ranges,
			uint64_t budget_ns, struct nm_worker_found *ret)
{
	const struct nm_worker_call call = {
		.request = {.act = NM_WORKER_FIND, .count = nr_ranges, .budget_ns = budget_ns},
		.pid = (uint32_t)tid,
		.start_ticks = start_ticks,
		.ranges = ranges,
		.fd = -1,
		.body = ret,
		.body_size = sizeof(*ret)};

	return begin(platform, &call, NULL);
}

int nm_linux_pages_round(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 const struct nm_page_round *round, struct nm_worker_moved *ret)
{
	const struct nm_worker_call call = {.request = {.act = NM_WORKER_ROUND,
							.count = round->count,
							.budget_ns = round->slow_ns,
							.last_offset = round->last_offset},
					    .pid = (uint32_t)tid,
					    .start_ticks = start_ticks,
					    .addresses = round->addresses,
					    .nodes = round->nodes,
					    .fd = -1,
					    .body = ret,
					    .body_size = NM_WORKER_MOVED_BYTES(round->count)};

	return begin(platform, &call, NULL);
}

/* Returns what the function that began the call returns for this result of the worker. */
static int result_of(const struct nm_worker_call *call, int r)
{
	const struct nm_worker_found *found = call->body;

	if (r < 0)
		return r;
	switch (call->request.act) {
	case NM_WORKER_OPEN_MAPS:
		return call->ret_fd;
	case NM_WORKER_READ_MAPS:
		return (int)call->body_size;
	case NM_WORKER_WHERE:
		return call->body_size == call->request.count * sizeof(int) ? r : -EPROTO;
	case NM_WORKER_ROUND:
		return call->body_size == NM_WORKER_MOVED_BYTES(call->request.count) ? r : -EPROTO;
	case NM_WORKER_FIND:
		return call->body_size == sizeof(*found) && found->count <= NM_WORKER_PAGES_MOST
			       ? r
			       : -EPROTO;
	default:
		return r;
	}
}

bool nm_linux_pages_poll(struct nm_platform *platform, int *ret)
{
	struct nm_linux *self = nm_linux(platform);
	int r = 0;
	bool ended = nm_worker_client_receive(self->workers, NM_WORKER_MOVER, &r);

	nm_linux_watch(self->queries);
	if (!ended)
		return false;
	if (self->ret_held_ns)
		*self->ret_held_ns = self->pages_call.held_ns;
	*ret = result_of(&self->pages_call, r);
	return true;
}

void nm_linux_pages_cancel(struct nm_platform *platform)
{
	nm_worker_client_cancel(nm_linux(platform)->workers, NM_WORKER_MOVER);
}
