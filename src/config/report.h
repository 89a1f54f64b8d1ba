/* SPDX-License-Identifier: MIT */
/* Collects errors of a configuration, as sentences that begin with file and line. */
#ifndef NM_CONFIG_REPORT_H
#define NM_CONFIG_REPORT_H

#include "numa-migrd/config.h"

struct nm_report {
	const char *file;
	struct nm_config_errors *errors;
	size_t count;
	bool out_of_memory;
};

/* Adds one error (line 0: the whole file). More than a hundred errors are only counted. */
void nm_report_error(struct nm_report *report, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns 0 without errors, otherwise -EINVAL or -ENOMEM. Reports the number of errors that were
 * only counted. */
int nm_report_result(struct nm_report *report);

#endif
