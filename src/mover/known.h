/* SPDX-License-Identifier: MIT */
/*
 * The mappings of some processes, read in turns. Entries are made and dropped under the mover's
 * lock; what is in one is the worker's, but for `ready`, which it changes under the lock.
 */
#ifndef NM_MOVER_KNOWN_H
#define NM_MOVER_KNOWN_H

#include "numa-migrd/mappings.h"

#define NM_KNOWN_MOST 32U
/* What was read is read again, when asked for, after so long, and a hundred times as long as that
 * took: it holds for twice that time. */
#define NM_KNOWN_AGE_NS (5 * NM_NSEC_PER_SEC)
/* After so long where somebody asked for a mapping that was not in it. */
#define NM_KNOWN_SOON_NS NM_NSEC_PER_SEC
/* From one turn of reading to the next, of what the one took. */
#define NM_KNOWN_TURN_SHARE 10U

struct nm_known_entry {
	uint32_t pid; /* 0: free */
	uint64_t start_ticks;
	bool dropped, wanted;
	uint64_t asked_ns;
	struct nm_mappings *ready, *reading;
	uint64_t ready_ns, again_ns; /* when it was whole; when it is to be read again */
	int error; /* of the last reading; it is not tried again before again_ns */
};

struct nm_known {
	struct nm_known_entry entries[NM_KNOWN_MOST];
	uint64_t turn_ns; /* when the next turn may be */
	uint64_t reads, read_ns;
};

void nm_known_clear(struct nm_known *known);

/*
 * The process's entry, made where there is none: the one asked for longest ago gives way, or, with
 * `keep` (the one that the worker has in hand; may be NULL), another. Under the lock.
 */
struct nm_known_entry *nm_known_ask(struct nm_known *known, uint32_t pid, uint64_t start_ticks,
				    uint64_t now_ns, const struct nm_known_entry *keep);

/* Under the lock: the next turn throws away what is known of it. */
void nm_known_drop(struct nm_known *known, uint32_t pid);

/* May what was read be gone by? */
bool nm_known_holds(const struct nm_known_entry *entry, uint64_t now_ns);

/* It lacks a mapping that somebody asked for. Under the lock. */
void nm_known_lacks(struct nm_known_entry *entry);

/* One that is to be read, or NULL. Under the lock. */
struct nm_known_entry *nm_known_unread(struct nm_known *known, uint64_t now_ns);

/*
 * The worker, without the lock: reads on for a budget. 0: whole, to be published by
 * nm_known_publish(); -EAGAIN: go on later; else the reading failed, -ESRCH where the process is
 * another.
 */
int nm_known_read(struct nm_known_entry *entry, struct nm_platform *platform, uint64_t budget_ns);

/* Under the lock, with the result of nm_known_read(), and when it began. */
void nm_known_publish(struct nm_known *known, struct nm_known_entry *entry, int result,
		      uint64_t before_ns, uint64_t now_ns);

/* Opens /proc/PID of this very process: a descriptor to be closed, or -ESRCH. */
int nm_known_open(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks);

#endif
