/* SPDX-License-Identifier: MIT */
/* Declarations shared by the files page_*.c. */
#ifndef NM_MOVER_PAGE_INTERNAL_H
#define NM_MOVER_PAGE_INTERNAL_H

#include "numa-migrd/page_stage.h"

/* ---- page_moves.c ---- */

/* Chooses pages, within the rate limit, and hands them to the mover. */
void nm_page_stage_move(struct nm_page_stage *stage, const struct nm_page_stage_input *input);
/* Hands over the pages that are to be rolled back, including those that did not fit before. */
void nm_page_stage_roll_back(struct nm_page_stage *stage, const struct nm_page_stage_input *input);

/* ---- page_results.c ---- */

/* Takes the finished batches from the mover. */
void nm_page_stage_collect(struct nm_page_stage *stage, const struct nm_page_stage_input *input);

#endif
