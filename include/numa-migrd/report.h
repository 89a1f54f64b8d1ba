/* SPDX-License-Identifier: MIT */
/*
 * A recording as one page to look at: HTML that is XML too, with its plots inside (SVG), which asks
 * nobody for anything and runs nothing. docs/report.md tells how to read it.
 */
#ifndef NUMA_MIGRD_REPORT_H
#define NUMA_MIGRD_REPORT_H

#include <stdio.h>

#include "numa-migrd/recording.h"

/*
 * Writes the page of a recording, which is read twice from its beginning. `name`: the file's, any
 * text. Memory and the page are bounded, however long the recording and however many threads: what
 * is left out is counted on the page. Returns 0; what nm_recording_next() returns on failure, with
 * its reason in nm_recording_error(); -ENOMEM; -EIO: `out` took not all of it. Command.
 */
int nm_report_write(struct nm_recording *recording, const char *name, FILE *out);

#endif
