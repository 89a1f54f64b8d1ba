// SPDX-License-Identifier: MIT
/* proc(5), /proc/PID/pagemap: of a mapping that is nearly empty it tells in moments what move_pages(2), asked
 * for each of its pages, would tell in seconds. */
#include "find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "numa-migrd/file.h"

#define SMALL_PAGE 4096U
#define PIECE 2048U /* entries that are read at once */
#define PRESENT (UINT64_C(1) << 63)

struct search {
	int fd;
	uint64_t until_ns;
	struct nm_worker_found *found;
	uint32_t most;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NM_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* How many entries there were; 0: none can be of the rest of the range. */
static ssize_t read_entries(const struct search *search, uint64_t address, uint64_t count,
			    uint64_t *entries)
{
	ssize_t got = pread(search->fd, entries, count * sizeof(*entries),
			    (off_t)(address / SMALL_PAGE * sizeof(*entries)));

	return got < 0 ? -errno : got / (ssize_t)sizeof(*entries);
}

/* 1: the range has been looked at; 0: there is no more room, or time; at least a piece of it was. */
static int search_range(struct search *search, const struct nm_worker_range *range)
{
	struct nm_worker_found *found = search->found;
	uint64_t entries[PIECE];

	for (found->next = range->start; found->next < range->end;) {
		uint64_t left = (range->end - found->next) / SMALL_PAGE;
		uint64_t count = range->page_bytes > SMALL_PAGE ? 1 : left < PIECE ? left : PIECE;
		ssize_t got = read_entries(search, found->next, count, entries);
		if (got < 0)
			return (int)got;
		for (ssize_t i = 0; i < got; i++, found->next += range->page_bytes) {
			if (!(entries[i] & PRESENT))
				continue;
			if (found->count == search->most)
				return 0;
			found->addresses[found->count++] = found->next;
		}
		if (got == 0)
			found->next = range->end;
		if (now_ns() >= search->until_ns)
			return 0;
	}
	return 1;
}

static int open_pagemap(int proc_fd, int32_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/pagemap", pid);
	int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

int nm_worker_find(int proc_fd, const struct nm_worker_order *order, struct nm_worker_found *ret)
{
	const struct nm_worker_request *request = &order->request;
	nm_auto(nm_closep) int fd = open_pagemap(proc_fd, request->pid);
	struct search search = {.fd = fd,
				.until_ns = now_ns() + request->budget_ns,
				.found = ret,
				.most = NM_WORKER_PAGES_MOST};
	int r = fd < 0 ? fd : 1;

	ret->count = 0;
	ret->next = 0;
	for (uint32_t i = 0; i < request->count && r > 0; i++)
		r = search_range(&search, &order->ranges[i]);
	if (r < 0 || ret->count == 0)
		return r < 0 ? r : 0;
	long asked = syscall(SYS_move_pages, request->pid, (unsigned long)ret->count, ret->addresses,
			     NULL, ret->nodes, 0);
	return asked < 0 ? -errno : 0;
}
