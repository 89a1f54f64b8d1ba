/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "checks.h"

static bool is_running(const struct nm_facts *facts)
{
	return facts->daemon_pid || facts->running_source[0] ||
	       strcmp(facts->unit.active, "active") == 0;
}

static void report_left_record(const char *name, struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
			"numa-migrd ended without restoring all CPU affinities.");
	nm_findings_evidence(findings,
			     "/run/numa-migrd/moves or ledger exists, and numa-migrd does not "
			     "run");
	nm_findings_remedy(findings, "numa-migrd --restore, as root");
}

static void report_broken_unit(const char *name, const struct nm_facts *facts,
			       struct nm_findings *findings)
{
	bool failed = strcmp(facts->unit.active, "failed") == 0;

	if (failed) {
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM, "numa-migrd has failed.");
		nm_findings_remedy(findings, "for the reason: journalctl -u numa-migrd");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
			"systemd has not loaded the unit of numa-migrd: %s.", facts->unit.load);
	nm_findings_remedy(findings, "systemctl status numa-migrd shows what is wrong with it");
}

static void report_stopped(const char *name, const struct nm_facts *facts,
			   struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			facts->unit.exists ? "numa-migrd is installed and does not run."
					   : "numa-migrd does not run, and has no unit.");
	if (!facts->unit.exists) {
		nm_findings_remedy(findings, "install the package, or run numa-migrd --dry-run as "
					     "root in a terminal");
		return;
	}
	nm_findings_remedy(findings, "for a dry run first, set general.dry_run = true in the "
				     "configuration");
	nm_findings_remedy(findings, "systemctl start numa-migrd, and later enable it");
}

static void report_unknown(const char *name, const struct nm_facts *facts,
			   struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
			facts->hidden ? "This user cannot see whether numa-migrd runs."
				      : "numa-migrd does not run. Its unit is not known.");
	nm_findings_remedy(findings, "systemctl status numa-migrd");
}

void nm_check_service(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_facts_unit *unit = &facts->unit;
	bool broken = unit->exists &&
		      (strcmp(unit->load, "loaded") != 0 || strcmp(unit->active, "failed") == 0);

	if (is_running(facts))
		nm_findings_add(findings, name, NM_SEVERITY_FINE, "numa-migrd is running.");
	else if (facts->left_record.value == 1)
		report_left_record(name, findings);
	else if (unit->error)
		report_unknown(name, facts, findings);
	else if (broken)
		report_broken_unit(name, facts, findings);
	else
		report_stopped(name, facts, findings);
	if (facts->daemon_pid)
		nm_findings_evidence(findings, "pid %" PRIu32, facts->daemon_pid);
	if (unit->error)
		nm_findings_evidence(findings, "systemd did not answer on the system bus: %s",
				     strerrordesc_np(-unit->error));
	if (facts->helper_pid)
		nm_findings_evidence(findings, "the helper runs (pid %" PRIu32 ")",
				     facts->helper_pid);
}

/* Returns the worst drawback of a valid configuration; NULL: it has none. */
static const char *drawback_of(const struct nm_facts *facts)
{
	const struct nm_config *config = facts->config;

	if (config->sampling.source == NM_SOURCE_NONE)
		return "sampling.source = \"none\": nothing is sampled, and nothing moved";
	if (facts->config_missing)
		return "there is no file: the defaults apply, and the helper permits nothing";
	if (facts->metrics_error)
		return "metrics.file cannot be written";
	return NULL;
}

static void say_drawback(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings)
{
	bool none = facts->config->sampling.source == NM_SOURCE_NONE;

	nm_findings_add(findings, name, NM_SEVERITY_WARNING, "The configuration is valid, but %s.",
			drawback_of(facts));
	nm_findings_evidence(findings, "%s%s", facts->config_path,
			     facts->config_missing ? ": no such file" : "");
	if (none)
		nm_findings_remedy(findings, "remove sampling.source, or set it to \"auto\"");
	if (facts->config_missing)
		nm_findings_remedy(findings, "reinstall the package's %s, or create an empty one",
				   NM_CONFIG_FILE);
	if (!facts->metrics_error)
		return;
	nm_findings_evidence(findings, "metrics.file is \"%s\": %s", facts->config->metrics.file,
			     strerrordesc_np(-facts->metrics_error));
	nm_findings_remedy(findings,
			   "a file in /var/cache/numa-migrd, or another folder of user %s "
			   "and ReadWritePaths= for it in a drop-in of the unit",
			   NM_FACTS_USER);
}

static bool does_nothing(const struct nm_config *config)
{
	return config->general.dry_run || (config->threads.policy == NM_POLICY_NONE &&
					   config->pages.policy != NM_PAGES_EXCLUSIVITY);
}

void nm_check_configuration(const char *name, const struct nm_facts *facts,
			    struct nm_findings *findings)
{
	const struct nm_config *config = facts->config;

	if (facts->config_error) {
		if (config) {
			/* Other checks use the default configuration. */
			nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
					"This user cannot read the configuration: the defaults are "
					"assumed.");
			for (size_t i = 0; i < facts->config_errors.count; i++)
				nm_findings_evidence(findings, "%s", facts->config_errors.text[i]);
			nm_findings_remedy(findings, "run numa-migrctl doctor as root");
		} else {
			nm_findings_add(
				findings, name, NM_SEVERITY_PROBLEM,
				"The configuration cannot be used: numa-migrd would not start.");
			for (size_t i = 0; i < facts->config_errors.count; i++)
				nm_findings_evidence(findings, "%s", facts->config_errors.text[i]);
			nm_findings_remedy(findings, "fix it, then: numa-migrd --check-config");
		}
		return;
	}
	if (drawback_of(facts)) {
		say_drawback(name, facts, findings);
		return;
	}
	nm_findings_add(findings, name, does_nothing(config) ? NM_SEVERITY_NOTE : NM_SEVERITY_FINE,
			"The configuration is valid%s.",
			config->general.dry_run ? ", and general.dry_run is on: nothing is changed"
			: does_nothing(config)	? ", and disables all moves"
						: "");
	nm_findings_evidence(findings, "%s: threads.policy is \"%s\"", facts->config_path,
			     nm_config_policy_name(config));
	if (does_nothing(config) && !config->general.dry_run)
		nm_findings_remedy(findings, "set threads.policy or pages.policy");
}

void nm_check_trial(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->trial_state[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE, "The trial: %s.",
				facts->trial_state);
		nm_findings_evidence(findings, "%s", facts->trial_result);
		return;
	}
	if (!facts->running_source[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"Only the running service knows whether there was a trial.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"No trial has compared managed processes with others since the start.");
	if (nm_facts_several_nodes(facts))
		nm_findings_remedy(findings, "numa-migrctl trial start, as root");
}
