/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cell.h"
#include "ctl.h"
#include "field_report.h"
#include "nodes.h"
#include "numa-migrd/file.h"
#include "show_findings.h"

#define PATIENCE_US (2ULL * 1000 * 1000)

static uint64_t number_of(const json_t *status, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(status, name));
}

#define CPUINFO_BYTES 8192

/* Writes the model of the first CPU, escaped, or "": some architectures have none. */
static void read_cpu(int root, char *ret, size_t size)
{
	char text[CPUINFO_BYTES];
	ret[0] = '\0';
	int r = nm_read_text(root, "proc/cpuinfo", text, sizeof(text));
	if (r < 0 && r != -EFBIG)
		return;
	text[sizeof(text) - 1] = '\0';
	const char *model = strstr(text, "model name");
	const char *value = model ? strstr(model, ": ") : NULL;
	if (value)
		(void)nm_escape(ret, size, value + 2, strcspn(value + 2, "\n"));
}

static int write_report(const struct nm_ctl *ctl, struct nm_report_source *source)
{
	nm_auto(nm_closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	nm_auto(json_decrefp) json_t *nodes = NULL;
	struct utsname machine;
	char cpu[256];

	read_cpu(root, cpu, sizeof(cpu));
	source->cpu = cpu[0] ? cpu : NULL;
	source->kernel = uname(&machine) == 0 ? machine.release : NULL;
	if (nm_ctl_read_nodes(root, &nodes) == 0)
		source->nodes = nodes;
	nm_auto(json_decrefp) json_t *report = nm_report_compose(source, ctl->names);
	int r = nm_report_write(ctl->report, report);
	if (r == -EEXIST || r == -ELOOP)
		return nm_ctl_fail(ctl->report, "exists already: remove it, or give another name");
	if (r < 0)
		return nm_ctl_fail(ctl->report, strerror(-r));
	if (!source->document)
		(void)fputs("numa-migrctl: the service does not run, or this user may not read its "
			    "state: the report describes the machine alone\n",
			    stderr);
	return EXIT_SUCCESS;
}

int nm_ctl_doctor(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	struct nm_doctor_options options = {.root_path = "/", .program = NM_DAEMON_PROGRAM};
	(void)words;

	options.bus_error = sd_bus_open_system(&bus);
	if (options.bus_error >= 0)
		options.bus_error = sd_bus_set_method_call_timeout(bus, PATIENCE_US);
	if (options.bus_error >= 0)
		options.bus = bus;
	nm_auto(json_decrefp) json_t *document = options.bus ? nm_ctl_try_fetch(bus) : NULL;
	const json_t *status = json_object_get(document, "status");
	options.running_source = json_string_value(json_object_get(status, "source"));
	options.threads_measured = number_of(status, "threads_measured");
	options.threads_undersampled = number_of(status, "threads_undersampled");
	const json_t *trial = json_object_get(document, "trial");
	char trial_state[NM_CELL_SIZE];
	if (nm_ctl_trial_has_run(trial)) {
		nm_ctl_trial_state(trial, trial_state, sizeof(trial_state));
		options.trial_state = trial_state;
		options.trial_result = json_string_value(json_object_get(trial, "result"));
	}
	nm_auto(json_decrefp) json_t *facts = NULL;
	int r = nm_doctor_run(&options, &findings, ctl->report ? &facts : NULL);
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: the machine cannot be examined: %s\n",
			      strerror(-r));
		return EXIT_FAILURE;
	}
	if (ctl->report) {
		struct nm_report_source source = {
			.facts = facts, .findings = &findings, .document = document};
		return write_report(ctl, &source);
	}
	/* The first check is the conclusion of all. */
	r = nm_ctl_show_findings(ctl, &findings, 1);
	return nm_findings_count(&findings, NM_SEVERITY_PROBLEM) ? EXIT_FAILURE : r;
}
