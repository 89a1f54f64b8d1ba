/* SPDX-License-Identifier: MIT */
/*
 * The bus object org.numamigrd1 (sd-bus(3), org.numamigrd1(5)). The bus policy decides by the names
 * of the methods which callers reach it, so that it asks for no credentials. The daemon provides
 * the functions; this module does not depend on the daemon.
 */
#ifndef NUMA_MIGRD_CONTROL_H
#define NUMA_MIGRD_CONTROL_H

#include <systemd/sd-event.h>

#include "numa-migrd/base.h"

#define NM_BUS_NAME "org.numamigrd1"
#define NM_BUS_PATH "/org/numamigrd1"
#define NM_BUS_INTERFACE "org.numamigrd1.Manager"

#define NM_BUS_ERROR_PAUSED NM_BUS_NAME ".Error.Paused"
#define NM_BUS_ERROR_NO_SUCH_PROCESS NM_BUS_NAME ".Error.NoSuchProcess"
#define NM_BUS_ERROR_BAD_CONFIGURATION NM_BUS_NAME ".Error.BadConfiguration"
#define NM_BUS_ERROR_DRY_RUN_FORCED NM_BUS_NAME ".Error.DryRunForced"
#define NM_BUS_ERROR_NOTHING_TO_COMPARE NM_BUS_NAME ".Error.NothingToCompare"
#define NM_BUS_ERROR_TRIAL_RUNNING NM_BUS_NAME ".Error.TrialRunning"

/* Functions of the daemon. Each gets `context`, and returns 0 or a negative errno unless noted. */
struct nm_control_ops {
	void *context;
	int (*dump)(void *context); /* returns a descriptor (dump.h) */
	int (*pause)(void *context);
	int (*resume)(void *context);
	int (*release)(void *context, uint32_t pid); /* -ESRCH: there is no such process */
	int (*manage)(void *context, uint32_t pid);  /* the same */
	/* -EINVAL: the configuration is invalid and the old one stays in force; `error` has a line
	 * for each error. */
	int (*reload)(void *context, char *error, size_t size);
	int (*set_dry_run)(void *context, bool wanted); /* -EPERM: demanded at start; -EACCES: by
							 * the configuration */
	/* -EAGAIN: paused; -EROFS, -ENODEV, -EOPNOTSUPP: nothing to compare; -EBUSY: one of
	 * another share runs; -EINVAL */
	int (*raise_control)(void *context, uint32_t minutes, double percent);
	/* error: a negative errno when the object is lost to the bus or could not be registered, 0
	 * when it is available again; once for each change. */
	void (*bus_changed)(void *context, int error);
};

struct nm_control;

/*
 * Registers the object on the system bus and acquires the name, using the given event loop. Without
 * a bus, or when it disappears, this is retried asynchronously at increasing intervals of up to one
 * minute. Returns 0, also without a bus, or a negative errno of the event loop. The caller frees
 * the object before the event loop.
 */
int nm_control_new(sd_event *event, const struct nm_control_ops *ops, struct nm_control **ret);
void nm_control_free(struct nm_control *control);
NM_DEFINE_CLEANUP(struct nm_control, nm_control_free);

#endif
