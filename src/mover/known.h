/* SPDX-License-Identifier: MIT */
/*
 * The mappings of some processes, read in turns. Entries are made and dropped under the mover's
 * lock; what is in one is the worker's, but for `ready`, which it changes under the lock.
 */
#ifndef NM_MOVER_KNOWN_H
#define NM_MOVER_KNOWN_H

#include "numa-migrd/mappings.h"

/* More processes, or more memory for what was read of them, are not known at a time: who comes in
 * excess waits until others have asked for what was read for them. */
#define NM_KNOWN_MOST 512U
#define NM_KNOWN_BYTES_MOST ((size_t)64 << 20)
/* What was read is read again, when asked for, after so long, and a hundred times as long as that
 * took: it holds for twice that time, but not for longer than so long. Then nothing is known until
 * the time has come to read it again. */
#define NM_KNOWN_AGE_NS (5 * NM_NSEC_PER_SEC)
#define NM_KNOWN_HOLDS_NS (30 * NM_NSEC_PER_SEC)
/* After so long where somebody asked for a mapping that was not in it. */
#define NM_KNOWN_SOON_NS NM_NSEC_PER_SEC
/* From one turn of reading to the next, of what the one took. */
#define NM_KNOWN_TURN_SHARE 3U
/* And where the kernel, or no worker, was to be had for it just then. */
#define NM_KNOWN_REFUSED_NS (100 * NM_NSEC_PER_MSEC)

struct nm_known_entry {
	uint32_t pid; /* 0: free */
	uint64_t start_ticks;
	bool dropped;
	bool asked, had; /* since it was read: somebody wanted it; got it */
	uint64_t asked_ns;
	uint64_t wanted_ns; /* since when it waits to be read for the first time */
	struct nm_mappings *ready, *reading;
	uint64_t ready_ns; /* when it was whole */
	uint64_t again_ns; /* when it is to be read again; 0: it never was read */
	int error;	   /* of the last reading; it is not tried again before again_ns */
	uint64_t held_ns;  /* how long the kernel was at it in the last turn */
};

struct nm_known {
	struct nm_known_entry entries[NM_KNOWN_MOST];
	size_t bytes_most;
	uint64_t turn_ns; /* when the next turn may be */
	uint64_t reads, read_ns;
};

void nm_known_init(struct nm_known *known);
void nm_known_clear(struct nm_known *known);

/*
 * The process's entry, made where there is none. For it another gives way that somebody has asked
 * for since it was read, or that may be gone by: of these the one asked for longest ago, and never
 * `keep` (the one that the worker has in hand; may be NULL). NULL: there is none. Under the lock.
 */
struct nm_known_entry *nm_known_ask(struct nm_known *known, uint32_t pid, uint64_t start_ticks,
				    uint64_t now_ns, const struct nm_known_entry *keep);

/* Under the lock: the next turn throws away what is known of it. */
void nm_known_drop(struct nm_known *known, uint32_t pid);

/* What was read is still to be gone by. */
bool nm_known_holds(const struct nm_known_entry *entry, uint64_t now_ns);

/* It was read, and it is too early to do that again. */
bool nm_known_rests(const struct nm_known_entry *entry, uint64_t now_ns);

/* It lacks a mapping that somebody asked for. Under the lock. */
void nm_known_lacks(struct nm_known_entry *entry);

/*
 * One that is to be read, or NULL: first one that is begun, then what has waited longest. Forgets
 * what is gone by and was not asked for. Under the lock.
 */
struct nm_known_entry *nm_known_unread(struct nm_known *known, uint64_t now_ns);

/* Memory that takes. Under the lock. */
size_t nm_known_bytes(const struct nm_known *known);

/* Makes room in memory; false: there is none for another reading. Under the lock. */
bool nm_known_has_room(struct nm_known *known, uint64_t now_ns, const struct nm_known_entry *keep);

struct nm_known_limits {
	uint64_t budget_ns; /* of one turn */
	uint64_t rss_bytes; /* a process with more in memory is not read; 0: no limit */
};

/*
 * The worker, without the lock: reads on for a budget. 0: whole, to be published by
 * nm_known_publish(); -EAGAIN: go on later; else the reading failed, -ESRCH where the process is
 * another, -EFBIG where it is too large.
 */
int nm_known_read(struct nm_known_entry *entry, struct nm_platform *platform,
		  const struct nm_known_limits *limits);

/* Under the lock, with the result of nm_known_read(). */
void nm_known_publish(struct nm_known *known, struct nm_known_entry *entry, int result,
		      uint64_t now_ns);

/*
 * Opens /proc/PID of this very process: a descriptor to be closed, or -ESRCH. Where the first
 * thread has exited before the others, it is /proc/PID/task/TID of one of these: a thread that has
 * exited has no memory any more that could be seen or moved by its number. Which thread it is, and
 * that one's own start.
 */
int nm_known_open(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks,
		  uint32_t *ret_tid, uint64_t *ret_ticks);

#endif
