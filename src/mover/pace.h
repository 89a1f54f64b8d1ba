/* SPDX-License-Identifier: MIT */
/*
 * When the next call may be, and how many pages it takes: limits on bytes and pages, what calls
 * cost, and pauses after slow ones. Pure: time is an argument.
 */
#ifndef NM_MOVER_PACE_H
#define NM_MOVER_PACE_H

#include "numa-migrd/config.h"

#define NM_PACE_PAGES_MOST 4096U /* in one call */
#define NM_PACE_FIRST_PAUSE_NS (100 * NM_NSEC_PER_MSEC)
#define NM_PACE_LONGEST_PAUSE_NS (10 * NM_NSEC_PER_SEC)

enum nm_pace_class { NM_PACE_SMALL, NM_PACE_HUGE, NM_PACE_CLASSES };

/* Of the calls with pages of a class, the latest counting most: sums for a line through them. */
struct nm_cost {
	double calls, pages, pages2, ns, pages_ns;
	double page_ns; /* each page's own part of it */
	unsigned chunk; /* pages of the next call */
};

struct nm_pace {
	double bytes_per_ns, burst_bytes, interval_bytes;
	uint64_t interval_ns, pages_per_interval, limit_ns;
	double bytes;	       /* may be moved now; below 0: more was, the last page being large */
	uint64_t filled_ns;    /* when that was so */
	uint64_t window_ns;    /* when the interval began */
	uint64_t window_pages; /* moved in it */
	uint64_t pause_ns, resume_ns;
	struct nm_cost cost[NM_PACE_CLASSES];
};

void nm_pace_init(struct nm_pace *pace, uint64_t now_ns);
void nm_pace_configure(struct nm_pace *pace, const struct nm_config *config);

/* Time until the next call may be; 0: now. */
uint64_t nm_pace_wait_ns(struct nm_pace *pace, uint64_t now_ns);

/*
 * How many pages the next call may take, and up to how many bytes (beyond: one page alone). bulk: of a
 * process that is brought home as a whole, which many short calls would only make longer.
 */
unsigned nm_pace_pages(const struct nm_pace *pace, enum nm_pace_class class, bool bulk);
uint64_t nm_pace_bytes(const struct nm_pace *pace);

/* What may still be moved in the interval that now is in. */
uint64_t nm_pace_room_pages(struct nm_pace *pace, uint64_t now_ns);
uint64_t nm_pace_room_bytes(struct nm_pace *pace, uint64_t now_ns);

/* Pages were moved. */
void nm_pace_spend(struct nm_pace *pace, uint64_t pages, uint64_t bytes);

/* A call with so many pages took so long, until now. True: too long, a pause begins. */
bool nm_pace_learn(struct nm_pace *pace, enum nm_pace_class class, bool bulk, unsigned pages,
		   uint64_t ns, uint64_t now_ns);

#endif
