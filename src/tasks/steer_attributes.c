/* SPDX-License-Identifier: MIT */
/* Reads the attributes of a cgroup and its ancestors. */
#include "tasks/tasks.h"

#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"

#define BASE "sys/fs/cgroup"
#define VALUE_BYTES 64
#define MAX_LEVELS 32U

/* The attribute of a directory, and who can have set it. */
struct directory {
	struct nm_owner owner;
	enum nm_steer_value value;
};

/* The attribute does not exist or cannot exist there; other errors may pass. */
static bool is_absent(ssize_t error)
{
	return error == -ENODATA || error == -EOPNOTSUPP || error == -ENOENT || error == -EACCES ||
	       error == -EPERM;
}

/* The owner comes from the same descriptor, so that a directory replaced meanwhile is not
 * confused with this one. */
static int read_open(struct nm_platform *platform, int fd, struct directory *ret)
{
	char value[VALUE_BYTES];
	int r = platform->ops->owner(platform, fd, &ret->owner);
	if (r < 0)
		return r;
	ssize_t length = platform->ops->read_attribute(platform, fd, NM_STEER_ATTRIBUTE, value,
						       sizeof(value));
	if (length < 0 && length != -ERANGE)
		return is_absent(length) ? 0 : (int)length;
	/* An unknown value, and one that is longer than any known one. */
	if (length < 0 || nm_steer_parse(value, (size_t)length, &ret->value) < 0)
		ret->value = NM_STEER_OBSERVE;
	return 0;
}

/* Directories that do not exist or are closed to the daemon are like ones without the attribute. */
static int read_directory(struct nm_platform *platform, const char *cgroup, struct directory *ret)
{
	nm_autofree char *path = NULL;
	nm_must_do(asprintf(&path, BASE "%s", cgroup));
	*ret = (struct directory){0};
	int fd = platform->ops->open_directory(platform, NM_ROOT, path);
	if (fd < 0)
		return is_absent(fd) ? 0 : fd;
	int r = read_open(platform, fd, ret);
	platform->ops->close(platform, fd);
	return r;
}

/* The path of a process outside the daemon's cgroup namespace leads out of it. */
static bool is_visible(const char *cgroup)
{
	return cgroup && cgroup[0] == '/' &&
	       (strncmp(cgroup, "/..", 3) != 0 || (cgroup[3] != '/' && cgroup[3] != '\0'));
}

/* Shortens the path to the levels that are read. Returns whether it was longer. */
static bool cut_path(char *path)
{
	unsigned levels = 0;
	for (char *slash = path; (slash = strchr(slash, '/')); slash++) {
		if (levels++ < MAX_LEVELS)
			continue;
		*slash = '\0';
		return true;
	}
	return false;
}

int nm_steer_read(struct nm_platform *platform, const char *cgroup, struct nm_steering *ret)
{
	struct nm_steering result = {0};
	struct directory directory;
	uint32_t uid = 0;

	if (!is_visible(cgroup)) {
		*ret = result;
		return 0;
	}
	nm_autofree char *path = nm_must(strdup(cgroup[1] ? cgroup : ""));
	if (cut_path(path))
		result.value = NM_STEER_OBSERVE;
	for (bool is_own = true;; is_own = false) {
		int r = read_directory(platform, path, &directory);
		if (r < 0)
			return r;
		if (is_own)
			uid = directory.owner.uid;
		result = nm_steer_under(nm_steer_counted(directory.value, &directory.owner, uid),
					result);
		if (!path[0])
			break;
		*strrchr(path, '/') = '\0';
	}
	*ret = result;
	return 0;
}
