/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <string.h>

#include "parse.h"

/* A unit pattern may name the whole cgroup path or any directory in it ("postgresql*.service"). */
static bool unit_matches(const char *glob, const char *cgroup)
{
	if (fnmatch(glob, cgroup, 0) == 0)
		return true;
	for (const char *part = cgroup; *part;) {
		part += strspn(part, "/");
		size_t length = strcspn(part, "/");
		nm_autofree char *name = strndup(part, length);
		if (name && length && fnmatch(glob, name, 0) == 0)
			return true;
		part += length;
	}
	return false;
}

/*
 * The slices that the system's manager keeps are the leading directories of that name: what a user
 * calls a slice inside what was delegated to him is none.
 */
static bool slice_matches(const char *glob, const char *cgroup)
{
	static const char suffix[] = ".slice";
	for (const char *part = cgroup; *part == '/';) {
		size_t length = strcspn(++part, "/");
		if (length <= strlen(suffix) ||
		    strncmp(part + length - strlen(suffix), suffix, strlen(suffix)) != 0)
			return false;
		nm_autofree char *name = strndup(part, length);
		if (name && fnmatch(glob, name, 0) == 0)
			return true;
		part += length;
	}
	return false;
}

/* The path or any above it, up to "/"; a * stands inside one name. */
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

/* "*" names nothing in particular, nor does "/". */
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
