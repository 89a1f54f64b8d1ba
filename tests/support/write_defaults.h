/* SPDX-License-Identifier: MIT */
/* Writes conf/numa-migrd.conf: each setting with a comment and its default. */
#ifndef NM_TEST_WRITE_DEFAULTS_H
#define NM_TEST_WRITE_DEFAULTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/config/table.h"

#define COLUMNS 100U
#define TAB 8U

static const char header[] =
	"# Configuration of numa-migrd(8). numa-migrd.conf(5) describes all settings.\n"
	"# The values are the defaults: to change one, remove the # before the setting.\n"
	"# Then run: numa-migrd --check-config && systemctl reload numa-migrd\n";

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
		(void)fprintf(out, "patterns of command, unit, slice, cgroup and user");
	else
		(void)fprintf(out, "%s to %s%s", setting->low, setting->high,
			      setting->power_of_two ? ", a power of two" : "");
	if (setting->paper && setting->group[0]) {
		(void)fprintf(out, "; paper: ");
		write_value(out, setting, setting->paper);
	}
}

/* Writes the text as comment lines of at most COLUMNS characters. */
static void write_comment(FILE *out, const char *indent, const char *text)
{
	size_t used = 0, most = COLUMNS - (indent[0] ? TAB : 0);
	for (const char *word = text; *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");
		if (used == 0 || used + 1 + length > most) {
			(void)fprintf(out, "%s%s#", used ? "\n" : "", indent);
			used = 1;
		}
		(void)fprintf(out, " %.*s", (int)length, word);
		used += 1 + length;
		word += length;
	}
	(void)fputc('\n', out);
}

static void write_heading(FILE *out, const struct nm_setting *setting)
{
	for (size_t i = 0; i < nm_setting_heading_count; i++) {
		const struct nm_setting_heading *heading = &nm_setting_headings[i];
		if (strcmp(heading->group, setting->group) == 0 &&
		    strcmp(heading->first, setting->name) == 0)
			(void)fprintf(out, "\n\t# ---- %s ----\n", heading->text);
	}
}

static char *range_of(const struct nm_setting *setting)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	write_range(out, setting);
	(void)fclose(out);
	return text;
}

/* The range is on a line of its own unless everything fits on one line. */
static void write_description(FILE *out, const char *indent, const struct nm_setting *setting)
{
	char *range = range_of(setting), whole[1024];
	int length = snprintf(whole, sizeof(whole), "%s. Allowed: %s.", setting->meaning, range);
	if (length + 2 <= (int)(COLUMNS - TAB)) {
		write_comment(out, indent, whole);
	} else {
		whole[strlen(setting->meaning) + 1] = '\0';
		write_comment(out, indent, whole);
		write_comment(out, indent, whole + strlen(whole) + 1);
	}
	free(range);
}

static void write_setting(FILE *out, const struct nm_setting *setting)
{
	const char *indent = setting->group[0] ? "\t" : "";
	write_heading(out, setting);
	write_description(out, indent, setting);
	(void)fprintf(out, "%s#%s = ", indent, setting->name);
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
