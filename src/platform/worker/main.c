// SPDX-License-Identifier: MIT
/* numa-migrd-worker: started by systemd for each connection to its socket, or by the daemon. It
 * serves the socket that is its standard input, and exits when that is closed. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "confine.h"
#include "serve.h"

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
	r = nm_worker_confine();
	if (r > 0) {
		execv(argv[0], argv);
		r = -errno;
	}
	if (r < 0) {
		fprintf(stderr, "Cannot give up capabilities: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	if (!nm_worker_links_are_closed())
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
