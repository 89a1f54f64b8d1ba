/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "report/control.h"

#define TIMEOUT_US (10ULL * 1000 * 1000)
#define DOCUMENT_BYTES_MAX ((off_t)64 << 20)

struct cause {
	int status;
	const char *words;
};

static const struct cause absent = {NM_CTL_UNAVAILABLE,
				    "numa-migrd is not running: systemctl start numa-migrd"};
static const struct cause silent = {NM_CTL_UNAVAILABLE,
				    "numa-migrd does not answer: see systemctl status numa-migrd"};
static const struct cause unreadable = {
	NM_CTL_NOT_ALLOWED,
	"only root and members of the group numa-migrd may read this: run it as root, or join the "
	"group (usermod -aG numa-migrd USER)"};
static const struct cause forbidden = {NM_CTL_NOT_ALLOWED,
				       "only root may control numa-migrd: run it as root"};
static const struct cause unknown = {
	EXIT_FAILURE, "the running numa-migrd is of another version and does not know this command "
		      "(numa-migrctl status)"};

/* Returns NULL for an error that speaks for itself. */
static const struct cause *cause_of(const sd_bus_error *error, int r, bool changes)
{
	const struct cause *refused = changes ? &forbidden : &unreadable;
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
		{SD_BUS_ERROR_UNKNOWN_METHOD, &unknown},
		{SD_BUS_ERROR_UNKNOWN_INTERFACE, &unknown},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(causes); i++)
		if (sd_bus_error_has_name(error, causes[i].name))
			return causes[i].cause;
	return r == -ETIMEDOUT ? &silent : NULL;
}

void nm_ctl_explain_failure(const sd_bus_error *error, int r, bool changes, struct nm_failure *ret)
{
	const struct cause *cause = cause_of(error, r, changes);
	const char *words = error->message ? error->message : strerror(-r);
	if (r == -EBADMSG)
		words = "numa-migrd sent no valid document";
	if (r == -ENODATA)
		words = "numa-migrd sent no valid document, or replaced it before it was read: try "
			"again";
	if (r == -EFBIG)
		words = "numa-migrd sent a document that is too large";
	ret->status = cause ? cause->status : EXIT_FAILURE;
	nm_text_clean(ret->text, sizeof(ret->text), cause ? cause->words : words);
}

/* A configuration has several errors, each on a line of its own. */
static int print_failure(const sd_bus_error *error, int r, bool changes)
{
	struct nm_failure failure;
	char *rest = failure.text, *line;
	nm_ctl_explain_failure(error, r, changes, &failure);
	while ((line = strsep(&rest, "\n")))
		if (line[0] != '\0')
			(void)fprintf(stderr, "numa-migrctl: %s\n", line);
	return failure.status;
}

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

int nm_ctl_change(const char *method, const char *types, ...)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	va_list arguments;
	int r = nm_ctl_open(&bus);
	if (r != EXIT_SUCCESS)
		return r;
	r = nm_ctl_new_call(bus, method, &call);
	va_start(arguments, types);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, arguments);
	va_end(arguments);
	if (r >= 0)
		r = sd_bus_call(bus, call, TIMEOUT_US, &error, NULL);
	return r < 0 ? print_failure(&error, r, true) : EXIT_SUCCESS;
}

static int read_text(int fd, char **ret, size_t *ret_size)
{
	struct stat file;
	size_t used = 0;
	if (fstat(fd, &file) < 0)
		return -errno;
	if (file.st_size == 0)
		return -ENODATA;
	if (file.st_size > DOCUMENT_BYTES_MAX)
		return -EFBIG;
	size_t size = (size_t)file.st_size;
	nm_autofree char *text = nm_must(malloc(size + 1));
	while (used < size) {
		ssize_t r = pread(fd, text + used, size - used, (off_t)used);
		if (r < 0)
			return -errno;
		if (r == 0)
			return -EBADMSG;
		used += (size_t)r;
	}
	*ret = NM_TAKE(text);
	*ret_size = size;
	return 0;
}

/* Returns the text without what controls a terminal. Only the fields of an entry have several
 * lines. */
static char *clean_text(const char *text, bool has_lines)
{
	size_t size = strlen(text) + 1;
	char *clean = nm_must(malloc(size));
	nm_text_clean(clean, size, text);
	for (char *at = clean; !has_lines && *at; at++)
		if (*at == '\n')
			*at = '?';
	return clean;
}

static json_t *clean_value(json_t *value, bool has_lines)
{
	size_t index;
	const char *name;
	json_t *member, *clean;
	if (json_is_string(value)) {
		nm_autofree char *text = clean_text(json_string_value(value), has_lines);
		return nm_must(json_string(text));
	}
	if (!json_is_object(value) && !json_is_array(value))
		return json_incref(value);
	clean = nm_must(json_is_object(value) ? json_object() : json_array());
	json_array_foreach(value, index, member)
	{
		nm_must_do(json_array_append_new(clean, clean_value(member, false)));
	}
	json_object_foreach(value, name, member)
	{
		nm_autofree char *clean_name = clean_text(name, false);
		nm_must_do(json_object_set_new(clean, clean_name,
					       clean_value(member, strcmp(name, "fields") == 0)));
	}
	return clean;
}

int nm_ctl_parse_document(const char *text, size_t size, json_t **ret)
{
	nm_auto(json_decrefp) json_t *document = json_loadb(text, size, 0, NULL);
	if (!json_is_object(json_object_get(document, "status")))
		return -EBADMSG;
	*ret = clean_value(document, false);
	return 0;
}

int nm_ctl_read_document(sd_bus_message *reply, json_t **ret)
{
	nm_autofree char *text = NULL;
	size_t size = 0;
	int fd; /* of the message */
	int r = sd_bus_message_read(reply, "h", &fd);
	if (r >= 0)
		r = read_text(fd, &text, &size);
	return r < 0 ? r : nm_ctl_parse_document(text, size, ret);
}

/* The unit's status line, which anyone may read from systemd (org.freedesktop.systemd1(5)). */
static void print_unit_status(sd_bus *bus)
{
	nm_autofree char *text = NULL;
	char line[512];
	if (sd_bus_get_property_string(bus, "org.freedesktop.systemd1",
				       "/org/freedesktop/systemd1/unit/numa_2dmigrd_2eservice",
				       "org.freedesktop.systemd1.Service", "StatusText", NULL,
				       &text) < 0 ||
	    text[0] == '\0')
		return;
	nm_text_clean(line, sizeof(line), text);
	(void)printf("%s\n", line);
	(void)fflush(stdout);
}

static int fetch(sd_bus *bus, json_t **ret)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = nm_ctl_new_call(bus, "Dump", &call);
	if (r >= 0)
		r = sd_bus_call(bus, call, TIMEOUT_US, &error, &reply);
	if (r >= 0)
		r = nm_ctl_read_document(reply, ret);
	if (r >= 0)
		return EXIT_SUCCESS;
	int status = print_failure(&error, r, false);
	if (status == NM_CTL_NOT_ALLOWED)
		print_unit_status(bus);
	return status;
}

int nm_ctl_fetch(sd_bus *bus, json_t **ret)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *own = NULL;
	json_t *document = NULL;
	int r = bus ? EXIT_SUCCESS : nm_ctl_open(&own);
	if (r == EXIT_SUCCESS)
		r = fetch(bus ? bus : own, &document);
	if (r != EXIT_SUCCESS)
		return r;
	json_int_t left_out = json_integer_value(json_object_get(document, "rows_left_out"));
	if (left_out > 0)
		(void)fprintf(stderr,
			      "numa-migrctl: %" JSON_INTEGER_FORMAT
			      " rows are left out, threads first: there are too many\n",
			      left_out);
	*ret = document;
	return EXIT_SUCCESS;
}

json_t *nm_ctl_try_fetch(sd_bus *bus)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	json_t *document = NULL;
	if (nm_ctl_new_call(bus, "Dump", &call) >= 0 &&
	    sd_bus_call(bus, call, 0, NULL, &reply) >= 0)
		(void)nm_ctl_read_document(reply, &document);
	return document;
}

const json_t *nm_ctl_rows(const json_t *document, const struct nm_table *table)
{
	return json_object_get(document, table->name);
}

const json_t *nm_ctl_find_row(const json_t *rows, const char *name, uint64_t number)
{
	size_t index;
	json_t *row;
	json_array_foreach(rows, index, row)
	{
		const json_t *value = json_object_get(row, name);
		if (json_is_integer(value) && (uint64_t)json_integer_value(value) == number)
			return row;
	}
	return NULL;
}
