// SPDX-License-Identifier: MIT
/*
 * Soft-dirty clearing of one process. Everything goes through one descriptor of its /proc
 * directory, which stays with that process even when its number is given to another.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/proc.h"
#include "privileged.h"

#define STAT_START_TICKS 22
#define COMM_BYTES 15 /* that the kernel keeps of a name */
#define TEXT_BYTES 16384

static void closedirp(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

/* Field 22 of stat (proc(5)); the command may hold spaces and parentheses, so count from the last
 * ')'. */
static int read_start_ticks(int process, uint64_t *ret)
{
	char text[1024], *end;
	int length = nm_read_text(process, "stat", text, sizeof(text));

	if (length < 0)
		return length == -ENOENT ? -ESRCH : length;
	const char *field = strrchr(text, ')');
	for (int number = 2; field && number < STAT_START_TICKS; number++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field || *field < '0' || *field > '9')
		return -EPROTO;
	*ret = strtoull(field, &end, 10);
	return 0;
}

static int require_start_ticks(int process, uint64_t wanted)
{
	uint64_t ticks = 0;
	int r = read_start_ticks(process, &ticks);

	if (r < 0)
		return r;
	return ticks == wanted ? 0 : -ESRCH;
}

static bool is_soft_dirty_file(const char *link)
{
	const char *name = strrchr(link, '/');

	return name && (strcmp(name, "/pagemap") == 0 || strcmp(name, "/clear_refs") == 0);
}

/* A process that holds one of these files uses soft-dirty bits itself; clearing would make it miss
 * writes. One with more open files than are looked at may be such a process: nobody waits for it. */
static int require_no_soft_dirty_user(int process)
{
	nm_auto(closedirp) DIR *directory = NULL;
	const struct dirent *entry;
	char link[PATH_MAX];

	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	directory = fdopendir(fd);
	if (!directory) {
		close(fd);
		return -ENOMEM;
	}
	for (unsigned seen = 0; (errno = 0, entry = readdir(directory)); seen++) {
		if (seen == NM_CLEAR_REFS_FILES_MOST)
			return -EFBIG;
		if (entry->d_name[0] == '.')
			continue;
		ssize_t length = readlinkat(fd, entry->d_name, link, sizeof(link) - 1);
		if (length < 0 && errno == ENOENT)
			continue;
		if (length < 0)
			return -errno;
		link[length] = '\0';
		if (is_soft_dirty_file(link))
			return -EBUSY;
	}
	return -errno;
}

/* The process as root's targets are to see it; a thread of it is not. */
static int read_subject(int process, pid_t pid, char *text, struct nm_proc_stat *stat,
			struct nm_proc_status *status)
{
	int r = nm_read_text(process, "stat", text, TEXT_BYTES);
	if (r >= 0)
		r = nm_proc_parse_stat(text, stat);
	if (r >= 0)
		r = nm_read_text(process, "status", text, TEXT_BYTES);
	if (r >= 0)
		r = nm_proc_parse_status(text, status);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return status->tgid == (uint32_t)pid ? 0 : -EPERM;
}

/* NULL where the kernel tells none, and then no pattern with a unit matches. */
static const char *read_cgroup(int process, char *text)
{
	const char *path = NULL;
	size_t length = 0;
	if (nm_read_text(process, "cgroup", text, TEXT_BYTES) < 0 ||
	    nm_proc_parse_cgroup(text, &path, &length) < 0)
		return NULL;
	text[(size_t)(path - text) + length] = '\0';
	return path;
}

static int require_target(int process, pid_t pid, const struct nm_config *config)
{
	nm_autofree char *text = malloc(TEXT_BYTES);
	struct nm_proc_stat stat;
	struct nm_proc_status status;
	if (!text)
		return -ENOMEM;
	int r = read_subject(process, pid, text, &stat, &status);
	if (r < 0)
		return r;
	stat.comm[COMM_BYTES] = '\0'; /* as long as the daemon sees it */
	const struct nm_target_subject subject = {
		.command = stat.comm, .cgroup = read_cgroup(process, text), .uid = status.uid};
	if (nm_config_matches(&config->targets.exclude, &subject, false))
		return -EPERM;
	return nm_config_matches(&config->targets.include, &subject, true) ? 0 : -EPERM;
}

int nm_open_clear_refs(int proc_fd, pid_t pid, uint64_t start_ticks, const struct nm_config *targets)
{
	nm_auto(nm_closep) int process = -1, file = -1;
	char name[16];

	snprintf(name, sizeof(name), "%d", pid);
	process = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = require_start_ticks(process, start_ticks);
	if (r == 0 && targets)
		r = require_target(process, pid, targets);
	if (r == 0)
		r = require_no_soft_dirty_user(process);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	file = openat(process, "clear_refs", O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = require_start_ticks(process, start_ticks);
	return r < 0 ? r : nm_take_fd(&file);
}
