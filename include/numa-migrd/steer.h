/* SPDX-License-Identifier: MIT */
/*
 * Control of the processes of a cgroup: the extended attribute user.numa-migrd of its directory
 * (numa-migrd-steering(7)) has the value off, observe or on.
 *
 * From the root of the tree down to the process's own cgroup the last value takes effect, but "off"
 * anywhere overrides it. A directory that users other than root can write to can only restrict
 * (off, observe). An unknown value, and a directory too deep to be read, are treated as "observe".
 */
#ifndef NUMA_MIGRD_STEER_H
#define NUMA_MIGRD_STEER_H

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"

#define NM_STEER_ATTRIBUTE "user.numa-migrd"

enum nm_steer_value {
	NM_STEER_NONE,	  /* no attribute */
	NM_STEER_OFF,	  /* not managed */
	NM_STEER_OBSERVE, /* measured, never moved */
	NM_STEER_ON,	  /* managed */
};

struct nm_steering {
	enum nm_steer_value value;
	bool asked; /* root set "observe" or "on" here or above: the process is a target */
};

/* ---- rules (pure) ---- */

/* Parses the bytes of the attribute; trailing spaces, newlines and NULs are ignored. Returns 0, or
 * -EINVAL for an unknown value. */
int nm_steer_parse(const char *text, size_t length, enum nm_steer_value *ret);

/* Returns the spelling of the attribute's value; "" for NM_STEER_NONE. */
const char *nm_steer_name(enum nm_steer_value value);

/* Returns the effective control below a directory with value `said`, whose ancestors result in
 * `above`. */
struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said);

/* Returns whether the threads and pages of such a process must not be moved. */
static inline bool nm_steer_holds(const struct nm_steering *steering)
{
	return steering->value == NM_STEER_OFF || steering->value == NM_STEER_OBSERVE;
}

/* Returns whether the process is a target regardless of targets.include. */
static inline bool nm_steer_asks(const struct nm_steering *steering)
{
	return steering->asked && steering->value != NM_STEER_OFF;
}

/* ---- the reader ---- */

enum nm_steer_conflict {
	NM_STEER_UNKNOWN,   /* unknown value: treated as "observe" */
	NM_STEER_NOT_ROOTS, /* "on" in a directory that other users can write to: ignored */
	NM_STEER_UNDER_OFF, /* below "off": ignored */
	NM_STEER_EXCLUDED,  /* targets.exclude matches a process there: ignored */
	NM_STEER_OUTSIDE,   /* outside of the daemon's cgroup namespace: not visible */
	NM_STEER_TOO_DEEP,  /* more than 32 levels: "observe" */
};

/* Strings are escaped, and valid during the call. */
struct nm_steer_report {
	enum nm_steer_conflict conflict;
	const char *cgroup; /* as in /proc/PID/cgroup */
	const char *value;  /* value of its attribute */
};

/*
 * Called once for each cgroup and value set by root, once for each cgroup of other users, but for
 * at most 16 of these per minute, and only once for NM_STEER_OUTSIDE and NM_STEER_TOO_DEEP. The
 * last 256 reports are remembered.
 */
typedef void (*nm_steer_report_fn)(void *context, const struct nm_steer_report *report);

struct nm_steer;

/* Creates a reader. The platform must outlive it. Returns 0 or -ENOMEM. Called by the daemon at
 * start and resume. */
int nm_steer_new(struct nm_platform *platform, const struct nm_config *config,
		 nm_steer_report_fn report, void *context, struct nm_steer **ret);
void nm_steer_free(struct nm_steer *steer);
NM_DEFINE_CLEANUP(struct nm_steer, nm_steer_free);

/* Sets targets.attribute from a new configuration. Called by the daemon on reload. */
void nm_steer_configure(struct nm_steer *steer, const struct nm_config *config);

/*
 * Determines the effective control of a process in this cgroup (NULL: not known); none if
 * targets.attribute is "ignore". A directory is read once for each now_ns, the time of the tick.
 * Below the topmost directory that users other than root can write to, at most 64 directories are
 * read per tick, so that a user who creates thousands of cgroups delays only the processes in them.
 * Returns 0; -EAGAIN if the limit is reached in this tick; or another negative errno if it cannot
 * be read now. Called by the task table when it checks a process.
 */
int nm_steer_look(struct nm_steer *steer, const char *cgroup, uint64_t now_ns,
		  struct nm_steering *ret);

/* Reports that targets.exclude overrides the "on" in effect for this cgroup. Must be called in the
 * same tick. */
void nm_steer_note_excluded(struct nm_steer *steer, const char *cgroup);

/* Returns the number of reports since the start. */
uint64_t nm_steer_conflicts(const struct nm_steer *steer);

#endif
