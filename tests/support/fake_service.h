/* SPDX-License-Identifier: MIT */
/*
 * org.numamigrd1 as numa-migrctl sees it, with constant answers: two nodes, two processes, three
 * threads and three decisions. Names and types are those of org.numamigrd1(5). Serves until it is
 * killed.
 */
#ifndef NM_TEST_FAKE_SERVICE_H
#define NM_TEST_FAKE_SERVICE_H

#include <math.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "numa-migrd/control.h"

#define FAKE_PID 4711U
#define FAKE_FORBIDDEN_PID 13U	/* every request about it is denied */
#define FAKE_QUESTIONED_PID 14U /* polkit requires interactive authorization */
#define FAKE_TIME 1700000000000000ULL

static inline int fake_append_decision(sd_bus_message *message, uint64_t id, const char *verdict)
{
	return sd_bus_message_append(
		message, "a{sv}", 14, "decision", "t", id, "time_usec", "t", FAKE_TIME + id, "kind",
		"s", "migrate", "policy", "s", "imar2", "pid", "u", FAKE_PID, "tid", "u",
		FAKE_PID + 1, "comm", "s", "perf", "from_cpu", "i", 5, "to_cpu", "i", -1,
		"from_node", "i", 2, "to_node", "i", 0, "result", "s", "applied", "verdict", "s",
		verdict, "message", "s", "moved perf[4711/4712] from CPU 5 (node 2) to node 0");
}

static inline int fake_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(
		call, "a{sv}", 13, "version", "s", "0.1.0", "policy", "s", "imar2", "seed", "t",
		UINT64_MAX, "processes_managed", "t", (uint64_t)2, "threads_managed", "t",
		(uint64_t)3, "leases", "t", (uint64_t)1, "local_share", "d", 0.75, "paused", "b", 0,
		"named", "s", "caf\xc3\xa9 \x1b[31m", "tuple", "(ynqx)", 1, -2, 3, (int64_t)-4,
		"map", "a{us}", 1, 7, "seven", "twice", "v", "d", (double)NAN, "path", "o", "/a");
}

/* Appends a list of dictionaries that `write` fills. */
static inline int fake_list(sd_bus_message *call, int (*write)(sd_bus_message *))
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0)
		r = write(reply);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static inline int fake_write_nodes(sd_bus_message *reply)
{
	int r = 0;
	for (uint32_t i = 0; r >= 0 && i < 2; i++)
		r = sd_bus_message_append(reply, "a{sv}", 7, "node", "u", i, "cpus", "s",
					  i ? "4-7" : "0-3", "load", "d", i ? 0.25 : 1.0, "threads",
					  "u", 2 - i, "access_share", "d", i ? 0.4 : 0.6,
					  "memory_bytes", "t", (uint64_t)1 << 34,
					  "memory_free_bytes", "t", (uint64_t)3 << 30);
	return r;
}

static inline int fake_nodes(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return fake_list(call, fake_write_nodes);
}

/* The metrics of the second process are unavailable. */
static inline int fake_write_processes(sd_bus_message *reply)
{
	int r = sd_bus_message_append(
		reply, "a{sv}", 15, "pid", "u", FAKE_PID, "comm", "s", "perf", "uid", "u", 1000,
		"unit", "s", "batch@1.service", "state", "s", "managed", "threads", "u", 2,
		"rss_bytes", "t", (uint64_t)5 << 30, "node", "u", 2, "local_share", "d", 0.974,
		"latency_cycles", "d", 312.4, "performance", "d", 12345.0, "leases", "u", 1,
		"run_share", "d", 1.62, "intensity", "d", 0.25, "last_decision", "t", (uint64_t)17);
	return r < 0 ? r
		     : sd_bus_message_append(reply, "a{sv}", 5, "pid", "u", 815, "comm", "s",
					     "postgres", "state", "s", "observed", "threads", "u",
					     1, "rss_bytes", "t", (uint64_t)7 << 30);
}

static inline int fake_processes(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return fake_list(call, fake_write_processes);
}

static inline int fake_append_thread(sd_bus_message *reply, uint32_t pid, uint32_t tid, double run)
{
	return sd_bus_message_append(reply, "a{sv}", 10, "tid", "u", tid, "pid", "u", pid, "comm",
				     "s", "worker", "cpu", "u", 5, "node", "u", 2, "preferred_node",
				     "u", 0, "local_share", "d", 0.02, "relative_performance", "d",
				     0.8, "run_share", "d", run, "leased", "b", 1);
}

static inline int fake_threads(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	uint32_t pid = 0;
	(void)userdata;
	(void)error;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r >= 0)
		r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "a{sv}");
	if (r >= 0 && (pid == 0 || pid == FAKE_PID))
		r = fake_append_thread(reply, FAKE_PID, FAKE_PID, 0.5);
	if (r >= 0 && (pid == 0 || pid == FAKE_PID))
		r = fake_append_thread(reply, FAKE_PID, FAKE_PID + 1, 0.9);
	if (r >= 0 && (pid == 0 || pid == 815))
		r = fake_append_thread(reply, 815, 815, 0.1);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* Returns the error for a PID that is forbidden or unavailable. */
static inline int fake_refusal(uint32_t pid, sd_bus_error *error)
{
	if (pid == FAKE_FORBIDDEN_PID)
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "no");
	if (pid == FAKE_QUESTIONED_PID)
		return sd_bus_error_set(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
					"ask");
	if (pid != FAKE_PID)
		return sd_bus_error_setf(error, NM_BUS_NAME ".Error.NotManaged",
					 "process %u is not managed by numa-migrd", pid);
	return 0;
}

static inline int fake_pages(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t pid = 0;
	(void)userdata;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r >= 0)
		r = fake_refusal(pid, error);
	if (r < 0)
		return r;
	return sd_bus_reply_method_return(
		call, "a{sv}aa{sv}", 3, "tracked", "t", (uint64_t)1200, "by_node", "at", 2,
		(uint64_t)1000, (uint64_t)200, "exclusivity", "d", 0.9, 2, 5, "start", "t",
		0x7f0000000000ULL, "end", "t", 0x7f0000200000ULL, "bytes", "t", 2097152ULL, "kind",
		"s", "exclusive", "node", "u", 0, 2, "bytes", "t", 4096ULL, "kind", "s", "shared");
}

static inline int fake_write_decisions(sd_bus_message *reply)
{
	static const char *const verdicts[] = {"improved", "rolled-back", ""};
	int r = 0;
	for (uint64_t i = 0; r >= 0 && i < 3; i++)
		r = fake_append_decision(reply, 17 + i, verdicts[i]);
	return r;
}

static inline int fake_decisions(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint64_t after;
	uint32_t most;
	(void)userdata;
	(void)error;
	int r = sd_bus_message_read(call, "tu", &after, &most);
	return r < 0 ? r : fake_list(call, fake_write_decisions);
}

static inline int fake_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint64_t id = 0;
	(void)userdata;
	int r = sd_bus_message_read(call, "t", &id);
	if (r < 0)
		return r;
	if (id != 17)
		return sd_bus_error_setf(error, NM_BUS_NAME ".Error.NoSuchDecision",
					 "decision %llu is not known", (unsigned long long)id);
	return sd_bus_reply_method_return(
		call, "a{sv}", 15, "fields", "s", "POLICY=imar2\nTID=4712\n", "decision", "t", id,
		"time_usec", "t", FAKE_TIME, "kind", "s", "migrate", "policy", "s", "imar2",
		"message", "s", "moved perf from node 2", "tickets", "d", 4.0, "tickets_parts", "s",
		"4 of preferred node", "draw", "d", 3.25, "verdict", "s", "improved", "figure", "s",
		"local_share", "before", "d", 0.02, "after", "d", 0.97, "candidates_count", "t",
		(uint64_t)9, "candidates", "aa{sv}", 2, 3, "to_node", "i", 0, "tickets", "d", 4.0,
		"won", "b", 1, 5, "to_node", "i", 3, "to_cpu", "i", 7, "partner_tid", "u", 4721,
		"tickets", "d", 2.5, "won", "b", 0);
}

static inline int fake_explain_process(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t pid = 0;
	(void)userdata;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r < 0)
		return r;
	if (pid == 42)
		return sd_bus_error_setf(error, NM_BUS_NAME ".Error.NoSuchProcess",
					 "there is no process %u: it has ended", pid);
	if (pid == FAKE_PID)
		return sd_bus_reply_method_return(call, "a{sv}", 4, "pid", "u", pid, "comm", "s",
						  "perf", "state", "s", "managed", "explanation",
						  "s", "it is managed");
	return sd_bus_reply_method_return(call, "a{sv}", 5, "pid", "u", pid, "comm", "s",
					  "postgres", "state", "s", "refused", "reason", "s",
					  "small", "explanation", "s",
					  "its resident memory of 2.0 MiB is too small");
}

static inline int fake_pause(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(call, "");
}

static inline int fake_resume(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)call;
	(void)userdata;
	return sd_bus_error_set(error, NM_BUS_NAME ".Error.AlreadyRunning",
				"numa-migrd is not paused");
}

static inline int fake_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t pid = 0;
	(void)userdata;
	int r = sd_bus_message_read(call, "u", &pid);
	if (pid == FAKE_QUESTIONED_PID &&
	    sd_bus_message_get_allow_interactive_authorization(call) > 0)
		return sd_bus_reply_method_return(call, ""); /* the password was entered */
	if (r >= 0)
		r = fake_refusal(pid, error);
	return r < 0 ? r : sd_bus_reply_method_return(call, "");
}

static inline int fake_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)call;
	(void)userdata;
	return sd_bus_error_set(error, NM_BUS_NAME ".Error.BadConfiguration",
				"/etc/numa-migrd.conf:3: first\n/etc/numa-migrd.conf:9: \x1b[31m");
}

static inline int fake_set_dry_run(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	int wanted;
	(void)userdata;
	(void)error;
	int r = sd_bus_message_read(call, "b", &wanted);
	return r < 0 ? r : sd_bus_reply_method_return(call, "");
}

/* 40 % are allowed to nobody. */
static inline int fake_raise_control(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	uint32_t minutes;
	double percent;
	(void)userdata;
	int r = sd_bus_message_read(call, "ud", &minutes, &percent);
	if (r >= 0 && (minutes != 60 || percent == 40))
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "no");
	return r < 0 ? r : sd_bus_reply_method_return(call, "");
}

/* A trial that has ended. */
static inline int fake_trial(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)userdata;
	(void)error;
	return sd_bus_reply_method_return(
		call, "a{sv}aa{sv}", 5, "remaining_s", "t", UINT64_C(0), "drawing", "b", 0,
		"managed_local", "d", 0.951, "control_local", "d", 0.6, "result", "s",
		"a typical process used 12 % fewer CPU seconds", 2, 5, "comm", "s",
		"cc1", "managed_units", "t", UINT64_C(214), "control_units", "t", UINT64_C(209),
		"cpu_change", "d", -0.12, "state", "s", "compared", 2, "comm", "s", "ld", "state",
		"s", "too few units");
}

static inline const sd_bus_vtable *fake_vtable(void)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_METHOD("Status", "", "a{sv}", fake_status, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("ListNodes", "", "aa{sv}", fake_nodes, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("ListProcesses", "", "aa{sv}", fake_processes,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("ListThreads", "u", "aa{sv}", fake_threads,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Pages", "u", "a{sv}aa{sv}", fake_pages, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Decisions", "tu", "aa{sv}", fake_decisions,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Explain", "t", "a{sv}", fake_explain, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("ExplainProcess", "u", "a{sv}", fake_explain_process,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Pause", "", "", fake_pause, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Resume", "", "", fake_resume, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Release", "u", "", fake_release, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Reload", "", "", fake_reload, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("SetDryRun", "b", "", fake_set_dry_run, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("RaiseControl", "ud", "", fake_raise_control,
			      SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_METHOD("Trial", "", "a{sv}aa{sv}", fake_trial, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_VTABLE_END,
	};
	return vtable;
}

/* An old daemon with Status only. */
static inline const sd_bus_vtable *fake_old_vtable(void)
{
	static const sd_bus_vtable vtable[] = {
		SD_BUS_VTABLE_START(0),
		SD_BUS_METHOD("Status", "", "a{sv}", fake_status, SD_BUS_VTABLE_UNPRIVILEGED),
		SD_BUS_VTABLE_END,
	};
	return vtable;
}

static inline void fake_serve(const sd_bus_vtable *vtable, int ready)
{
	sd_event *event = NULL;
	sd_bus *bus = NULL;
	int r = sd_event_new(&event);
	if (r >= 0)
		r = sd_bus_open_system(&bus);
	if (r >= 0)
		r = sd_bus_add_object_vtable(bus, NULL, NM_BUS_PATH, NM_BUS_INTERFACE, vtable,
					     NULL);
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

static inline void fake_service(int ready)
{
	fake_serve(fake_vtable(), ready);
}

static inline void fake_old_service(int ready)
{
	fake_serve(fake_old_vtable(), ready);
}

#endif
