/* SPDX-License-Identifier: MIT */
#include <fnmatch.h>
#include <string.h>

#include "numa-migrd/config.h"

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

static bool target_matches(const struct nm_target *target, const struct nm_target_subject *subject)
{
	if (target->command && fnmatch(target->command, subject->command, 0) != 0)
		return false;
	if (target->unit && !unit_matches(target->unit, subject->cgroup ? subject->cgroup : ""))
		return false;
	return !target->has_uid || target->uid == subject->uid;
}

/* "*" names nothing in particular. */
static bool is_name(const char *glob)
{
	return glob && glob[strspn(glob, "*")] != '\0';
}

bool nm_config_matches(const struct nm_target_list *list, const struct nm_target_subject *subject,
		       bool named)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct nm_target *target = &list->items[i];
		if (named && !is_name(target->command) && !is_name(target->unit))
			continue;
		if (target_matches(target, subject))
			return true;
	}
	return false;
}
