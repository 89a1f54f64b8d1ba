/* SPDX-License-Identifier: MIT */
/* The methods and properties of the object. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "control_internal.h"

#define STATUS_ROOM 128
#define ERROR_BYTES 4096
#define ROWS_OF_ONE_CALL 64U

static int unsupported(sd_bus_message *call, sd_bus_error *error)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED, "%s is not offered here",
				 sd_bus_message_get_member(call));
}

static int not_managed(uint32_t pid, sd_bus_error *error)
{
	return sd_bus_error_setf(error, NM_BUS_ERROR_NOT_MANAGED,
				 "process %" PRIu32 " is not managed by numa-migrd", pid);
}

static int send_answer(sd_bus_message *reply, int r)
{
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int on_status(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	(void)error;
	const struct nm_control *control = userdata;
	struct nm_status_item items[STATUS_ROOM] = {0};
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	size_t count = control->ops.status(control->ops.context, items, STATUS_ROOM);
	int r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = nm_answer_items(reply, items, count);
	return send_answer(reply, r);
}

/* ---- lists ---- */

static int begin_list(struct nm_answer *answer, sd_bus_message *call)
{
	if (!answer->message)
		answer->r = sd_bus_message_new_method_return(call, &answer->message);
	if (answer->r >= 0)
		answer->r = sd_bus_message_open_container(answer->message, 'a', "a{sv}");
	return answer->r;
}

/* r is the result of the function that wrote the list. */
static int end_list(struct nm_answer *answer, int r)
{
	if (r < 0)
		return r;
	if (answer->r >= 0)
		answer->r = sd_bus_message_close_container(answer->message);
	return answer->r;
}

/* A list with thousands of entries costs as much as many other answers. */
static int send_list(struct nm_control *control, sd_bus_message *call,
		     const struct nm_answer *answer, int r, sd_bus_error *error)
{
	const char *sender = sd_bus_message_get_sender(call);
	if (sender)
		nm_callers_charge(&control->callers, sender, answer->rows / ROWS_OF_ONE_CALL);
	if (r == -E2BIG)
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "these are more than the %u that an answer can have",
					 NM_ANSWER_ROWS_MOST);
	return send_answer(answer->message, r);
}

/* Answers with a list that has no arguments. */
static int give_list(sd_bus_message *call, struct nm_control *control,
		     int (*write)(void *context, const struct nm_show *show), sd_bus_error *error)
{
	struct nm_answer answer = {0};
	struct nm_show show = nm_answer_show(&answer);
	if (!write)
		return unsupported(call, error);
	int r = begin_list(&answer, call);
	if (r >= 0)
		r = end_list(&answer, write(control->ops.context, &show));
	r = send_list(control, call, &answer, r, error);
	sd_bus_message_unref(answer.message);
	return r;
}

static int on_list_nodes(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	return give_list(call, control, control->ops.nodes, error);
}

static int on_list_processes(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	return give_list(call, control, control->ops.processes, error);
}

static int on_list_threads(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	struct nm_answer answer = {0};
	struct nm_show show = nm_answer_show(&answer);
	uint32_t pid;
	if (!control->ops.threads)
		return unsupported(call, error);
	int r = sd_bus_message_read(call, "u", &pid);
	if (r >= 0)
		r = begin_list(&answer, call);
	if (r >= 0)
		r = end_list(&answer, control->ops.threads(control->ops.context, pid, &show));
	r = r == -ESRCH ? not_managed(pid, error) : send_list(control, call, &answer, r, error);
	sd_bus_message_unref(answer.message);
	return r;
}

static int on_decisions(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	struct nm_answer answer = {0};
	struct nm_show show = nm_answer_show(&answer);
	uint64_t after;
	uint32_t most;
	if (!control->ops.decisions)
		return unsupported(call, error);
	int r = sd_bus_message_read(call, "tu", &after, &most);
	if (r >= 0)
		r = begin_list(&answer, call);
	if (r >= 0)
		r = end_list(&answer,
			     control->ops.decisions(control->ops.context, after, most, &show));
	r = send_answer(answer.message, r);
	sd_bus_message_unref(answer.message);
	return r;
}

/* ---- single objects ---- */

static int write_summary(struct nm_answer *answer, sd_bus_message *call,
			 const struct nm_control *control, uint64_t id,
			 int (*write)(const struct nm_control *control, uint64_t id,
				      const struct nm_show *show))
{
	struct nm_show show = nm_answer_show(answer);
	answer->r = sd_bus_message_new_method_return(call, &answer->message);
	show.open(show.context);
	int r = answer->r < 0 ? answer->r : write(control, id, &show);
	show.close(show.context);
	return r < 0 ? r : answer->r;
}

static int write_explanation(const struct nm_control *control, uint64_t id,
			     const struct nm_show *show)
{
	return control->ops.explain(control->ops.context, id, show);
}

static int on_explain(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	struct nm_answer answer = {0};
	uint64_t id;
	if (!control->ops.explain)
		return unsupported(call, error);
	int r = sd_bus_message_read(call, "t", &id);
	if (r >= 0)
		r = write_summary(&answer, call, control, id, write_explanation);
	if (r == -ENOENT)
		r = sd_bus_error_setf(error, NM_BUS_ERROR_NO_SUCH_DECISION,
				      "decision %" PRIu64
				      " is not among those remembered; the journal may have it: "
				      "journalctl DECISION=%" PRIu64,
				      id, id);
	else
		r = send_answer(answer.message, r);
	sd_bus_message_unref(answer.message);
	return r;
}

static int write_pages(const struct nm_control *control, uint64_t pid, const struct nm_show *show)
{
	return control->ops.pages(control->ops.context, (uint32_t)pid, show);
}

static int write_regions(struct nm_answer *answer, sd_bus_message *call,
			 const struct nm_control *control, uint32_t pid, uid_t caller)
{
	struct nm_show show = nm_answer_show(answer);
	int r = begin_list(answer, call);
	if (r < 0)
		return r;
	return end_list(answer, control->ops.regions(control->ops.context, pid, caller, &show));
}

/* Called when the caller is known, because addresses are not shown to all users. */
static int give_pages(struct nm_control *control, sd_bus_message *call, uid_t uid,
		      sd_bus_error *error)
{
	struct nm_answer answer = {0};
	uint32_t pid;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r >= 0)
		r = write_summary(&answer, call, control, pid, write_pages);
	if (r >= 0)
		r = write_regions(&answer, call, control, pid, uid);
	r = r == -ESRCH ? not_managed(pid, error) : send_answer(answer.message, r);
	sd_bus_message_unref(answer.message);
	return r;
}

static int on_pages(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	struct nm_control *control = userdata;
	if (!control->ops.pages || !control->ops.regions)
		return unsupported(call, error);
	return nm_request(control, call, NULL, give_pages, error);
}

/* ---- changes ---- */

static int reply_empty(sd_bus_message *call, int r, sd_bus_error *error)
{
	if (r < 0)
		return sd_bus_error_set_errno(error, r);
	return sd_bus_reply_method_return(call, "");
}

static int do_pause(struct nm_control *control, sd_bus_message *call, uid_t uid,
		    sd_bus_error *error)
{
	(void)uid;
	int r = control->ops.pause(control->ops.context);
	if (r == -EALREADY)
		return sd_bus_error_set(error, NM_BUS_ERROR_ALREADY_PAUSED,
					"numa-migrd is paused already");
	if (r == -EIO)
		return sd_bus_error_set(error, SD_BUS_ERROR_IO_ERROR,
					"numa-migrd is paused, but not every CPU affinity could be "
					"restored; its journal names the threads");
	return reply_empty(call, r, error);
}

static int do_resume(struct nm_control *control, sd_bus_message *call, uid_t uid,
		     sd_bus_error *error)
{
	(void)uid;
	int r = control->ops.resume(control->ops.context);
	if (r == -EALREADY)
		return sd_bus_error_set(error, NM_BUS_ERROR_ALREADY_RUNNING,
					"numa-migrd is not paused");
	return reply_empty(call, r, error);
}

static int do_release(struct nm_control *control, sd_bus_message *call, uid_t uid,
		      sd_bus_error *error)
{
	uint32_t pid;
	(void)uid;
	int r = sd_bus_message_read(call, "u", &pid);
	if (r < 0)
		return r;
	r = control->ops.release(control->ops.context, pid);
	if (r == -ESRCH)
		return sd_bus_error_setf(error, NM_BUS_ERROR_NO_SUCH_PROCESS,
					 "there is no process %" PRIu32, pid);
	return reply_empty(call, r, error);
}

static int do_reload(struct nm_control *control, sd_bus_message *call, uid_t uid,
		     sd_bus_error *error)
{
	char text[ERROR_BYTES] = "";
	(void)uid;
	int r = control->ops.reload(control->ops.context, text, sizeof(text));
	if (r < 0 && text[0])
		return sd_bus_error_set(error, NM_BUS_ERROR_BAD_CONFIGURATION, text);
	return reply_empty(call, r, error);
}

static int do_set_dry_run(struct nm_control *control, sd_bus_message *call, uid_t uid,
			  sd_bus_error *error)
{
	int wanted;
	int r = sd_bus_message_read(call, "b", &wanted);
	if (r < 0)
		return r;
	r = control->ops.set_dry_run(control->ops.context, wanted, uid);
	if (r == -EPERM)
		return sd_bus_error_set(error, NM_BUS_ERROR_DRY_RUN_FORCED,
					"numa-migrd was started with --dry-run: only a start "
					"without it ends that");
	if (r == -EACCES)
		return sd_bus_error_set(error, NM_BUS_ERROR_DRY_RUN_FORCED,
					"the configuration has general.dry_run = true: only root "
					"ends that");
	return reply_empty(call, r, error);
}

static int on_pause(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return nm_request(userdata, call, NM_POLKIT_STEER, do_pause, error);
}

static int on_resume(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return nm_request(userdata, call, NM_POLKIT_STEER, do_resume, error);
}

static int on_release(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return nm_request(userdata, call, NM_POLKIT_STEER, do_release, error);
}

static int on_reload(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	if (!control->ops.reload)
		return unsupported(call, error);
	return nm_request(userdata, call, NM_POLKIT_RELOAD, do_reload, error);
}

static int on_set_dry_run(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	if (!control->ops.set_dry_run)
		return unsupported(call, error);
	return nm_request(userdata, call, NM_POLKIT_STEER, do_set_dry_run, error);
}

/* ---- recordings: they cover the programs of all users, so only root may make them ---- */

static int only_root(sd_bus_message *call, sd_bus_error *error)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "%s is for root",
				 sd_bus_message_get_member(call));
}

static int refuse_recording(int r, sd_bus_error *error)
{
	if (r == -EBUSY)
		return sd_bus_error_set(error, NM_BUS_ERROR_RECORDING,
					"another recording is under way");
	if (r == -EAGAIN)
		return sd_bus_error_set(error, NM_BUS_ERROR_ALREADY_PAUSED, "numa-migrd is paused");
	if (r == -EBADF || r == -EEXIST)
		return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
					"a recording goes into an empty regular file that is open "
					"for writing");
	return sd_bus_error_set_errno(error, r);
}

static int do_record(struct nm_control *control, sd_bus_message *call, uid_t uid,
		     sd_bus_error *error)
{
	struct nm_control_recording wanted = {0};
	int borrowed, hashed;
	if (uid != 0)
		return only_root(call, error);
	int r = sd_bus_message_read(call, "httb", &borrowed, &wanted.limit_bytes, &wanted.seconds,
				    &hashed);
	if (r < 0)
		return r;
	wanted.hashed = hashed;
	int fd = fcntl(borrowed, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return sd_bus_error_set_errno(error, errno);
	r = control->ops.record(control->ops.context, fd, &wanted);
	return r < 0 ? refuse_recording(r, error) : reply_empty(call, r, error);
}

static int do_stop_recording(struct nm_control *control, sd_bus_message *call, uid_t uid,
			     sd_bus_error *error)
{
	if (uid != 0)
		return only_root(call, error);
	int r = control->ops.stop_recording(control->ops.context);
	if (r == -ENOENT)
		return sd_bus_error_set(error, NM_BUS_ERROR_NOT_RECORDING,
					"there is no recording under way");
	return reply_empty(call, r, error);
}

static int on_record(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	if (!control->ops.record)
		return unsupported(call, error);
	return nm_request(userdata, call, NULL, do_record, error);
}

static int on_stop_recording(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	if (!control->ops.stop_recording)
		return unsupported(call, error);
	return nm_request(userdata, call, NULL, do_stop_recording, error);
}

/* ---- properties ---- */

static const char *text_of(const struct nm_control_facts *facts, const char *property)
{
	if (strcmp(property, "Version") == 0)
		return facts->version;
	if (strcmp(property, "Policy") == 0)
		return facts->policy;
	if (strcmp(property, "PagesPolicy") == 0)
		return facts->pages_policy;
	return facts->source;
}

static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	struct nm_control_facts facts = {0};
	(void)bus, (void)path, (void)interface, (void)error;
	if (control->ops.facts)
		control->ops.facts(control->ops.context, &facts);
	if (strcmp(property, "Paused") == 0)
		return sd_bus_message_append(reply, "b", (int)facts.paused);
	if (strcmp(property, "DryRun") == 0)
		return sd_bus_message_append(reply, "b", (int)facts.dry_run);
	if (strcmp(property, "IntervalSeconds") == 0)
		return sd_bus_message_append(reply, "d", facts.interval_s);
	return sd_bus_message_append(reply, "s", text_of(&facts, property));
}

static int get_interface_version(sd_bus *bus, const char *path, const char *interface,
				 const char *property, sd_bus_message *reply, void *userdata,
				 sd_bus_error *error)
{
	(void)bus, (void)path, (void)interface, (void)property, (void)userdata, (void)error;
	return sd_bus_message_append(reply, "u", NM_BUS_INTERFACE_VERSION);
}

static int get_counters(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	struct nm_answer answer = {.message = reply};
	struct nm_show show = nm_answer_numbers(&answer);
	(void)bus, (void)path, (void)interface, (void)property, (void)error;
	show.open(show.context);
	if (control->ops.counters)
		control->ops.counters(control->ops.context, &show);
	show.close(show.context);
	return answer.r;
}

/* ---- vtable ---- */

#define PROPERTY(name, signature, get, flags) SD_BUS_PROPERTY(name, signature, get, 0, flags)

/* UNPRIVILEGED: sd-bus's own check would require CAP_SYS_ADMIN. The bus policy controls reading,
 * request.c controls changes. */
const sd_bus_vtable nm_manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	PROPERTY("Version", "s", get_property, SD_BUS_VTABLE_PROPERTY_CONST),
	PROPERTY("InterfaceVersion", "u", get_interface_version, SD_BUS_VTABLE_PROPERTY_CONST),
	PROPERTY("Policy", "s", get_property, 0),
	PROPERTY("PagesPolicy", "s", get_property, 0),
	PROPERTY("Source", "s", get_property, 0),
	PROPERTY("Paused", "b", get_property, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	PROPERTY("DryRun", "b", get_property, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	PROPERTY("IntervalSeconds", "d", get_property, 0),
	PROPERTY("Counters", "a{st}", get_counters, 0),
	SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", status), on_status,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListNodes", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", nodes),
				on_list_nodes, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", processes),
				on_list_processes, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListThreads", SD_BUS_ARGS("u", pid),
				SD_BUS_RESULT("aa{sv}", threads), on_list_threads,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Pages", SD_BUS_ARGS("u", pid),
				SD_BUS_RESULT("a{sv}", summary, "aa{sv}", regions), on_pages,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Decisions", SD_BUS_ARGS("t", after_id, "u", most),
				SD_BUS_RESULT("aa{sv}", decisions), on_decisions,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("t", decision),
				SD_BUS_RESULT("a{sv}", explanation), on_explain,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_pause,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_resume,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_reload,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("SetDryRun", SD_BUS_ARGS("b", wanted), SD_BUS_NO_RESULT,
				on_set_dry_run, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, on_release,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS(
		"Record",
		SD_BUS_ARGS("h", file, "t", limit_bytes, "t", seconds, "b", hashed),
		SD_BUS_NO_RESULT, on_record, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("StopRecording", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
				on_stop_recording, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};
