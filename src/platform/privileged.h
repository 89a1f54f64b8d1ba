/* SPDX-License-Identifier: MIT */
/* The privileged operations, called by nm_helper_serve() and by the Linux platform. */
#ifndef NUMA_MIGRD_PLATFORM_PRIVILEGED_H
#define NUMA_MIGRD_PLATFORM_PRIVILEGED_H

#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "numa-migrd/config.h"
#include "platform/event.h"
#include "numa-migrd/file.h"
#include "platform/helper.h"

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
 * Opens an event of the fixed list on one CPU for all processes; hardware events according to the
 * machine below the `root` directory. The caller closes *ret. Returns 0 or a negative errno.
 */
int nm_event_open(int root, const struct nm_event_request *request, struct nm_event_fds *ret);

/* Makes the kernel balance nodes or not, after saving the old value of the sysctl in state_path.
 * Returns 0; -EALREADY if another program has reversed this setting since we made it, and its value
 * stays; or another negative errno. */
int nm_numa_balancing_set(const struct nm_helper_context *context, bool nodes);

#endif
