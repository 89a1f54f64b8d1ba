/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"

static bool is_slice(const char *name, size_t length)
{
	static const char suffix[] = ".slice";
	size_t end = strlen(suffix);
	return length > end && strncmp(name + length - end, suffix, end) == 0;
}

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
	nm_autofree char *name = strndup(unit, length);
	if (!name || !length)
		return false;
	if (!strchr(glob, '/'))
		return fnmatch(glob, name, 0) == 0;
	if (fnmatch("user@*.service", name, 0) != 0)
		return false;
	const char *own = first_unit(unit + length, &own_length);
	nm_autofree char *both = NULL;
	if (asprintf(&both, "%s/%.*s", name, (int)own_length, own) < 0) {
		both = NULL;
		return false;
	}
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
		nm_autofree char *name = strndup(part, length);
		if (name && fnmatch(glob, name, 0) == 0)
			return true;
		part += length;
	}
	return false;
}

/* Matches the path or any of its ancestors, up to "/"; a * stays within one component. */
static bool cgroup_matches(const char *glob, const char *cgroup)
{
	nm_autofree char *path = strdup(cgroup);
	while (path && path[0] == '/') {
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

bool nm_target_is_named(const struct nm_target *target)
{
	return is_name(target->command) || is_name(target->unit) || is_name(target->slice) ||
	       is_name(target->cgroup);
}

bool nm_config_matches(const struct nm_target_list *list, const struct nm_target_subject *subject,
		       bool named)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct nm_target *target = &list->items[i];
		if (named && !nm_target_is_named(target))
			continue;
		if (target_matches(target, subject))
			return true;
	}
	return false;
}
