/* SPDX-License-Identifier: MIT */
/*
 * A Landlock ruleset (landlock(7)) of the daemon, in addition to the restrictions of its unit:
 * despite its capabilities, the daemon can open neither /proc/PID/root, cwd and exe of other
 * processes nor any file except those that it needs.
 */
#include <fcntl.h>
#include <libgen.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numa-migrd/file.h"
#include "runtime.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE                                                                                      \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                   \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_TRUNCATE)

/* All access rights that this version of Landlock can deny. */
static uint64_t denied_by(long version)
{
	uint64_t first = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
	return first | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
	       (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

struct ruleset {
	int fd;
	uint64_t denied;
};

static int add_rule(const struct ruleset *ruleset, int directory, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & ruleset->denied,
						  .parent_fd = directory};
	return syscall(SYS_landlock_add_rule, ruleset->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

/* A path that does not exist needs no rule. */
static int allow(const struct ruleset *ruleset, const char *path, uint64_t access)
{
	nm_auto(nm_closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	return add_rule(ruleset, fd, access);
}

/* Files that are replaced need access to their directory. */
static int allow_folder_of(const struct ruleset *ruleset, const char *file, uint64_t access)
{
	if (!file || !file[0])
		return 0;
	nm_autofree char *path = nm_must(strdup(file));
	return allow(ruleset, dirname(path), access);
}

static int allow_needed(const struct ruleset *ruleset, const struct nm_options *options,
			const struct nm_config *config, int runtime_directory)
{
	/* Kernel files; users and groups, also from systemd and sssd; the libraries of these. */
	static const char *const paths[] = {"/proc", "/sys",   "/etc",	       "/usr",
					    "/lib",  "/lib64", "/run/systemd", "/var/lib/sss"};
	const char *cache = getenv("CACHE_DIRECTORY");
	/* hwloc opens the root directory; therefore listing is allowed for all directories that
	 * others may list. */
	int r = allow(ruleset, "/", LANDLOCK_ACCESS_FS_READ_DIR);
	for (size_t i = 0; r == 0 && i < NM_ARRAY_SIZE(paths); i++)
		r = allow(ruleset, paths[i], READ);
	if (r == 0)
		r = allow_folder_of(ruleset, options->config.path, READ);
	if (r == 0)
		r = allow_folder_of(ruleset, options->config.parameters, READ);
	if (r == 0)
		r = add_rule(ruleset, runtime_directory, WRITE);
	if (r == 0 && cache)
		r = allow(ruleset, cache, WRITE);
	if (r == 0)
		r = allow_folder_of(ruleset, config->metrics.file, WRITE);
	return r;
}

int nm_confine(const struct nm_options *options, const struct nm_config *config,
	       int runtime_directory)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? -EOPNOTSUPP
										: -errno;
	const struct landlock_ruleset_attr attributes = {.handled_access_fs = denied_by(version)};
	nm_auto(nm_closep) int fd = (int)syscall(SYS_landlock_create_ruleset, &attributes,
						 sizeof(attributes.handled_access_fs), 0);
	if (fd < 0)
		return -errno;
	const struct ruleset ruleset = {.fd = fd, .denied = attributes.handled_access_fs};
	int r = allow_needed(&ruleset, options, config, runtime_directory);
	if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0 ||
		       syscall(SYS_landlock_restrict_self, fd, 0) < 0))
		r = -errno;
	return r;
}
