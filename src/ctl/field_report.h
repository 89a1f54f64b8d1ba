/* SPDX-License-Identifier: MIT */
/* The report that an administrator sends from a real machine (docs/field-reports.md). */
#ifndef NM_CTL_FIELD_REPORT_H
#define NM_CTL_FIELD_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "findings.h"

/* NULL is left out. */
struct nm_report_source {
	const char *kernel; /* as uname -r */
	const char *cpu;    /* its model */
	const json_t *facts, *nodes;
	const struct nm_findings *findings;
	const json_t *document; /* of the service */
};

/* Composes the report, which the caller releases. Without `names` it contains no text of the
 * document but words that the service chooses from a list, and numbers in place of the names of
 * programs, units and users. */
json_t *nm_report_compose(const struct nm_report_source *source, bool names);

/* Creates the file, which only its owner may read. Returns 0, -EEXIST if there is one already, or
 * another negative errno; then no file remains. */
int nm_report_write(const char *path, const json_t *report);

#endif
