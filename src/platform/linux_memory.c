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

int nm_linux_open_maps(struct nm_platform *platform, int directory, const char *name)
{
	enum nm_maps_file file = strcmp(name, "numa_maps") == 0 ? NM_NUMA_MAPS : NM_MAPS;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_OPEN_MAPS, .file = file},
				      .directory = directory,
				      .fd = -1};
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);

	return r < 0 ? r : call.ret_fd;
}

ssize_t nm_linux_read_maps(struct nm_platform *platform, int directory, int fd, char *buffer,
			   size_t size, uint64_t budget_ns, uint64_t *ret_held_ns)
{
	size_t most = size < NM_WORKER_TEXT_MOST ? size : NM_WORKER_TEXT_MOST;
	struct nm_worker_call call = {.request = {.act = NM_WORKER_READ_MAPS,
						  .count = (uint32_t)most,
						  .budget_ns = budget_ns},
				      .directory = directory,
				      .fd = fd,
				      .body = buffer,
				      .body_size = most};
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);

	if (r < 0)
		return r;
	*ret_held_ns = call.held_ns;
	return (ssize_t)call.body_size;
}

int nm_linux_pages_where(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 unsigned count, const uint64_t *addresses, int *ret)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_WHERE, .count = count},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .addresses = addresses,
				      .fd = -1,
				      .body = ret,
				      .body_size = count * sizeof(*ret)};

	if (count == 0)
		return 0;
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	return r == 0 && call.body_size != count * sizeof(*ret) ? -EPROTO : r;
}

int nm_linux_pages_find(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			unsigned nr_ranges, const struct nm_worker_range *ranges, uint64_t budget_ns,
			struct nm_worker_found *ret)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_FIND,
						  .count = nr_ranges,
						  .budget_ns = budget_ns},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .ranges = ranges,
				      .fd = -1,
				      .body = ret,
				      .body_size = sizeof(*ret)};

	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	if (r == 0 && (call.body_size != sizeof(*ret) || ret->count > NM_WORKER_PAGES_MOST))
		return -EPROTO;
	return r;
}

int nm_linux_pages_migrate(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   uint64_t from_nodes, unsigned to_node, uint64_t *ret_held_ns)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_MIGRATE,
						  .from_nodes = from_nodes,
						  .to_node = to_node},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .fd = -1};

	*ret_held_ns = 0;
	if (!nm_generation_stands(nm_linux(platform)->generation))
		return -ECANCELED;
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	*ret_held_ns = call.held_ns;
	return r;
}

int nm_linux_pages_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			unsigned count, const uint64_t *addresses, const int *nodes, int *statuses,
			uint64_t *ret_held_ns)
{
	nm_autofree int *told = calloc(count + 1, sizeof(*told));
	struct nm_worker_call call = {.request = {.act = NM_WORKER_MOVE, .count = count},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .addresses = addresses,
				      .nodes = nodes,
				      .fd = -1,
				      .body = told,
				      .body_size = count * sizeof(*told)};

	*ret_held_ns = 0;
	if (!told)
		return -ENOMEM;
	if (!nm_generation_stands(nm_linux(platform)->generation))
		return -ECANCELED;
	for (unsigned i = 0; i < count; i++)
		told[i] = NM_WORKER_UNTOLD;
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	for (unsigned i = 0; i < count; i++)
		if (told[i] != NM_WORKER_UNTOLD)
			statuses[i] = told[i];
	*ret_held_ns = call.held_ns;
	return r;
}

int nm_linux_pages_prepare(struct nm_platform *platform)
{
	return nm_worker_client_ready(nm_linux(platform)->workers, NM_WORKER_MOVER);
}

void nm_linux_pages_stop(struct nm_platform *platform, bool stop)
{
	nm_worker_client_stop(nm_linux(platform)->workers, NM_WORKER_MOVER, stop);
}
