/* SPDX-License-Identifier: MIT */
#include "report/control.h"

#include <inttypes.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "report/dump.h"

#define RETRY_FIRST_USEC UINT64_C(1000000)
#define RETRY_MAX_USEC UINT64_C(60000000)
#define ERROR_BYTES 4096

struct nm_control {
	sd_event *event;
	sd_event_source *retry;
	uint64_t retry_usec; /* until the next retry */
	sd_bus *bus;
	sd_bus_slot *object, *disconnected, *name;
	bool down_reported;
	struct nm_control_ops ops;
	struct nm_documents documents;
};

/* ---- methods ---- */

static int on_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	uint64_t now_usec = 0;
	(void)sd_event_now(control->event, CLOCK_MONOTONIC, &now_usec);
	int fd = nm_documents_get(&control->documents, now_usec * 1000, control->ops.dump,
				  control->ops.context);
	if (fd < 0)
		return sd_bus_error_set_errno(error, fd);
	int r = sd_bus_reply_method_return(call, "h", fd); /* duplicates it */
	close(fd);
	return r;
}

/* An error of the daemon that has a name on the bus. */
struct refusal {
	int error;
	const char *name, *text;
};

static int reply_change(struct nm_control *control, sd_bus_message *call, int r,
			const struct refusal *refusals, sd_bus_error *error)
{
	nm_documents_expire(&control->documents);
	if (r >= 0)
		return sd_bus_reply_method_return(call, "");
	for (; refusals->name; refusals++)
		if (refusals->error == r)
			return sd_bus_error_set(error, refusals->name, refusals->text);
	return sd_bus_error_set_errno(error, r);
}

static int on_pause(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const struct refusal refusals[] = {
		{-EIO, SD_BUS_ERROR_IO_ERROR,
		 "numa-migrd is paused, but not every CPU affinity could be restored; its journal "
		 "names the threads"},
		{0},
	};
	struct nm_control *control = userdata;
	return reply_change(control, call, control->ops.pause(control->ops.context), refusals,
			    error);
}

static int on_resume(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const struct refusal none = {0};
	struct nm_control *control = userdata;
	return reply_change(control, call, control->ops.resume(control->ops.context), &none, error);
}

/* A change of one process. */
static int change_process(struct nm_control *control, sd_bus_message *call,
			  int (*change)(void *, uint32_t), sd_bus_error *error)
{
	static const struct refusal refusals[] = {
		{-ESRCH, NM_BUS_ERROR_NO_SUCH_PROCESS, "there is no such process"},
		{0},
	};
	uint32_t pid;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r < 0)
		return r;
	return reply_change(control, call, change(control->ops.context, pid), refusals, error);
}

static int on_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	return change_process(control, call, control->ops.release, error);
}

static int on_manage(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	return change_process(control, call, control->ops.manage, error);
}

static int on_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	char text[ERROR_BYTES] = "";
	int r = control->ops.reload(control->ops.context, text, sizeof(text));
	const struct refusal refusals[] = {
		{text[0] ? r : 0, NM_BUS_ERROR_BAD_CONFIGURATION, text},
		{0},
	};
	return reply_change(control, call, r, refusals, error);
}

static int on_set_dry_run(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const struct refusal refusals[] = {
		{-EPERM, NM_BUS_ERROR_DRY_RUN_FORCED,
		 "numa-migrd was started with --dry-run: only a start without it ends that"},
		{-EACCES, NM_BUS_ERROR_DRY_RUN_FORCED,
		 "the configuration has general.dry_run = true: only a reload without it ends "
		 "that"},
		{0},
	};
	struct nm_control *control = userdata;
	int wanted;
	int r = sd_bus_message_read(call, "b", &wanted);
	if (r < 0)
		return r;
	return reply_change(control, call, control->ops.set_dry_run(control->ops.context, wanted),
			    refusals, error);
}

static int on_raise_control(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const struct refusal refusals[] = {
		{-EAGAIN, NM_BUS_ERROR_PAUSED,
		 "numa-migrd is paused: all processes are left alone (numa-migrctl resume)"},
		{-EROFS, NM_BUS_ERROR_NOTHING_TO_COMPARE,
		 "dry run: nothing is moved, so that there is nothing to compare"},
		{-ENODEV, NM_BUS_ERROR_NOTHING_TO_COMPARE,
		 "one node has CPUs: nothing is moved, so that there is nothing to compare"},
		{-EOPNOTSUPP, NM_BUS_ERROR_NOTHING_TO_COMPARE,
		 "threads.policy = none: nothing is moved, so that there is nothing to compare"},
		{-EBUSY, NM_BUS_ERROR_TRIAL_RUNNING,
		 "a trial of another percentage is running, and the results of both could not be "
		 "compared: wait for its end, or use the same percentage"},
		{-EINVAL, SD_BUS_ERROR_INVALID_ARGS,
		 "a trial takes 11 to 10080 minutes, and leaves 1 to 50 % of the processes alone"},
		{0},
	};
	struct nm_control *control = userdata;
	uint32_t minutes;
	double percent;
	int r = sd_bus_message_read(call, "ud", &minutes, &percent);
	if (r < 0)
		return r;
	return reply_change(control, call,
			    control->ops.raise_control(control->ops.context, minutes, percent),
			    refusals, error);
}

/* UNPRIVILEGED: sd-bus's own check would require CAP_SYS_ADMIN. The bus policy decides. */
#define METHOD(name, handler)                                                                      \
	SD_BUS_METHOD_WITH_ARGS(name, SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, handler,                   \
				SD_BUS_VTABLE_UNPRIVILEGED)
#define METHOD_OF_PROCESS(name, handler)                                                           \
	SD_BUS_METHOD_WITH_ARGS(name, SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, handler,            \
				SD_BUS_VTABLE_UNPRIVILEGED)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Dump", SD_BUS_NO_ARGS, SD_BUS_RESULT("h", document), on_dump,
				SD_BUS_VTABLE_UNPRIVILEGED),
	METHOD("Pause", on_pause),
	METHOD("Resume", on_resume),
	METHOD_OF_PROCESS("Release", on_release),
	METHOD_OF_PROCESS("Manage", on_manage),
	METHOD("Reload", on_reload),
	SD_BUS_METHOD_WITH_ARGS("SetDryRun", SD_BUS_ARGS("b", wanted), SD_BUS_NO_RESULT,
				on_set_dry_run, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("RaiseControl", SD_BUS_ARGS("u", minutes, "d", percent),
				SD_BUS_NO_RESULT, on_raise_control, SD_BUS_VTABLE_UNPRIVILEGED),
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
	if (control->down_reported)
		control->ops.bus_changed(control->ops.context, 0);
	control->down_reported = false;
}

/* May be called from the bus's own handlers: the next retry closes the connection. */
static void on_down(struct nm_control *control, int error)
{
	int enabled = SD_EVENT_OFF;
	(void)sd_event_source_get_enabled(control->retry, &enabled);
	if (enabled != SD_EVENT_OFF) /* several handlers may detect it */
		return;
	if (!control->down_reported)
		control->ops.bus_changed(control->ops.context, error);
	control->down_reported = true;
	(void)sd_event_source_set_time_relative(control->retry, control->retry_usec);
	(void)sd_event_source_set_enabled(control->retry, SD_EVENT_ONESHOT);
	control->retry_usec *= 2;
	if (control->retry_usec > RETRY_MAX_USEC)
		control->retry_usec = RETRY_MAX_USEC;
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

static int open_bus(struct nm_control *control)
{
	int r = sd_bus_open_system(&control->bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(control->bus, &control->object, NM_BUS_PATH,
					     NM_BUS_INTERFACE, vtable, control);
	if (r >= 0)
		r = sd_bus_match_signal(
			control->bus, &control->disconnected, "org.freedesktop.DBus.Local", NULL,
			"org.freedesktop.DBus.Local", "Disconnected", on_disconnected, control);
	if (r >= 0)
		r = sd_bus_attach_event(control->bus, control->event, SD_EVENT_PRIORITY_NORMAL);
	return r < 0 ? r : 0;
}

/* At the start, the name is acquired before readiness is reported. */
static void connect_at_start(struct nm_control *control)
{
	int r = open_bus(control);
	if (r >= 0)
		r = sd_bus_request_name(control->bus, NM_BUS_NAME, 0);
	if (r < 0)
		on_down(control, r);
}

/* Later attempts are asynchronous: samples and moves need the main loop more than the bus does. */
static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct nm_control *control = userdata;
	(void)source;
	(void)usec;
	disconnect(control);
	int r = open_bus(control);
	if (r >= 0)
		r = sd_bus_request_name_async(control->bus, &control->name, NM_BUS_NAME, 0, on_name,
					      control);
	if (r < 0)
		on_down(control, r);
	return 0;
}

int nm_control_new(sd_event *event, const struct nm_control_ops *ops, struct nm_control **ret)
{
	nm_auto(nm_control_freep) struct nm_control *control = nm_must(calloc(1, sizeof(*control)));
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
	nm_documents_clear(&control->documents);
	sd_event_source_disable_unref(control->retry);
	sd_event_unref(control->event);
	free(control);
}
