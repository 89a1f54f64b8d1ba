/* SPDX-License-Identifier: MIT */
/* numa-migrd --list-events [--pmu NAME] (numa-migrd(8)); part of sample/. */
#ifndef NUMA_MIGRD_LIST_EVENTS_H
#define NUMA_MIGRD_LIST_EVENTS_H

#include <stdio.h>

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"

/* Prints an entry of the event table as libpfm4 encodes it, or the known names (-ENOENT). */
int nm_list_events_table(FILE *out, const char *name);

/*
 * Prints what is wrong with sampling.event of the file `path` for the CPU of the machine below the
 * open directory `root`, which reading the file does not find out: -EINVAL, or 0. Main, for
 * --check-config.
 */
int nm_list_events_check(FILE *out, int root, const char *path, const struct nm_config *config);

/* Prints each source of this machine with its events, and what the kernel says to each. Main. */
void nm_list_events_here(FILE *out, struct nm_platform *platform, const struct nm_config *config);

#endif
