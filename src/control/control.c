/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "numa-migrd/control.h"

#define STATUS_ROOM 64

#define ERROR_ALREADY_PAUSED NM_BUS_NAME ".Error.AlreadyPaused"
#define ERROR_ALREADY_RUNNING NM_BUS_NAME ".Error.AlreadyRunning"
#define ERROR_NOT_MANAGED NM_BUS_NAME ".Error.NotManaged"

#define RETRY_FIRST_USEC UINT64_C(1000000)
#define RETRY_MOST_USEC UINT64_C(60000000)

struct nm_control {
	sd_event *event;
	sd_event_source *retry;
	uint64_t retry_usec; /* until the next try */
	sd_bus *bus;
	sd_bus_slot *object, *disconnected, *name;
	bool down_told;
	struct nm_control_ops ops;
};

static int append_value(sd_bus_message *reply, const struct nm_status_item *item)
{
	switch (item->type) {
	case NM_STATUS_TEXT:
		return sd_bus_message_append(reply, "{sv}", item->name, "s", item->text);
	case NM_STATUS_UINT:
		return sd_bus_message_append(reply, "{sv}", item->name, "t", item->number);
	case NM_STATUS_REAL:
		return isnan(item->real)
			       ? 0
			       : sd_bus_message_append(reply, "{sv}", item->name, "d", item->real);
	case NM_STATUS_BOOL:
		return sd_bus_message_append(reply, "{sv}", item->name, "b", (int)item->flag);
	}
	return -EINVAL;
}

static int append_items(sd_bus_message *reply, const struct nm_status_item *items, size_t count)
{
	int r = sd_bus_message_open_container(reply, 'a', "{sv}");
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = append_value(reply, &items[i]);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int on_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)error;
	const struct nm_control *control = userdata;
	struct nm_status_item items[STATUS_ROOM] = {0};
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	size_t count = control->ops.status(control->ops.context, items, STATUS_ROOM);
	int r = sd_bus_message_new_method_return(call, &reply);
	if (r < 0)
		return r;
	r = append_items(reply, items, count);
	if (r < 0)
		return r;
	return sd_bus_send(NULL, reply, NULL);
}

/*
 * The bus policy already lets only root call these; this is the second lock, for a bus whose policy
 * is not ours. The bus daemon vouches for the uid: nothing is read from the caller's /proc.
 */
static int require_root(sd_bus_message *call, sd_bus_error *error)
{
	nm_auto(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
	uid_t uid;
	int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);
	if (r >= 0)
		r = sd_bus_creds_get_euid(creds, &uid);
	if (r < 0)
		return sd_bus_error_set_errnof(error, r, "the caller's user cannot be told");
	if (uid != 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
					 "%s is for root alone, and the caller is user %u",
					 sd_bus_message_get_member(call), uid);
	return 0;
}

static int answer(sd_bus_message *call, int r, sd_bus_error *error)
{
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	return sd_bus_reply_method_return(call, "");
}

static int on_pause(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	int r = require_root(call, error);
	if (r < 0)
		return r;
	r = control->ops.pause(control->ops.context);
	if (r == -EALREADY)
		return sd_bus_error_set(error, ERROR_ALREADY_PAUSED,
					"numa-migrd is paused already");
	return answer(call, r, error);
}

static int on_resume(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	int r = require_root(call, error);
	if (r < 0)
		return r;
	r = control->ops.resume(control->ops.context);
	if (r == -EALREADY)
		return sd_bus_error_set(error, ERROR_ALREADY_RUNNING, "numa-migrd is not paused");
	return answer(call, r, error);
}

static int on_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	uint32_t pid;
	int r = require_root(call, error);
	if (r < 0)
		return r;
	r = sd_bus_message_read(call, "u", &pid);
	if (r < 0)
		return r;
	r = control->ops.release(control->ops.context, pid);
	if (r == -ESRCH)
		return sd_bus_error_setf(error, ERROR_NOT_MANAGED,
					 "process %u is not managed by numa-migrd", pid);
	return answer(call, r, error);
}

/* UNPRIVILEGED: sd-bus's own check would ask for CAP_SYS_ADMIN; ours asks for root. */
static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", status), on_status,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_pause,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_resume,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, on_release,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

/* ---- the connection ---- */

static void disconnect(struct nm_control *control)
{
	control->object = sd_bus_slot_unref(control->object);
	control->disconnected = sd_bus_slot_unref(control->disconnected);
	control->name = sd_bus_slot_unref(control->name);
	control->bus = sd_bus_close_unref(control->bus);
}

static void on_up(struct nm_control *control)
{
	control->retry_usec = RETRY_FIRST_USEC;
	if (control->down_told)
		control->ops.bus_changed(control->ops.context, 0);
	control->down_told = false;
}

/* May be called from the bus's own handlers: the connection is taken down by the next try. */
static void on_down(struct nm_control *control, int error)
{
	int enabled = SD_EVENT_OFF;
	(void)sd_event_source_get_enabled(control->retry, &enabled);
	if (enabled != SD_EVENT_OFF) /* more than one handler hears of it */
		return;
	if (!control->down_told)
		control->ops.bus_changed(control->ops.context, error);
	control->down_told = true;
	(void)sd_event_source_set_time_relative(control->retry, control->retry_usec);
	(void)sd_event_source_set_enabled(control->retry, SD_EVENT_ONESHOT);
	control->retry_usec *= 2;
	if (control->retry_usec > RETRY_MOST_USEC)
		control->retry_usec = RETRY_MOST_USEC;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	(void)message;
	(void)error;
	on_down(userdata, -ECONNRESET);
	return 0;
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	(void)error;
	uint32_t answer = 0;
	int r = -sd_bus_message_get_errno(reply);
	if (r == 0)
		r = sd_bus_message_read(reply, "u", &answer);
	if (r >= 0 && answer != 1) /* DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER */
		r = -EEXIST;
	if (r < 0)
		on_down(userdata, r);
	else
		on_up(userdata);
	return 0;
}

static int serve(struct nm_control *control)
{
	int r = sd_bus_open_system(&control->bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(control->bus, &control->object, NM_BUS_PATH,
					     NM_BUS_INTERFACE, manager_vtable, control);
	if (r >= 0)
		r = sd_bus_match_signal(
			control->bus, &control->disconnected, "org.freedesktop.DBus.Local", NULL,
			"org.freedesktop.DBus.Local", "Disconnected", on_disconnected, control);
	if (r >= 0)
		r = sd_bus_attach_event(control->bus, control->event, SD_EVENT_PRIORITY_NORMAL);
	return r < 0 ? r : 0;
}

/* At the start the name is ours before anybody is told that we are ready. */
static void connect_at_start(struct nm_control *control)
{
	int r = serve(control);
	if (r >= 0)
		r = sd_bus_request_name(control->bus, NM_BUS_NAME, 0);
	if (r < 0)
		on_down(control, r);
}

/* Later nothing waits: samples and leases need the loop more than the bus does. */
static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct nm_control *control = userdata;
	(void)source;
	(void)usec;
	disconnect(control);
	int r = serve(control);
	if (r >= 0)
		r = sd_bus_request_name_async(control->bus, &control->name, NM_BUS_NAME, 0, on_name,
					      control);
	if (r < 0)
		on_down(control, r);
	return 0;
}

int nm_control_new(sd_event *event, const struct nm_control_ops *ops, struct nm_control **ret)
{
	nm_auto(nm_control_freep) struct nm_control *control = calloc(1, sizeof(*control));
	if (!control)
		return -ENOMEM;
	control->ops = *ops;
	control->event = sd_event_ref(event);
	control->retry_usec = RETRY_FIRST_USEC;
	int r = sd_event_add_time_relative(event, &control->retry, CLOCK_MONOTONIC, 0, 0, on_retry,
					   control);
	if (r >= 0)
		r = sd_event_source_set_enabled(control->retry, SD_EVENT_OFF);
	if (r < 0)
		return r;
	connect_at_start(control);
	*ret = NM_TAKE(control);
	return 0;
}

void nm_control_free(struct nm_control *control)
{
	if (!control)
		return;
	if (control->bus)
		(void)sd_bus_flush(control->bus);
	disconnect(control);
	sd_event_source_disable_unref(control->retry);
	sd_event_unref(control->event);
	free(control);
}
