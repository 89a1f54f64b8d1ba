/* SPDX-License-Identifier: MIT */
/* Every setting and every parameter as a row of data. Parsing, validation and messages are derived
 * from these rows, and tests compare the manual pages with them. */
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
	NM_SETTING_FLAGS,  /* unsigned, a bit for each choice */
	NM_SETTING_EVENT,  /* sampling.pmu or sampling.event */
	NM_SETTING_PATH,   /* char[NM_CONFIG_PATH_BYTES] */
	NM_SETTING_TARGETS,
};

struct nm_setting {
	const char *group; /* "": a parameter of policy_rules.c */
	const char *name;
	enum nm_setting_type type;
	size_t offset; /* in struct nm_config */
	double low, high;
	const char *const *choices; /* NULL-terminated, in the order of the enum */
	bool parameter;		    /* stands among the parameters, in its group */
};

extern const struct nm_setting nm_settings[];
extern const size_t nm_setting_count;
extern const struct nm_setting nm_parameters[];
extern const size_t nm_parameter_count;

/* Names of `threads.policy` after those of enum nm_thread_policy: policies with the rules of their
 * papers, from the policy NM_POLICY_LBMA on. */
#define NM_POLICY_PAPER_FIRST NM_POLICY_MAX

/* Returns the setting or, for group "", the parameter; NULL if there is none. */
const struct nm_setting *nm_setting_find(const char *group, const char *name);
/* Returns the place of a row in nm_settings and, after these, nm_parameters. */
size_t nm_setting_index(const struct nm_setting *setting);
bool nm_setting_is_group(const char *name);

/* Stores the defaults, without the rules of a policy. */
void nm_setting_defaults(struct nm_config *config);

#endif
