/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef NM_CONTROL_INTERNAL_H
#define NM_CONTROL_INTERNAL_H

#include <systemd/sd-bus.h>

#include "callers.h"
#include "numa-migrd/control.h"

struct nm_request;

struct nm_control {
	sd_event *event;
	sd_event_source *retry;
	uint64_t retry_usec; /* until the next try */
	sd_bus *bus;
	sd_bus_slot *object, *disconnected, *name, *filter;
	bool down_reported;
	struct nm_callers callers;
	struct nm_request *requests; /* calls that wait to be allowed */
	bool paused_reported, dry_run_reported;
	struct nm_control_ops ops;
};

/* ---- methods.c: the object ---- */

extern const sd_bus_vtable nm_manager_vtable[];

/* ---- answer.c: dictionaries in a message ---- */

/* Of more the bus would not take the message (32 MiB), and end the connection instead. */
#define NM_ANSWER_ROWS_MOST 25000U

/* The first error sticks; -E2BIG: too many dictionaries. */
struct nm_answer {
	sd_bus_message *message;
	int r;
	unsigned rows;
};

struct nm_show nm_answer_show(struct nm_answer *answer);
/* Numbers alone, as a{st}: its dictionary is open from here to there. */
struct nm_show nm_answer_numbers(struct nm_answer *answer);
int nm_answer_items(sd_bus_message *message, const struct nm_status_item *items, size_t count);

/* ---- request.c: who calls, and may they? ---- */

/* Answers the call, or returns -errno, or has set the error. uid: the caller's. */
typedef int (*nm_request_fn)(struct nm_control *control, sd_bus_message *call, uid_t uid,
			     sd_bus_error *error);

/*
 * Calls `run` as soon as the bus has told the caller's uid and, for an action of polkit, that is
 * root's or polkit allows it. Nothing waits: returns 1, and the call is answered later, or what a
 * method returns on failure.
 */
int nm_request(struct nm_control *control, sd_bus_message *call, const char *action,
	       nm_request_fn run, sd_bus_error *error);
/* A filter (sd_bus_add_filter(3)): calls of one sender that are too many end here. userdata: the
 * control. */
int nm_request_bound(sd_bus_message *message, void *userdata, sd_bus_error *error);
/* Those that wait are forgotten: the bus they came from is gone. */
void nm_requests_clear(struct nm_control *control);

#endif
