/* SPDX-License-Identifier: MIT */
/* Reads a configuration as a whole, or reports all of its errors. */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "parse.h"
#include "table.h"

#define MAX_BYTES ((size_t)1 << 20)
#define NAME_MAX_COMPARED 48
#define PATH_BYTES 128
#define FOUND_BYTES 96

struct parse {
	struct nm_report *report;
	struct nm_config *config;
};

/* The n-th number of the tree is the n-th number of the file: attaches its text. */
static size_t attach_numbers(const config_setting_t *parent, const struct nm_scan *scan,
			     size_t next)
{
	for (int i = 0; i < config_setting_length(parent); i++) {
		config_setting_t *value = config_setting_get_elem(parent, (unsigned)i);
		if (config_setting_is_aggregate(value))
			next = attach_numbers(value, scan, next);
		else if (config_setting_is_number(value) && next < scan->count)
			config_setting_set_hook(value, scan->numbers[next++].text);
	}
	return next;
}

/* Returns the text for nm_setting_assign(), or NULL for a value of the wrong type. */
static const char *value_text(const struct nm_setting *setting, const config_setting_t *value)
{
	switch (setting->type) {
	case NM_SETTING_BOOL:
		if (config_setting_type(value) != CONFIG_TYPE_BOOL)
			return NULL;
		return config_setting_get_bool(value) ? "true" : "false";
	case NM_SETTING_COUNT:
	case NM_SETTING_REAL:
		return config_setting_is_number(value) ? config_setting_get_hook(value) : NULL;
	case NM_SETTING_CHOICE:
	case NM_SETTING_PMU:
	case NM_SETTING_EVENT:
	case NM_SETTING_PATH:
		return config_setting_get_string(value);
	case NM_SETTING_TARGETS:
		return config_setting_is_list(value) || config_setting_is_array(value) ? "" : NULL;
	}
	return NULL;
}

/* Formats a value for a message: a number as in the file, a string in quotes, "a group", … */
static void describe_value(const config_setting_t *value, char out[FOUND_BYTES])
{
	char text[FOUND_BYTES - 2];
	switch (config_setting_type(value)) {
	case CONFIG_TYPE_GROUP:
		(void)snprintf(out, FOUND_BYTES, "a group");
		break;
	case CONFIG_TYPE_ARRAY:
	case CONFIG_TYPE_LIST:
		(void)snprintf(out, FOUND_BYTES, "a list");
		break;
	case CONFIG_TYPE_BOOL:
		(void)snprintf(out, FOUND_BYTES, "%s",
			       config_setting_get_bool(value) ? "true" : "false");
		break;
	case CONFIG_TYPE_STRING:
		(void)nm_escape(text, sizeof(text), config_setting_get_string(value),
				strlen(config_setting_get_string(value)));
		(void)snprintf(out, FOUND_BYTES, "\"%s\"", text);
		break;
	default:
		(void)snprintf(out, FOUND_BYTES, "%s",
			       (const char *)config_setting_get_hook(value));
		break;
	}
}

void nm_report_value(struct nm_report *report, const char *path, const config_setting_t *value,
		     const char *allowed)
{
	char found[FOUND_BYTES];
	describe_value(value, found);
	nm_report_error(report, config_setting_source_line(value), "%s: found %s, allowed: %s",
			path, found, allowed);
}

static void write_path(char path[PATH_BYTES], const char *group, const char *name)
{
	(void)snprintf(path, PATH_BYTES, "%.*s%s%.*s", NAME_MAX_COMPARED, group,
		       group[0] ? "." : "", NAME_MAX_COMPARED, name);
}

static void report_setting(const struct parse *parse, const struct nm_setting *setting,
			   const config_setting_t *value)
{
	char path[PATH_BYTES], allowed[256];
	write_path(path, setting->group, setting->name);
	nm_setting_allowed(setting, allowed, sizeof(allowed));
	nm_report_value(parse->report, path, value, allowed);
}

/* Returns the edit distance (insertions, deletions, replacements) between two names. */
static unsigned name_distance(const char *one, const char *other)
{
	unsigned row[NAME_MAX_COMPARED + 1];
	size_t width = strnlen(other, NAME_MAX_COMPARED), height = strnlen(one, NAME_MAX_COMPARED);
	for (unsigned j = 0; j <= width; j++)
		row[j] = j;
	for (unsigned i = 1; i <= height; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			unsigned replaced = diagonal + (one[i - 1] != other[j - 1]);
			unsigned shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
			diagonal = row[j];
			row[j] = replaced < shorter ? replaced : shorter;
		}
	}
	return row[width];
}

struct nearest {
	const char *group, *name;
	unsigned distance;
};

/* The name of a setting weighs more than its group. */
static void compare_name(struct nearest *nearest, const char *group, const char *name,
			 const char *known_group, const char *known_name)
{
	unsigned distance =
		2 * name_distance(name, known_name) + (strcmp(group, known_group) != 0 ? 1 : 0);
	if (distance < nearest->distance)
		*nearest = (struct nearest){known_group, known_name, distance};
}

static void report_unknown(const struct parse *parse, const char *group,
			   const config_setting_t *value)
{
	const char *name = config_setting_name(value);
	struct nearest nearest = {"", "", UINT32_MAX};
	char path[PATH_BYTES], known[PATH_BYTES];
	write_path(path, group, name);
	for (size_t i = 0; i < nm_setting_count; i++)
		compare_name(&nearest, group, name, nm_settings[i].group, nm_settings[i].name);
	for (size_t i = 0; i < nm_setting_group_count; i++)
		compare_name(&nearest, group, name, "", nm_setting_groups[i].name);
	write_path(known, nearest.group, nearest.name);
	nm_report_error(parse->report, config_setting_source_line(value),
			"%s: unknown setting; the nearest known one is %s", path, known);
}

static void take_setting(const struct parse *parse, const struct nm_setting *setting,
			 const config_setting_t *value)
{
	const char *text = value_text(setting, value);
	if (!text || nm_setting_assign(setting, text, parse->config) < 0) {
		report_setting(parse, setting, value);
		return;
	}
	if (setting->type == NM_SETTING_EVENT && text[0])
		parse->config->sampling.event_line = config_setting_source_line(value);
	if (setting->type == NM_SETTING_TARGETS)
		nm_targets_parse(parse->report, setting->name, value,
				 (void *)((char *)parse->config + setting->offset));
}

static void take_group(const struct parse *parse, const config_setting_t *group)
{
	const char *name = config_setting_name(group);
	if (!config_setting_is_group(group)) {
		nm_report_value(parse->report, name, group, "a group of settings in { }");
		return;
	}
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *value = config_setting_get_elem(group, (unsigned)i);
		const struct nm_setting *setting =
			nm_setting_find(name, config_setting_name(value));
		if (setting)
			take_setting(parse, setting, value);
		else
			report_unknown(parse, name, value);
	}
}

static void take_defaults(struct nm_config *config, enum nm_profile profile)
{
	for (size_t i = 0; i < nm_setting_count; i++) {
		const struct nm_setting *setting = &nm_settings[i];
		bool paper = profile == NM_PROFILE_PAPER && setting->paper;
		(void)nm_setting_assign(setting, paper ? setting->paper : setting->shipped, config);
	}
}

/* The profile is applied first, regardless of its position: explicit settings override it. */
static void take_root(const struct parse *parse, const config_setting_t *root)
{
	const config_setting_t *profile = config_setting_get_member(root, "profile");
	take_defaults(parse->config, NM_PROFILE_SHIPPED);
	if (profile)
		take_setting(parse, nm_setting_find("", "profile"), profile);
	take_defaults(parse->config, parse->config->profile);
	for (int i = 0; i < config_setting_length(root); i++) {
		const config_setting_t *value = config_setting_get_elem(root, (unsigned)i);
		if (value == profile)
			continue;
		if (nm_setting_group_find(config_setting_name(value)))
			take_group(parse, value);
		else
			report_unknown(parse, "", value);
	}
}

static void report_syntax(struct nm_report *report, const config_t *file, const char *text,
			  size_t length)
{
	unsigned line = (unsigned)config_error_line(file);
	const char *what = config_error_text(file), *start = text, *end = text + length;
	char shown[FOUND_BYTES];
	for (unsigned i = 1; i < line && start < end; i++) {
		const char *newline = memchr(start, '\n', (size_t)(end - start));
		start = newline ? newline + 1 : end;
	}
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	const char *newline = memchr(start, '\n', (size_t)(end - start));
	(void)nm_escape(shown, sizeof(shown), start, (size_t)((newline ? newline : end) - start));
	nm_report_error(report, line, "%s, in this line or just before it: %s",
			what ? what : "syntax error", shown);
}

static int parse_structure(struct nm_report *report, const config_t *file,
			   const struct nm_scan *scan, struct nm_config **ret)
{
	nm_auto(nm_config_freep) struct nm_config *config = calloc(1, sizeof(*config));
	if (!config)
		return -ENOMEM;
	struct parse parse = {.report = report, .config = config};
	const config_setting_t *root = config_root_setting(file);
	if (attach_numbers(root, scan, 0) != scan->count) {
		nm_report_error(report, 0, "unexpected number");
		return -EINVAL;
	}
	take_root(&parse, root);
	nm_config_check_combinations(report, config, file);
	int r = nm_report_result(report);
	if (r == 0)
		*ret = NM_TAKE(config);
	return r;
}

int nm_config_parse(const char *name, const char *text, size_t length,
		    struct nm_config_errors *errors, struct nm_config **ret)
{
	struct nm_report report = {.file = name, .errors = errors};
	nm_auto(nm_scan_clear) struct nm_scan scan = {0};
	config_t file;
	int r = nm_scan_text(&report, text, length, &scan);
	if (r < 0)
		return report.out_of_memory ? -ENOMEM : r;
	config_init(&file);
	if (config_read_string(&file, scan.structure)) {
		r = parse_structure(&report, &file, &scan, ret);
	} else {
		report_syntax(&report, &file, text, length);
		r = nm_report_result(&report);
	}
	config_destroy(&file);
	return r;
}

/* ---- the file ---- */

static void report_unread(struct nm_report *report, int error)
{
	switch (error) {
	case -ELOOP:
		nm_report_error(report, 0,
				"is a symbolic link, which is not accepted: replace it with the "
				"file");
		break;
	case -EMEDIUMTYPE:
		nm_report_error(report, 0, "is not a regular file");
		break;
	case -EPERM:
		nm_report_error(report, 0,
				"must belong to root or to the user of numa-migrd, and be writable "
				"by its owner only (chown root FILE; chmod go-w FILE)");
		break;
	default:
		nm_report_error(report, 0, "cannot be read: %s%s", strerrordesc_np(-error),
				error == -EFBIG ? " (at most 1 MiB)" : "");
	}
}

int nm_config_load(const char *path, struct nm_config_errors *errors, struct nm_config **ret)
{
	struct nm_report report = {.file = path, .errors = errors};
	nm_autofree char *text = malloc(MAX_BYTES + 1);
	if (!text)
		return -ENOMEM;
	int length = nm_read_trusted(path, text, MAX_BYTES + 1);
	if (length < 0) {
		report_unread(&report, length);
		return report.out_of_memory ? -ENOMEM : length;
	}
	return nm_config_parse(path, text, (size_t)length, errors, ret);
}

/* ---- defaults ---- */

int nm_config_default(struct nm_config **ret)
{
	struct nm_config *config = calloc(1, sizeof(*config));
	if (!config)
		return -ENOMEM;
	take_defaults(config, NM_PROFILE_SHIPPED);
	*ret = config;
	return 0;
}

void nm_config_free(struct nm_config *config)
{
	if (!config)
		return;
	nm_targets_clear(&config->targets.include);
	nm_targets_clear(&config->targets.exclude);
	free(config);
}
