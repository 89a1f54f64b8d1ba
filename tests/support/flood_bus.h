/* SPDX-License-Identifier: MIT */
/* A local user who floods the service with calls on the bus from several connections. */
#ifndef NM_TEST_FLOOD_BUS_H
#define NM_TEST_FLOOD_BUS_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "numa-migrd/control.h"

#define FLOOD_UID 65534
#define FLOOD_CONNECTIONS 8U   /* each of a separate process */
#define FLOOD_OUTSTANDING 100U /* the bus allows 128 per connection */
#define FLOOD_SILENT 64U       /* calls without reply for each iteration of the bus */

static int flood_again(sd_bus_message *reply, void *userdata, sd_bus_error *error);

static inline void flood_call(sd_bus *bus, unsigned *calls)
{
	static const char *const methods[] = {"Status", "Pause"};
	(void)sd_bus_call_method_async(bus, NULL, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE,
				       methods[(*calls)++ % 2], flood_again, calls, "");
}

static int flood_again(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	(void)error;
	flood_call(sd_bus_message_get_bus(reply), userdata);
	return 0;
}

static inline void flood_silently(sd_bus *bus)
{
	sd_bus_message *message = NULL;
	if (sd_bus_message_new_method_call(bus, &message, NM_BUS_NAME, NM_BUS_PATH,
					   NM_BUS_INTERFACE, "Status") < 0)
		return;
	(void)sd_bus_message_set_expect_reply(message, 0);
	(void)sd_bus_send(bus, message, NULL);
	sd_bus_message_unref(message);
}

static inline void flood_for_ever(void)
{
	sd_bus *bus = NULL;
	unsigned calls = 0;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setresgid(FLOOD_UID, FLOOD_UID, FLOOD_UID) < 0 ||
	    setresuid(FLOOD_UID, FLOOD_UID, FLOOD_UID) < 0 || sd_bus_open_system(&bus) < 0)
		_exit(1);
	while (calls < FLOOD_OUTSTANDING)
		flood_call(bus, &calls);
	for (;;) {
		for (unsigned i = 0; i < FLOOD_SILENT; i++)
			flood_silently(bus);
		while (sd_bus_process(bus, NULL) > 0)
			;
		if (sd_bus_flush(bus) < 0)
			_exit(1);
	}
}

static inline void flood_begin(pid_t pids[FLOOD_CONNECTIONS])
{
	for (unsigned i = 0; i < FLOOD_CONNECTIONS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			flood_for_ever();
	}
}

static inline void flood_end(const pid_t pids[FLOOD_CONNECTIONS])
{
	for (unsigned i = 0; i < FLOOD_CONNECTIONS; i++) {
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
}

#endif
