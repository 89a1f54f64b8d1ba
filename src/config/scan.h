/* SPDX-License-Identifier: MIT */
/*
 * Processes the text of the file before libconfig. libconfig silently changes numbers (5000000000
 * becomes 705032704, 08 becomes 8, 1e999 infinity), follows @include, stops at a NUL, lets an
 * unterminated comment extend to the end, and differs between versions. Therefore numbers are
 * parsed here, and libconfig gets only the structure.
 */
#ifndef NM_CONFIG_SCAN_H
#define NM_CONFIG_SCAN_H

#include "report.h"

#define NM_NUMBER_BYTES 64

/* A number as in the file (truncated and marked if excessively long), in the order of the file. */
struct nm_number {
	char text[NM_NUMBER_BYTES];
};

struct nm_scan {
	char *structure; /* the text, NUL-terminated, with each number replaced by 0 */
	struct nm_number *numbers;
	size_t count;
};

/* Fills *ret and returns 0; or returns -EINVAL with one error in `report`, or -ENOMEM. */
int nm_scan_text(struct nm_report *report, const char *text, size_t length, struct nm_scan *ret);
void nm_scan_clear(struct nm_scan *scan);

#endif
