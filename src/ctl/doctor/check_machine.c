/* SPDX-License-Identifier: MIT */
/* Virtual machines, containers and cpusets. */
#include <string.h>

#include "checks.h"
#include "numa-migrd/base.h"

void nm_check_virtual(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->container) {
		nm_findings_add(
			findings, name, NM_SEVERITY_WARNING,
			"This is a container: only its own processes are visible, with PIDs "
			"of its own.");
		nm_findings_evidence(findings, "%s exists", facts->container);
		nm_findings_remedy(findings, "run numa-migrd on the host, or in a container with "
					     "the host's PID namespace and its capabilities");
		return;
	}
	if (facts->virtual_machine) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"This is a virtual machine: its host sets the nodes and distances, "
				"and often hides counters.");
		nm_findings_evidence(findings, "flag \"hypervisor\" in /proc/cpuinfo");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_FINE,
			"This is neither a virtual machine nor a container.");
}

void nm_check_scheduler(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	if (!facts->bpf_scheduler) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The kernel's own scheduler is in charge.");
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"A BPF scheduler (%s) is in charge, which may place threads against "
			"numa-migrd.",
			facts->scheduler[0] ? facts->scheduler : "sched_ext");
	nm_findings_evidence(findings, "/sys/kernel/sched_ext/state is not \"disabled\"");
	nm_findings_remedy(findings,
			   "compare with and without it, or stop one of the two; most stop "
			   "with their service, such as scx.service");
}

static void say_isolated(const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_topology *topology = facts->topology;
	int unused = topology ? hwloc_bitmap_weight(topology->online) -
					hwloc_bitmap_weight(topology->usable)
			      : 0;
	if (unused > 0)
		nm_findings_evidence(
			findings, "isolated or nohz_full CPUs, which are never used: %d", unused);
}

void nm_check_cpusets(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	char path[512];

	if (!facts->unified) {
		nm_findings_add(
			findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"cgroup v2 is not mounted at /sys/fs/cgroup: units, slices and cpusets are "
			"not seen.");
		nm_findings_remedy(findings, "boot with systemd.unified_cgroup_hierarchy=1");
		return;
	}
	const char *cut = facts->cgroups_cut ? " that were looked at" : "";
	if (facts->nr_cpusets == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"None of the %u cgroups%s has a cpuset of its own.",
				facts->nr_cgroups, cut);
		say_isolated(facts, findings);
		return;
	}
	(void)nm_escape(path, sizeof(path), facts->cpuset_path, strlen(facts->cpuset_path));
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Cpusets restrict %u of %u cgroups%s; threads stay within their cpuset.",
			facts->nr_cpusets, facts->nr_cgroups, cut);
	nm_findings_evidence(findings, "the first is %s (cpuset.cpus)", path);
	say_isolated(facts, findings);
}
