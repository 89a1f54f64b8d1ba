/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "control_internal.h"

#define RETRY_FIRST_USEC UINT64_C(1000000)
#define RETRY_MAX_USEC UINT64_C(60000000)

/* ---- the connection ---- */

static void disconnect(struct nm_control *control)
{
	nm_requests_clear(control);
	control->filter = sd_bus_slot_unref(control->filter);
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
		r = sd_bus_add_filter(control->bus, &control->filter, nm_request_bound, control);
	if (r >= 0)
		r = sd_bus_add_object_vtable(control->bus, &control->object, NM_BUS_PATH,
					     NM_BUS_INTERFACE, nm_manager_vtable, control);
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

/* Later attempts are asynchronous: samples and leases need the main loop more than the bus does. */
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
	nm_auto(nm_control_freep) struct nm_control *control = calloc(1, sizeof(*control));
	struct nm_control_facts facts = {0};
	if (!control)
		return -ENOMEM;
	control->ops = *ops;
	ops->facts(ops->context, &facts);
	control->paused_reported = facts.paused;
	control->dry_run_reported = facts.dry_run;
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

/* ---- signals ---- */

void nm_control_changed(struct nm_control *control)
{
	struct nm_control_facts facts = {0};
	if (!control)
		return;
	control->ops.facts(control->ops.context, &facts);
	if (facts.paused == control->paused_reported && facts.dry_run == control->dry_run_reported)
		return;
	control->paused_reported = facts.paused;
	control->dry_run_reported = facts.dry_run;
	if (control->bus)
		(void)sd_bus_emit_properties_changed(control->bus, NM_BUS_PATH, NM_BUS_INTERFACE,
						     "Paused", "DryRun", (char *)NULL);
}
