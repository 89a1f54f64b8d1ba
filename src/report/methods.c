/* SPDX-License-Identifier: MIT */
/* The methods and properties of the object. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "control_internal.h"

#define ERROR_BYTES 4096
#define ROWS_OF_ONE_CALL 64U

/* ---- queries ---- */

/* The arguments of a query: those that its method has. */
struct query {
	uint64_t id;
	uint32_t pid, most;
	uid_t caller;
};

/* A dictionary, or a list of them. */
enum part {
	PART_NONE,
	PART_STATUS,
	PART_NODES,
	PART_PROCESSES,
	PART_THREADS,
	PART_DECISIONS,
	PART_EXPLANATION,
	PART_REASON,
	PART_PAGES,
	PART_REGIONS,
	PART_TRIAL,
	PART_TRIAL_PROGRAMS,
};

static int write_part(const struct nm_control_ops *ops, enum part part, const struct query *query,
		      const struct nm_show *show)
{
	switch (part) {
	case PART_NONE:
		break;
	case PART_STATUS:
		ops->status(ops->context, show);
		break;
	case PART_NODES:
		return ops->nodes(ops->context, show);
	case PART_PROCESSES:
		return ops->processes(ops->context, show);
	case PART_THREADS:
		return ops->threads(ops->context, query->pid, show);
	case PART_DECISIONS:
		return ops->decisions(ops->context, query->id, query->most, show);
	case PART_EXPLANATION:
		return ops->explain(ops->context, query->id, show);
	case PART_REASON:
		return ops->explain_process(ops->context, query->pid, show);
	case PART_PAGES:
		return ops->pages(ops->context, query->pid, show);
	case PART_REGIONS:
		return ops->regions(ops->context, query->pid, query->caller, show);
	case PART_TRIAL:
		return ops->trial(ops->context, show);
	case PART_TRIAL_PROGRAMS:
		return ops->trial_programs(ops->context, show);
	}
	return 0;
}

static int add_dictionary(struct nm_answer *answer, const struct nm_control *control,
			  const struct query *query, enum part part)
{
	struct nm_show show = nm_answer_show(answer);
	show.open(show.context);
	int r = write_part(&control->ops, part, query, &show);
	show.close(show.context);
	return r < 0 ? r : answer->r;
}

static int add_list(struct nm_answer *answer, const struct nm_control *control,
		    const struct query *query, enum part part)
{
	struct nm_show show = nm_answer_show(answer);
	answer->r = sd_bus_message_open_container(answer->message, 'a', "a{sv}");
	int r = write_part(&control->ops, part, query, &show);
	if (answer->r >= 0)
		answer->r = sd_bus_message_close_container(answer->message);
	return r < 0 ? r : answer->r;
}

static int refuse_query(int r, const struct query *query, enum part summary, sd_bus_error *error)
{
	switch (r) {
	case -ESRCH:
		if (summary == PART_REASON)
			return sd_bus_error_setf(error, NM_BUS_ERROR_NO_SUCH_PROCESS,
						 "there is no process %" PRIu32
						 ": it has ended, or never existed",
						 query->pid);
		return sd_bus_error_setf(error, NM_BUS_ERROR_NOT_MANAGED,
					 "process %" PRIu32 " is not managed by numa-migrd",
					 query->pid);
	case -EAGAIN:
		return sd_bus_error_set(error, NM_BUS_ERROR_ALREADY_PAUSED, "numa-migrd is paused");
	case -ENOENT:
		return sd_bus_error_setf(error, NM_BUS_ERROR_NO_SUCH_DECISION,
					 "decision %" PRIu64
					 " is not among those remembered; the journal may have it: "
					 "journalctl DECISION=%" PRIu64,
					 query->id, query->id);
	case -E2BIG:
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "these are more than the %u that an answer can have",
					 NM_ANSWER_ROWS_MAX);
	default:
		return r;
	}
}

static const struct reading {
	const char *method, *arguments;
	enum part summary, list;
} readings[] = {
	{"Status", "", PART_STATUS, PART_NONE},
	{"ListNodes", "", PART_NONE, PART_NODES},
	{"ListProcesses", "", PART_NONE, PART_PROCESSES},
	{"ListThreads", "u", PART_NONE, PART_THREADS},
	{"Pages", "u", PART_PAGES, PART_REGIONS},
	{"Decisions", "tu", PART_NONE, PART_DECISIONS},
	{"Explain", "t", PART_EXPLANATION, PART_NONE},
	{"ExplainProcess", "u", PART_REASON, PART_NONE},
	{"Trial", "", PART_TRIAL, PART_TRIAL_PROGRAMS},
};

static int read_query(sd_bus_message *call, const char *types, struct query *ret)
{
	if (strcmp(types, "u") == 0)
		return sd_bus_message_read(call, types, &ret->pid);
	if (strcmp(types, "t") == 0)
		return sd_bus_message_read(call, types, &ret->id);
	return strcmp(types, "tu") == 0 ? sd_bus_message_read(call, types, &ret->id, &ret->most)
					: 0;
}

/* Answers with a dictionary, a list of them, or both. A list with thousands of entries costs as
 * much as many other answers. The caller matters for Pages only: addresses are not shown to all
 * users. */
static int answer_query(struct nm_control *control, sd_bus_message *call, uid_t caller,
			sd_bus_error *error)
{
	const char *sender = sd_bus_message_get_sender(call);
	const struct reading *reading = readings;
	struct query query = {.caller = caller};
	struct nm_answer answer = {0};
	while (strcmp(reading->method, sd_bus_message_get_member(call)) != 0)
		reading++;
	int r = read_query(call, reading->arguments, &query);
	if (r < 0)
		return r;
	r = sd_bus_message_new_method_return(call, &answer.message);
	if (r >= 0 && reading->summary)
		r = add_dictionary(&answer, control, &query, reading->summary);
	if (r >= 0 && reading->list)
		r = add_list(&answer, control, &query, reading->list);
	if (sender)
		nm_callers_charge(&control->callers, sender, answer.rows / ROWS_OF_ONE_CALL);
	r = r < 0 ? refuse_query(r, &query, reading->summary, error)
		  : sd_bus_send(NULL, answer.message, NULL);
	sd_bus_message_unref(answer.message);
	return r;
}

/* The vtable has this function for methods of the table only. */
static int on_query(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	return answer_query(userdata, call, 0, error);
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

static int do_raise_control(struct nm_control *control, sd_bus_message *call, uid_t uid,
			    sd_bus_error *error)
{
	uint32_t minutes;
	double percent;
	int r = sd_bus_message_read(call, "ud", &minutes, &percent);
	if (r < 0)
		return r;
	r = control->ops.raise_control(control->ops.context, minutes, percent, uid);
	if (r == -EACCES)
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
					"only root may leave processes of others alone");
	if (r == -EAGAIN)
		return sd_bus_error_set(error, NM_BUS_ERROR_ALREADY_PAUSED, "numa-migrd is paused");
	if (r == -EINVAL)
		return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
					"a trial takes 11 to 10080 minutes, and leaves 1 to 50 % of "
					"the processes alone");
	return reply_empty(call, r, error);
}

/* ---- methods that need to know their caller ---- */

static const struct {
	const char *method, *action;
	nm_request_fn run;
} requests[] = {
	{"Pages", NULL, answer_query},
	{"Pause", NM_POLKIT_STEER, do_pause},
	{"Resume", NM_POLKIT_STEER, do_resume},
	{"Reload", NM_POLKIT_RELOAD, do_reload},
	{"SetDryRun", NM_POLKIT_STEER, do_set_dry_run},
	{"Release", NM_POLKIT_STEER, do_release},
	{"RaiseControl", NULL, do_raise_control},
};

/* The vtable has this function for the methods of the table only. */
static int on_request(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
	size_t i = 0;
	while (strcmp(requests[i].method, sd_bus_message_get_member(call)) != 0)
		i++;
	return nm_request(userdata, call, requests[i].action, requests[i].run, error);
}

/* ---- properties ---- */

static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct nm_control *control = userdata;
	struct nm_control_facts facts = {0};
	(void)bus, (void)path, (void)interface, (void)error;
	control->ops.facts(control->ops.context, &facts);
	if (strcmp(property, "Paused") == 0)
		return sd_bus_message_append(reply, "b", (int)facts.paused);
	if (strcmp(property, "DryRun") == 0)
		return sd_bus_message_append(reply, "b", (int)facts.dry_run);
	return sd_bus_message_append(
		reply, "s", strcmp(property, "Version") == 0 ? facts.version : facts.source);
}

static int get_interface_version(sd_bus *bus, const char *path, const char *interface,
				 const char *property, sd_bus_message *reply, void *userdata,
				 sd_bus_error *error)
{
	(void)bus, (void)path, (void)interface, (void)property, (void)userdata, (void)error;
	return sd_bus_message_append(reply, "u", NM_BUS_INTERFACE_VERSION);
}

/* ---- vtable ---- */

#define PROPERTY(name, signature, get, flags) SD_BUS_PROPERTY(name, signature, get, 0, flags)

/* UNPRIVILEGED: sd-bus's own check would require CAP_SYS_ADMIN. The bus policy controls reading,
 * request.c controls changes. */
const sd_bus_vtable nm_manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	PROPERTY("Version", "s", get_property, SD_BUS_VTABLE_PROPERTY_CONST),
	PROPERTY("InterfaceVersion", "u", get_interface_version, SD_BUS_VTABLE_PROPERTY_CONST),
	PROPERTY("Source", "s", get_property, 0),
	PROPERTY("Paused", "b", get_property, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	PROPERTY("DryRun", "b", get_property, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("a{sv}", status), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListNodes", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", nodes),
				on_query, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_NO_ARGS, SD_BUS_RESULT("aa{sv}", processes),
				on_query, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListThreads", SD_BUS_ARGS("u", pid),
				SD_BUS_RESULT("aa{sv}", threads), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Pages", SD_BUS_ARGS("u", pid),
				SD_BUS_RESULT("a{sv}", summary, "aa{sv}", regions), on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Decisions", SD_BUS_ARGS("t", after_id, "u", most),
				SD_BUS_RESULT("aa{sv}", decisions), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("t", decision),
				SD_BUS_RESULT("a{sv}", explanation), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ExplainProcess", SD_BUS_ARGS("u", pid),
				SD_BUS_RESULT("a{sv}", process), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Trial", SD_BUS_NO_ARGS,
				SD_BUS_RESULT("a{sv}", summary, "aa{sv}", programs), on_query,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("RaiseControl", SD_BUS_ARGS("u", minutes, "d", percent),
				SD_BUS_NO_RESULT, on_request, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("SetDryRun", SD_BUS_ARGS("b", wanted), SD_BUS_NO_RESULT, on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT, on_request,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};
