/* SPDX-License-Identifier: MIT */
/* Patterns of processes: parsing and matching. */
#include <fnmatch.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parse.h"

#define COMM_LENGTH 15 /* TASK_COMM_LEN - 1, proc(5) */
#define PATTERN_KEYS "command, unit, slice, cgroup, user"
#define CGROUP_ROOT "/sys/fs/cgroup"
#define PASSWD_BYTES_MAX (1U << 20)

struct pattern {
	struct nm_report *report;
	const char *list; /* "include" or "exclude" */
	struct nm_target *target;
};

static void report_in(const struct pattern *pattern, const config_setting_t *value,
		      const char *allowed)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "targets.%s.%.20s", pattern->list,
		       config_setting_name(value));
	nm_report_value(pattern->report, path, value, allowed);
}

/* Copies the string. Returns false if the value is not a string, or is empty. */
static bool take_string(const struct pattern *pattern, const config_setting_t *value, char **ret)
{
	const char *text = config_setting_get_string(value);
	if (!text || text[0] == '\0') {
		report_in(pattern, value,
			  config_setting_is_number(value) ? "the same number in quotes"
			  : text			  ? "a string that is not empty"
							  : "a string in quotes");
		return false;
	}
	char *copy = nm_must(strdup(text));
	*ret = copy;
	return true;
}

static bool is_slice(const char *name, size_t length)
{
	static const char suffix[] = ".slice";
	size_t end = strlen(suffix);
	return length > end && strncmp(name + length - end, suffix, end) == 0;
}

static bool has_pattern(const char *text)
{
	return strpbrk(text, "*?[\\") != NULL;
}

static void take_command(const struct pattern *pattern, const config_setting_t *value)
{
	char **command = &pattern->target->command;
	if (take_string(pattern, value, command) && !has_pattern(*command) &&
	    strlen(*command) > COMM_LENGTH)
		report_in(pattern, value,
			  "at most 15 bytes, to which the kernel truncates names of commands, "
			  "or a pattern with *");
}

/* A path of a cgroup, too; see struct nm_target. */
static void take_unit(const struct pattern *pattern, const config_setting_t *value)
{
	static const char *const suffixes[] = {".service", ".scope", ".slice",
					       ".socket",  ".mount", ".swap"};
	if (!take_string(pattern, value, &pattern->target->unit))
		return;
	const char *unit = pattern->target->unit, *suffix = strrchr(unit, '.');
	bool known = strchr(unit, '/') || has_pattern(unit);
	for (size_t i = 0; suffix && i < NM_ARRAY_SIZE(suffixes); i++)
		known |= strcmp(suffix, suffixes[i]) == 0;
	if (!known)
		report_in(pattern, value,
			  "the name of a unit with its suffix, such as postgresql.service, or a "
			  "pattern with *");
}

static void take_slice(const struct pattern *pattern, const config_setting_t *value)
{
	char **slice = &pattern->target->slice;
	if (take_string(pattern, value, slice) &&
	    (strchr(*slice, '/') || (!is_slice(*slice, strlen(*slice)) && !has_pattern(*slice))))
		report_in(pattern, value,
			  "the name of a slice, which ends in .slice, or a pattern with *");
}

static void take_cgroup(const struct pattern *pattern, const config_setting_t *value)
{
	if (!take_string(pattern, value, &pattern->target->cgroup))
		return;
	const char *cgroup = pattern->target->cgroup;
	size_t length = strlen(cgroup);
	if (strncmp(cgroup, CGROUP_ROOT, strlen(CGROUP_ROOT)) == 0)
		report_in(pattern, value, "the same path without " CGROUP_ROOT);
	else if (cgroup[0] != '/' || (length > 1 && cgroup[length - 1] == '/') ||
		 strstr(cgroup, "//"))
		report_in(pattern, value,
			  "a path in the unified hierarchy, or a pattern, that begins with / and "
			  "does not end in /");
}

static bool parse_uid(const char *text, uint32_t *ret)
{
	unsigned long long value;
	if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 10)
		return false;
	value = strtoull(text, NULL, 10);
	if (value >= UINT32_MAX) /* (uid_t)-1 belongs to no user */
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* getpwnam_r(3), "NOTES": return values of various systems if there is no such user. */
static bool is_not_found(int error)
{
	return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

/* Returns 0, -ENOENT if there is no such user, or the error of the user database. */
static int find_user(const char *name, uint32_t *ret)
{
	for (size_t size = 1024; size <= PASSWD_BYTES_MAX; size *= 2) {
		struct passwd entry, *found = NULL;
		nm_autofree char *buffer = nm_must(malloc(size));
		int r = getpwnam_r(name, &entry, buffer, size, &found);
		if (r == ERANGE)
			continue;
		if (!found)
			return is_not_found(r) ? -ENOENT : -r;
		*ret = entry.pw_uid;
		return 0;
	}
	return -ERANGE;
}

static void take_user(const struct pattern *pattern, const config_setting_t *value)
{
	struct nm_target *target = pattern->target;
	if (!take_string(pattern, value, &target->user))
		return;
	if (parse_uid(target->user, &target->uid)) {
		target->has_uid = true;
		return;
	}
	int r = find_user(target->user, &target->uid);
	target->has_uid = r == 0;
	if (r == -ENOENT)
		report_in(pattern, value, "name or number of an existing user");
	else if (r < 0)
		nm_report_error(pattern->report, config_setting_source_line(value),
				"targets.%s.user: \"%s\" cannot be looked up: %s", pattern->list,
				target->user, strerrordesc_np(-r));
}

static void take_key(const struct pattern *pattern, const config_setting_t *value)
{
	const char *name = config_setting_name(value);
	if (strcmp(name, "command") == 0)
		take_command(pattern, value);
	else if (strcmp(name, "unit") == 0)
		take_unit(pattern, value);
	else if (strcmp(name, "slice") == 0)
		take_slice(pattern, value);
	else if (strcmp(name, "cgroup") == 0)
		take_cgroup(pattern, value);
	else if (strcmp(name, "user") == 0)
		take_user(pattern, value);
	else
		nm_report_error(pattern->report, config_setting_source_line(value),
				"targets.%s.%.40s: unknown setting; known are " PATTERN_KEYS,
				pattern->list, name);
}

static void take_pattern(struct nm_report *report, const char *name, const config_setting_t *value,
			 struct nm_target *target)
{
	struct pattern pattern = {.report = report, .list = name, .target = target};
	char path[32];
	(void)snprintf(path, sizeof(path), "targets.%s", name);
	if (!config_setting_is_group(value) || config_setting_length(value) == 0) {
		nm_report_value(
			report, path, value,
			"a group such as { command = \"x*\"; } with one or more of " PATTERN_KEYS);
		return;
	}
	for (int i = 0; i < config_setting_length(value); i++)
		take_key(&pattern, config_setting_get_elem(value, (unsigned)i));
}

void nm_targets_parse(struct nm_report *report, const char *name, const config_setting_t *list,
		      struct nm_target_list *ret)
{
	size_t count = (size_t)config_setting_length(list);
	nm_targets_clear(ret);
	if (count == 0)
		return;
	ret->items = nm_must(calloc(count, sizeof(*ret->items)));
	ret->count = count;
	for (size_t i = 0; i < count; i++)
		take_pattern(report, name, config_setting_get_elem(list, (unsigned)i),
			     &ret->items[i]);
}

void nm_targets_clear(struct nm_target_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].command);
		free(list->items[i].unit);
		free(list->items[i].slice);
		free(list->items[i].cgroup);
		free(list->items[i].user);
	}
	free(list->items);
	*list = (struct nm_target_list){0};
}

/* ---- matching ---- */

/* Returns the first component of a path like "/a.slice/b.service/c" that is no slice, and its
 * length. */
static const char *first_unit(const char *cgroup, size_t *ret_length)
{
	size_t length = 0;
	for (; *cgroup == '/'; cgroup += length) {
		length = strcspn(++cgroup, "/");
		if (!is_slice(cgroup, length))
			break;
	}
	*ret_length = *cgroup ? length : 0;
	return cgroup;
}

/*
 * A unit of the system manager is the first directory that is no slice; directories that users or
 * containers create below it are not units. A unit of a user is named with the user's manager,
 * "user@1000.service/job.service".
 */
static bool unit_matches(const char *glob, const char *cgroup)
{
	size_t length, own_length;
	const char *unit = first_unit(cgroup, &length);
	nm_autofree char *name = nm_must(strndup(unit, length));
	if (!name || !length)
		return false;
	if (!strchr(glob, '/'))
		return fnmatch(glob, name, 0) == 0;
	if (fnmatch("user@*.service", name, 0) != 0)
		return false;
	const char *own = first_unit(unit + length, &own_length);
	nm_autofree char *both = NULL;
	nm_must_do(asprintf(&both, "%s/%.*s", name, (int)own_length, own));
	return own_length > 0 && fnmatch(glob, both, FNM_PATHNAME) == 0;
}

/* Slices of the system manager are the leading directories with that suffix; directories that users
 * name so inside a delegated directory are not. */
static bool slice_matches(const char *glob, const char *cgroup)
{
	for (const char *part = cgroup; *part == '/';) {
		size_t length = strcspn(++part, "/");
		if (!is_slice(part, length))
			return false;
		nm_autofree char *name = nm_must(strndup(part, length));
		if (fnmatch(glob, name, 0) == 0)
			return true;
		part += length;
	}
	return false;
}

/* Matches the path or any of its ancestors, up to "/"; a * stays within one component. */
static bool cgroup_matches(const char *glob, const char *cgroup)
{
	nm_autofree char *path = nm_must(strdup(cgroup));
	while (path[0] == '/') {
		if (fnmatch(glob, path, FNM_PATHNAME) == 0)
			return true;
		char *slash = strrchr(path, '/');
		if (path[1] == '\0')
			break;
		slash[slash == path] = '\0';
	}
	return false;
}

static bool target_matches(const struct nm_target *target, const struct nm_target_subject *subject)
{
	if (target->command && fnmatch(target->command, subject->command, 0) != 0)
		return false;
	const char *cgroup = subject->cgroup ? subject->cgroup : "";
	if (target->unit && !unit_matches(target->unit, cgroup))
		return false;
	if (target->slice && !slice_matches(target->slice, cgroup))
		return false;
	if (target->cgroup && !cgroup_matches(target->cgroup, cgroup))
		return false;
	return !target->has_uid || target->uid == subject->uid;
}

/* "*" and "/" match everything, and count as no name. */
static bool is_name(const char *glob)
{
	return glob && glob[strspn(glob, "*/")] != '\0';
}

const struct nm_target *nm_config_find(const struct nm_target_list *list,
				       const struct nm_target_subject *subject)
{
	for (size_t i = 0; i < list->count; i++)
		if (target_matches(&list->items[i], subject))
			return &list->items[i];
	return NULL;
}

bool nm_config_names_command(const struct nm_target_list *list,
			     const struct nm_target_subject *subject)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_name(list->items[i].command) && target_matches(&list->items[i], subject))
			return true;
	return false;
}

const char *nm_config_print_target(const struct nm_target *target, char *out, size_t size)
{
	const struct {
		const char *key, *glob;
	} parts[] = {{"command", target->command},
		     {"unit", target->unit},
		     {"slice", target->slice},
		     {"cgroup", target->cgroup},
		     {"user", target->user}};
	size_t used = (size_t)snprintf(out, size, "{");
	for (size_t i = 0; i < NM_ARRAY_SIZE(parts) && used < size; i++) {
		char glob[1024];
		if (!parts[i].glob)
			continue;
		(void)nm_escape(glob, sizeof(glob), parts[i].glob, strlen(parts[i].glob));
		used += (size_t)snprintf(out + used, size - used, " %s = \"%s\";", parts[i].key,
					 glob);
	}
	if (used < size)
		(void)snprintf(out + used, size - used, " }");
	return out;
}
