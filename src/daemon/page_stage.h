/* SPDX-License-Identifier: MIT */
/* What the files about deciding on pages share: page_stage.c, page_rule.c, page_ranges.c, … */
#ifndef NM_DAEMON_PAGE_STAGE_H
#define NM_DAEMON_PAGE_STAGE_H

#include "numa-migrd/contention.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/page_verify.h"
#include "numa-migrd/regions.h"
#include "numa-migrd/tidmap.h"

struct nm_daemon;

#define NM_PAGES_SEEN 1024U /* accesses of a process that are remembered one by one */

/* An access of late: where the memory was, and in pages of which size. */
struct nm_page_seen {
	uint64_t address, interval;
	int16_t home;
	bool huge;
};

/* A range on its way, piece by piece. */
struct nm_range_cursor {
	bool active;
	uint64_t start, end, next;
	int target; /* a node, or NM_REGION_EVERYWHERE */
	enum nm_page_reason reason;
	double exclusivity;
	uint64_t page_bytes;
};

/* A managed process whose pages may move. */
struct nm_page_process {
	uint32_t pid;
	uint64_t start_ticks;
	uint16_t owner; /* in the table of pages: another after an exec */
	bool held;	/* its threads are not placed yet */
	bool waits;	/* for a verdict, or for what is to be undone */
	uint64_t until; /* interval before which its pages stay: its threads moved, or pages back */
	unsigned setbacks; /* decisions undone since one was kept */
	unsigned nr_threads, nr_sent; /* of them, to other nodes in this interval */
	size_t share;	   /* pages that it may still move by the rule in this interval */
	char comm[NM_COMM_BYTES];
	struct nm_regions *regions; /* NULL: its mappings are not known yet */
	uint64_t mapped;	    /* interval in which they were read */
	bool unreadable;	    /* they cannot be, and that was told */
	struct nm_range_cursor cursor;
	struct nm_page_seen *seen; /* a ring */
	uint32_t nr_seen;	   /* ever */
};

/* A decision that the mover has. */
struct nm_page_flight {
	struct nm_page_decision decision;
	uint16_t owner;
	bool judged; /* there will be a verdict */
};

/* A moved page, to be moved back. */
struct nm_page_origin {
	uint64_t address, bytes;
	int16_t was_on, now_on;
};

/* A decision under judgement. */
struct nm_page_past {
	struct nm_page_decision decision;
	uint16_t owner;
	struct nm_page_origin *origins;
	size_t count;
	bool undo; /* judged so, and not yet with the mover */
};

/* How the kernel's automatic NUMA balancing stands to it. */
enum nm_balancing_mode {
	NM_PAGES_ALONE,	   /* it is off */
	NM_PAGES_YIELDED,  /* it is on, and pages are left to it */
	NM_PAGES_WARNED,   /* it is on, and we act */
	NM_PAGES_MANAGED,  /* we have turned it off */
	NM_PAGES_REFUSED,  /* we may not turn it off: as yielded */
	NM_PAGES_NEEDED,   /* without its faults nothing would be seen: as yielded */
	NM_PAGES_INJECTED, /* we have turned it on for its faults: as yielded */
};

struct nm_page_tally {
	uint64_t decisions, moved, bytes, elsewhere, refused, failed, untried;
	uint64_t improved, neutral, rolled_back, inconclusive;
	uint64_t forgotten; /* moved, but it is not remembered where they were */
};

struct nm_page_stage {
	struct nm_mover *mover;
	struct nm_page_verifier *verifier;
	struct nm_feedback *feedback;	   /* follows P; IMAR²'s own judges threads */
	struct nm_tidmap *index;	   /* pid → its place in processes */
	struct nm_page_process *processes; /* ascending pid */
	size_t nr_processes;
	double *traffic; /* accesses served by each node of late */
	struct nm_contention contention;
	struct nm_page_flight *flights;
	size_t nr_flights, flight_capacity;
	struct nm_page_past *pasts;
	size_t nr_pasts, past_capacity;
	size_t nr_origins; /* of all pasts */
	enum nm_balancing_mode balancing_mode;
	bool managing; /* kernel.numa_balancing is off by us */
	struct nm_page_tally tally;
};

/* ---- page_stage.c: the stage ---- */

/* NULL where the process is not (or no longer) one whose pages may move. */
struct nm_page_process *nm_page_process_of(const struct nm_page_stage *stage, uint32_t pid);

/* What may still be submitted in this interval; both fall by what is. */
struct nm_page_room {
	size_t pages;
	uint64_t bytes;
	bool whole; /* it is all that an interval has: then even a larger page may go */
};
/* pages.cooldown_s in intervals. */
uint64_t nm_page_cooldown(const struct nm_config *config);

/* A page of so many bytes more; false: there is no room for it. */
bool nm_page_room_take(struct nm_page_room *room, uint64_t bytes);

/*
 * Numbers the decision, hands its steps to the mover and tells. The steps are copied.
 * -EAGAIN: the mover has enough; -ENOMEM; then nothing has happened.
 */
int nm_page_stage_submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_page_process *process, struct nm_page_decision *decision,
			 const struct nm_page_step *steps, size_t count);

/* ---- page_rule.c: page by page ---- */

int nm_page_stage_by_rule(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			  struct nm_page_room *room);

/* ---- page_ranges.c: by the range ---- */

/* Mappings, fading, splitting. Once per interval. */
void nm_page_ranges_update(struct nm_daemon *daemon, struct nm_page_process *process,
			   uint64_t interval_ns);
/* What was moved by the range did not get there for want of room or knowledge: it is asked for
 * again. */
void nm_page_ranges_missed(struct nm_page_process *process, const struct nm_page_step *step);
int nm_page_stage_by_range(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			   struct nm_page_room *room);

/* ---- page_receipts.c: what became of it, and the way back ---- */

void nm_page_past_clear(struct nm_page_past *past);
void nm_page_stage_collect(struct nm_daemon *daemon);
int nm_page_stage_judge(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);
/* What waits to be moved back stays: others decide now. */
void nm_page_stage_forget_undo(struct nm_page_stage *stage);
/* Moves back what was judged so, and may not have found room before. */
int nm_page_stage_undo(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- page_balancing.c: beside the kernel's own ---- */

/* Looks at kernel.numa_balancing, turns it off where asked to, tells what is new. May we act? */
bool nm_page_balancing(struct nm_daemon *daemon);
/* Puts it back if we have turned it off. */
void nm_page_balancing_end(struct nm_daemon *daemon);
/* For the status: "moves", "yields", … */
const char *nm_balancing_mode_name(enum nm_balancing_mode balancing_mode);

#endif
