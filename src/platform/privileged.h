/* SPDX-License-Identifier: MIT */
/* The privileged acts one by one, behind nm_helper_serve() and the Linux platform. */
#ifndef NUMA_MIGRD_PLATFORM_PRIVILEGED_H
#define NUMA_MIGRD_PLATFORM_PRIVILEGED_H

#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "numa-migrd/event.h"
#include "numa-migrd/helper.h"

static inline void nm_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Hands over a descriptor: returns it and leaves -1 behind. */
static inline int nm_take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void nm_event_close(struct nm_event_fds *fds)
{
	nm_closep(&fds->event);
	nm_closep(&fds->leader);
}

static inline struct nm_event_fds nm_take_event(struct nm_event_fds *fds)
{
	return (struct nm_event_fds){nm_take_fd(&fds->event), nm_take_fd(&fds->leader)};
}

/*
 * Opens an event of the fixed list on one CPU for all processes; hardware events by what the
 * machine below the `root` directory is. Returns 0 or -errno.
 */
int nm_event_open(int root, const struct nm_event_request *request, struct nm_event_fds *ret);

/* Reads a small file below a directory as text. Returns its length, -EFBIG, or -errno. */
int nm_read_text(int directory, const char *path, char *buffer, size_t size);

/* Reads from an open file until its end; as nm_read_text(). */
int nm_read_all(int fd, char *buffer, size_t size);

/* Writes all of `text`; returns 0 or -errno. */
int nm_write_text(int directory, const char *path, const char *text);

/* nm_platform_ops.clear_refs, below an open /proc. */
int nm_clear_refs(int proc_fd, pid_t pid, uint64_t start_ticks);

/* Sets the sysctl, keeping its old value in state_path first. Returns 0 or -errno. */
int nm_numa_balancing_set(const struct nm_helper_context *context, int value);

#endif
