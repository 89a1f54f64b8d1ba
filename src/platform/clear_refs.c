// SPDX-License-Identifier: MIT
/*
 * Opens clear_refs of one process, for clearing its soft-dirty bits. Everything is opened through
 * one descriptor of its /proc directory, which stays with that process even if its number is
 * reused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"
#include "privileged.h"

#define COMM_BYTES 15 /* maximum length of a name in the kernel */

static int require_start_ticks(int process, uint64_t wanted)
{
	struct nm_proc_stat stat;
	int r = nm_proc_stat_at(process, "stat", &stat);

	if (r < 0)
		return r == -EINVAL ? -EPROTO : r;
	return stat.start_ticks == wanted ? 0 : -ESRCH;
}

/* A thread is refused. */
static int require_target(int process, const struct nm_config *config)
{
	nm_autofree char *cgroup = NULL;
	struct nm_proc_stat stat;
	struct stat owned;
	int r = nm_proc_stat_at(process, "stat", &stat);
	if (r < 0)
		return r;
	if (!stat.is_leader)
		return -EPERM;
	if (fstat(process, &owned) < 0)
		return -errno;
	/* Without a path, no pattern that names a unit matches. */
	(void)nm_proc_cgroup_at(process, "cgroup", &cgroup);
	stat.comm[COMM_BYTES] = '\0'; /* the length that the daemon sees */
	const struct nm_target_subject subject = {
		.command = stat.comm, .cgroup = cgroup, .uid = owned.st_uid};
	if (nm_config_matches(&config->targets.exclude, &subject, false))
		return -EPERM;
	return nm_config_matches(&config->targets.include, &subject, true) ? 0 : -EPERM;
}

int nm_open_clear_refs(int proc_fd, pid_t pid, uint64_t start_ticks,
		       const struct nm_config *targets)
{
	nm_auto(nm_closep) int process = -1, file = -1;
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	process = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = require_start_ticks(process, start_ticks);
	if (r == 0 && targets)
		r = require_target(process, targets);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	file = openat(process, "clear_refs", O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = require_start_ticks(process, start_ticks);
	return r < 0 ? r : nm_take_fd(&file);
}
