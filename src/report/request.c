/* SPDX-License-Identifier: MIT */
/*
 * Authorization of calls: the bus vouches for the caller's uid, and polkit decides about callers
 * other than root. Both queries are asynchronous: the main loop must process samples, and polkit
 * may be waiting for a user.
 */
#include "control_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "numa-migrd/base.h"

#define REQUESTS_OF_ONE_MAX 8U		/* pending polkit queries per user */
#define REQUESTS_MOST 4096U /* the bus allows each user 256 connections */
#define REQUESTS_OF_SENDER 8U
#define PERSON_USEC UINT64_C(120000000) /* time limit for entering a password */

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE POLKIT_NAME ".Authority"
#define POLKIT_MAY_ASK 1U

struct nm_request {
	struct nm_request *next;
	struct nm_control *control;
	sd_bus_message *call;
	sd_bus_slot *answer; /* the pending answer */
	uint64_t sender;
	const char *action;  /* NULL: only the uid is needed */
	nm_request_fn run;
	bool known; /* the uid is known */
	uid_t uid;
};

static void request_free(struct nm_request *request)
{
	if (!request)
		return;
	sd_bus_slot_unref(request->answer);
	sd_bus_message_unref(request->call);
	free(request);
}

static void unlink_request(struct nm_request *request)
{
	struct nm_request **place = &request->control->requests;
	while (*place && *place != request)
		place = &(*place)->next;
	if (*place)
		*place = request->next;
}

void nm_requests_clear(struct nm_control *control)
{
	while (control->requests) {
		struct nm_request *request = control->requests;
		control->requests = request->next;
		request_free(request);
	}
}

/* Otherwise a user could keep root out with endless calls. */
static bool has_request_room(const struct nm_control *control, uint64_t sender)
{
	struct nm_usage usage = {0};
	for (const struct nm_request *request = control->requests; request; request = request->next)
		nm_usage_add(&usage, sender, request->sender, 1);
	return usage.own < REQUESTS_OF_SENDER && nm_usage_has_room(&usage, REQUESTS_MOST);
}

static unsigned count_of(const struct nm_control *control, uid_t uid)
{
	unsigned count = 0;
	for (const struct nm_request *request = control->requests; request; request = request->next)
		count += request->known && request->uid == uid;
	return count;
}

/* ---- completion ---- */

static void refuse_request(struct nm_request *request, int r, const sd_bus_error *error)
{
	unlink_request(request);
	if (sd_bus_error_is_set(error))
		(void)sd_bus_reply_method_error(request->call, error);
	else
		(void)sd_bus_reply_method_errno(request->call, r, NULL);
	request_free(request);
}

static void run_request(struct nm_request *request)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	const struct nm_control_ops *ops = &request->control->ops;
	if (request->action)
		ops->asked(ops->context, sd_bus_message_get_member(request->call), request->uid);
	int r = request->run(request->control, request->call, request->uid, &error);
	if (r < 0 || sd_bus_error_is_set(&error)) {
		refuse_request(request, r, &error);
		return;
	}
	unlink_request(request);
	request_free(request);
}

/* ---- polkit ---- */

/* Without polkit, or if it does not know the action, nothing is allowed. */
static void deny_unasked(struct nm_request *request, const sd_bus_error *why)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_error_setf(
		&error, SD_BUS_ERROR_ACCESS_DENIED, "%s is for root, as polkit cannot be asked: %s",
		sd_bus_message_get_member(request->call), why->message ? why->message : why->name);
	refuse_request(request, r, &error);
}

static void deny(struct nm_request *request, bool challenge)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_error_setf(&error,
				  challenge ? SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
					    : SD_BUS_ERROR_ACCESS_DENIED,
				  "%s is for administrators: polkit %s %s for user %" PRIu32,
				  sd_bus_message_get_member(request->call),
				  challenge ? "wants a password for" : "does not allow",
				  request->action, (uint32_t)request->uid);
	refuse_request(request, r, &error);
}

static int on_polkit(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	struct nm_request *request = userdata;
	int authorized = false, challenge = false;
	(void)ret_error;

	if (sd_bus_message_is_method_error(reply, NULL)) {
		deny_unasked(request, sd_bus_message_get_error(reply));
		return 0;
	}
	int r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
	if (r >= 0)
		r = sd_bus_message_read(reply, "bb", &authorized, &challenge);
	if (r <= 0 || !authorized)
		deny(request, r > 0 && challenge);
	else
		run_request(request);
	return 0;
}

static int ask_polkit(struct nm_request *request)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *question = NULL;
	bool may_ask = sd_bus_message_get_allow_interactive_authorization(request->call) > 0;
	sd_bus *bus = request->control->bus;

	int r = sd_bus_message_new_method_call(bus, &question, POLKIT_NAME, POLKIT_PATH,
					       POLKIT_INTERFACE, "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(question, "(sa{sv})sa{ss}us", "system-bus-name", 1,
					  "name", "s", sd_bus_message_get_sender(request->call),
					  request->action, 0, may_ask ? POLKIT_MAY_ASK : 0U, "");
	if (r < 0)
		return r;
	request->answer = sd_bus_slot_unref(request->answer);
	return sd_bus_call_async(bus, &request->answer, question, on_polkit, request,
				 may_ask ? PERSON_USEC : 0);
}

/* ---- uid of the caller ---- */

static int too_many(sd_bus_error *error)
{
	return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
				"too many requests wait for an answer of polkit");
}

static int apply_uid(struct nm_request *request, sd_bus_error *error)
{
	if (request->uid == 0 || !request->action) {
		run_request(request);
		return 0;
	}
	if (count_of(request->control, request->uid) > REQUESTS_OF_ONE_MAX)
		return too_many(error);
	return ask_polkit(request);
}

static int on_uid(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	nm_auto(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	struct nm_request *request = userdata;
	uint32_t uid = UINT32_MAX;
	(void)ret_error;

	int r = -sd_bus_message_get_errno(reply);
	if (r == 0)
		r = sd_bus_message_read(reply, "u", &uid);
	if (r == 0)
		r = -EBADMSG;
	if (r > 0) {
		request->known = true;
		request->uid = uid;
		r = apply_uid(request, &error);
	}
	if (r < 0)
		refuse_request(request, r, &error);
	return 0;
}

int nm_request(struct nm_control *control, sd_bus_message *call, const char *action,
	       nm_request_fn run_fn, sd_bus_error *error)
{
	const char *name = sd_bus_message_get_sender(call);
	char path[64];
	/* On the bus a sender counts as a domain, because its user is not known yet. */
	(void)snprintf(path, sizeof(path), "/%s", name);
	const uint64_t sender = nm_domain_of(0, path);
	if (!has_request_room(control, sender))
		return too_many(error);
	struct nm_request *request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	*request = (struct nm_request){.next = control->requests,
				       .control = control,
				       .call = sd_bus_message_ref(call),
				       .sender = sender,
				       .action = action,
				       .run = run_fn};
	int r = sd_bus_call_method_async(control->bus, &request->answer, "org.freedesktop.DBus",
					 "/org/freedesktop/DBus", "org.freedesktop.DBus",
					 "GetConnectionUnixUser", on_uid, request, "s", name);
	if (r < 0) {
		request_free(request);
		return r;
	}
	control->requests = request;
	return 1;
}

/* ---- limits ---- */

int nm_request_bound(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	const char *sender = sd_bus_message_get_sender(message);
	if (!sender || sd_bus_message_is_method_call(message, NULL, NULL) <= 0)
		return 0;
	enum nm_admission admission = nm_callers_admit(&control->callers, sender, nm_clock_ns());
	if (admission == NM_CALL_REFUSED)
		return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					"too many calls in a second");
	return admission == NM_CALL_DROPPED;
}
