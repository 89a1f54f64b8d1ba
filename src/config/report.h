/* SPDX-License-Identifier: MIT */
/* Collects what is wrong with a configuration, as sentences that begin with file and line. */
#ifndef NM_CONFIG_REPORT_H
#define NM_CONFIG_REPORT_H

#include "numa-migrd/config.h"

struct nm_report {
	const char *file;
	struct nm_config_errors *errors;
	size_t count;
	bool out_of_memory;
};

/* Adds one error (line 0: of the whole file). Beyond a hundred they are only counted. */
void nm_report_error(struct nm_report *report, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* 0 when nothing was wrong, else -EINVAL or -ENOMEM; tells how many errors were only counted. */
int nm_report_result(struct nm_report *report);

#endif
