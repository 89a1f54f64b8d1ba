/* SPDX-License-Identifier: MIT */
/* Reads a configuration as a whole, or reports all of its errors. */
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "parse.h"

#define NAME_MAX_COMPARED 48

struct parse {
	struct nm_report *report;
	struct nm_config *config;
	bool parameters; /* within `parameters`, or the file is that of --parameters */
};

static void write_path(char path[NM_SETTING_NAME_BYTES], const char *group, const char *name)
{
	(void)snprintf(path, NM_SETTING_NAME_BYTES, "%.*s%s%.*s", NAME_MAX_COMPARED, group,
		       group[0] ? "." : "", NAME_MAX_COMPARED, name);
}

unsigned nm_name_distance(const char *one, const char *other)
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
		2 * nm_name_distance(name, known_name) + (strcmp(group, known_group) != 0 ? 1 : 0);
	if (distance < nearest->distance)
		*nearest = (struct nearest){known_group, known_name, distance};
}

static bool is_parameter(const struct nm_setting *setting)
{
	return setting->parameter || !setting->group[0];
}

/* Reports a parameter that stands among the settings, or the reverse. */
static void report_misplaced(const struct parse *parse, const struct nm_setting *setting,
			     const config_setting_t *value)
{
	unsigned line = config_setting_source_line(value);
	char path[NM_SETTING_NAME_BYTES];
	write_path(path, setting->group, setting->name);
	if (!is_parameter(setting))
		nm_report_error(parse->report, line,
				"%s: is a setting: write it outside of the parameters", path);
	else if (setting->group[0])
		nm_report_error(parse->report, line,
				"%s: is a parameter: write parameters: { %s: { %s = …; }; };", path,
				setting->group, setting->name);
	else
		nm_report_error(parse->report, line,
				"%s: is a parameter: write parameters: { %s = …; };", path,
				setting->name);
}

/* Reports a name that is not known here; it may be known in another place. */
static void report_unknown(const struct parse *parse, const char *group,
			   const config_setting_t *value)
{
	struct nearest nearest = {"", "", UINT32_MAX};
	const char *name = config_setting_name(value);
	char path[NM_SETTING_NAME_BYTES], known[NM_SETTING_NAME_BYTES];
	for (size_t i = 0; i < nm_setting_count + nm_parameter_count; i++) {
		const struct nm_setting *row = i < nm_setting_count
						       ? &nm_settings[i]
						       : &nm_parameters[i - nm_setting_count];
		if (is_parameter(row) == parse->parameters) {
			compare_name(&nearest, group, name, row->group, row->name);
			if (row->group[0])
				compare_name(&nearest, group, name, "", row->group);
		} else if (strcmp(row->name, name) == 0) {
			report_misplaced(parse, row, value);
			return;
		}
	}
	write_path(path, group, name);
	write_path(known, nearest.group, nearest.name);
	nm_report_error(parse->report, config_setting_source_line(value),
			"%s: unknown %s; the nearest known one is %s", path,
			parse->parameters ? "parameter" : "setting", known);
}

/* Returns the row of this name in this group, or the parameter without a group that was written
 * within one; NULL: there is none. */
static const struct nm_setting *find_row(const char *group, const char *name)
{
	const struct nm_setting *row = nm_setting_find(group, name);
	return row ? row : nm_setting_find("", name);
}

static void take_setting(const struct parse *parse, const struct nm_setting *setting,
			 const config_setting_t *value)
{
	struct nm_config *config = parse->config;
	if (nm_setting_assign(setting, value, config) < 0) {
		char path[NM_SETTING_NAME_BYTES], allowed[256];
		write_path(path, setting->group, setting->name);
		nm_setting_allowed(setting, allowed, sizeof(allowed));
		nm_report_value(parse->report, path, value, allowed);
		return;
	}
	char **place = &config->places[nm_setting_index(setting)];
	free(*place);
	nm_must_do(
		asprintf(place, "%s:%u", parse->report->file, config_setting_source_line(value)));
	if (setting->type == NM_SETTING_EVENT)
		(void)snprintf(config->sampling.event_place, sizeof(config->sampling.event_place),
			       "%s:%u", parse->report->file, config_setting_source_line(value));
	if (setting->type == NM_SETTING_PATH)
		(void)snprintf(config->metrics.place, sizeof(config->metrics.place), "%s:%u",
			       parse->report->file, config_setting_source_line(value));
	if (setting->type == NM_SETTING_TARGETS)
		nm_targets_parse(parse->report, setting->name, value,
				 (void *)((char *)config + setting->offset));
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
		const struct nm_setting *row = find_row(name, config_setting_name(value));
		if (!row)
			report_unknown(parse, name, value);
		else if (is_parameter(row) != parse->parameters || !row->group[0])
			report_misplaced(parse, row, value);
		else
			take_setting(parse, row, value);
	}
}

/* Takes a file, or its `parameters`. */
static void take_groups(const struct parse *parse, const config_setting_t *groups)
{
	struct parse inner = *parse;
	inner.parameters = true;
	if (!config_setting_is_group(groups)) {
		nm_report_value(parse->report, config_setting_name(groups), groups,
				"a group of parameters in { }");
		return;
	}
	for (int i = 0; i < config_setting_length(groups); i++) {
		const config_setting_t *value = config_setting_get_elem(groups, (unsigned)i);
		const char *name = config_setting_name(value);
		const struct nm_setting *row = nm_setting_find("", name);
		if (nm_setting_is_group(name))
			take_group(parse, value);
		else if (!parse->parameters && strcmp(name, "parameters") == 0)
			take_groups(&inner, value);
		else if (row && parse->parameters)
			take_setting(parse, row, value);
		else if (row)
			report_misplaced(parse, row, value);
		else if (strcmp(name, "parameters") == 0)
			nm_report_error(parse->report, config_setting_source_line(value),
					"parameters: write the contents of this group without it");
		else
			report_unknown(parse, "", value);
	}
}

static int take_trees(struct nm_report *report, const struct nm_config_trees *trees,
		      struct nm_config **ret)
{
	nm_auto(nm_config_freep) struct nm_config *config = nm_must(calloc(1, sizeof(*config)));
	nm_setting_defaults(config);
	config->places = nm_must(calloc(nm_setting_count + nm_parameter_count, sizeof(char *)));
	report->warnings = &config->warnings;
	/* The policy determines the defaults of other values, wherever it stands. */
	const char *file;
	const config_setting_t *policy = nm_trees_lookup(trees, "threads.policy", &file);
	config->rules = nm_rules_own;
	if (policy)
		(void)nm_setting_assign(nm_setting_find("threads", "policy"), policy, config);
	if (config->threads.policy >= NM_POLICY_PAPER_FIRST) {
		/* The papers manage every process without exception. */
		config->rules = nm_rules_paper;
		config->targets.min_cpu_percent = 0;
		config->targets.min_rss_mb = 1;
		config->verify.control_percent = 0;
	}
	for (size_t i = 0; i < trees->count; i++) {
		struct parse parse = {.report = report,
				      .config = config,
				      .parameters = trees->items[i].parameters};
		report->file = trees->items[i].name;
		take_groups(&parse, config_root_setting(&trees->items[i].tree));
	}
	/* Replace values that are names of two things each. */
	if (config->threads.policy >= NM_POLICY_PAPER_FIRST)
		config->threads.policy -= NM_POLICY_PAPER_FIRST - NM_POLICY_LBMA;
	config->threads.dtas = config->threads.selection == NM_SELECTION_MAX;
	if (config->threads.dtas)
		config->threads.selection = NM_SELECTION_TOTAL_MIN;
	nm_config_check_combinations(report, config, trees);
	int r = nm_report_result(report);
	if (r < 0)
		return r;
	nm_config_warn(report, config, trees);
	report->warnings = NULL;
	*ret = NM_TAKE(config);
	return 0;
}

static void trees_clear(struct nm_config_trees *trees)
{
	for (size_t i = 0; i < trees->count; i++)
		config_destroy(&trees->items[i].tree);
	free(trees->items);
}

int nm_config_parse_all(const struct nm_config_text *texts, size_t count,
			const struct nm_config_text *parameters, struct nm_config_errors *errors,
			struct nm_config **ret)
{
	struct nm_report report = {.file = count > 0 ? texts[0].name : "", .errors = errors};
	nm_auto(trees_clear) struct nm_config_trees trees = {
		.items = nm_must(calloc(count + 1, sizeof(*trees.items)))};
	for (size_t i = 0; i <= count; i++) {
		const struct nm_config_text *text = i < count ? &texts[i] : parameters;
		if (!text || !text->text)
			continue;
		struct nm_config_tree *tree = &trees.items[trees.count++];
		tree->name = text->name;
		tree->parameters = i == count;
		config_init(&tree->tree);
		report.file = text->name;
		/* libconfig recognizes a comment only by the end of its line. */
		nm_autofree char *whole = nm_must(malloc(text->length + 2));
		if (text->length > 0)
			memcpy(whole, text->text, text->length);
		memcpy(whole + text->length, "\n", 2);
		if (nm_check_text(&report, whole, text->length + 1) == 0 &&
		    !config_read_string(&tree->tree, whole))
			nm_syntax_report(&report, &tree->tree, text->text, text->length);
	}
	int r = nm_report_result(&report);
	return r < 0 ? r : take_trees(&report, &trees, ret);
}

int nm_config_parse(const char *name, const char *text, size_t length,
		    struct nm_config_errors *errors, struct nm_config **ret)
{
	const struct nm_config_text one = {.name = name, .text = text, .length = length};
	return nm_config_parse_all(&one, 1, NULL, errors, ret);
}

/* ---- defaults ---- */

int nm_config_default(struct nm_config **ret)
{
	struct nm_config *config = nm_must(calloc(1, sizeof(*config)));
	nm_setting_defaults(config);
	config->rules = nm_rules_own;
	*ret = config;
	return 0;
}

void nm_config_free(struct nm_config *config)
{
	if (!config)
		return;
	nm_targets_clear(&config->targets.include);
	nm_targets_clear(&config->targets.exclude);
	nm_config_errors_clear(&config->warnings);
	for (size_t i = 0; config->places && i < nm_setting_count + nm_parameter_count; i++)
		free(config->places[i]);
	free(config->places);
	free(config);
}
