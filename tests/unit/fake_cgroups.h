/* SPDX-License-Identifier: MIT */
/*
 * The directories of cgroups on the machine of fake_machine.h: their owners and attributes. A
 * cgroup exists once a test has named it.
 */
#ifndef NM_TEST_FAKE_CGROUPS_H
#define NM_TEST_FAKE_CGROUPS_H

#include "fake_machine.h"

#define FAKE_GROUP_IDENTITY                                                                        \
	(1U << 20) /* descriptor of an open directory of a group: this plus its index \ */

static inline struct fake_group *fake_find_group(struct fake *fake, const char *path)
{
	for (unsigned i = 0; i < fake->nr_groups; i++)
		if (!fake->groups[i].gone && strcmp(fake->groups[i].path, path) == 0)
			return &fake->groups[i];
	return NULL;
}

static inline struct fake_group *fake_group(struct fake *fake, const char *path)
{
	struct fake_group *group = fake_find_group(fake, path);
	if (group)
		return group;
	assert(fake->nr_groups < FAKE_GROUPS);
	group = &fake->groups[fake->nr_groups++];
	*group = (struct fake_group){0};
	snprintf(group->path, sizeof(group->path), "%s", path);
	return group;
}

/* NULL removes the attribute. */
static inline void fake_set_attribute(struct fake *fake, const char *path, const char *attribute)
{
	struct fake_group *group = fake_group(fake, path);
	group->has_attribute = attribute != NULL;
	snprintf(group->attribute, sizeof(group->attribute), "%s", attribute ? attribute : "");
}

static inline void fake_own_group(struct fake *fake, const char *path, uint32_t uid)
{
	fake_group(fake, path)->uid = uid;
}

static inline void fake_remove_group(struct fake *fake, const char *path)
{
	struct fake_group *group = fake_find_group(fake, path);
	assert(group);
	group->gone = true;
}

/* ---- the ops ---- */

/* Returns the index of the group of a path below the root, or -ENOENT. */
static inline int fake_group_of_path(struct fake *fake, const char *path)
{
	static const char prefix[] = "sys/fs/cgroup";
	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return -ENOENT;
	path += strlen(prefix);
	const struct fake_group *group = fake_find_group(fake, path[0] ? path : "/");
	return group ? (int)(group - fake->groups) : -ENOENT;
}

static inline struct fake_group *fake_open_group(struct fake *fake, int fd)
{
	unsigned identity = fake->open[fd - FAKE_FD_BASE];
	assert(identity >= FAKE_GROUP_IDENTITY);
	return &fake->groups[identity - FAKE_GROUP_IDENTITY];
}

static inline ssize_t fake_read_attribute(struct nm_platform *platform, int directory,
					  const char *name, void *buffer, size_t size)
{
	struct fake *fake = fake_of(platform);
	const struct fake_group group = *fake_open_group(fake, directory);
	size_t length = strlen(group.attribute);
	fake->attribute_reads++;
	assert(strcmp(name, "user.numa-migrd") == 0);
	if (!group.has_attribute)
		return -ENODATA;
	if (length > size)
		return -ERANGE;
	memcpy(buffer, group.attribute, length);
	return (ssize_t)length;
}

static inline int fake_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	struct fake *fake = fake_of(platform);
	const struct fake_thread *thread = fake_opened(fake, directory);
	if (thread) {
		*ret = (struct nm_owner){.uid = thread->uid};
		return 0;
	}
	const struct fake_group *group = fake_open_group(fake, directory);
	*ret = (struct nm_owner){.uid = group->uid, .others_write = group->others_write};
	return 0;
}

#endif
