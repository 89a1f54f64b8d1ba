/* SPDX-License-Identifier: MIT */
/* numa-migrd --list-events [--pmu NAME] (numa-migrd(8)); part of sample/. */
#ifndef NUMA_MIGRD_LIST_EVENTS_H
#define NUMA_MIGRD_LIST_EVENTS_H

#include <stdio.h>

#include "numa-migrd/config.h"
#include "numa-migrd/platform.h"

/* Prints an entry of the event table as libpfm4 encodes it. For an unknown name it prints the known
 * names and returns -ENOENT. */
int nm_list_events_table(FILE *out, const char *name);

/*
 * Prints errors in sampling.event of the file `path` that depend on the CPU of the machine below
 * the open directory `root`, and that parsing does not find. Returns 0 or -EINVAL. Called by main()
 * for --check-config.
 */
int nm_list_events_check(FILE *out, int root, const char *path, const struct nm_config *config);

/* Prints each sampling source of this machine with its events, and the kernel's response to opening
 * each. Called by main(). */
void nm_list_events_here(FILE *out, struct nm_platform *platform, const struct nm_config *config);

#endif
