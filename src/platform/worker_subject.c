// SPDX-License-Identifier: MIT
#include "worker_subject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"

/* Without a cgroup, the effective user counts, which owns the directory. */
static uint64_t domain_at(int directory, const char *cgroup)
{
	struct stat owned = {0};

	(void)fstat(directory, &owned);
	return nm_tenant_of(owned.st_uid, cgroup).domain;
}

/* Uses the real user, because a process can change the effective one, and with it the owner of the
 * directory. */
static int read_tenant(int directory, struct nm_costly *costly, struct nm_worker_subject *subject)
{
	nm_autofree char *cgroup = NULL;
	struct nm_proc_status status;

	(void)nm_proc_cgroup_at(directory, "cgroup", &cgroup);
	uint64_t domain = domain_at(directory, cgroup);
	if (nm_costly_has(costly, domain))
		return -EALREADY;
	int r = nm_proc_status_at(directory, "status", &status);
	if (r < 0)
		return r;
	if (r > 0)
		nm_costly_add(costly, domain);
	subject->pid = status.tgid;
	subject->tenant = nm_tenant_of(status.uid, cgroup);
	return 0;
}

int nm_worker_subject_at(int directory, const struct nm_proc_stat *stat, struct nm_costly *costly,
			 struct nm_worker_subject *ret)
{
	struct nm_worker_subject subject = {.tid = stat->tid, .tid_ticks = stat->start_ticks};
	struct nm_proc_stat leader = *stat;
	char path[32];
	int r = read_tenant(directory, costly, &subject);

	if (r < 0)
		return r;
	if (subject.pid != subject.tid) {
		(void)snprintf(path, sizeof(path), "../%u/stat", subject.pid);
		(void)nm_proc_stat_at(directory, path, &leader);
	}
	subject.start_ticks = leader.start_ticks;
	*ret = subject;
	return subject.tid ? 0 : -ESRCH;
}

int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks, struct nm_costly *costly,
			 struct nm_worker_subject *ret)
{
	nm_auto(nm_closep) int directory = -1;
	struct nm_proc_stat stat;
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", tid);
	directory = openat(proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	int r = nm_proc_stat_at(directory, "stat", &stat);
	if (r == 0 && start_ticks && start_ticks != stat.start_ticks)
		r = -ESRCH;
	return r < 0 ? r : nm_worker_subject_at(directory, &stat, costly, ret);
}
