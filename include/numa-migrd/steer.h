/* SPDX-License-Identifier: MIT */
/*
 * What may be done to the processes of a cgroup: the extended attribute user.numa-migrd of its
 * directory (numa-migrd-steering(7)) is off, observe or on.
 *
 * From the root of the tree down to the process's own cgroup the last value counts, but "off"
 * anywhere wins. A directory that others than root can write to can only restrict (off, observe).
 * An unknown value, and a directory too deep to be read, count as "observe".
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

/* The attribute's bytes; trailing spaces, newlines and NULs are ignored. -EINVAL: unknown value. */
int nm_steer_parse(const char *text, size_t length, enum nm_steer_value *ret);

/* As the attribute spells it; "" for NM_STEER_NONE. */
const char *nm_steer_name(enum nm_steer_value value);

/* What counts below a directory with value `said`, whose ancestors amount to `above`. */
struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said);

/* The threads and pages of such a process stay where they are. */
static inline bool nm_steer_holds(const struct nm_steering *steering)
{
	return steering->value == NM_STEER_OFF || steering->value == NM_STEER_OBSERVE;
}

/* Is the process a target whatever targets.include says? */
static inline bool nm_steer_asks(const struct nm_steering *steering)
{
	return steering->asked && steering->value != NM_STEER_OFF;
}

/* ---- the reader ---- */

enum nm_steer_conflict {
	NM_STEER_UNKNOWN,   /* unknown value: "observe" */
	NM_STEER_NOT_ROOTS, /* "on" where others than root can write: ignored */
	NM_STEER_UNDER_OFF, /* below "off": ignored */
	NM_STEER_EXCLUDED,  /* targets.exclude matches a process there: ignored */
	NM_STEER_OUTSIDE,   /* outside of the daemon's cgroup namespace: not visible */
	NM_STEER_TOO_DEEP,  /* more than 32 levels: "observe" */
};

/* Texts are escaped, and valid during the call. */
struct nm_steer_report {
	enum nm_steer_conflict conflict;
	const char *cgroup; /* as in /proc/PID/cgroup */
	const char *value;  /* of its attribute */
};

/*
 * Called once for each cgroup and value of root's, once for each cgroup of others, of which at most
 * 16 in a minute, and once in all for NM_STEER_OUTSIDE and NM_STEER_TOO_DEEP. The last 256 are
 * remembered.
 */
typedef void (*nm_steer_report_fn)(void *context, const struct nm_steer_report *report);

struct nm_steer;

/* The platform must outlive it. -ENOMEM. Daemon, start and resume. */
int nm_steer_new(struct nm_platform *platform, const struct nm_config *config,
		 nm_steer_report_fn report, void *context, struct nm_steer **ret);
void nm_steer_free(struct nm_steer *steer);
NM_DEFINE_CLEANUP(struct nm_steer, nm_steer_free);

/* Takes targets.attribute from a new configuration. Daemon, reload. */
void nm_steer_configure(struct nm_steer *steer, const struct nm_config *config);

/*
 * Reads what counts for a process in this cgroup (NULL: not known); nothing if targets.attribute is
 * "ignore". A directory is read once for each now_ns, the time of the tick. Below the topmost
 * directory that others than root can write to, at most 64 are read in a tick, so that a user who
 * makes cgroups by the thousand delays only the processes among them. 0; -EAGAIN: not in this tick;
 * other -errno: cannot be read now. Task table, when it checks a process.
 */
int nm_steer_look(struct nm_steer *steer, const char *cgroup, uint64_t now_ns,
		  struct nm_steering *ret);

/* Reports that targets.exclude overrules the "on" that counts for this cgroup. In the same tick. */
void nm_steer_note_excluded(struct nm_steer *steer, const char *cgroup);

/* Number of reports since the start. */
uint64_t nm_steer_conflicts(const struct nm_steer *steer);

#endif
