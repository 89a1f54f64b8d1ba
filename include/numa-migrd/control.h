/* SPDX-License-Identifier: MIT */
/*
 * The bus object org.numamigrd1 (sd-bus(3), org.numamigrd1(5)): the data that it shows, and the
 * authorization of changes. The daemon provides the functions; this module does not depend on the
 * daemon.
 */
#ifndef NUMA_MIGRD_CONTROL_H
#define NUMA_MIGRD_CONTROL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "numa-migrd/base.h"

/* ---- output of lists ---- */

/*
 * An interface for showing data to users as dictionaries of names and values. The daemon writes to
 * it, and the bus (or a test) implements it. Names are lower_case_with_unit and static; text is
 * escaped.
 */

enum nm_value_type {
	NM_VALUE_TEXT,
	NM_VALUE_FLAG,
	NM_VALUE_U32,
	NM_VALUE_I32,
	NM_VALUE_U64,
	NM_VALUE_REAL,
	NM_VALUE_U64S,
};

struct nm_value {
	const char *name;
	enum nm_value_type type;
	union {
		const char *text;
		bool flag;
		uint32_t u32;
		int32_t i32;
		uint64_t u64;
		double real;
		struct {
			const uint64_t *items;
			size_t count;
		} u64s;
	};
};

/* The implementation keeps errors: a writer need not check for them. */
struct nm_show {
	void *context;
	void (*open)(void *context); /* begins a dictionary */
	void (*put)(void *context, const struct nm_value *value);
	void (*close)(void *context);
	/* Begins a list as a value of the open dictionary: other dictionaries may be opened and
	 * closed within it. */
	void (*begin)(void *context, const char *name);
	void (*end)(void *context);
};

static inline void nm_show_text(const struct nm_show *show, const char *name, const char *text)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_TEXT, .text = text};
	show->put(show->context, &value);
}

static inline void nm_show_flag(const struct nm_show *show, const char *name, bool flag)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_FLAG, .flag = flag};
	show->put(show->context, &value);
}

static inline void nm_show_u32(const struct nm_show *show, const char *name, uint32_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U32, .u32 = number};
	show->put(show->context, &value);
}

static inline void nm_show_i32(const struct nm_show *show, const char *name, int32_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_I32, .i32 = number};
	show->put(show->context, &value);
}

static inline void nm_show_u64(const struct nm_show *show, const char *name, uint64_t number)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U64, .u64 = number};
	show->put(show->context, &value);
}

/* NaN means not available, and is omitted. */
static inline void nm_show_real(const struct nm_show *show, const char *name, double real)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_REAL, .real = real};
	if (isfinite(real))
		show->put(show->context, &value);
}

static inline void nm_show_u64s(const struct nm_show *show, const char *name, const uint64_t *items,
				size_t count)
{
	const struct nm_value value = {.name = name, .type = NM_VALUE_U64S, .u64s = {items, count}};
	show->put(show->context, &value);
}

/* ---- requests ---- */

#define NM_BUS_NAME "org.numamigrd1"
#define NM_BUS_PATH "/org/numamigrd1"
#define NM_BUS_INTERFACE "org.numamigrd1.Manager"
#define NM_BUS_INTERFACE_VERSION 2U

#define NM_BUS_ERROR_ALREADY_PAUSED NM_BUS_NAME ".Error.AlreadyPaused"
#define NM_BUS_ERROR_ALREADY_RUNNING NM_BUS_NAME ".Error.AlreadyRunning"
#define NM_BUS_ERROR_NOT_MANAGED NM_BUS_NAME ".Error.NotManaged"
#define NM_BUS_ERROR_NO_SUCH_PROCESS NM_BUS_NAME ".Error.NoSuchProcess"
#define NM_BUS_ERROR_NO_SUCH_DECISION NM_BUS_NAME ".Error.NoSuchDecision"
#define NM_BUS_ERROR_BAD_CONFIGURATION NM_BUS_NAME ".Error.BadConfiguration"
#define NM_BUS_ERROR_DRY_RUN_FORCED NM_BUS_NAME ".Error.DryRunForced"

/* polkit actions required of callers other than root. */
#define NM_POLKIT_STEER NM_BUS_NAME ".steer"
#define NM_POLKIT_RELOAD NM_BUS_NAME ".reload"

/* The properties of the object. Text is static or valid until the next call. */
struct nm_control_facts {
	const char *version, *source;
	bool paused, dry_run;
};

/* Writes one dictionary or several. */
typedef void (*nm_show_fn)(void *context, const struct nm_show *show);

/*
 * Functions of the daemon. Each gets `context`, and returns 0 or a negative errno unless noted. The
 * bus may call each of them. Functions for lists write a dictionary for each item; functions for
 * summaries write into an open dictionary.
 */
struct nm_control_ops {
	void *context;
	nm_show_fn status; /* a summary */
	int (*pause)(void *context);  /* -EALREADY: already paused */
	int (*resume)(void *context); /* -EALREADY: not paused */
	int (*release)(void *context, uint32_t pid); /* -ESRCH: no such managed process */
	/* Called once when the object is lost to the bus or could not be registered (negative
	 * errno), and once when it is available again (0). */
	void (*bus_changed)(void *context, int error);

	void (*facts)(void *context, struct nm_control_facts *ret);
	int (*nodes)(void *context, const struct nm_show *show);
	int (*processes)(void *context, const struct nm_show *show);
	/* -ESRCH; pid 0: all threads */
	int (*threads)(void *context, uint32_t pid, const struct nm_show *show);
	/* -ESRCH; a summary */
	int (*pages)(void *context, uint32_t pid, const struct nm_show *show);
	/* Addresses are shown only to root and to the owner of the process. */
	int (*regions)(void *context, uint32_t pid, uid_t caller, const struct nm_show *show);
	int (*decisions)(void *context, uint64_t after, uint32_t most, const struct nm_show *show);
	int (*explain)(void *context, uint64_t id, const struct nm_show *show); /* -ENOENT; a summary */
	/* -ESRCH: there is no such process; -EAGAIN: paused; a summary */
	int (*explain_process)(void *context, uint32_t pid, const struct nm_show *show);
	/* -EINVAL: the configuration is invalid and the old one stays in force; `error` has a line
	 * for each error. */
	int (*reload)(void *context, char *error, size_t size);
	/* -EPERM: the command line forces a dry run; -EACCES: root's configuration does, and uid is
	 * not root. */
	int (*set_dry_run)(void *context, bool wanted, uid_t uid);
	/* -EACCES: uid is not root; -EAGAIN: paused; -EINVAL */
	int (*raise_control)(void *context, uint32_t minutes, double percent, uid_t uid);
	int (*trial)(void *context, const struct nm_show *show); /* -EAGAIN: paused; a summary */
	int (*trial_programs)(void *context, const struct nm_show *show);
	/* Called before an authorized caller changes something through this method. */
	void (*asked)(void *context, const char *method, uid_t uid);
};

struct nm_control;

/*
 * Registers the object on the system bus and acquires the name, using the given event loop. Without
 * a bus, or when it disappears, this is retried asynchronously at increasing intervals of up to one
 * minute. Returns 0, also without a bus, or a negative errno of the event loop. The caller frees
 * the object before the event loop. Called by the daemon at start.
 */
int nm_control_new(sd_event *event, const struct nm_control_ops *ops, struct nm_control **ret);
void nm_control_free(struct nm_control *control);
NM_DEFINE_CLEANUP(struct nm_control, nm_control_free);

/* Notifies clients that watch Paused and DryRun if these have changed. `control` may be NULL. */
void nm_control_changed(struct nm_control *control);

#endif
