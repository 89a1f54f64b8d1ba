/* SPDX-License-Identifier: MIT */
/* Columns of the lists of the bus, shared by the commands and top. */
#ifndef NM_CTL_ROWS_H
#define NM_CTL_ROWS_H

#include "cell.h"

#define NM_PROCESS_COLUMNS 19
#define NM_THREAD_COLUMNS 17
#define NM_REGION_COLUMNS 7
#define NM_DECISION_COLUMNS 11

extern const struct nm_column nm_process_columns[NM_PROCESS_COLUMNS];
extern const struct nm_column nm_thread_columns[NM_THREAD_COLUMNS];
extern const struct nm_column nm_region_columns[NM_REGION_COLUMNS];
extern const struct nm_column nm_decision_columns[NM_DECISION_COLUMNS];

#endif
