/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>

#include "checks.h"
#include "numa-migrd/escape.h"

/* ---- capabilities ---- */

static const struct needed {
	const char *name;
	unsigned bit;
	const char *without;
} needed[] = {
	{"CAP_SYS_NICE", CAP_SYS_NICE, "no thread of another user can be moved"},
	{"CAP_PERFMON", 38, "nothing can be sampled but by the helper"},
};

static bool is_held(const struct nm_facts *facts, const struct needed *capability)
{
	if (facts->daemon.pid)
		return (uint64_t)facts->daemon.capabilities.value >> capability->bit & 1;
	return nm_unit_has_word(&facts->unit, "AmbientCapabilities", capability->name);
}

static bool are_seen(const struct nm_facts *facts)
{
	return facts->daemon.pid ? facts->daemon.capabilities.error == 0 : facts->has_unit;
}

void nm_check_capabilities(const char *name, const struct nm_facts *facts,
			   struct nm_findings *findings)
{
	unsigned lacking = 0;

	if (!are_seen(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"There is neither a process nor a unit whose capabilities could be "
				"looked at.");
		return;
	}
	for (size_t i = 0; i < NM_ARRAY_SIZE(needed); i++)
		lacking += !is_held(facts, &needed[i]);
	if (lacking == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The service has the capabilities it needs.");
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
			"The service lacks capabilities.");
	for (size_t i = 0; i < NM_ARRAY_SIZE(needed); i++)
		if (!is_held(facts, &needed[i]))
			nm_findings_evidence(findings, "without %s %s", needed[i].name,
					     needed[i].without);
	nm_findings_remedy(findings, "AmbientCapabilities=CAP_SYS_NICE CAP_PERFMON, "
				     "and none of them missing in CapabilityBoundingSet=");
}

/* ---- hardening ---- */

/* What takes away something that the service lives on. */
static const struct harmful {
	const char *key, *value, *why;
} harmful[] = {
	{"ProtectProc", "invisible", "other users' processes are not seen"},
	{"ProtectProc", "noaccess", "other users' processes are not seen"},
	{"ProtectProc", "ptraceable", "other users' processes are not seen"},
	{"ProcSubset", "pid", "/proc/stat and /proc/sys are not seen"},
	{"PrivateUsers", "yes", "its capabilities do not count outside"},
	{"PrivateUsers", "self", "its capabilities do not count outside"},
	{"PrivatePIDs", "yes", "no process is seen but its own"},
};

/* What the unit is shipped with, of the settings that take a switch or one word. */
static const struct {
	const char *key, *value;
} shipped[] = {
	{"NoNewPrivileges", "yes"},
	{"ProtectSystem", "strict"},
	{"ProtectHome", "yes"},
	{"PrivateTmp", "yes"},
	{"PrivateDevices", "yes"},
	{"PrivateNetwork", "yes"},
	{"ProtectKernelTunables", "yes"},
	{"ProtectKernelModules", "yes"},
	{"ProtectKernelLogs", "yes"},
	{"ProtectControlGroups", "yes"},
	{"ProtectClock", "yes"},
	{"ProtectHostname", "yes"},
	{"RestrictNamespaces", "yes"},
	{"RestrictRealtime", "yes"},
	{"RestrictSUIDSGID", "yes"},
	{"LockPersonality", "yes"},
	{"MemoryDenyWriteExecute", "yes"},
	{"SystemCallArchitectures", "native"},
	{"RestrictAddressFamilies", "AF_UNIX"},
};

/* Of the same meaning, where they are switches. */
static bool is_same(const char *a, const char *b)
{
	int as_switch = nm_unit_boolean(a);

	if (!a)
		return false;
	return as_switch >= 0 ? as_switch == nm_unit_boolean(b) : strcasecmp(a, b) == 0;
}

static unsigned say_harmful(const struct nm_facts *facts, const char *name,
			    struct nm_findings *findings)
{
	unsigned count = 0;

	for (size_t i = 0; i < NM_ARRAY_SIZE(harmful); i++) {
		const struct harmful *one = &harmful[i];
		if (!is_same(nm_unit_value(&facts->unit, one->key), one->value))
			continue;
		if (count++ == 0)
			nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_PROBLEM),
					"The unit is hardened so far that numa-migrd cannot work.");
		nm_findings_evidence(findings, "%s=%s: %s", one->key, one->value, one->why);
	}
	return count;
}

static unsigned say_loosened(const struct nm_facts *facts, const char *name,
			     struct nm_findings *findings)
{
	unsigned count = 0;

	for (size_t i = 0; i < NM_ARRAY_SIZE(shipped); i++) {
		if (is_same(nm_unit_value(&facts->unit, shipped[i].key), shipped[i].value))
			continue;
		if (count++ == 0)
			nm_findings_add(findings, name, NM_SEVERITY_WARNING,
					"The unit is hardened less than the one that is shipped.");
		nm_findings_evidence(findings, "%s= is not %s", shipped[i].key, shipped[i].value);
	}
	return count;
}

static void say_drop_ins(const struct nm_facts *facts, struct nm_findings *findings)
{
	char names[2 * sizeof(facts->drop_ins)];

	if (!facts->drop_ins[0])
		return;
	(void)nm_escape(names, sizeof(names), facts->drop_ins, strlen(facts->drop_ins));
	nm_findings_evidence(findings, "drop-ins: %s", names);
}

void nm_check_hardening(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	if (!facts->has_unit) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"There is no " NM_FACTS_UNIT " to look at.");
		return;
	}
	if (say_harmful(facts, name, findings) > 0 || say_loosened(facts, name, findings) > 0) {
		nm_findings_remedy(findings,
				   "systemctl cat numa-migrd shows which drop-in does it; "
				   "take that line out");
	} else if (facts->daemon.pid && facts->daemon.seccomp.error == 0 &&
		   facts->daemon.seccomp.value == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"The unit is hardened as shipped, but the numa-migrd that runs was "
				"not started by it.");
		nm_findings_evidence(findings, "Seccomp: 0 in /proc/%" PRIu32 "/status",
				     facts->daemon.pid);
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The unit is hardened as shipped.");
	}
	say_drop_ins(facts, findings);
}
