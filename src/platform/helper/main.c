// SPDX-License-Identifier: MIT
/* numa-migrd-helper: systemd starts it when a client connects to its socket; it exits when no
 * client is connected. */
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "server.h"

#define USER "numa-migrd"
#define IDLE_US (60ULL * 1000 * 1000)
#define REMEMBERED 32

/* Failures that were logged, once per kind, so that a client cannot flood the journal. */
struct failures {
	size_t count;
	struct {
		uint32_t act;
		int error;
	} logged[REMEMBERED];
};

static const char *const act_names[] = {
	[0] = "Connection",
	[NM_HELPER_OPEN_EVENT] = "Opening an event",
	[NM_HELPER_NUMA_BALANCING] = "Changing kernel.numa_balancing",
	[NM_HELPER_NUMA_BALANCING + 1] = "Unknown act",
};

/* The daemon finds out by trials which events a machine has, and reports missing ones itself. */
static bool is_expected(uint32_t act, int error)
{
	return act == NM_HELPER_OPEN_EVENT &&
	       (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV || error == -ESRCH);
}

static void on_failure(void *context, uint32_t act, int error)
{
	struct failures *failures = context;

	if (is_expected(act, error))
		return;
	act = act > NM_HELPER_NUMA_BALANCING ? NM_HELPER_NUMA_BALANCING + 1 : act;
	for (size_t i = 0; i < failures->count; i++)
		if (failures->logged[i].act == act && failures->logged[i].error == error)
			return;
	if (failures->count == REMEMBERED)
		return;
	failures->logged[failures->count].act = act;
	failures->logged[failures->count++].error = error;
	fprintf(stderr, SD_NOTICE "%s: %s (logged once)\n", act_names[act],
		error == -ENOPKG ? "not an event that libpfm4 encodes here: see numa-migrd "
				   "--check-config"
				 : strerror(-error));
}

static void eventp(sd_event **event)
{
	sd_event_unref(*event);
}

static int serve(const struct nm_helper_context *acts, int listen_fd)
{
	nm_auto(eventp) sd_event *event = NULL;
	nm_auto(nm_helper_server_freep) struct nm_helper_server *server = NULL;
	const struct passwd *user = getpwnam(USER);
	struct failures failures = {0};
	sigset_t signals;
	const struct nm_helper_server_options options = {.acts = acts,
							 .listen_fd = listen_fd,
							 .permitted = user ? user->pw_uid : 0,
							 .idle_us = IDLE_US,
							 .on_failure = on_failure,
							 .context = &failures};

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = nm_helper_server_new(event, &options, &server);
	if (r < 0)
		return r;
	(void)sd_notify(0, "READY=1\nSTATUS=Waiting for requests.");
	r = sd_event_loop(event);
	(void)sd_notify(0, "STOPPING=1");
	return r;
}

static int serve_activated(const struct nm_helper_context *acts)
{
	int count = sd_listen_fds(1);

	if (count != 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0) {
		fprintf(stderr, SD_ERR "No listening socket was passed: this program is started by "
				       "numa-migrd-helper.socket (systemctl start it).\n");
		return EX_USAGE;
	}
	int r = serve(acts, SD_LISTEN_FDS_START);
	if (r < 0)
		fprintf(stderr, SD_ERR "Cannot serve: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int restore(const struct nm_helper_context *acts)
{
	int r = nm_helper_restore(acts);

	if (r < 0)
		fprintf(stderr, SD_ERR "kernel.numa_balancing cannot be put back: %s\n",
			strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int usage(FILE *out, int code)
{
	fprintf(out,
		"Usage: numa-migrd-helper [--restore | --version | --help]\n"
		"\n"
		"Perform privileged operations for numa-migrd(8). Started by\n"
		"numa-migrd-helper.socket.\n"
		"\n"
		"      --restore  restore kernel.numa_balancing after a crash, and exit\n"
		"      --version  print the version and exit\n"
		"      --help     print this help and exit\n"
		"\n"
		"Exit status: 0 stopped, or no client was connected for some time, 1 failure,\n"
		"64 wrong usage, or not started by the socket.\n");
	return code;
}

static int run(int argc, char **argv, const struct nm_helper_context *acts)
{
	static const struct option options[] = {{"restore", no_argument, NULL, 'r'},
						{"version", no_argument, NULL, 'v'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	int option = getopt_long(argc, argv, "", options, NULL);

	if (optind < argc)
		return usage(stderr, EX_USAGE);
	switch (option) {
	case -1:
		return serve_activated(acts);
	case 'r':
		return restore(acts);
	case 'v':
		puts("numa-migrd-helper " NM_VERSION);
		return EXIT_SUCCESS;
	case 'h':
		return usage(stdout, EXIT_SUCCESS);
	default:
		return usage(stderr, EX_USAGE);
	}
}

int main(int argc, char **argv)
{
	struct nm_helper_context acts = {
		.config = {.path = NM_CONFIG_FILE, .folder = NM_CONFIG_FOLDER},
		.state_path = NM_HELPER_STATE_PATH};

	acts.root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	acts.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (acts.proc_fd < 0 || acts.root_fd < 0) {
		fprintf(stderr, SD_ERR "/proc: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	int code = run(argc, argv, &acts);
	close(acts.proc_fd);
	close(acts.root_fd);
	return code;
}
