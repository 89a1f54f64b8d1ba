// SPDX-License-Identifier: MIT
/* Domains by what the cgroups of this machine contain. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

#define BASE "sys/fs/cgroup"

/* A cgroup of root that enables controllers for its children, and has no processes. A domain with
 * threaded controllers lists the processes of its children as its own. A longer text is not empty.
 */
static bool enables_controllers(ssize_t text_length)
{
	return text_length > 1 || text_length == -EFBIG;
}

/* ---- by the operations table ---- */

static ssize_t read_by(struct nm_platform *platform, const char *cgroup, const char *file)
{
	char path[PATH_MAX], text[256];

	if (snprintf(path, sizeof(path), BASE "%s/%s", cgroup, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text));
}

static bool is_of_root(struct nm_platform *platform, const char *cgroup)
{
	char path[PATH_MAX];
	uint32_t uid = 0;

	if (snprintf(path, sizeof(path), BASE "%s", cgroup) >= (int)sizeof(path))
		return false;
	int directory = platform->ops->open_directory(platform, NM_ROOT, path);
	if (directory < 0)
		return false;
	int r = nm_proc_read_owner(platform, directory, &uid);
	platform->ops->close(platform, directory);
	return r == 0 && uid == 0;
}

static bool contains_only(void *context, const char *cgroup)
{
	struct nm_platform *platform = context;

	return enables_controllers(read_by(platform, cgroup, "cgroup.subtree_control")) &&
	       read_by(platform, cgroup, "cgroup.procs") == 0 && is_of_root(platform, cgroup);
}

uint64_t nm_proc_domain(struct nm_platform *platform, uint32_t uid, const char *cgroup)
{
	return nm_domain_in(uid, cgroup, contains_only, platform);
}

/* ---- by this program ---- */

static bool contains_only_here(void *context, const char *cgroup)
{
	nm_auto(nm_closep) int directory = -1;
	struct stat owned;
	char path[PATH_MAX], text[256];

	(void)context;
	if (snprintf(path, sizeof(path), "/" BASE "%s", cgroup) >= (int)sizeof(path))
		return false;
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return directory >= 0 && fstat(directory, &owned) == 0 && owned.st_uid == 0 &&
	       enables_controllers(
		       nm_read_text(directory, "cgroup.subtree_control", text, sizeof(text))) &&
	       nm_read_text(directory, "cgroup.procs", text, sizeof(text)) == 0;
}

uint64_t nm_proc_domain_here(uint32_t uid, const char *cgroup)
{
	return nm_domain_in(uid, cgroup, contains_only_here, NULL);
}
