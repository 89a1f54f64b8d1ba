/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the bus object. */
#ifndef NM_CONTROL_INTERNAL_H
#define NM_CONTROL_INTERNAL_H

#include <systemd/sd-bus.h>

#include "callers.h"
#include "numa-migrd/control.h"

struct nm_request;

struct nm_control {
	sd_event *event;
	sd_event_source *retry;
	uint64_t retry_usec; /* until the next retry */
	sd_bus *bus;
	sd_bus_slot *object, *disconnected, *name, *filter;
	bool down_reported;
	struct nm_callers callers;
	struct nm_request *requests; /* calls that await authorization */
	bool paused_reported, dry_run_reported;
	struct nm_control_ops ops;
};

/* ---- methods.c: the object ---- */

extern const sd_bus_vtable nm_manager_vtable[];

/* ---- answer.c: dictionaries in a message ---- */

/* With more, the bus would reject the message (32 MiB) and close the connection. */
#define NM_ANSWER_ROWS_MAX 25000U

/* The first error is kept; -E2BIG: too many dictionaries. */
struct nm_answer {
	sd_bus_message *message;
	int r;
	unsigned rows;
};

struct nm_show nm_answer_show(struct nm_answer *answer);

/* ---- request.c: authorization of calls ---- */

/* Answers the call; or returns a negative errno, or sets the error. uid is that of the caller. */
typedef int (*nm_request_fn)(struct nm_control *control, sd_bus_message *call, uid_t uid,
			     sd_bus_error *error);

/*
 * Calls `run` when the bus has reported the caller's uid and, if a polkit action is given, the
 * caller is root or polkit allows it. Does not wait: returns 1 and the call is answered later, or
 * the error of a method.
 */
int nm_request(struct nm_control *control, sd_bus_message *call, const char *action,
	       nm_request_fn run, sd_bus_error *error);
/* A filter (sd_bus_add_filter(3)) that rejects calls of a sender beyond its limit. userdata is the
 * control. */
int nm_request_bound(sd_bus_message *message, void *userdata, sd_bus_error *error);
/* Discards pending calls, because their connection is closed. */
void nm_requests_clear(struct nm_control *control);

#endif
