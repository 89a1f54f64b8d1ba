/* SPDX-License-Identifier: MIT */
/* Policy "auto" in the daemon, shared by the files home_*.c. */
#ifndef NM_DAEMON_HOME_STAGE_H
#define NM_DAEMON_HOME_STAGE_H

#include "daemon.h"

/* ---- home_stage.c ---- */

/* Decides whether the only process of a separate snapshot keeps its home or is assigned one, and
 * moves its threads there. */
void nm_home_stage_decide(struct nm_daemon *daemon, const struct nm_snapshot *snapshot);

/* ---- home_pages.c ---- */

/* Collects an answer about the location of its memory, and sends a query if it has no home. */
void nm_home_stage_locate(struct nm_daemon *daemon, struct nm_home_state *state, uint64_t now_ns);

/* ---- home_memory.c ---- */

/* Collects the results of the mover. */
void nm_home_stage_collect(struct nm_daemon *daemon);
/* Ends the migration of a process that loses its home. rolls_back: its memory returns to its
 * original location, as far as that is known, including memory that the mover is still moving. */
void nm_home_stage_end_migration(struct nm_daemon *daemon, const struct nm_home_state *state,
				 bool rolls_back);
/* Returns whether the node reclaims memory, which delays its users, so that nothing must be moved
 * there now. */
bool nm_home_stage_is_reclaimed(struct nm_daemon *daemon, unsigned node);
/* Hands memory to the mover if its migration is worth the cost, in descending order of lost time
 * per byte. */
void nm_home_stage_migrate(struct nm_daemon *daemon, double interval_s);

#endif
