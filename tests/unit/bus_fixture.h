/* SPDX-License-Identifier: MIT */
/* A private system bus: dbus-daemon with a policy of the test. Include after cmocka.h. */
#ifndef NM_TEST_BUS_FIXTURE_H
#define NM_TEST_BUS_FIXTURE_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "report/control.h"

struct bus {
	char folder[64];
	pid_t daemon, server;
};

__attribute__((unused)) static const char open_policy[] =
	"<policy context=\"default\"><allow send_destination=\"*\"/>"
	"<allow receive_sender=\"*\"/><allow own=\"*\"/>"
	"<allow user=\"*\"/></policy>";
/* Serves on the bus until it is killed; writes 0 or -errno to `ready` once it is ready. */
typedef void (*bus_server_fn)(int ready);

static inline bool write_config(const struct bus *bus, const char *policy)
{
	char path[128];
	(void)snprintf(path, sizeof(path), "%s/bus.conf", bus->folder);
	FILE *file = fopen(path, "we");
	if (!file)
		return false;
	(void)fprintf(file,
		      "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-BUS Bus Configuration "
		      "1.0//EN\" \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">"
		      "<busconfig><listen>unix:path=%s/bus</listen>%s</busconfig>",
		      bus->folder, policy);
	return fclose(file) == 0;
}

static inline bool runs(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

/* dbus-daemon prints its address once it listens. */
static inline bool start_bus(struct bus *bus)
{
	char path[128], address[256];
	int output[2];
	if (pipe2(output, 0) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "--config-file=%s/bus.conf", bus->folder);
	bus->daemon = fork();
	if (bus->daemon == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(output[1], STDOUT_FILENO);
		(void)execlp("dbus-daemon", "dbus-daemon", path, "--nofork", "--nopidfile",
			     "--print-address=1", (char *)NULL);
		_exit(127);
	}
	close(output[1]);
	ssize_t length = read(output[0], address, sizeof(address));
	close(output[0]);
	(void)snprintf(path, sizeof(path), "unix:path=%s/bus", bus->folder);
	setenv("DBUS_SYSTEM_BUS_ADDRESS", path, 1);
	return length > 0 && runs(bus->daemon);
}

/* Defined by gcov in a coverage build only; writes the counters of a process. */
void __gcov_dump(void) __attribute__((weak));

static inline void write_counts_and_exit(int number)
{
	(void)number;
	if (__gcov_dump)
		__gcov_dump();
	_exit(0);
}

static inline bool start_server(struct bus *bus, bus_server_fn serve)
{
	int ready[2], r = -1;
	if (pipe(ready) < 0)
		return false;
	bus->server = fork();
	if (bus->server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGTERM, write_counts_and_exit);
		serve(ready[1]);
	}
	close(ready[1]);
	ssize_t length = read(ready[0], &r, sizeof(r));
	close(ready[0]);
	return length == sizeof(r) && r == 0;
}

static inline void end(pid_t *pid)
{
	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGKILL);
	(void)waitpid(*pid, NULL, 0);
	*pid = 0;
}

/* Sends SIGTERM first, so that it writes its coverage counters. */
static inline void end_server(pid_t *pid)
{
	if (*pid > 0 && kill(*pid, SIGTERM) == 0)
		for (unsigned i = 0; i < 500 && runs(*pid); i++)
			(void)usleep(10000);
	end(pid);
}

static inline int teardown(void **state)
{
	struct bus *bus = *state;
	char path[128];
	if (!bus)
		return 0;
	end_server(&bus->server);
	end(&bus->daemon);
	(void)snprintf(path, sizeof(path), "%s/bus.conf", bus->folder);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/bus", bus->folder);
	(void)unlink(path);
	(void)rmdir(bus->folder);
	free(bus);
	return 0;
}

/* state stays NULL without dbus-daemon; the tests then skip. */
static inline int setup(void **state, const char *policy, bus_server_fn serve)
{
	struct bus *bus = calloc(1, sizeof(*bus));
	if (!bus)
		return -1;
	memcpy(bus->folder, "/tmp/nm-bus-XXXXXX", sizeof("/tmp/nm-bus-XXXXXX"));
	if (!mkdtemp(bus->folder) || chmod(bus->folder, 0755) < 0 || !write_config(bus, policy))
		return -1;
	*state = bus;
	if (start_bus(bus))
		return !serve || start_server(bus, serve) ? 0 : -1;
	(void)teardown(state);
	*state = NULL;
	return 0;
}

static inline void need(bool condition, const char *what)
{
	if (condition)
		return;
	print_message("skipped: %s\n", what);
	skip();
}

static inline void need_bus(void **state)
{
	need(*state != NULL, "no dbus-daemon on this machine");
}

#endif
