// SPDX-License-Identifier: MIT
// SECURITY: bus
/*
 * Calls with any arguments on the bus object, over a socket pair. The other end acts as the caller,
 * the bus that reports its credentials, and polkit: it answers, returns nonsense, or stays silent.
 * A command runs only if the caller is root or polkit allows it.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/report/control_internal.h"
#include "fuzz.h"

#define TURNS_MOST 64U

struct peer {
	struct fuzz_input input;
	bool allowed; /* the action was authorized since the call */
};

/* ---- the side of the daemon ---- */

static int steer(void *context)
{
	struct peer *peer = context;

	FUZZ_REQUIRE(peer->allowed);
	return fuzz_byte(&peer->input) & 1 ? -EALREADY : 0;
}

static int release(void *context, uint32_t pid)
{
	(void)pid;
	return steer(context) < 0 ? -ESRCH : 0;
}

static int set_dry_run(void *context, bool wanted, uid_t uid)
{
	(void)wanted;
	return steer(context) == 0 ? 0 : uid ? -EACCES : -EPERM;
}

static int reload(void *context, char *error, size_t size)
{
	int r = steer(context);
	FUZZ_REQUIRE(size > 8);
	if (r < 0)
		memcpy(error, "file:1", 7);
	return r;
}

static int show_rows(void *context, const struct nm_show *show)
{
	(void)context;
	for (unsigned i = 0; i < 2; i++) {
		show->open(show->context);
		nm_show_text(show, "command", "a\\x0ab");
		nm_show_u32(show, "pid", i);
		show->close(show->context);
	}
	return 0;
}

static int show_threads(void *context, uint32_t pid, const struct nm_show *show)
{
	return pid > 1000 ? -ESRCH : show_rows(context, show);
}

static int show_regions(void *context, uint32_t pid, uid_t caller, const struct nm_show *show)
{
	(void)caller;
	return show_threads(context, pid, show);
}

static int show_summary(void *context, uint32_t pid, const struct nm_show *show)
{
	(void)context;
	nm_show_u32(show, "pid", pid);
	return pid > 1000 ? -ESRCH : 0;
}

static int show_decisions(void *context, uint64_t after, uint32_t most, const struct nm_show *show)
{
	return after > most ? 0 : show_rows(context, show);
}

static int explain(void *context, uint64_t id, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "decision", id);
	return id > 1000 ? -ENOENT : 0;
}

static int explain_process(void *context, uint32_t pid, const struct nm_show *show)
{
	return explain(context, pid, show);
}

static void status(void *context, const struct nm_show *show)
{
	(void)context;
	nm_show_u64(show, "pid", 0);
}

static void asked(void *context, const char *method, uid_t uid)
{
	(void)context, (void)method, (void)uid;
}

static void facts(void *context, struct nm_control_facts *ret)
{
	(void)context;
	*ret = (struct nm_control_facts){"1", "faults", false, false};
}

static struct nm_control_ops ops_for(struct peer *peer)
{
	return (struct nm_control_ops){
		.context = peer,
		.status = status,
		.pause = steer,
		.resume = steer,
		.release = release,
		.facts = facts,
		.nodes = show_rows,
		.processes = show_rows,
		.threads = show_threads,
		.pages = show_summary,
		.regions = show_regions,
		.decisions = show_decisions,
		.explain = explain,
		.explain_process = explain_process,
		.reload = reload,
		.set_dry_run = set_dry_run,
		.asked = asked,
	};
}

/* ---- the other side: caller, bus and polkit ---- */

static int reply_uid(struct peer *peer, sd_bus_message *question, uint8_t how)
{
	uint32_t uid = how & 1 ? 1000 : 0;

	if (how & 4)
		return sd_bus_reply_method_return(question, "s", "0");
	peer->allowed = uid == 0;
	return sd_bus_reply_method_return(question, "u", uid);
}

static int reply_allowed(struct peer *peer, sd_bus_message *question, uint8_t how)
{
	int authorized = how & 1, challenge = how & 2;

	if (how & 4)
		return sd_bus_reply_method_return(question, "b", 1);
	peer->allowed = authorized;
	return sd_bus_reply_method_return(question, "(bba{ss})", authorized, challenge != 0, 0);
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	struct peer *peer = userdata;
	(void)error;

	bool uid = sd_bus_message_is_method_call(message, NULL, "GetConnectionUnixUser") > 0;
	bool polkit = sd_bus_message_is_method_call(message, NULL, "CheckAuthorization") > 0;
	if (!uid && !polkit)
		return 0;
	uint8_t how = fuzz_byte(&peer->input);
	if (how & 8)
		return 1;
	if (how & 16)
		(void)sd_bus_reply_method_errorf(message, SD_BUS_ERROR_FAILED, "no");
	else
		(void)(uid ? reply_uid(peer, message, how) : reply_allowed(peer, message, how));
	return 1;
}

/* ---- both ---- */

static sd_bus *connect_end(int fd, bool server)
{
	sd_bus *bus = NULL;

	FUZZ_REQUIRE(sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, fd, fd) >= 0);
	FUZZ_REQUIRE(sd_bus_set_anonymous(bus, true) >= 0);
	if (server)
		FUZZ_REQUIRE(sd_bus_set_server(bus, true,
					       SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, a, b, c, d,
							     e, f, 10)) >= 0);
	return bus;
}

static void let_talk(sd_bus *one, sd_bus *other)
{
	for (unsigned idle = 0, turns = 0; idle < 2 && turns < TURNS_MOST; turns++) {
		int r = sd_bus_process(one, NULL), s = sd_bus_process(other, NULL);
		idle = r > 0 || s > 0 ? 0 : idle + 1;
	}
}

static int add_argument(sd_bus_message *call, struct fuzz_input *input)
{
	uint8_t type = fuzz_byte(input);
	uint64_t value = fuzz_u64(input);

	switch (type % 8) {
	case 0:
		return sd_bus_message_append(call, "u", (uint32_t)value);
	case 1:
		return sd_bus_message_append(call, "t", value);
	case 2:
		return sd_bus_message_append(call, "b", (int)(value & 1));
	case 3:
		return sd_bus_message_append(call, "s", "text");
	case 4:
		return sd_bus_message_append(call, "a{sv}", 1, "a", "u", (uint32_t)value);
	case 5:
		return sd_bus_message_append(call, "d", (double)value);
	default:
		return 0;
	}
}

static void call_one(sd_bus *caller, struct peer *peer)
{
	static const char *const methods[] = {
		"Status",    "ListNodes", "ListProcesses",  "ListThreads", "Pages",
		"Decisions", "Explain",	  "Pause",	    "Resume",	   "Reload",
		"SetDryRun", "Release",	  "ExplainProcess", "Nothing"};
	nm_auto(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	uint8_t which = fuzz_byte(&peer->input), arguments = fuzz_byte(&peer->input) % 4;

	int r = sd_bus_message_new_method_call(caller, &call, NULL, NM_BUS_PATH, NM_BUS_INTERFACE,
					       methods[which % NM_ARRAY_SIZE(methods)]);
	for (uint8_t i = 0; r >= 0 && i < arguments; i++)
		r = add_argument(call, &peer->input);
	if (r >= 0 && which & 0x80)
		r = sd_bus_message_set_allow_interactive_authorization(call, true);
	if (r >= 0)
		(void)sd_bus_send(caller, call, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer peer = {.input = {data, size}};
	struct nm_control control = {.ops = ops_for(&peer)};
	int ends[2];

	FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	control.bus = connect_end(ends[0], true);
	sd_bus *caller = connect_end(ends[1], false);
	FUZZ_REQUIRE(sd_bus_add_object_vtable(control.bus, NULL, NM_BUS_PATH, NM_BUS_INTERFACE,
					      nm_manager_vtable, &control) >= 0);
	FUZZ_REQUIRE(sd_bus_add_filter(caller, NULL, on_message, &peer) >= 0);
	FUZZ_REQUIRE(sd_bus_start(control.bus) >= 0 && sd_bus_start(caller) >= 0);
	for (unsigned i = 0; i < 4 && peer.input.size > 0; i++) {
		peer.allowed = false;
		call_one(caller, &peer);
		let_talk(control.bus, caller);
	}
	nm_requests_clear(&control);
	sd_bus_close_unref(caller);
	sd_bus_close_unref(control.bus);
	return 0;
}
