/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <string.h>

#include "ctl.h"
#include "numa-migrd/control.h"
#include "show_findings.h"

#define PATIENCE_US (2ULL * 1000 * 1000)

static uint64_t status_number(const json_t *status, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(status, name));
}

/* Queries the daemon's status, which anyone may read. Returns its sampling source, allocated and
 * also in *options; NULL if the daemon does not run or does not answer. */
static char *ask_daemon(sd_bus *bus, struct nm_doctor_options *options)
{
	nm_auto(json_decrefp) json_t *status = NULL;
	char *source = NULL;

	if (sd_bus_get_property_string(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Source",
				       NULL, &source) < 0)
		return NULL;
	options->running_source = source;
	if (nm_ctl_ask(bus, "Status", &status) == EXIT_SUCCESS) {
		options->threads_measured = status_number(status, "threads_measured");
		options->threads_undersampled = status_number(status, "threads_undersampled");
	}
	return source;
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
	char *source = options.bus ? ask_daemon(bus, &options) : NULL;
	int r = nm_doctor_run(&options, &findings);

	free(source);
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: the machine cannot be examined: %s\n",
			      strerror(-r));
		return EXIT_FAILURE;
	}
	/* The first check is the conclusion of all. */
	r = nm_ctl_show_findings(ctl, &findings, 1);
	return nm_findings_count(&findings, NM_SEVERITY_PROBLEM) ? EXIT_FAILURE : r;
}
