/* SPDX-License-Identifier: MIT */
/*
 * What the control groups of a process say of it, live, by the extended attribute user.numa-migrd
 * of their directories (numa-migrd-steering(7)): off, observe, on, or the name of a thread policy.
 *
 * From the root of the tree down to the process's own group the last word counts, but "off"
 * anywhere wins. A directory that somebody else than root may write to can only restrict (off,
 * observe). What is not understood, or not to be had, is taken as "observe": never moved.
 *
 * Only directories above known processes are looked at; each is read once and then under watch.
 */
#ifndef NUMA_MIGRD_STEER_H
#define NUMA_MIGRD_STEER_H

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"

#define NM_STEER_ATTRIBUTE "user.numa-migrd"

enum nm_steer_word {
	NM_STEER_NONE,	  /* nothing is said */
	NM_STEER_OFF,	  /* left alone */
	NM_STEER_OBSERVE, /* watched, and never moved */
	NM_STEER_ON,	  /* managed as the configuration has it */
	NM_STEER_POLICY,  /* managed, threads by this policy */
};

struct nm_steering {
	enum nm_steer_word word;
	bool asked; /* root has said to look at it, here or above: others can only restrict that */
	enum nm_thread_policy policy; /* with NM_STEER_POLICY */
};

/* ---- rules (pure) ---- */

/*
 * The attribute's bytes as a word; spaces, newlines and NULs at the end do not count. -EINVAL: none
 * that is known.
 */
int nm_steer_parse(const char *text, size_t length, struct nm_steering *ret);

/* As the attribute spells it; "" for none. */
const char *nm_steer_name(const struct nm_steering *steering);

/*
 * Can a process have this thread policy while the others have the configured one? LBMA looks at one
 * thread at a time, and "none" at nobody; the others need records, mappings or loads of all.
 */
bool nm_steer_is_free(enum nm_thread_policy wanted, enum nm_thread_policy configured);

/* What a directory adds to what those above it say; a request of root's stays one below. */
struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said);

/* Its threads (of a process steered so) stay where they are. */
static inline bool nm_steer_holds_threads(const struct nm_steering *steering)
{
	return steering->word == NM_STEER_OFF || steering->word == NM_STEER_OBSERVE ||
	       (steering->word == NM_STEER_POLICY && steering->policy == NM_POLICY_NONE);
}

/* Its pages do. */
static inline bool nm_steer_holds_pages(const struct nm_steering *steering)
{
	return steering->word == NM_STEER_OFF || steering->word == NM_STEER_OBSERVE;
}

/* Is it a target, whatever targets.include says? */
static inline bool nm_steer_asks(const struct nm_steering *steering)
{
	return steering->asked && steering->word != NM_STEER_OFF;
}

/* ---- the tree ---- */

enum nm_steer_trouble {
	NM_STEER_UNKNOWN,   /* not a word: taken as "observe" */
	NM_STEER_NOT_ROOTS, /* somebody else may write there: counts for nothing */
	NM_STEER_NOT_FREE,  /* the policy is not to be had beside the configured one: "observe" */
	NM_STEER_UNDER_OFF, /* an ancestor says "off": counts for nothing */
	NM_STEER_EXCLUDED,  /* targets.exclude matches a process there: counts for nothing */
	NM_STEER_UNWATCHED, /* error tells why: changes there are seen late */
	NM_STEER_OUTSIDE,   /* a process is in a group that is not to be seen from here */
	NM_STEER_TOO_DEEP,  /* more than 32 groups above each other: "observe" */
};

/* Once for each directory and attribute of root's, each directory of others but at most 16 of
 * theirs in a minute (the last three: once at all); texts are escaped, and last as long as the
 * call. */
struct nm_steer_news {
	enum nm_steer_trouble trouble;
	const char *directory; /* as in /proc/PID/cgroup */
	const char *said;      /* its attribute */
	int error;
};

struct nm_steer_ops {
	void *context;
	void (*tell)(void *context, const struct nm_steer_news *news);
	/*
	 * Processes in this group (a raw path) and below may be steered otherwise from now on.
	 * said: what counts of what root says there now; NULL: it is gone, or others may speak
	 * there, who could fill a journal with it.
	 */
	void (*changed)(void *context, const char *directory, const struct nm_steering *said);
};

struct nm_steer;

/*
 * Where a directory cannot be put under watch (told once) it is read anew whenever a process in it
 * is looked at. The platform must outlive it. -ENOMEM. Daemon, start and resume.
 */
int nm_steer_new(struct nm_platform *platform, const struct nm_config *config,
		 const struct nm_steer_ops *ops, struct nm_steer **ret);
void nm_steer_free(struct nm_steer *steer);
NM_DEFINE_CLEANUP(struct nm_steer, nm_steer_free);

/* Another configuration: everything is read anew when it is asked for. Daemon, reload. */
void nm_steer_configure(struct nm_steer *steer, const struct nm_config *config);

/*
 * Takes in what changed since, and says so by ops->changed. Tick, before the roster: whoever
 * changes an attribute all the time costs no more than one look in an interval, and whoever changes
 * hundreds that are not root's sees the rest heeded when the roster looks at their processes.
 */
void nm_steer_drain(struct nm_steer *steer);

/*
 * What holds for a process in this control group (NULL: not known); "none" too where the attribute
 * is to be ignored. 0, or -errno: it cannot be told now (no memory, no descriptor), and what held
 * goes on. Roster, when it looks at a process.
 */
int nm_steer_look(struct nm_steer *steer, const char *cgroup, uint64_t now_ns,
		  struct nm_steering *ret);

/* What a group asks for is not done, since targets.exclude matches; told once. Roster. */
void nm_steer_note_excluded(struct nm_steer *steer, const char *cgroup);

/* Forgets directories that nobody has asked for in two minutes. Daemon, each tick. */
void nm_steer_tend(struct nm_steer *steer, uint64_t now_ns);

struct nm_steer_counts {
	unsigned directories, watched;
	uint64_t changes, troubles; /* since the start */
};
struct nm_steer_counts nm_steer_counts(const struct nm_steer *steer);

/* Is the directory this one, or above it? Paths as in /proc/PID/cgroup. Pure. */
bool nm_steer_is_below(const char *cgroup, const char *directory);

#endif
