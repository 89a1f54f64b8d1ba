/* SPDX-License-Identifier: MIT */
#include "doctor/doctor.h"

#include <string.h>

#include "cell.h"
#include "ctl.h"
#include "show_findings.h"

#define PATIENCE_US (2ULL * 1000 * 1000)

static uint64_t number_of(const json_t *status, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(status, name));
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
	int r = nm_doctor_run(&options, &findings);
	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: the machine cannot be examined: %s\n",
			      strerror(-r));
		return EXIT_FAILURE;
	}
	/* The first check is the conclusion of all. */
	r = nm_ctl_show_findings(ctl, &findings, 1);
	return nm_findings_count(&findings, NM_SEVERITY_PROBLEM) ? EXIT_FAILURE : r;
}
