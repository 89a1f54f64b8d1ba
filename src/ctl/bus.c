/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/control.h"

#define TIMEOUT_US (10ULL * 1000 * 1000)
#define PERSON_TIMEOUT_US (120ULL * 1000 * 1000) /* time for entering a password */

/* ---- errors ---- */

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

static bool no_answer(const sd_bus_error *error, int r)
{
	static const char *const names[] = {SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT,
					    SD_BUS_ERROR_DISCONNECTED};
	return r == -ETIMEDOUT || is_named(error, names, NM_ARRAY_SIZE(names));
}

static bool not_allowed(const sd_bus_error *error)
{
	static const char *const names[] = {SD_BUS_ERROR_ACCESS_DENIED, SD_BUS_ERROR_AUTH_FAILED,
					    SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED};
	return is_named(error, names, NM_ARRAY_SIZE(names));
}

static bool not_known(const sd_bus_error *error)
{
	static const char *const names[] = {SD_BUS_ERROR_UNKNOWN_METHOD,
					    SD_BUS_ERROR_UNKNOWN_INTERFACE};
	return is_named(error, names, NM_ARRAY_SIZE(names));
}

static void set_failure(struct nm_failure *ret, int status, const char *text)
{
	ret->status = status;
	(void)snprintf(ret->text, sizeof(ret->text), "%s", text);
}

/* Keeps line breaks (a configuration has several errors), but no other control characters. */
static void copy_words(struct nm_failure *ret, const char *words)
{
	const struct nm_style style = {.utf8 = true};
	nm_autofree char *copy = strdup(words);
	char *rest = copy, *line;
	size_t used = 0;
	ret->status = EXIT_FAILURE;
	ret->text[0] = '\0';
	while (rest && (line = strsep(&rest, "\n")) && used + 2 < sizeof(ret->text)) {
		if (line[0] == '\0')
			continue;
		if (used > 0)
			ret->text[used++] = '\n';
		(void)nm_text_fit(ret->text + used, sizeof(ret->text) - used, line,
				  NM_TEXT_ANY_WIDTH, &style);
		used += strlen(ret->text + used);
	}
}

void nm_ctl_explain_failure(const sd_bus_error *error, int r, enum nm_right right,
			    struct nm_failure *ret)
{
	if (nobody_there(error))
		set_failure(ret, NM_CTL_UNAVAILABLE,
			    "numa-migrd is not running: systemctl start numa-migrd");
	else if (no_answer(error, r))
		set_failure(ret, NM_CTL_UNAVAILABLE,
			    "numa-migrd does not answer: see systemctl status numa-migrd");
	else if (not_allowed(error) && right == NM_RIGHT_STEER)
		set_failure(ret, NM_CTL_NOT_ALLOWED,
			    "only an administrator may control numa-migrd: try with sudo");
	else if (not_allowed(error))
		set_failure(ret, NM_CTL_NOT_ALLOWED,
			    "only root and the group numa-migrd may read this: try with sudo");
	else if (not_known(error))
		set_failure(ret, EXIT_FAILURE,
			    "the running numa-migrd is of another version and does not know this "
			    "command "
			    "(numa-migrctl status)");
	else
		copy_words(ret, error->message ? error->message : strerror(-r));
}

static int print_failure(const sd_bus_error *error, int r, enum nm_right right)
{
	struct nm_failure failure;
	char *rest = failure.text, *line;
	nm_ctl_explain_failure(error, r, right, &failure);
	while ((line = strsep(&rest, "\n")))
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

static int send_call(sd_bus *bus, const char *method, bool person, sd_bus_error *error,
		     json_t **ret, const char *types, va_list arguments)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
	int r = nm_ctl_new_call(bus, method, &call);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, arguments);
	if (r >= 0 && person)
		r = sd_bus_message_set_allow_interactive_authorization(call, 1);
	if (r >= 0)
		r = sd_bus_call(bus, call, person ? PERSON_TIMEOUT_US : TIMEOUT_US, error, &reply);
	if (r >= 0)
		r = nm_value_read(reply, ret);
	return r;
}

int nm_ctl_ask(sd_bus *bus, const char *method, json_t **ret, const char *types, ...)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	va_list arguments;
	va_start(arguments, types);
	int r = send_call(bus, method, false, &error, ret, types, arguments);
	va_end(arguments);
	return r < 0 ? print_failure(&error, r, NM_RIGHT_READ) : EXIT_SUCCESS;
}

int nm_ctl_ask_once(const char *method, enum nm_right right, json_t **ret, const char *types, ...)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	va_list arguments;
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	bool person = right == NM_RIGHT_STEER && isatty(STDIN_FILENO);
	va_start(arguments, types);
	r = send_call(bus, method, person, &error, ret, types, arguments);
	va_end(arguments);
	return r < 0 ? print_failure(&error, r, right) : EXIT_SUCCESS;
}
