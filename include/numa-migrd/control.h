/* SPDX-License-Identifier: MIT */
/*
 * The bus object org.numamigrd1 (sd-bus(3), org.numamigrd1(5)): what it shows, and who may steer. The daemon
 * gives functions; this folder knows D-Bus and nothing of the daemon.
 */
#ifndef NUMA_MIGRD_CONTROL_H
#define NUMA_MIGRD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "numa-migrd/base.h"
#include "numa-migrd/show.h"

#define NM_BUS_NAME "org.numamigrd1"
#define NM_BUS_PATH "/org/numamigrd1"
#define NM_BUS_INTERFACE "org.numamigrd1.Manager"
#define NM_BUS_INTERFACE_VERSION 1U

#define NM_BUS_ERROR_ALREADY_PAUSED NM_BUS_NAME ".Error.AlreadyPaused"
#define NM_BUS_ERROR_ALREADY_RUNNING NM_BUS_NAME ".Error.AlreadyRunning"
#define NM_BUS_ERROR_NOT_MANAGED NM_BUS_NAME ".Error.NotManaged"
#define NM_BUS_ERROR_NO_SUCH_PROCESS NM_BUS_NAME ".Error.NoSuchProcess"
#define NM_BUS_ERROR_NO_SUCH_DECISION NM_BUS_NAME ".Error.NoSuchDecision"
#define NM_BUS_ERROR_BAD_CONFIGURATION NM_BUS_NAME ".Error.BadConfiguration"
#define NM_BUS_ERROR_DRY_RUN_FORCED NM_BUS_NAME ".Error.DryRunForced"

#define NM_BUS_ERROR_RECORDING NM_BUS_NAME ".Error.Recording"
#define NM_BUS_ERROR_NOT_RECORDING NM_BUS_NAME ".Error.NotRecording"

/* The polkit actions of those who are not root. */
#define NM_POLKIT_STEER NM_BUS_NAME ".steer"
#define NM_POLKIT_RELOAD NM_BUS_NAME ".reload"

/* One value of Status; text is already escaped. */
struct nm_status_item {
	const char *name; /* lower_case_with_unit */
	enum { NM_STATUS_TEXT, NM_STATUS_UINT, NM_STATUS_REAL, NM_STATUS_BOOL } type;
	const char *text;
	uint64_t number;
	double real; /* NaN: unavailable, left out */
	bool flag;
};

/* The properties of the object but the counters. Text is static, or lives until the next call. */
struct nm_control_facts {
	const char *version, *policy, *pages_policy, *source;
	bool paused, dry_run;
	double interval_s;
};

/* What a recording should be like; 0: without limit. */
struct nm_control_recording {
	uint64_t limit_bytes, seconds;
	bool hashed;
};

/* A writer of one dictionary, or of several. */
typedef void (*nm_show_fn)(void *context, const struct nm_show *show);

/*
 * Every function but the last gets `context` and returns 0 or -errno; one that is NULL is refused on the bus.
 * Lists write a dictionary for each item, summaries write into one that is open.
 */
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

	void (*facts)(void *context, struct nm_control_facts *ret);
	nm_show_fn counters; /* u64 alone */
	int (*nodes)(void *context, const struct nm_show *show);
	int (*processes)(void *context, const struct nm_show *show);
	int (*threads)(void *context, uint32_t pid, const struct nm_show *show); /* -ESRCH; pid 0: all */
	int (*pages)(void *context, uint32_t pid, const struct nm_show *show); /* -ESRCH; a summary */
	/* Addresses only for root and for the user whose process it is. */
	int (*regions)(void *context, uint32_t pid, uid_t caller, const struct nm_show *show);
	int (*decisions)(void *context, uint64_t after, uint32_t most, const struct nm_show *show);
	int (*explain)(void *context, uint64_t id, const struct nm_show *show); /* -ENOENT; a summary */
	/* -EINVAL with one line for each error in `error`: the old settings stay in force. */
	int (*reload)(void *context, char *error, size_t size);
	/* -EPERM: the command line wants it; -EACCES: root's configuration does, and uid is not
	 * root. */
	int (*set_dry_run)(void *context, bool wanted, uid_t uid);
	/*
	 * Records into the file (fd: taken over). -EBUSY: another recording is under way; -EAGAIN:
	 * paused; -EBADF, -EEXIST: no empty regular file open for writing. stop_recording: -ENOENT
	 * where there is none.
	 */
	int (*record)(void *context, int fd, const struct nm_control_recording *wanted);
	int (*stop_recording)(void *context);
	/* Somebody who may is about to steer by this method; told before it is called. */
	void (*asked)(void *context, const char *method, uid_t uid);
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

/* Facts may have changed: clients that watch Paused and DryRun receive a signal then. NULL is fine,
 * as below. */
void nm_control_changed(struct nm_control *control);

#endif
