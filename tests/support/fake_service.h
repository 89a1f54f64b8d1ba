/* SPDX-License-Identifier: MIT */
/*
 * org.numamigrd1 as numa-migrctl sees it, with a constant document: two nodes, two processes, three
 * threads and three decisions. Serves until it is killed. Other services here are refused by the
 * bus, old, or hostile.
 */
#ifndef NM_TEST_FAKE_SERVICE_H
#define NM_TEST_FAKE_SERVICE_H

#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "report/control.h"

#define FAKE_FORBIDDEN_PID 13U /* every request about it is denied */

#define FAKE_DECISION(id, verdict)                                                                 \
	"{\"decision\":" #id ",\"time_usec\":17000000000000" #id ",\"kind\":\"migrate\","          \
	"\"policy\":\"imar2\",\"pid\":4711,\"tid\":4712,\"comm\":\"perf\",\"from_cpu\":5,"         \
	"\"from_node\":2,\"to_node\":0,\"result\":\"applied\",\"verdict\":\"" verdict "\","        \
	"\"message\":\"moved perf from node 2\",\"figure\":\"local_share\","                       \
	"\"before\":0.02,\"after\":0.97,\"fields\":\"POLICY=imar2\\nTID=4712\\n\","                \
	"\"candidates_count\":9,\"candidates\":[{\"to_node\":0,\"tickets\":4.0,\"won\":true},"     \
	"{\"to_node\":3,\"to_cpu\":7,\"partner_tid\":4721,\"tickets\":2.5,\"won\":false}]}"

#define FAKE_THREAD(pid, tid, run)                                                                 \
	"{\"tid\":" #tid ",\"pid\":" #pid ",\"comm\":\"worker\",\"cpu\":5,\"node\":2,"             \
	"\"preferred_node\":0,\"local_share\":0.02,\"relative_performance\":0.8,"                  \
	"\"run_share\":" #run ",\"assigned_node\":1}"

#define FAKE_NODE(number, cpus, load, share)                                                       \
	"{\"node\":" #number ",\"cpus\":\"" cpus "\",\"load\":" #load ",\"threads\":1,"            \
	"\"access_share\":" #share ",\"memory_bytes\":17179869184,"                                \
	"\"memory_free_bytes\":3221225472}"

#define FAKE_TRIAL                                                                                 \
	"\"trial\":{\"remaining_s\":0,\"drawing\":false,\"control_percent\":50.0,"                 \
	"\"cpu_low\":-0.16,\"result\":\"a typical process used 12 % fewer CPU seconds\","          \
	"\"programs\":[{\"comm\":\"cc1\",\"managed_units\":214,\"control_units\":209,"             \
	"\"cpu_change\":-0.12,\"cpu_low\":-0.16,\"cpu_high\":-0.07,\"state\":\"compared\"},"       \
	"{\"comm\":\"ld\",\"state\":\"too few units\"}]},"

/* Some values of the second and third process are unavailable. */
static const char fake_document[] =
	"{\"status\":{\"version\":\"0.1.0\",\"source\":\"ibs\",\"policy\":\"imar2\","
	"\"processes_managed\":2,\"threads_managed\":3,\"threads_assigned\":1,\"samples\":"
	"5000000000,\"local_"
	"share\":0.75,"
	"\"cpu_share\":0.0021,\"overhead_percent\":1.0,\"control_percent\":5.0,"
	"\"paused\":false,\"summary\":\"caf\xc3\xa9 \\u001b[31m\",\"tuple\":[1,-2]},"
	"\"nodes\":[" FAKE_NODE(0, "0-3", 1.0, 0.6) "," FAKE_NODE(
		1, "4-7", 0.25,
		0.4) "],"
		     "\"decisions\":[" FAKE_DECISION(17, "improved") "," FAKE_DECISION(
			     18,
			     "rolled-"
			     "back") "," FAKE_DECISION(19,
						       "") "]," FAKE_TRIAL
							   "\"processes\":[{\"pid\":4711,\"comm\":"
							   "\"perf\",\"uid\":1000,"
							   "\"unit\":\"batch@1.service\","
							   "\"state\":\"managed\",\"explanation\":"
							   "\"it is "
							   "managed\",\"threads\":2,"
							   "\"rss_bytes\":5368709120,\"memory_age_"
							   "s\":300,\"node\":2,"
							   "\"home\":1,\"local_"
							   "share\":0.974,"
							   "\"latency_cycles\":312.4,"
							   "\"performance\":12345.0,\"assigned\":"
							   "1,\"run_share\":1.62,"
							   "\"intensity\":0.25,\"last_decision\":"
							   "17,\"memory_shares\":[0."
							   "25,0.75]},"
							   "{\"pid\":815,\"comm\":\"postgres\","
							   "\"state\":\"observed\","
							   "\"threads\":1,"
							   "\"rss_bytes\":7516192768},"
							   "{\"pid\":816,\"comm\":\"sh\",\"state\":"
							   "\"ignored\","
							   "\"reason\":\"small\","
							   "\"explanation\":\"its resident memory "
							   "of 2.0 MiB is too "
							   "small\"}],"
							   "\"threads\":[" FAKE_THREAD(4711, 4711, 0.5) "," FAKE_THREAD(
								   4711, 4712,
								   0.9) "," FAKE_THREAD(815, 815,
											0.1) "],"
											     "\"row"
											     "s_"
											     "left_"
											     "out\""
											     ":0}";

/* Sends the text, in a file of at least this size. */
static inline int fake_send(sd_bus_message *call, const char *text, off_t size)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || (size && ftruncate(fd, size) < 0))
		return -EIO;
	int r = sd_bus_reply_method_return(call, "h", fd);
	close(fd);
	return r;
}

static inline int fake_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return fake_send(call, fake_document, 0);
}

static inline int fake_done(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(call, "");
}

static inline int fake_resume(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)call;
	(void)userdata;
	return sd_bus_error_set(error, "org.numamigrd1.Error.Refused", "no\033[31m");
}

static inline int fake_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t pid = 0;
	(void)userdata;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r >= 0 && pid == FAKE_FORBIDDEN_PID)
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "no");
	if (r >= 0 && pid != 4711)
		return sd_bus_error_set(error, NM_BUS_ERROR_NO_SUCH_PROCESS,
					"there is no such process");
	return r < 0 ? r : sd_bus_reply_method_return(call, "");
}

static inline int fake_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)call;
	(void)userdata;
	return sd_bus_error_set(error, NM_BUS_ERROR_BAD_CONFIGURATION,
				"/etc/numa-migrd.conf:3: first\n/etc/numa-migrd.conf:9: \x1b[31m");
}

/* 40 % are allowed to nobody. */
static inline int fake_raise_control(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t minutes;
	double percent;
	(void)userdata;
	int r = sd_bus_message_read(call, "ud", &minutes, &percent);
	if (r >= 0 && minutes != 0 && (minutes != 60 || percent == 40))
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "no");
	return r < 0 ? r : sd_bus_reply_method_return(call, "");
}

#define FAKE_METHOD(name, types, handler)                                                          \
	SD_BUS_METHOD(name, types, "", handler, SD_BUS_VTABLE_UNPRIVILEGED)
#define FAKE_DUMP(handler) SD_BUS_METHOD("Dump", "", "h", handler, SD_BUS_VTABLE_UNPRIVILEGED)

/* ---- systemd ---- */

static inline bool fake_unit_is(const char *path, const char *name)
{
	nm_autofree char *expected = NULL;
	return sd_bus_path_encode("/org/freedesktop/systemd1/unit", name, &expected) >= 0 &&
	       strcmp(path, expected) == 0;
}

/* Units that exist. */
static inline int fake_load_state(sd_bus *bus, const char *path, const char *interface,
				  const char *property, sd_bus_message *reply, void *userdata,
				  sd_bus_error *error)
{
	bool exists = fake_unit_is(path, "numa-migrd.service") ||
		      fake_unit_is(path, "php8.2-fpm.service") ||
		      fake_unit_is(path, "postgresql.service");
	(void)bus, (void)interface, (void)property, (void)userdata, (void)error;
	return sd_bus_message_append(reply, "s", exists ? "loaded" : "not-found");
}

/* The umbrella of Debian's PostgreSQL has an instance. */
static inline int fake_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *pattern = "";
	(void)userdata, (void)error;
	int r = sd_bus_message_read(call, "asas", 1, NULL, 1, &pattern);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(ssssssouso)");
	if (r >= 0 && strcmp(pattern, "postgresql@*.service") == 0)
		r = sd_bus_message_append(reply, "(ssssssouso)", "postgresql@15-main.service",
					  "a\nb", "loaded", "active", "running", "", "/a", 0U, "",
					  "/");
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static inline int fake_add_systemd(sd_bus *bus, const sd_bus_vtable *service)
{
	static const sd_bus_vtable unit[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_PROPERTY("LoadState", "s", fake_load_state, 0, 0),
		SD_BUS_VTABLE_END,
	};
	static const sd_bus_vtable manager[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_METHOD("ListUnitsByPatterns", "asas", "a(ssssssouso)", fake_list_units,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_VTABLE_END,
	};
	const char *units = "/org/freedesktop/systemd1/unit";
	int r = sd_bus_add_fallback_vtable(bus, NULL, units, "org.freedesktop.systemd1.Service",
					   service, NULL, NULL);
	if (r >= 0)
		r = sd_bus_add_fallback_vtable(bus, NULL, units, "org.freedesktop.systemd1.Unit",
					       unit, NULL, NULL);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/systemd1",
					     "org.freedesktop.systemd1.Manager", manager, NULL);
	return r < 0 ? r : sd_bus_request_name(bus, "org.freedesktop.systemd1", 0);
}

static inline void fake_serve(const sd_bus_vtable *vtable, const sd_bus_vtable *unit, int ready)
{
	sd_event *event = NULL;
	sd_bus *bus = NULL;
	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_bus_open_system(&bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, NM_BUS_PATH, NM_BUS_INTERFACE, vtable,
					     NULL);
	if (r >= 0 && unit)
		r = fake_add_systemd(bus, unit);
	if (r >= 0)
		r = sd_bus_request_name(bus, NM_BUS_NAME, 0);
	if (r >= 0)
		r = sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
	r = r < 0 ? r : 0;
	if (write(ready, &r, sizeof(r)) != sizeof(r) || r < 0)
		_exit(1);
	(void)sd_event_loop(event);
	_exit(0);
}

/* ---- others ---- */

static inline void fake_old_service(int ready)
{
	static const sd_bus_vtable vtable[] = {SD_BUS_VTABLE_START(0), SD_BUS_VTABLE_END};
	fake_serve(vtable, NULL, ready);
}

static inline int fake_refuse(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)call;
	(void)userdata;
	return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "Rejected send message");
}

static inline int fake_status_text(sd_bus *bus, const char *path, const char *interface,
				   const char *property, sd_bus_message *reply, void *userdata,
				   sd_bus_error *error)
{
	(void)bus, (void)path, (void)interface, (void)property, (void)userdata, (void)error;
	return sd_bus_message_append(reply, "s", "12 threads managed, 3 assigned\x1b[31m");
}

/* FAKE_CGROUP is the cgroup of the unit, so that a test chooses it. */
static inline int fake_cgroup(sd_bus *bus, const char *path, const char *interface,
			      const char *property, sd_bus_message *reply, void *userdata,
			      sd_bus_error *error)
{
	const char *cgroup = getenv("FAKE_CGROUP");
	if (fake_unit_is(path, "postgresql.service"))
		cgroup = NULL;
	(void)bus, (void)interface, (void)property, (void)userdata, (void)error;
	return sd_bus_message_append(reply, "s", cgroup ? cgroup : "");
}

/* With systemd, if the test has chosen a cgroup. */
static inline void fake_service(int ready)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		FAKE_DUMP(fake_dump),
		FAKE_METHOD("Pause", "", fake_done),
		FAKE_METHOD("Resume", "", fake_resume),
		FAKE_METHOD("Release", "u", fake_release),
		FAKE_METHOD("Manage", "u", fake_release),
		FAKE_METHOD("Reload", "", fake_reload),
		FAKE_METHOD("SetDryRun", "b", fake_done),
		FAKE_METHOD("RaiseControl", "ud", fake_raise_control),
		SD_BUS_VTABLE_END,
	};
	static const sd_bus_vtable unit[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_PROPERTY("ControlGroup", "s", fake_cgroup, 0, 0),
		SD_BUS_VTABLE_END,
	};
	fake_serve(vtable, getenv("FAKE_CGROUP") ? unit : NULL, ready);
}

/* The answers of bus and systemd to an ordinary user. */
static inline void fake_refusing_service(int ready)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		FAKE_DUMP(fake_refuse),
		FAKE_METHOD("Pause", "", fake_refuse),
		SD_BUS_VTABLE_END,
	};
	static const sd_bus_vtable unit[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_PROPERTY("StatusText", "s", fake_status_text, 0, 0),
		SD_BUS_PROPERTY("ControlGroup", "s", fake_cgroup, 0, 0),
		SD_BUS_VTABLE_END,
	};
	fake_serve(vtable, unit, ready);
}

/* Answers in turn: a service that knows no process. */
static inline int fake_idle_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const char *const texts[] = {
		"{\"status\":{\"paused\":true}}",
		"{\"status\":{\"idle\":true}}",
		"{\"status\":{\"source\":\"none\"}}",
	};
	static unsigned turn;
	(void)userdata;
	(void)error;
	return fake_send(call, texts[turn++ % NM_ARRAY_SIZE(texts)], 0);
}

static inline void fake_idle_service(int ready)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		FAKE_DUMP(fake_idle_dump),
		SD_BUS_VTABLE_END,
	};
	fake_serve(vtable, NULL, ready);
}

/* A service that is paused during a trial. */
static inline int fake_paused_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return fake_send(call,
			 "{\"status\":{\"paused\":true},\"trial\":{\"remaining_s\":0,"
			 "\"control_percent\":50.0,\"ended_early\":"
			 "\"paused\",\"result\":\"no comparison: 3 managed units\\u001b\"}}",
			 0);
}

static inline void fake_paused_service(int ready)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		FAKE_DUMP(fake_paused_dump),
		FAKE_METHOD("RaiseControl", "ud", fake_done),
		SD_BUS_VTABLE_END,
	};
	fake_serve(vtable, NULL, ready);
}

/* Answers in turn. The last ones are documents in which something is missing or of another type. */
static inline int fake_hostile_dump(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	static const char *const texts[] = {
		"",
		"no JSON",
		"[]",
		"{\"status\":7}",
		"{\"status\":{}",
		"{\"status\":{}}",
		"{\"status\":{},\"processes\":7,\"threads\":{\"tid\":1},\"decisions\":\"x\"}",
		"{\"status\":{\"paused\":\"\xc2\x9b\"},\"rows_left_out\":3,"
		"\"processes\":[1,null,[],{\"pid\":\"x\",\"memory_shares\":{}}],"
		"\"threads\":[{}],\"decisions\":[{\"decision\":-1,\"candidates\":[[]]}],\"trial\":"
		"0}",
	};
	static unsigned turn;
	int pipes[2], r;
	(void)userdata;
	(void)error;
	if (turn < NM_ARRAY_SIZE(texts))
		return fake_send(call, texts[turn++], 0);
	if (turn++ == NM_ARRAY_SIZE(texts))
		return fake_send(call, "{", (off_t)65 << 20);
	if (pipe(pipes) < 0) /* nothing is ever written to it */
		return -errno;
	r = sd_bus_reply_method_return(call, "h", pipes[0]);
	turn = 0;
	return r;
}

#define FAKE_HOSTILE_REFUSED 5U /* the first answers, which are no documents */
#define FAKE_HOSTILE_ODD 3U	/* after them */
/* After them: a document that is too large, and a pipe. */

static inline void fake_hostile_service(int ready)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		FAKE_DUMP(fake_hostile_dump),
		SD_BUS_VTABLE_END,
	};
	fake_serve(vtable, NULL, ready);
}

#endif
