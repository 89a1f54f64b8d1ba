// SPDX-License-Identifier: MIT
#include "worker_subject.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

static int read_process(int directory, const char *path, char *text, size_t size)
{
	int r = nm_read_text(directory, path, text, size);

	return r == -ENOENT ? -ESRCH : r < 0 ? r : 0;
}

int nm_worker_read_start(int directory, const char *path, uint32_t *ret_tid, uint64_t *ret_ticks)
{
	struct nm_proc_stat stat;
	char text[2048];
	int r = read_process(directory, path, text, sizeof(text));

	if (r == 0)
		r = nm_proc_parse_stat(text, &stat);
	if (r < 0)
		return r;
	*ret_tid = (uint32_t)strtoul(text, NULL, 10);
	*ret_ticks = stat.start_ticks;
	return 0;
}

/* Its first kilobyte has all that is needed; a process in many groups has a long one. */
static int read_status(int directory, struct nm_proc_status *ret)
{
	char text[1024];
	int r = read_process(directory, "status", text, sizeof(text));

	if (r == -EFBIG)
		text[sizeof(text) - 1] = '\0';
	else if (r < 0)
		return r;
	return nm_proc_parse_status(text, ret);
}

/* The real user: an effective one, and the directory's owner, may be changed at will. */
static struct nm_tenant tenant_at(int directory, uint32_t uid)
{
	char text[8192];
	const char *path;
	size_t length;

	if (nm_read_text(directory, "cgroup", text, sizeof(text)) < 0 ||
	    nm_proc_parse_cgroup(text, &path, &length) < 0)
		return nm_tenant_of(uid, NULL);
	text[path - text + (ptrdiff_t)length] = '\0';
	return nm_tenant_of(uid, path);
}

int nm_worker_subject_at(int directory, struct nm_worker_subject *ret)
{
	struct nm_worker_subject subject = {0};
	struct nm_proc_status status;
	char path[32];
	int r = nm_worker_read_start(directory, "stat", &subject.tid, &subject.tid_ticks);

	if (r == 0)
		r = read_status(directory, &status);
	if (r < 0)
		return r;
	subject.pid = status.tgid;
	subject.tenant = tenant_at(directory, status.uid);
	subject.start_ticks = subject.tid_ticks;
	if (subject.pid != subject.tid) {
		(void)snprintf(path, sizeof(path), "../%u/stat", subject.pid);
		(void)nm_worker_read_start(directory, path, &subject.pid, &subject.start_ticks);
	}
	*ret = subject;
	return subject.tid ? 0 : -ESRCH;
}

int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks,
			 struct nm_worker_subject *ret)
{
	nm_auto(nm_closep) int directory = -1;
	struct nm_worker_subject subject;
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", tid);
	directory = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = nm_worker_subject_at(directory, &subject);
	if (r == 0 && start_ticks && start_ticks != subject.tid_ticks)
		r = -ESRCH;
	if (r == 0)
		*ret = subject;
	return r;
}
