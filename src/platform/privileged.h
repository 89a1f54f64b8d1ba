/* SPDX-License-Identifier: MIT */
/* The privileged acts one by one, behind nm_helper_serve() and the Linux platform. */
#ifndef NUMA_MIGRD_PLATFORM_PRIVILEGED_H
#define NUMA_MIGRD_PLATFORM_PRIVILEGED_H

#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "numa-migrd/config.h"
#include "numa-migrd/event.h"
#include "numa-migrd/file.h"
#include "numa-migrd/helper.h"

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

/* To look at more open files would take the helper longer than it is waited for. */
#define NM_CLEAR_REFS_FILES_MOST 32768U

/*
 * Opens a process's clear_refs for writing, below an open /proc, after all that is asked of it: which
 * takes no lock of the process's. The descriptor, for the caller to close. -EPERM for a process that
 * the targets do not name; targets NULL: whichever it is; otherwise as nm_platform_ops.ask.
 */
int nm_open_clear_refs(int proc_fd, pid_t pid, uint64_t start_ticks,
		       const struct nm_config *targets);

/* Has the kernel balance nodes or not, keeping the sysctl's old value in state_path first. Returns
 * 0; -EALREADY: somebody has undone it since we did so, and it stays; -errno. */
int nm_numa_balancing_set(const struct nm_helper_context *context, bool nodes);

#endif
