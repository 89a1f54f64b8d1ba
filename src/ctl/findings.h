/* SPDX-License-Identifier: MIT */
/* Findings (findings.h) for people and for programs. */
#ifndef NM_CTL_FINDINGS_H
#define NM_CTL_FINDINGS_H

#include <jansson.h>
#include <stdio.h>

#include "ctl.h"
#include "numa-migrd/findings.h"

/*
 * The first `leading` of them, then the others with the worst first, in lines of at most `width`
 * columns where words allow it; of what is fine, only that it is. At the end how many there are.
 */
void nm_ctl_write_findings(FILE *out, const struct nm_style *style,
			   const struct nm_findings *findings, size_t leading, size_t width);

/* {"version": 1, "findings": [...], "counts": {...}}; NULL without memory. */
json_t *nm_ctl_findings_document(const struct nm_findings *findings);

/* One or the other, with the terminal's width. Exit status: 1 where they cannot
 * be written. */
int nm_ctl_show_findings(const struct nm_ctl *ctl, const struct nm_findings *findings,
			 size_t leading);

#endif
