/* SPDX-License-Identifier: MIT */
/*
 * The directories of control groups on the machine of fake_machine.h: who owns them, what they say
 * by an attribute, and inotify's word of changes. A group is there once something was said of it.
 */
#ifndef NM_TEST_FAKE_CGROUPS_H
#define NM_TEST_FAKE_CGROUPS_H

#include <sys/inotify.h>

#include "fake_machine.h"

#define FAKE_WATCH_FD (FAKE_FD_BASE + 500)
#define FAKE_GROUP_IDENTITY (1U << 20) /* of a group's directory that is open: this and its place  \
					*/

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

static inline void fake_watch_event(struct fake *fake, int descriptor, uint32_t mask,
				    const char *name)
{
	struct inotify_event event = {.wd = descriptor, .mask = mask};
	size_t room = name ? (strlen(name) + 16) / 16 * 16 : 0;
	event.len = (uint32_t)room;
	assert(fake->watch_length + sizeof(event) + room <= sizeof(fake->watch_bytes));
	memcpy(fake->watch_bytes + fake->watch_length, &event, sizeof(event));
	fake->watch_length += sizeof(event);
	memset(fake->watch_bytes + fake->watch_length, 0, room);
	if (name)
		memcpy(fake->watch_bytes + fake->watch_length, name, strlen(name));
	fake->watch_length += room;
}

/* Both the directory and the one it is in are told, as the kernel does. */
static inline void fake_tell_group(struct fake *fake, const struct fake_group *group, uint32_t mask)
{
	char parent[sizeof(group->path)];
	snprintf(parent, sizeof(parent), "%s", group->path);
	char *slash = strrchr(parent, '/');
	const char *name = group->path + (slash - parent) + 1;
	slash[slash == parent] = '\0';
	const struct fake_group *above = name[0] ? fake_find_group(fake, parent) : NULL;
	if (above && above->descriptor)
		fake_watch_event(fake, above->descriptor, mask | IN_ISDIR, name);
	/* A group that goes is not told itself. */
	if (group->descriptor && mask == IN_ATTRIB)
		fake_watch_event(fake, group->descriptor, IN_ATTRIB | IN_ISDIR, NULL);
}

/* NULL takes it back. */
static inline void fake_say(struct fake *fake, const char *path, const char *said)
{
	struct fake_group *group = fake_group(fake, path);
	group->says = said != NULL;
	snprintf(group->said, sizeof(group->said), "%s", said ? said : "");
	fake_tell_group(fake, group, IN_ATTRIB);
}

static inline void fake_own_group(struct fake *fake, const char *path, uint32_t uid)
{
	struct fake_group *group = fake_group(fake, path);
	group->uid = uid;
	fake_tell_group(fake, group, IN_ATTRIB);
}

static inline void fake_remove_group(struct fake *fake, const char *path)
{
	struct fake_group *group = fake_find_group(fake, path);
	assert(group);
	group->gone = true;
	fake_tell_group(fake, group, IN_DELETE);
}

/* ---- the ops ---- */

/* The place of the group that a path below the root means; -ENOENT. */
static inline int fake_group_of_path(struct fake *fake, const char *path)
{
	static const char prefix[] = "sys/fs/cgroup";
	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return -ENOENT;
	const struct fake_group *group = fake_find_group(fake, path + strlen(prefix));
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
	const struct fake_group *group = fake_open_group(fake_of(platform), directory);
	size_t length = strlen(group->said);
	fake_of(platform)->attribute_reads++;
	assert(strcmp(name, "user.numa-migrd") == 0);
	if (!group->says)
		return -ENODATA;
	if (length > size)
		return -ERANGE;
	memcpy(buffer, group->said, length);
	return (ssize_t)length;
}

static inline int fake_owner(struct nm_platform *platform, int directory, struct nm_owner *ret)
{
	const struct fake_group *group = fake_open_group(fake_of(platform), directory);
	*ret = (struct nm_owner){.uid = group->uid, .others_write = group->others_write};
	return 0;
}

static inline int fake_watch_open(struct nm_platform *platform)
{
	struct fake *fake = fake_of(platform);
	return fake->watch_refused ? -fake->watch_refused : FAKE_WATCH_FD;
}

static inline int fake_watch_add(struct nm_platform *platform, int watch, int directory)
{
	struct fake *fake = fake_of(platform);
	struct fake_group *group = fake_open_group(fake, directory);
	assert(watch == FAKE_WATCH_FD);
	if (fake->watches_full)
		return -ENOSPC;
	if (!group->descriptor)
		group->descriptor = ++fake->descriptors;
	return group->descriptor;
}

static inline void fake_watch_remove(struct nm_platform *platform, int watch, int descriptor)
{
	struct fake *fake = fake_of(platform);
	assert(watch == FAKE_WATCH_FD);
	for (unsigned i = 0; i < fake->nr_groups; i++) {
		if (fake->groups[i].descriptor != descriptor)
			continue;
		fake->groups[i].descriptor = 0;
		fake_watch_event(fake, descriptor, IN_IGNORED, NULL);
	}
}

static inline unsigned fake_watches(const struct fake *fake)
{
	unsigned count = 0;
	for (unsigned i = 0; i < fake->nr_groups; i++)
		count += fake->groups[i].descriptor != 0;
	return count;
}

static inline ssize_t fake_watch_read(struct nm_platform *platform, int fd, char *buffer,
				      size_t size)
{
	struct fake *fake = fake_of(platform);
	size_t length = fake->watch_length;
	assert(fd == FAKE_WATCH_FD && length <= size);
	if (length == 0)
		return -EAGAIN;
	memcpy(buffer, fake->watch_bytes, length);
	fake->watch_length = 0;
	return (ssize_t)length;
}

#endif
