/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files that decide about pages: page_stage.c, page_rule.c,
 * page_ranges.c, … */
#ifndef NM_DAEMON_PAGE_STAGE_H
#define NM_DAEMON_PAGE_STAGE_H

#include "numa-migrd/base.h"
#include "numa-migrd/judge.h"
#include "numa-migrd/memory.h"
#include "numa-migrd/mover.h"
#include "numa-migrd/page_choice.h"
#include "numa-migrd/regions.h"
#include "numa-migrd/statistics.h"

struct nm_daemon;

/* The relation to the kernel's automatic NUMA balancing. */
enum nm_balancing_mode {
	NM_PAGES_ALONE,	   /* it is off */
	NM_PAGES_YIELDED,  /* it is on, and pages are left to it */
	NM_PAGES_WARNED,   /* it is on, and the daemon moves pages, too */
	NM_PAGES_MANAGED,  /* the daemon has turned it off */
	NM_PAGES_REFUSED,  /* the daemon may not turn it off; pages are left to it */
	NM_PAGES_NEEDED,   /* without its faults there would be no samples; pages are left to it */
	NM_PAGES_INJECTED, /* the daemon has turned it on for its faults; pages are left to it */
};

struct nm_page_stage {
	struct nm_column processes; /* of struct nm_page_process */
	double *traffic;	    /* recent accesses served by each node */
	struct nm_contention contention;
	enum nm_balancing_mode balancing_mode;
	bool managing; /* the daemon has turned kernel.numa_balancing off */
	struct nm_page_tally tally;
};

/* ---- page_stage.c: the stage ---- */

/* Returns page_cooldown_s in intervals. */
uint64_t nm_page_cooldown(const struct nm_config *config);

/* Decides to move the pages of a batch for the reason, whose numbers it sets, and hands the batch to
 * the mover. The decision is reported when the mover has moved at least one page. Returns 0;
 * -ECANCELED: the process is left alone; -EAGAIN: the mover is full; or -EPERM. On failure nothing
 * has happened, and *batch is not NULL. */
int nm_page_stage_submit(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			 const struct nm_page_process *process,
			 const struct nm_pages_reason *reason, struct nm_page_batch **batch);
/* The same for the pages of a migration that return: nm_migration_roll_back(). */
int nm_page_stage_submit_rollback(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
				  const struct nm_page_process *process, struct nm_migration *one);

/* ---- page_rule.c: page by page ---- */

void nm_page_stage_by_rule(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			   struct nm_page_budget *room);

/* ---- page_ranges.c: by range ---- */

/* Reads mappings, decays counts and splits ranges. Called once per interval. */
void nm_page_ranges_update(struct nm_daemon *daemon, struct nm_page_process *process,
			   uint64_t interval_ns);
void nm_page_stage_by_range(struct nm_daemon *daemon, const struct nm_snapshot *snapshot,
			    struct nm_page_budget *room);

/* ---- page_receipts.c: results and rollback ---- */

void nm_page_stage_collect(struct nm_daemon *daemon);
/* Applies the verdict on a decision about pages. */
void nm_page_stage_apply_verdict(struct nm_daemon *daemon, const struct nm_verdict *verdict);
/* Submits rollbacks, including those that did not fit before. */
void nm_page_stage_roll_back(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- page_balancing.c: coexistence with automatic NUMA balancing ---- */

/* Checks kernel.numa_balancing, turns it off if configured, and logs changes. Returns whether the
 * daemon may move pages. */
bool nm_page_balancing(struct nm_daemon *daemon);
/* Restores the setting if the daemon has turned it off. */
void nm_page_balancing_end(struct nm_daemon *daemon);
/* Returns a name for the status: "moves", "yields", … */
const char *nm_balancing_mode_name(enum nm_balancing_mode balancing_mode);

#endif
