// SPDX-License-Identifier: MIT
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.14; missing in some of the headers that this is built with. */
#define NOSYMFOLLOW UINT64_C(0x00200000)

/*
 * Returns whether the process has a mount namespace of its own. systemd has created one for the
 * unit (and does not permit another), with a /proc that contains only processes (ProcSubset=);
 * other callers of the program have not.
 */
static bool has_namespace(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return access("/proc/stat", F_OK) < 0 && errno == ENOENT;
}

/* nm_worker_links_are_closed() checks the result, because the program cannot do this again after it
 * was executed again. */
static void close_links(void)
{
	struct mount_attr attributes = {.attr_set = NOSYMFOLLOW};

	if (has_namespace())
		(void)syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &attributes,
			      sizeof(attributes));
}

bool nm_worker_links_are_closed(void)
{
	int fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ELOOP;
	close(fd);
	return false;
}

/* The unit's filter does not permit capset(2). Capabilities that were removed from the ambient set
 * are dropped by execve(2). */
static int keep_ptrace(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	uint32_t ptrace = data[0].permitted & 1U << CAP_SYS_PTRACE;
	if (data[0].permitted == ptrace && data[1].permitted == 0)
		return 0;
	if (geteuid() != 0 &&
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYS_ADMIN, 0, 0) == 0)
		return 1;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	data[0] = (struct __user_cap_data_struct){.permitted = ptrace, .effective = ptrace};
	data[1] = (struct __user_cap_data_struct){0};
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int nm_worker_confine(void)
{
	close_links();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &(struct rlimit){0}) < 0)
		return -errno;
	return keep_ptrace();
}
