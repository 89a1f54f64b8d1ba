/* SPDX-License-Identifier: MIT */
/* Definitions shared by the parts of the parser. */
#ifndef NM_CONFIG_PARSE_H
#define NM_CONFIG_PARSE_H

#include <libconfig.h>

#include "numa-migrd/config.h"
#include "settings.h"

#define NM_SETTING_NAME_BYTES 128 /* of "group.name" */

/* ---- errors.c: errors, as sentences that begin with file and line ---- */

struct nm_report {
	const char *file;
	struct nm_config_errors *errors, *warnings;
	size_t count;
};

/* Adds one error (line 0: the whole file). More than a hundred errors are only counted. */
void nm_report_error(struct nm_report *report, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for what is valid and has no effect. Further ones than a hundred are dropped. */
void nm_report_warning(struct nm_report *report, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns 0 without errors, otherwise -EINVAL. Reports the number of errors that were
 * only counted. */
int nm_report_result(struct nm_report *report);

/* ---- check.c: the text, before libconfig ---- */

/*
 * Refuses, with one error in `report`, what libconfig would follow (@include) or change silently:
 * bytes that are not UTF-8, NUL bytes, whole numbers beyond 2^31, infinite numbers, and comments
 * without an end. Names the line of a bracket that is not closed. The text ends with a NUL. Returns
 * 0 or -EINVAL.
 */
int nm_check_text(struct nm_report *report, const char *text, size_t length);

/* ---- syntax.c ---- */

/* Reports the syntax error that libconfig found in the text, and the right notation if it is known.
 */
void nm_syntax_report(struct nm_report *report, const config_t *tree, const char *text,
		      size_t length);

/* ---- value.c ---- */

/* Validates the value and stores it in `config` (nothing for TARGETS). Returns 0 or -EINVAL. */
int nm_setting_assign(const struct nm_setting *setting, const config_setting_t *value,
		      struct nm_config *config);

/* Describes the allowed values, as text that follows "allowed: ". */
void nm_setting_allowed(const struct nm_setting *setting, char *out, size_t out_size);

/* ---- parse.c, targets.c, combinations.c: the values ---- */

/* The files of a configuration as trees, in their order; the last one is that of the parameters. */
struct nm_config_tree {
	const char *name;
	bool parameters;
	config_t tree;
};
struct nm_config_trees {
	struct nm_config_tree *items;
	size_t count;
};

/* Reports the value found and the values allowed at `path` ("threads.policy"). */
void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed);

/* Replaces one of the target lists by the one in the file, and reports errors. `name` is "include"
 * or "exclude". */
void nm_targets_parse(struct nm_report *report, const char *name, const config_setting_t *list,
		      struct nm_target_list *ret);
void nm_targets_clear(struct nm_target_list *list);

/* Checks rules that involve several settings; an invalid setting counts with its default. */
void nm_config_check_combinations(struct nm_report *report, const struct nm_config *config,
				  const struct nm_config_trees *trees);

/* warnings.c. Warns of valid settings that have no effect. */
void nm_config_warn(struct nm_report *report, const struct nm_config *config,
		    const struct nm_config_trees *trees);

/* Returns the value in the last file that contains it, and its file; NULL: none does. */
const config_setting_t *nm_trees_lookup(const struct nm_config_trees *trees, const char *path,
					const char **ret_file);

#endif
