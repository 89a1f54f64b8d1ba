/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "checks.h"

#define FDS_PER_CPU 48 /* every event of the list, each with a leader */
#define FDS_BESIDES 256
#define RING_PAGE_KB 4

void nm_check_service(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->daemon.pid) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"numa-migrd runs (pid %" PRIu32 ").", facts->daemon.pid);
	} else if (facts->running_source[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"numa-migrd runs: it answers on the system bus.");
	} else if (facts->hidden) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"Whether numa-migrd runs is not shown to this user.");
		nm_findings_remedy(findings, "systemctl status numa-migrd");
	} else if (facts->has_unit) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"numa-migrd is installed and does not run.");
		nm_findings_remedy(findings, "systemctl enable --now numa-migrd");
		nm_findings_remedy(findings, "to look at first what it would do: general.dry_run = "
					     "true in the configuration");
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"numa-migrd does not run, and its unit is not installed.");
		nm_findings_remedy(findings, "install the package, or run numa-migrd --dry-run as "
					     "root in a terminal");
	}
	if (facts->helper.pid)
		nm_findings_evidence(findings, "its helper runs (pid %" PRIu32 ")",
				     facts->helper.pid);
}

/* ---- the configuration ---- */

/* The rest goes by the shipped one. */
static void say_no_config(const char *name, const struct nm_facts *facts,
			  struct nm_findings *findings)
{
	bool unseen = facts->config_error == -EACCES;

	nm_findings_add(
		findings, name, unseen ? NM_SEVERITY_UNSEEN : NM_SEVERITY_NOTE,
		unseen ? "As this user the configuration cannot be read: the rest goes by "
			 "the shipped one."
		       : "There is no configuration yet: the rest goes by the shipped one.");
	for (size_t i = 0; i < facts->config_errors.count; i++)
		nm_findings_evidence(findings, "%s", facts->config_errors.text[i]);
	nm_findings_remedy(findings, unseen ? "ask again as root: sudo numa-migrctl doctor"
					    : "the package brings one");
}

static void say_bad_config(const char *name, const struct nm_facts *facts,
			   struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
			"The configuration cannot be used: numa-migrd would not start.");
	for (size_t i = 0; i < facts->config_errors.count; i++)
		nm_findings_evidence(findings, "%s", facts->config_errors.text[i]);
	if (facts->config_error == -ENOENT)
		nm_findings_remedy(findings, "the package brings it; an empty file does as well");
	else
		nm_findings_remedy(findings, "mend it, then: numa-migrd --check-config");
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
		if (config)
			say_no_config(name, facts, findings);
		else
			say_bad_config(name, facts, findings);
		return;
	}
	nm_findings_add(findings, name, does_nothing(config) ? NM_SEVERITY_NOTE : NM_SEVERITY_FINE,
			"The configuration is valid%s.",
			config->general.dry_run ? ", and general.dry_run is on: nothing is changed"
			: does_nothing(config)	? ", and lets nothing be moved"
						: "");
	nm_findings_evidence(findings, "%s: threads.policy is \"%s\"", facts->config_path,
			     nm_policy_name(config->threads.policy));
	if (does_nothing(config) && !config->general.dry_run)
		nm_findings_remedy(findings, "set threads.policy or pages.policy");
}

void nm_check_ledger(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	int error = facts->ledger.error;

	if (error && error != -ENOENT) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"What an earlier run has left is not seen.");
		nm_facts_say_unseen(facts, findings, "/run/numa-migrd", error);
	} else if (facts->ledger.value == 1 && !facts->daemon.pid) {
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
				"An earlier run has ended without giving all CPU masks back.");
		nm_findings_evidence(findings,
				     "/run/numa-migrd/ledger is there, numa-migrd is not");
		nm_findings_remedy(findings, "numa-migrd --restore, as root");
	} else if (facts->damaged.value == 1) {
		nm_findings_add(
			findings, name, NM_SEVERITY_WARNING,
			"A ledger of an earlier run could not be read whole: some masks may "
			"still be narrowed.");
		nm_findings_evidence(findings, "/run/numa-migrd/ledger.damaged");
		nm_findings_remedy(findings,
				   "compare the threads in it with taskset -acp PID, widen "
				   "by taskset -acp CPUS PID, and remove the file");
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No earlier run has left anything.");
	}
}

/* ---- limits ---- */

static int64_t cpus_of(const struct nm_facts *facts)
{
	return facts->topology ? hwloc_bitmap_weight(facts->topology->usable) : 1;
}

/* Of the process that runs, else as its unit says; INT64_MAX: none. */
static struct nm_reading limit(const struct nm_facts *facts, const struct nm_reading *running,
			       const char *key)
{
	const char *text = nm_unit_value(&facts->unit, key);
	char *end;

	if (facts->daemon.pid && running->error == 0)
		return *running;
	if (!text)
		return (struct nm_reading){.error = -ENODATA};
	if (strcmp(text, "infinity") == 0)
		return (struct nm_reading){.value = INT64_MAX};
	const char *hard = strrchr(text, ':'); /* "soft:hard" */
	int64_t value = strtoll(hard ? hard + 1 : text, &end, 10);
	return (struct nm_reading){.error = *end ? -EINVAL : 0, .value = value};
}

void nm_check_files(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	struct nm_reading files = limit(facts, &facts->daemon.files, "LimitNOFILE");
	int64_t needed = cpus_of(facts) * FDS_PER_CPU + FDS_BESIDES;

	if (files.error) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"No limit of open files is set for numa-migrd: up to %" PRId64
				" are needed here.",
				needed);
		return;
	}
	if (!facts->nr_open.error && files.value > facts->nr_open.value)
		files.value = facts->nr_open.value;
	bool enough = files.value >= needed;
	nm_findings_add(findings, name,
			enough ? NM_SEVERITY_FINE : nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"numa-migrd may have %" PRId64 " files open and needs up to %" PRId64 ".",
			files.value, needed);
	if (!enough)
		nm_findings_remedy(findings, "raise LimitNOFILE= of the unit, and fs.nr_open where "
					     "that is lower");
}

void nm_check_locked_memory(const char *name, const struct nm_facts *facts,
			    struct nm_findings *findings)
{
	struct nm_reading locked = limit(facts, &facts->daemon.locked, "LimitMEMLOCK");
	int64_t ring_kb = facts->config ? (int64_t)facts->config->sampling.ring_kb : 512;
	bool unlimited = locked.error == 0 && locked.value == INT64_MAX;
	bool fits = !facts->mlock_kb.error && ring_kb + RING_PAGE_KB <= facts->mlock_kb.value;

	if (unlimited || fits) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The sample buffers of %" PRId64 " KiB for each CPU may be locked.",
				ring_kb);
		return;
	}
	nm_findings_add(
		findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
		"Sample buffers of %" PRId64
		" KiB for each CPU may not all be locked: smaller ones are used, and more samples "
		"lost.",
		ring_kb);
	if (!facts->mlock_kb.error)
		nm_findings_evidence(findings, "kernel.perf_event_mlock_kb is %" PRId64,
				     facts->mlock_kb.value);
	nm_findings_remedy(findings, "LimitMEMLOCK=infinity in the unit, or a smaller "
				     "sampling.ring_kb");
}
