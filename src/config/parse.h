/* SPDX-License-Identifier: MIT */
/* Definitions shared by the parts of the parser. */
#ifndef NM_CONFIG_PARSE_H
#define NM_CONFIG_PARSE_H

#include <libconfig.h>

#include "report.h"

#define NM_FOUND_BYTES 96

/* Formats a value for a message: a number as in the file, a string in quotes, "a group", … */
void nm_describe_value(const config_setting_t *value, char out[NM_FOUND_BYTES]);

/* Reports the value found and the values allowed at `path` ("threads.n"). */
void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed);

/* Parses one of the target lists, and reports errors. `name` is "include" or "exclude". */
void nm_targets_parse(struct nm_report *report, const char *name, const config_setting_t *list,
		      struct nm_target_list *ret);
void nm_targets_clear(struct nm_target_list *list);

/* Returns whether the pattern names a command, unit, slice or cgroup other than "*". */
bool nm_target_is_named(const struct nm_target *target);
/* Returns whether any pattern does. */
bool nm_targets_name_something(const struct nm_target_list *list);

/* Checks rules that involve several settings; an invalid setting counts with its default. */
void nm_config_check_together(struct nm_report *report, const struct nm_config *config,
			      const config_t *file);

/* Returns the edit distance (insertions, deletions, replacements) between two names. */
unsigned nm_name_distance(const char *one, const char *other);

#endif
