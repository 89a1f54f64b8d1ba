/* SPDX-License-Identifier: MIT */
#include "numa-migrd/doctor.h"

#include <string.h>

#include "ctl.h"
#include "findings.h"
#include "numa-migrd/control.h"

#define PATIENCE_US (2ULL * 1000 * 1000)

/* By the daemon's own word, which everyone may ask for; NULL where it does not run or answer. */
static char *running_source(void)
{
	nm_auto(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	char *source = NULL;

	if (sd_bus_open_system(&bus) < 0 || sd_bus_set_method_call_timeout(bus, PATIENCE_US) < 0)
		return NULL;
	if (sd_bus_get_property_string(bus, NM_BUS_NAME, NM_BUS_PATH, NM_BUS_INTERFACE, "Source",
				       NULL, &source) < 0)
		return NULL;
	return source;
}

int nm_ctl_doctor(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = {0};
	nm_autofree char *source = running_source();
	const struct nm_doctor_options options = {
		.root_path = "/", .try_out = true, .running_source = source};
	(void)words;
	int r = nm_doctor_run(&options, &findings);

	if (r < 0) {
		(void)fprintf(stderr, "numa-migrctl: the machine cannot be looked at: %s\n",
			      strerror(-r));
		return EXIT_FAILURE;
	}
	/* What all of it comes to is the first of the checks. */
	r = nm_ctl_show_findings(ctl, &findings, 1);
	return nm_findings_count(&findings, NM_SEVERITY_PROBLEM) ? EXIT_FAILURE : r;
}
