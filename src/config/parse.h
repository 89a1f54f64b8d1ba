/* SPDX-License-Identifier: MIT */
/* Definitions shared by the parts of the parser. */
#ifndef NM_CONFIG_PARSE_H
#define NM_CONFIG_PARSE_H

#include <libconfig.h>

#include "numa-migrd/config.h"

/* ---- report.c: errors, as sentences that begin with file and line ---- */

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

/* ---- scan.c: prepares the text for libconfig ---- */

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

/* ---- parse.c, targets.c, combinations.c: the values ---- */

/* Reports the value found and the values allowed at `path` ("threads.n"). */
void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed);

/* Parses one of the target lists, and reports errors. `name` is "include" or "exclude". */
void nm_targets_parse(struct nm_report *report, const char *name, const config_setting_t *list,
		      struct nm_target_list *ret);
void nm_targets_clear(struct nm_target_list *list);

/* Returns whether any pattern names a command, unit, slice or cgroup other than "*". */
bool nm_targets_has_criterion(const struct nm_target_list *list);

/* Checks rules that involve several settings; an invalid setting counts with its default. */
void nm_config_check_combinations(struct nm_report *report, const struct nm_config *config,
				  const config_t *file);

#endif
