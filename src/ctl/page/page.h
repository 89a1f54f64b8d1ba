/* SPDX-License-Identifier: MIT */
/* Renders a recording as one page: XHTML-compatible HTML with embedded plots (SVG), which loads no
 * other resources and contains no scripts. docs/report.md explains how to read it. */
#ifndef NM_CTL_PAGE_PAGE_H
#define NM_CTL_PAGE_PAGE_H

#include <stdio.h>

#include "numa-migrd/recording.h"

/*
 * Writes the page of a recording, which is read twice from its beginning. `name` is the name of the
 * file and may be any text. The size of the page is bounded, regardless of the length of the
 * recording and the number of threads; it states the amount that was omitted. Memory use grows with
 * the number of threads, not with the length. Returns 0; the
 * error of nm_recording_next(), described by nm_recording_error(); -ENOMEM; or -EIO if writing to
 * `out` failed. Called by the command.
 */
int nm_report_write(struct nm_recording *recording, const char *name, FILE *out);

#endif
