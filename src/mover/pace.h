/* SPDX-License-Identifier: MIT */
/*
 * Determines when the next call may be made and how many pages it moves, from the limits on bytes
 * and pages, the cost of calls, and pauses after slow calls. Pure: time is an argument.
 */
#ifndef NM_MOVER_PACE_H
#define NM_MOVER_PACE_H

#include "numa-migrd/config.h"

#define NM_PACE_PAGES_MOST 4096U /* in one call */
#define NM_PACE_FIRST_PAUSE_NS (100 * NM_NSEC_PER_MSEC)
#define NM_PACE_LONGEST_PAUSE_NS (10 * NM_NSEC_PER_SEC)
#define NM_PACE_PAUSES 32U

enum nm_pace_class { NM_PACE_SMALL, NM_PACE_HUGE, NM_PACE_CLASSES };

/* Sums over the calls with pages of one class, for a regression line. Recent calls have the highest
 * weight. */
struct nm_cost {
	double calls, pages, pages2, ns, pages_ns;
	double page_ns; /* cost of a page, without the fixed cost of a call */
	unsigned chunk; /* number of pages of the next call */
};

/* After slow calls only the domain that they were for waits: a process makes calls slow by holding
 * the lock of its own memory. */
struct nm_pause {
	uint64_t domain, pause_ns, resume_ns;
};

struct nm_pace {
	double bytes_per_ns, burst_bytes, interval_bytes;
	uint64_t limit_ns;
	double bytes;	       /* may be moved now; below 0 if the last page exceeded it */
	uint64_t filled_ns;    /* time of this value */
	struct nm_pause pauses[NM_PACE_PAUSES];
	struct nm_cost cost[NM_PACE_CLASSES];
};

void nm_pace_init(struct nm_pace *pace, uint64_t now_ns);
void nm_pace_configure(struct nm_pace *pace, const struct nm_config *config);

/* Returns the time until the limits permit the next call; 0: now. */
uint64_t nm_pace_wait_ns(struct nm_pace *pace, uint64_t now_ns);

/* Returns the time at which the pause of this domain ends, or 0. */
uint64_t nm_pace_resume_ns(const struct nm_pace *pace, uint64_t domain);

/*
 * Return the maximum number of pages of the next call, and of bytes; a single page may exceed the
 * latter. bulk: a call for a bulk batch, which many short calls would only prolong.
 */
unsigned nm_pace_pages(const struct nm_pace *pace, enum nm_pace_class class, bool bulk);
uint64_t nm_pace_bytes(const struct nm_pace *pace);

/* Returns what may still be moved in the interval that contains now_ns. */
uint64_t nm_pace_room_bytes(struct nm_pace *pace, uint64_t now_ns);

/* Returns the time above which a call is too slow. */
uint64_t nm_pace_slow_ns(const struct nm_pace *pace, bool bulk);

/* Counts moved pages against the limit. */
void nm_pace_spend(struct nm_pace *pace, uint64_t bytes);

/* Records a call with `pages` pages that took `ns` until now_ns. Returns true if it took too long,
 * and a pause of its domain begins. */
bool nm_pace_learn(struct nm_pace *pace, enum nm_pace_class class, bool bulk, uint64_t domain,
		   unsigned pages, uint64_t ns, uint64_t now_ns);

#endif
