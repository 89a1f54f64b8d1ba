/* SPDX-License-Identifier: MIT */
/* What the parts of the parser share. */
#ifndef NM_CONFIG_PARSE_H
#define NM_CONFIG_PARSE_H

#include <libconfig.h>

#include "report.h"

#define NM_FOUND_BYTES 96

/* A value as a message shows it: a number as the file spells it, a string in quotes, "a group", …
 */
void nm_describe_value(const config_setting_t *value, char out[NM_FOUND_BYTES]);

/* Tells what was found and what is allowed at `path` ("threads.n"). */
void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed);

/* Fills one of the targets lists; what is wrong goes to report. `name`: "include" or "exclude". */
void nm_targets_parse(struct nm_report *report, const char *name, const config_setting_t *list,
		      struct nm_target_list *ret);
void nm_targets_clear(struct nm_target_list *list);

/* Does the pattern name a command, unit, slice or cgroup, other than "*"? */
bool nm_target_is_named(const struct nm_target *target);
/* Does any? */
bool nm_targets_name_something(const struct nm_target_list *list);

/* Rules over more than one setting; one that was wrong by itself counts with its default. */
void nm_config_check_together(struct nm_report *report, const struct nm_config *config,
			      const config_t *file);

/* Steps (insert, delete, replace one byte) from one name to the other. */
unsigned nm_name_distance(const char *one, const char *other);

#endif
