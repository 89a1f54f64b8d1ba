/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/control.h"

#define TIMEOUT_US (10ULL * 1000 * 1000)
#define PERSON_TIMEOUT_US (120ULL * 1000 * 1000) /* time for entering a password */

/* ---- errors ---- */

struct cause {
	int status;
	const char *words;
};

static const struct cause absent = {NM_CTL_UNAVAILABLE,
				    "numa-migrd is not running: systemctl start numa-migrd"};
static const struct cause silent = {NM_CTL_UNAVAILABLE,
				    "numa-migrd does not answer: see systemctl status numa-migrd"};
static const struct cause unreadable = {
	NM_CTL_NOT_ALLOWED, "only root and the group numa-migrd may read this: run it as root"};
static const struct cause forbidden = {
	NM_CTL_NOT_ALLOWED, "only an administrator may control numa-migrd: run it as root"};
static const struct cause unknown = {
	EXIT_FAILURE, "the running numa-migrd is of another version and does not know this command "
		      "(numa-migrctl status)"};

/* Returns NULL for an error that speaks for itself. */
static const struct cause *cause_of(const sd_bus_error *error, int r, enum nm_right right)
{
	const struct cause *refused = right == NM_RIGHT_STEER ? &forbidden : &unreadable;
	const struct {
		const char *name;
		const struct cause *cause;
	} causes[] = {
		{SD_BUS_ERROR_SERVICE_UNKNOWN, &absent},
		{SD_BUS_ERROR_NAME_HAS_NO_OWNER, &absent},
		{SD_BUS_ERROR_NO_REPLY, &silent},
		{SD_BUS_ERROR_TIMEOUT, &silent},
		{SD_BUS_ERROR_DISCONNECTED, &silent},
		{SD_BUS_ERROR_ACCESS_DENIED, refused},
		{SD_BUS_ERROR_AUTH_FAILED, refused},
		{SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, refused},
		{SD_BUS_ERROR_UNKNOWN_METHOD, &unknown},
		{SD_BUS_ERROR_UNKNOWN_INTERFACE, &unknown},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(causes); i++)
		if (sd_bus_error_has_name(error, causes[i].name))
			return causes[i].cause;
	return r == -ETIMEDOUT ? &silent : NULL;
}

void nm_ctl_explain_failure(const sd_bus_error *error, int r, enum nm_right right,
			    struct nm_failure *ret)
{
	const struct cause *cause = cause_of(error, r, right);
	const char *words = error->message ? error->message : strerror(-r);
	ret->status = cause ? cause->status : EXIT_FAILURE;
	nm_text_clean(ret->text, sizeof(ret->text), cause ? cause->words : words);
}

/* A configuration has several errors, each on a line of its own. */
static int print_failure(const sd_bus_error *error, int r, enum nm_right right)
{
	struct nm_failure failure;
	char *rest = failure.text, *line;
	nm_ctl_explain_failure(error, r, right, &failure);
	while ((line = strsep(&rest, "\n")))
		if (line[0] != '\0')
			(void)fprintf(stderr, "numa-migrctl: %s\n", line);
	return failure.status;
}

/* ---- calls ---- */

int nm_ctl_open(sd_bus **ret)
{
	if (sd_bus_open_system(ret) >= 0)
		return EXIT_SUCCESS;
	(void)fputs("numa-migrctl: the system bus is not running: systemctl start dbus\n", stderr);
	return NM_CTL_UNAVAILABLE;
}

int nm_ctl_new_call(sd_bus *bus, const char *method, sd_bus_message **ret)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(bus, &call, NM_BUS_NAME, NM_BUS_PATH,
					       NM_BUS_INTERFACE, method);
	if (r >= 0)
		r = sd_bus_message_set_auto_start(call, 0);
	if (r < 0)
		return r;
	*ret = NM_TAKE(call);
	return 0;
}

/* `r` is the result of creating the call. */
static int send_call(sd_bus *bus, sd_bus_message *call, int r, enum nm_right right, json_t **ret)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	bool person = right == NM_RIGHT_STEER && isatty(STDIN_FILENO);
	if (r >= 0 && person)
		r = sd_bus_message_set_allow_interactive_authorization(call, 1);
	if (r >= 0)
		r = sd_bus_call(bus, call, person ? PERSON_TIMEOUT_US : TIMEOUT_US, &error, &reply);
	if (r >= 0)
		r = nm_value_read(reply, ret);
	return r < 0 ? print_failure(&error, r, right) : EXIT_SUCCESS;
}

int nm_ctl_ask(sd_bus *bus, const char *method, json_t **ret)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int r = nm_ctl_new_call(bus, method, &call);
	return send_call(bus, call, r, NM_RIGHT_READ, ret);
}

int nm_ctl_ask_once(const char *method, enum nm_right right, json_t **ret, const char *types, ...)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	va_list arguments;
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	r = nm_ctl_new_call(bus, method, &call);
	va_start(arguments, types);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, arguments);
	va_end(arguments);
	return send_call(bus, call, r, right, ret);
}
