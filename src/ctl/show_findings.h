/* SPDX-License-Identifier: MIT */
/* Prints findings (findings.h) as text or as JSON. */
#ifndef NM_CTL_SHOW_FINDINGS_H
#define NM_CTL_SHOW_FINDINGS_H

#include <jansson.h>
#include <stdio.h>

#include "ctl.h"
#include "findings.h"

/*
 * Prints the first `leading` findings, then the others in descending order of severity, in lines of
 * at most `width` columns if possible. For findings that are fine, only that is printed. The last
 * line has the counts.
 */
void nm_ctl_write_findings(FILE *out, const struct nm_style *style,
			   const struct nm_findings *findings, size_t leading, size_t width);

/* Returns {"version": 1, "findings": [...], "counts": {...}}; NULL if memory is short. */
json_t *nm_ctl_findings_document(const struct nm_findings *findings);

/* Prints either form, with the terminal's width. Returns the exit status: 1 if they cannot be
 * written. */
int nm_ctl_show_findings(const struct nm_ctl *ctl, const struct nm_findings *findings,
			 size_t leading);

#endif
