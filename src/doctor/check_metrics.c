/* SPDX-License-Identifier: MIT */
/* Of all of the file system the unit leaves little to the service (ProtectSystem=strict). */
#include <stdio.h>
#include <string.h>

#include "checks.h"

/* Below one of the directories that systemd makes for the service: a word of that setting names it,
 * or one above it. */
static bool is_in_own(const struct nm_facts *facts, const char *key, const char *place,
		      const char *file)
{
	size_t length = strlen(place);

	if (strncmp(file, place, length) != 0)
		return false;
	nm_autofree char *name = strdup(file + length);
	for (char *slash; name && (slash = strrchr(name, '/')) != NULL;) {
		*slash = '\0';
		if (nm_unit_has_word(&facts->unit, key, name))
			return true;
	}
	return false;
}

static bool is_made_by_systemd(const struct nm_facts *facts, const char *file)
{
	return is_in_own(facts, "CacheDirectory", "/var/cache/", file) ||
	       is_in_own(facts, "StateDirectory", "/var/lib/", file) ||
	       is_in_own(facts, "RuntimeDirectory", "/run/", file);
}

/* Any of the directories above the file may be named; with "-" before it, it may be absent. */
static bool is_opened_up(const struct nm_facts *facts, const char *file)
{
	nm_autofree char *path = NULL;

	if (asprintf(&path, "-%s", file) < 0) {
		path = NULL;
		return false;
	}
	for (char *slash; (slash = strrchr(path, '/')) != NULL && slash > path + 1;) {
		*slash = '\0';
		if (nm_unit_has_word(&facts->unit, "ReadWritePaths", path) ||
		    nm_unit_has_word(&facts->unit, "ReadWritePaths", path + 1))
			return true;
	}
	return false;
}

void nm_check_metrics(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const char *file = facts->config ? facts->config->metrics.file : "";
	bool made = facts->has_unit && is_made_by_systemd(facts, file);

	if (!file[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No file of metrics is wanted (metrics.file).");
	} else if (facts->has_unit && !made && !is_opened_up(facts, file)) {
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
				"The unit does not let the service write the file of metrics.");
		nm_findings_evidence(findings, "metrics.file is %s", file);
		nm_findings_remedy(findings,
				   "put it below /var/cache/numa-migrd, or use the drop-in "
				   "metrics.conf (numa-migrd-metrics(5))");
	} else if (!made && facts->metrics_directory.error == -ENOENT) {
		nm_findings_add(findings, name, NM_SEVERITY_WARNING,
				"The directory of the file of metrics is not there.");
		nm_findings_evidence(findings, "metrics.file is %s", file);
		nm_findings_remedy(findings, "make it, owned by the user that runs numa-migrd");
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_FINE, "Metrics are written to %s.",
				file);
	}
}
