// SPDX-License-Identifier: MIT
/* numa-migrd-worker: started by systemd for each connection to its socket, or by the daemon. It
 * serves the socket that is its standard input, and exits when that is closed. */
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "serve.h"

/* ---- privileges ---- */

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

/* Returns whether links in /proc are no longer followed, by trying one. */
static bool links_are_closed(void)
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
	if (geteuid() != 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, CAP_SYS_ADMIN, 0, 0) == 0)
		return 1;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	data[0] = (struct __user_cap_data_struct){.permitted = ptrace, .effective = ptrace};
	data[1] = (struct __user_cap_data_struct){0};
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/*
 * Drops the privileges that a worker does not need: in a mount namespace of its own, prevents that
 * links in /proc are followed (root, cwd and exe of other processes lead anywhere;
 * mount_setattr(2), Linux 5.14), and keeps only CAP_SYS_PTRACE, if the process has it. Returns 0; 1
 * if the program must be executed again, and then calls this function without the other
 * capabilities; or the negative errno of dropping capabilities. Links stay accessible if
 * CAP_SYS_ADMIN or a namespace is not available.
 */
static int confine(void)
{
	struct mount_attr attributes = {.attr_set = NOSYMFOLLOW};

	/* links_are_closed() checks the result, because the program cannot do this again after it
	 * was executed again. */
	if (has_namespace())
		(void)syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &attributes,
			      sizeof(attributes));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &(struct rlimit){0}) < 0)
		return -errno;
	return keep_ptrace();
}

/* ---- the program ---- */

/* Only root and our own user may connect; systemd's socket is accessible to the service's user
 * only. */
static int check_peer(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int type = 0;

	if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof(type)}) < 0)
		return -errno;
	if (type != SOCK_SEQPACKET)
		return -ENOTSOCK;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EACCES;
}

static int serve(char **argv)
{
	int r = check_peer(STDIN_FILENO);

	if (r < 0) {
		fputs("Standard input is no socket of numa-migrd's: this program is started by "
		      "numa-migrd-worker.socket or by numa-migrd.\n",
		      stderr);
		return EX_USAGE;
	}
	r = confine();
	if (r > 0) {
		execv(argv[0], argv);
		r = -errno;
	}
	if (r < 0) {
		fprintf(stderr, "Cannot give up capabilities: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	if (!links_are_closed())
		fputs("Links below /proc can be followed from here (to close them takes Linux 5.14 "
		      "and CAP_SYS_ADMIN): taken over, this worker could open other users' "
		      "files.\n",
		      stderr);
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = proc_fd < 0 ? -errno : nm_worker_serve(proc_fd, STDIN_FILENO);
	if (r < 0)
		fprintf(stderr, "Cannot serve: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int usage(FILE *out, int code)
{
	fprintf(out,
		"Usage: numa-migrd-worker [--version | --help]\n"
		"\n"
		"Examine and move the memory of other processes for numa-migrd(8), which may\n"
		"block. Started by numa-migrd-worker.socket or numa-migrd.\n"
		"\n"
		"      --version  print the version and exit\n"
		"      --help     print this help and exit\n"
		"\n"
		"Exit status: 0 no client is connected any more, 1 failure, 64 wrong usage, or not\n"
		"started by numa-migrd-worker.socket or numa-migrd.\n");
	return code;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"version", no_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'}, {0}};
	int option = getopt_long(argc, argv, "", options, NULL);

	if (optind < argc)
		return usage(stderr, EX_USAGE);
	switch (option) {
	case -1:
		return serve(argv);
	case 'v':
		puts("numa-migrd-worker " NM_VERSION);
		return EXIT_SUCCESS;
	case 'h':
		return usage(stdout, EXIT_SUCCESS);
	default:
		return usage(stderr, EX_USAGE);
	}
}
