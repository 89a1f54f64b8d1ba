/* SPDX-License-Identifier: MIT */
/* Writes each setting with its default and a line that describes it: conf/numa-migrd.conf. */
#ifndef NM_TEST_WRITE_DEFAULTS_H
#define NM_TEST_WRITE_DEFAULTS_H

#include <stdio.h>
#include <string.h>

#include "../../src/config/table.h"

static const char header[] =
	"# Configuration of numa-migrd(8); all about each setting is in numa-migrd.conf(5).\n"
	"# Every setting is shown with its default: remove the # before a setting to change it.\n"
	"# `numa-migrd --check-config` tells what is wrong; `systemctl reload numa-migrd` "
	"applies.\n";

static void write_value(FILE *out, const struct nm_setting *setting, const char *value)
{
	const char *quote = nm_setting_is_text(setting) ? "\"" : "";
	(void)fprintf(out, "%s%s%s", quote, value, quote);
}

static void write_range(FILE *out, const struct nm_setting *setting)
{
	if (setting->type == NM_SETTING_CHOICE)
		for (unsigned i = 0; setting->choices[i]; i++)
			(void)fprintf(out, "%s\"%s\"", i == 0 ? "" : " | ", setting->choices[i]);
	else if (setting->type == NM_SETTING_BOOL)
		(void)fprintf(out, "true | false");
	else if (setting->type == NM_SETTING_PMU)
		(void)fprintf(out, "\"\" | \"name/term=value,.../\"");
	else if (setting->type == NM_SETTING_EVENT)
		(void)fprintf(out, "\"\" | \"NAME:UMASK:...\"");
	else if (setting->type == NM_SETTING_PATH)
		(void)fprintf(out, "\"\" | \"/...\"");
	else if (setting->type == NM_SETTING_TARGETS)
		(void)fprintf(out, "{ command, unit, slice, cgroup, user }, ...");
	else
		(void)fprintf(out, "%s to %s%s", setting->low, setting->high,
			      setting->power_of_two ? ", a power of two" : "");
	if (setting->paper && setting->group[0]) {
		(void)fprintf(out, "; paper: ");
		write_value(out, setting, setting->paper);
	}
}

static void write_setting(FILE *out, const struct nm_setting *setting)
{
	const char *indent = setting->group[0] ? "\t" : "";
	(void)fprintf(out, "%s# %s (", indent, setting->meaning);
	write_range(out, setting);
	(void)fprintf(out, ").\n%s#%s = ", indent, setting->name);
	write_value(out, setting, setting->shipped);
	(void)fprintf(out, ";\n");
}

static void write_group(FILE *out, const char *name)
{
	for (size_t i = 0; i < nm_setting_count; i++)
		if (strcmp(nm_settings[i].group, name) == 0)
			write_setting(out, &nm_settings[i]);
}

static void write_defaults(FILE *out)
{
	(void)fprintf(out, "%s\n", header);
	write_group(out, "");
	for (size_t i = 0; i < nm_setting_group_count; i++) {
		const struct nm_setting_group *group = &nm_setting_groups[i];
		(void)fprintf(out, "\n# %s\n%s:\n{\n", group->meaning, group->name);
		write_group(out, group->name);
		(void)fprintf(out, "};\n");
	}
}

#endif
