/* SPDX-License-Identifier: MIT */
/*
 * The bus object org.numamigrd1 (sd-bus(3)): Status for everyone, Pause, Resume and Release for root. The
 * daemon gives functions; this folder knows D-Bus and nothing of the daemon.
 */
#ifndef NUMA_MIGRD_CONTROL_H
#define NUMA_MIGRD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "numa-migrd/base.h"

#define NM_BUS_NAME "org.numamigrd1"
#define NM_BUS_PATH "/org/numamigrd1"
#define NM_BUS_INTERFACE "org.numamigrd1.Manager"

/* One value of Status; text is already escaped. */
struct nm_status_item {
	const char *name; /* lower_case_with_unit */
	enum { NM_STATUS_TEXT, NM_STATUS_UINT, NM_STATUS_REAL, NM_STATUS_BOOL } type;
	const char *text;
	uint64_t number;
	double real; /* NaN: unavailable, left out */
	bool flag;
};

struct nm_control_ops {
	void *context;
	/* Fills at most `room` items; text must live until the next call. Returns the number. */
	size_t (*status)(void *context, struct nm_status_item *items, size_t room);
	int (*pause)(void *context);  /* -EALREADY when paused */
	int (*resume)(void *context); /* -EALREADY when running */
	int (*release)(void *context, uint32_t pid); /* -ESRCH: no such managed process */
	/*
	 * Told when the object is lost to the bus or could not be put there (-errno), once until it is there
	 * again (0).
	 */
	void (*bus_changed)(void *context, int error);
};

struct nm_control;

/*
 * Puts the object on the system bus and takes the name, on the given loop. Where there is no bus, or it goes
 * away, this is tried again on the loop, at longer and longer intervals up to a minute, without waiting for
 * an answer. Returns 0, also without a bus, or -errno of the loop. The caller frees before the loop. Daemon,
 * start.
 */
int nm_control_new(sd_event *event, const struct nm_control_ops *ops, struct nm_control **ret);
void nm_control_free(struct nm_control *control);
NM_DEFINE_CLEANUP(struct nm_control, nm_control_free);

#endif
