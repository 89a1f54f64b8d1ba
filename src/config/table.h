/* SPDX-License-Identifier: MIT */
/* Every setting as a row of data. Parsing, validation, defaults, messages and the shipped file are
 * all derived from these rows, and tests compare the manual page with them. */
#ifndef NM_CONFIG_TABLE_H
#define NM_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "numa-migrd/config.h"

enum nm_setting_type {
	NM_SETTING_BOOL,
	NM_SETTING_COUNT,  /* uint64_t */
	NM_SETTING_REAL,   /* double */
	NM_SETTING_CHOICE, /* an enum */
	NM_SETTING_PMU,	   /* char[NM_CONFIG_PMU_BYTES] */
	NM_SETTING_EVENT,  /* char[NM_CONFIG_EVENT_BYTES] */
	NM_SETTING_PATH,   /* char[NM_CONFIG_PATH_BYTES] */
	NM_SETTING_TARGETS,
};

/* Values are text as in the file (a choice without quotes), so that one parser handles them all. */
struct nm_setting {
	const char *group; /* "": top level */
	const char *name;
	enum nm_setting_type type;
	size_t offset; /* in struct nm_config */
	const char *shipped;
	const char *paper; /* NULL: the same as `shipped` */
	const char *low, *high;
	const char *const *choices; /* NULL-terminated, in the order of the enum */
	bool power_of_two;
	const char *meaning;
};

struct nm_setting_group {
	const char *name;
	const char *meaning;
};

/* A title in the shipped file, before the setting `first`. */
struct nm_setting_heading {
	const char *group;
	const char *first;
	const char *text;
};

extern const struct nm_setting nm_settings[];
extern const size_t nm_setting_count;
extern const struct nm_setting_group nm_setting_groups[];
extern const size_t nm_setting_group_count;
extern const struct nm_setting_heading nm_setting_headings[];
extern const size_t nm_setting_heading_count;

/* Returns whether its value is written in quotes. */
static inline bool nm_setting_is_text(const struct nm_setting *setting)
{
	return setting->type == NM_SETTING_CHOICE || setting->type == NM_SETTING_PMU ||
	       setting->type == NM_SETTING_EVENT || setting->type == NM_SETTING_PATH;
}

const struct nm_setting *nm_setting_find(const char *group, const char *name);
const struct nm_setting_group *nm_setting_group_find(const char *name);

/* Validates the text and stores it in `config` (nothing for TARGETS). Returns 0 or -EINVAL. */
int nm_setting_assign(const struct nm_setting *setting, const char *text, struct nm_config *config);

/* Describes the allowed values, as text that follows "allowed: ". */
void nm_setting_allowed(const struct nm_setting *setting, char *out, size_t out_size);

/* Parse integers and reals as written in the file. Return 0 or -EINVAL. */
int nm_number_parse_count(const char *text, uint64_t *ret);
int nm_number_parse_real(const char *text, double *ret);

#endif
