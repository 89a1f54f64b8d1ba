/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "numa-migrd/control.h"
#include "numa-migrd/escape.h"

#define TIMEOUT_US (10ULL * 1000 * 1000)

static int unavailable(const char *text)
{
	(void)fprintf(stderr, "numa-migrctl: %s\n", text);
	return NM_CTL_UNAVAILABLE;
}

static bool is_named(const sd_bus_error *error, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sd_bus_error_has_name(error, names[i]))
			return true;
	return false;
}

static bool nobody_there(const sd_bus_error *error)
{
	static const char *const names[] = {SD_BUS_ERROR_SERVICE_UNKNOWN,
					    SD_BUS_ERROR_NAME_HAS_NO_OWNER};
	return is_named(error, names, NM_ARRAY_SIZE(names));
}

static bool no_answer(const sd_bus_error *error)
{
	static const char *const names[] = {SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT};
	return is_named(error, names, NM_ARRAY_SIZE(names));
}

/* The other end's words are foreign text to this terminal. */
static int tell(const sd_bus_error *error, int r)
{
	char text[512];
	const char *words = error->message ? error->message : strerror(-r);
	if (nobody_there(error))
		return unavailable("numa-migrd is not running: systemctl start numa-migrd");
	if (no_answer(error) || r == -ETIMEDOUT)
		return unavailable("numa-migrd does not answer: see systemctl status numa-migrd");
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED)) {
		(void)fputs("numa-migrctl: only root may steer numa-migrd: try with sudo\n",
			    stderr);
		return EXIT_FAILURE;
	}
	(void)nm_escape(text, sizeof(text), words, strlen(words));
	(void)fprintf(stderr, "numa-migrctl: %s\n", text);
	return EXIT_FAILURE;
}

static int send_call(sd_bus *bus, const char *method, const uint32_t *pid, sd_bus_error *error,
		     sd_bus_message **ret_reply)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(bus, &call, NM_BUS_NAME, NM_BUS_PATH,
					       NM_BUS_INTERFACE, method);
	if (r >= 0)
		r = sd_bus_message_set_auto_start(call, 0);
	if (r >= 0 && pid)
		r = sd_bus_message_append(call, "u", *pid);
	if (r < 0)
		return r;
	return sd_bus_call(bus, call, TIMEOUT_US, error, ret_reply);
}

int nm_ctl_call(const char *method, const uint32_t *pid, sd_bus_message **ret_reply)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	if (sd_bus_open_system(&bus) < 0)
		return unavailable("the system bus is not running: systemctl start dbus");
	int r = send_call(bus, method, pid, &error, ret_reply);
	return r < 0 ? tell(&error, r) : EXIT_SUCCESS;
}
