/* SPDX-License-Identifier: MIT */
/* Warns of valid settings that have no effect. */
#include <string.h>

#include "parse.h"

#define COMM_LENGTH 15 /* TASK_COMM_LEN - 1, proc(5) */

struct warn {
	struct nm_report *report;
	const struct nm_config *config;
	const struct nm_config_trees *trees;
};

/* Returns the value in effect, and sets the file of the report; NULL: no file contains it. */
static const config_setting_t *find(const struct warn *warn, const char *path)
{
	return nm_trees_lookup(warn->trees, path, &warn->report->file);
}

/* ---- patterns ---- */

/* Returns the length of the [ ] at `text`, 0 if it is never closed. The first character in it may
 * be a ], and it may contain classes such as [:alpha:], fnmatch(3). */
static size_t bracket_length(const char *text)
{
	const char *at = text + 1;
	at += *at == '!' || *at == '^';
	at += *at == ']';
	for (; *at && *at != ']'; at++) {
		const char *end = at[0] == '[' && at[1] == ':' ? strstr(at, ":]") : NULL;
		at = end ? end + 1 : at;
	}
	return *at ? (size_t)(at + 1 - text) : 0;
}

/* Returns why a glob matches no usual name; NULL: it may. `most` is the length of the longest name
 * that it is compared with. */
static const char *flaw_of(const char *glob, size_t most)
{
	size_t least = 0;
	for (const char *at = glob; *at; at++) {
		size_t length = *at == '[' ? bracket_length(at) : *at == '\\' ? 2 : 1;
		if (length == 0)
			return "matches only names that contain [, because its [ is never closed";
		if (*at == '\\' && at[1] == '\0')
			return "matches nothing, because it ends in a backslash";
		least += *at != '*';
		at += length - 1;
	}
	return least > most ? "matches nothing, because the kernel truncates names of commands to "
			      "15 bytes"
			    : NULL;
}

static void warn_of_globs(const struct warn *warn, const char *list)
{
	static const char *const keys[] = {"command", "unit", "slice", "cgroup"};
	const config_setting_t *patterns = find(warn, list);
	for (int i = 0; patterns && i < config_setting_length(patterns); i++) {
		const config_setting_t *pattern = config_setting_get_elem(patterns, (unsigned)i);
		for (size_t k = 0; k < NM_ARRAY_SIZE(keys); k++) {
			const config_setting_t *glob = config_setting_get_member(pattern, keys[k]);
			const char *text = glob ? config_setting_get_string(glob) : NULL;
			const char *flaw =
				text ? flaw_of(text, k == 0 ? COMM_LENGTH : SIZE_MAX) : NULL;
			if (flaw)
				nm_report_warning(warn->report, config_setting_source_line(glob),
						  "%s.%s: this pattern %s", list, keys[k], flaw);
		}
	}
}

static bool same_text(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool is_same(const struct nm_target *one, const struct nm_target *other)
{
	return same_text(one->command, other->command) && same_text(one->unit, other->unit) &&
	       same_text(one->slice, other->slice) && same_text(one->cgroup, other->cgroup) &&
	       one->has_uid == other->has_uid && one->uid == other->uid;
}

static void warn_of_excluded(const struct warn *warn)
{
	const struct nm_target_list *include = &warn->config->targets.include;
	const struct nm_target_list *exclude = &warn->config->targets.exclude;
	const config_setting_t *list = find(warn, "targets.include");
	for (size_t i = 0; list && i < include->count; i++)
		for (size_t k = 0; k < exclude->count; k++) {
			char text[512];
			if (!is_same(&include->items[i], &exclude->items[k]))
				continue;
			nm_report_warning(
				warn->report,
				config_setting_source_line(
					config_setting_get_elem(list, (unsigned)i)),
				"targets.include: %s has no effect: targets.exclude contains it, "
				"too, and takes precedence",
				nm_config_print_target(&include->items[i], text, sizeof(text)));
			break;
		}
}

/* ---- other settings ---- */

/* Only the policy `balance` selects threads. */
static void warn_of_selection(const struct warn *warn)
{
	const config_setting_t *selection = find(warn, "threads.selection");
	if (selection && warn->config->threads.policy != NM_POLICY_BALANCE)
		nm_report_warning(warn->report, config_setting_source_line(selection),
				  "threads.selection: \"%s\" has no effect with threads.policy = "
				  "\"%s\", only with \"balance\"",
				  config_setting_get_string(selection),
				  nm_config_policy_name(warn->config));
}

static void warn_of_balancing(const struct warn *warn)
{
	const struct nm_config *config = warn->config;
	const config_setting_t *balancing = find(warn, "pages.numa_balancing");
	if (balancing && config->pages.numa_balancing == NM_BALANCING_MANAGE &&
	    config->pages.policy != NM_PAGES_EXCLUSIVITY)
		nm_report_warning(warn->report, config_setting_source_line(balancing),
				  "pages.numa_balancing: \"manage\" has no effect with "
				  "pages.policy = \"%s\", only with \"exclusivity\"",
				  nm_page_policy_name(config->pages.policy));
}

void nm_config_warn(struct nm_report *report, const struct nm_config *config,
		    const struct nm_config_trees *trees)
{
	const struct warn warn = {.report = report, .config = config, .trees = trees};
	warn_of_globs(&warn, "targets.include");
	warn_of_globs(&warn, "targets.exclude");
	warn_of_excluded(&warn);
	warn_of_selection(&warn);
	warn_of_balancing(&warn);
}
