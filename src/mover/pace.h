/* SPDX-License-Identifier: MIT */
/*
 * Determines when the next call may be made and how many pages it moves, from the limits on bytes
 * and pages, the cost of calls, and rests after slow calls. Pure: time is an argument.
 */
#ifndef NM_MOVER_PACE_H
#define NM_MOVER_PACE_H

#include "numa-migrd/config.h"

#define NM_PACE_PAGES_MOST 4096U /* in one call */

enum nm_pace_class { NM_PACE_SMALL, NM_PACE_HUGE, NM_PACE_CLASSES };

/* Sums over the calls with pages of one class, for a regression line. Recent calls have the highest
 * weight. */
struct nm_cost {
	double calls, pages, pages2, ns, pages_ns;
	double page_ns; /* cost of a page, without the fixed cost of a call */
	unsigned chunk; /* number of pages of the next call */
};

struct nm_pace {
	double bytes_per_ns, burst_bytes, interval_bytes;
	uint64_t limit_ns;
	double bytes;	       /* may be moved now; below 0 if the last page exceeded it */
	uint64_t filled_ns;    /* time of this value */
	/* By domain: the time that it used beyond its quota lately, where bytes count as their time
	 * at max_mb_per_s; and the time for which it rests after slow calls. Others do not wait
	 * then: a process makes calls slow by holding the lock of its own memory. */
	struct nm_quota used, rests;
	struct nm_cost cost[NM_PACE_CLASSES];
};

void nm_pace_init(struct nm_pace *pace, uint64_t now_ns);
void nm_pace_configure(struct nm_pace *pace, const struct nm_config *config);

/* Returns the time until the limits permit the next call; 0: now. */
uint64_t nm_pace_wait_ns(struct nm_pace *pace, uint64_t now_ns);

/* Returns the time at which the rest of this domain ends, or 0. */
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

/* Counts bytes that the domain moves against the limit, and against its quota. */
void nm_pace_spend(struct nm_pace *pace, uint64_t domain, uint64_t bytes);

/* Counts time of the worker against the quota of the domain. */
void nm_pace_charge(struct nm_pace *pace, uint64_t domain, double ns);

/* Returns the time that the domain used beyond its quota; the one that used least is next. */
double nm_pace_used_ns(const struct nm_pace *pace, uint64_t domain);

/* Records a call with `pages` pages that took `ns` until now_ns. Returns true if it took too long.
 * Its domain then rests for ten times as long, so that such calls use at most 10 % of the time. */
bool nm_pace_learn(struct nm_pace *pace, enum nm_pace_class class, bool bulk, uint64_t domain,
		   unsigned pages, uint64_t ns, uint64_t now_ns);

#endif
