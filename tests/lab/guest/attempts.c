/* SPDX-License-Identifier: MIT */
/*
 * attempts [NAME…]: attempts operations that no program of numa-migrd needs, each once, except
 * those named. Prints "denied NAME: ERROR" or "allowed NAME" for each. A scenario runs it under the
 * installed units. An operation that succeeds changes nothing, or is undone.
 */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* Each returns 0, or -1 with errno. */

static int open_for_writing(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	close(fd);
	(void)unlink(path);
	return 0;
}

static int write_etc(void)
{
	return open_for_writing("/etc/numa-migrd.attempt");
}

static int write_state(void)
{
	return open_for_writing("/var/lib/numa-migrd.attempt");
}

static int write_run(void)
{
	return open_for_writing("/run/numa-migrd.attempt");
}

static int write_sysctl(void)
{
	return open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC) < 0 ? -1 : 0;
}

static int make_cgroup(void)
{
	static const char path[] = "/sys/fs/cgroup/numa-migrd.attempt";

	return mkdir(path, 0700) < 0 ? -1 : rmdir(path);
}

static int read_home(void)
{
	return open("/root/.profile", O_RDONLY | O_CLOEXEC) < 0 ? -1 : 0;
}

static int read_memory(void)
{
	return open("/proc/1/mem", O_RDONLY | O_CLOEXEC) < 0 ? -1 : 0;
}

static int read_environment(void)
{
	int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
	char byte;

	return fd < 0 || read(fd, &byte, 1) != 1 ? -1 : 0;
}

static int read_by_call(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)0x1000, 1};
	ssize_t got = process_vm_readv(1, &here, 1, &there, 1, 0);

	return got < 0 && errno != EFAULT ? -1 : 0; /* EFAULT: it was let in */
}

/* In a unit, that is systemd: if it is permitted, it continues at once. */
static int trace(void)
{
	pid_t parent = getppid();

	if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) < 0)
		return -1;
	(void)waitpid(parent, NULL, __WALL);
	return (int)ptrace(PTRACE_DETACH, parent, NULL, NULL);
}

static int open_network(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0 ? -1 : 0;
}

static int open_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) < 0 ? -1 : 0;
}

static int become_realtime(void)
{
	const struct sched_param first = {.sched_priority = 1}, none = {0};

	return sched_setscheduler(0, SCHED_FIFO, &first) < 0
		       ? -1
		       : sched_setscheduler(0, SCHED_OTHER, &none);
}

static int raise_priority(void)
{
	return setpriority(PRIO_PROCESS, 0, -10);
}

static int become_root(void)
{
	if (getuid() == 0) /* the helper is: any other user then */
		return setresuid(1, 1, 1);
	return setresuid(0, 0, 0);
}

static int mount_something(void)
{
	return mount("none", "/mnt", "tmpfs", 0, NULL) < 0 ? -1 : umount("/mnt");
}

static int make_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int map_writable_code(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return code == MAP_FAILED ? -1 : 0;
}

/* Whether it may be executed: execve(2) would take our place. */
static int run_shell(void)
{
	return access("/bin/sh", X_OK);
}

static int set_clock(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME, &now) < 0 ? -1 : clock_settime(CLOCK_REALTIME, &now);
}

static int set_host_name(void)
{
	char name[65] = "";

	return gethostname(name, sizeof(name) - 1) < 0 ? -1 : sethostname(name, strlen(name));
}

static int load_module(void)
{
	return (int)syscall(SYS_init_module, "", 0, "");
}

static int use_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0) < 0 && errno != EINVAL && errno != EFAULT ? -1 : 0;
}

static int use_keys(void)
{
	return (int)syscall(SYS_keyctl, 0, -3, 0) < 0 ? -1 : 0;
}

static int use_userfaultfd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1) < 0 ? -1 : 0;
}

static int use_io_uring(void)
{
	struct io_uring_params params = {0};

	return (int)syscall(SYS_io_uring_setup, 1, &params) < 0 ? -1 : 0;
}

static int kill_another(void)
{
	return kill(1, 0);
}

static int open_device(void)
{
	return open("/dev/mem", O_RDONLY | O_CLOEXEC) < 0 ? -1 : 0;
}

static int make_setuid(void)
{
	static const char path[] = "/tmp/attempt";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 ? -1 : fchmod(fd, 04755);
	int error = errno;

	(void)unlink(path);
	errno = error;
	return r;
}

static const struct attempt {
	const char *name;
	int (*run)(void);
} attempts[] = {
	{"write-etc", write_etc},
	{"write-state", write_state},
	{"write-run", write_run},
	{"write-sysctl", write_sysctl},
	{"make-cgroup", make_cgroup},
	{"read-home", read_home},
	{"read-memory", read_memory},
	{"read-environment", read_environment},
	{"read-by-call", read_by_call},
	{"trace", trace},
	{"network", open_network},
	{"netlink", open_netlink},
	{"realtime", become_realtime},
	{"priority", raise_priority},
	{"mount", mount_something},
	{"namespace", make_namespace},
	{"writable-code", map_writable_code},
	{"shell", run_shell},
	{"clock", set_clock},
	{"host-name", set_host_name},
	{"module", load_module},
	{"bpf", use_bpf},
	{"keys", use_keys},
	{"userfaultfd", use_userfaultfd},
	{"io-uring", use_io_uring},
	{"kill", kill_another},
	{"device", open_device},
	{"setuid-file", make_setuid},
	{"user", become_root}, /* the last one: it changes who we are */
};

static int is_named(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		if (is_named(attempts[i].name, argc, argv))
			continue;
		if (attempts[i].run() < 0)
			printf("denied %s: %s\n", attempts[i].name, strerror(errno));
		else
			printf("allowed %s\n", attempts[i].name);
		fflush(stdout);
	}
	printf("%zu attempts\n", sizeof(attempts) / sizeof(*attempts));
	return 0;
}
