/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "numa-migrd/escape.h"

#define NODES_NAMED 8U /* more are only counted */
#define OLDEST_MAJOR 6U
#define OLDEST_MINOR 1U

static double gib(uint64_t bytes)
{
	return (double)bytes / (double)(1ULL << 30);
}

/* ---- nodes ---- */

static void say_one_node(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"This machine has one NUMA node: there is nothing to move.");
	nm_findings_evidence(findings, "%d CPUs and %.1f GiB on it (/sys/devices/system/node)",
			     hwloc_bitmap_weight(facts->topology->online),
			     gib(facts->topology->nodes[0].memory_bytes));
	if (facts->virtual_machine)
		nm_findings_remedy(findings, "if its host has several nodes, give the virtual "
					     "machine nodes that match them");
	else
		nm_findings_remedy(findings, "if it has several sockets, turn \"node "
					     "interleaving\" off in the firmware's settings");
}

static void say_node(const struct nm_topology *topology, unsigned index,
		     struct nm_findings *findings)
{
	const struct nm_node *node = &topology->nodes[index];
	char cpus[128];

	if (hwloc_bitmap_iszero(node->cpus)) {
		nm_findings_evidence(findings, "node %u: no usable CPUs, %.1f GiB", node->os_id,
				     gib(node->memory_bytes));
		return;
	}
	(void)hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), node->cpus);
	nm_findings_evidence(findings, "node %u: CPUs %s, %.1f GiB", node->os_id, cpus,
			     gib(node->memory_bytes));
}

static unsigned farthest(const struct nm_topology *topology)
{
	unsigned most = 0;

	for (unsigned i = 0; i < topology->nr_nodes * topology->nr_nodes; i++)
		if (topology->distance[i] > most)
			most = topology->distance[i];
	return most;
}

void nm_check_nodes(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_topology *topology = facts->topology;

	if (!topology) {
		char error[sizeof(facts->topology_error)];
		(void)nm_escape(error, sizeof(error), facts->topology_error,
				strlen(facts->topology_error));
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
				"Which nodes and CPUs there are cannot be read.");
		nm_findings_evidence(findings, "%s", error);
		nm_findings_remedy(findings, "mount /sys and /proc where numa-migrd runs");
		return;
	}
	if (topology->nr_nodes < 2) {
		say_one_node(name, facts, findings);
		return;
	}
	nm_findings_add(
		findings, name, NM_SEVERITY_FINE,
		"This machine has %u NUMA nodes, the farthest at distance %u (10 is local).",
		topology->nr_nodes, farthest(topology));
	for (unsigned i = 0; i < topology->nr_nodes && i < NODES_NAMED; i++)
		say_node(topology, i, findings);
	if (topology->nr_nodes > NODES_NAMED)
		nm_findings_evidence(findings, "and %u more", topology->nr_nodes - NODES_NAMED);
}

void nm_check_homes(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->knows_homes || !nm_facts_several_nodes(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"Of each address it is known which node it is on.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
			"It is not known which node an address is on, so nothing would be moved.");
	nm_findings_evidence(findings, "neither /sys/devices/system/node/node*/memory* nor "
				       "/proc/zoneinfo tells");
	nm_findings_remedy(findings, "boot a kernel with CONFIG_MEMORY_HOTPLUG, as distributions' "
				     "kernels have it");
}

/* ---- isolated CPUs ---- */

static unsigned count_isolated(const struct nm_topology *topology)
{
	unsigned count = 0;

	for (unsigned i = 0; i < topology->nr_cpus; i++)
		count += topology->cpus[i].isolated || topology->cpus[i].nohz_full;
	return count;
}

void nm_check_isolated(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	unsigned count = facts->topology ? count_isolated(facts->topology) : 0;

	if (count == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No CPU is isolated: all of them are sampled, and may be sent to.");
		return;
	}
	bool barred = nm_facts_moves_memory(facts) && !facts->config->pages.isolated_cpus;
	nm_findings_add(findings, name, barred ? NM_SEVERITY_WARNING : NM_SEVERITY_NOTE,
			"Isolated and nohz_full CPUs, %u of them, are never sampled nor sent to%s.",
			count, barred ? ", and no pages are moved" : "");
	nm_findings_evidence(findings, "/sys/devices/system/cpu/isolated and nohz_full");
	if (barred)
		nm_findings_remedy(findings,
				   "pages.isolated_cpus = true moves pages nevertheless; each call "
				   "then interrupts these CPUs");
}

/* ---- memory ---- */

/* MemFree, as the mover goes by it: what is cached is not free. */
static unsigned count_full(const struct nm_facts *facts, double keep, unsigned *ret_first)
{
	unsigned count = 0;

	for (unsigned i = 0; i < facts->topology->nr_nodes; i++) {
		const struct nm_reading *bytes = &facts->free_bytes[i];
		uint64_t total = facts->topology->nodes[i].memory_bytes;
		if (bytes->error || total == 0 || (double)bytes->value >= keep * (double)total)
			continue;
		if (count++ == 0)
			*ret_first = i;
	}
	return count;
}

void nm_check_memory(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	double keep = facts->config ? facts->config->pages.keep_free : 0.05;
	unsigned first = 0;

	if (!facts->topology || !facts->free_bytes) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"The nodes are not known, so neither is their free memory.");
		return;
	}
	unsigned full = count_full(facts, keep, &first);
	if (full == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"Every node has free memory for pages to move to.");
		return;
	}
	nm_findings_add(findings, name,
			nm_facts_weigh(facts, nm_facts_moves_memory(facts) ? NM_SEVERITY_WARNING
									   : NM_SEVERITY_NOTE),
			"Less than %.0f %% of the memory is free on %u of %u nodes: no pages would "
			"be moved "
			"there.",
			keep * 100, full, facts->topology->nr_nodes);
	nm_findings_evidence(findings, "node %u: %" PRId64 " MiB free of %" PRIu64 " MiB (meminfo)",
			     facts->topology->nodes[first].os_id,
			     facts->free_bytes[first].value >> 20,
			     facts->topology->nodes[first].memory_bytes >> 20);
	nm_findings_remedy(findings,
			   "files in the page cache count as used: lower pages.keep_free, or give "
			   "the node's programs less memory");
}

/* ---- the kernel ---- */

void nm_check_virtual(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->container) {
		nm_findings_add(findings, name, NM_SEVERITY_WARNING,
				"This is a container: only its own processes are seen from here, "
				"and their numbers are not the kernel's.");
		nm_findings_evidence(findings, "%s is there", facts->container);
		nm_findings_remedy(findings, "run numa-migrd on the host, or in a container with "
					     "the host's PID namespace and its capabilities");
		return;
	}
	if (facts->virtual_machine) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"This is a virtual machine: nodes and distances are what its host "
				"says, and counters are often missing.");
		nm_findings_evidence(findings, "flag \"hypervisor\" in /proc/cpuinfo");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_FINE,
			"This is neither a virtual machine nor a container.");
}

static bool is_too_old(const char *release)
{
	unsigned major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	return major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR);
}

static void say_lacking(const struct nm_facts *facts, const char *name,
			struct nm_findings *findings)
{
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"Linux %s lacks what some settings need.", facts->kernel);
	if (!facts->has_schedstat)
		nm_findings_evidence(findings,
				     "no /proc/self/schedstat: threads.policy = \"balance\" does "
				     "not see who waits (CONFIG_SCHED_INFO)");
	if (!facts->has_numa_maps)
		nm_findings_evidence(findings, "no /proc/self/numa_maps: pages are not counted by "
					       "it, nor moved (CONFIG_NUMA)");
	nm_findings_remedy(findings, "boot a kernel that has them, as distributions' have");
}

void nm_check_kernel(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (is_too_old(facts->kernel)) {
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
				"Linux %s is older than what numa-migrd is made for.",
				facts->kernel);
		nm_findings_remedy(findings, "boot Linux %u.%u or newer", OLDEST_MAJOR,
				   OLDEST_MINOR);
		return;
	}
	if (!facts->has_schedstat || !facts->has_numa_maps) {
		say_lacking(facts, name, findings);
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_FINE, "Linux %s has what numa-migrd needs.",
			facts->kernel);
}

void nm_check_thp(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (!facts->thp[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"There are no transparent huge pages.");
		return;
	}
	bool always = strcmp(facts->thp, "always") == 0;
	nm_findings_add(findings, name, always ? NM_SEVERITY_NOTE : NM_SEVERITY_FINE,
			always ? "Transparent huge pages are always used: 2 MiB go to one node "
				 "together, whoever uses which part."
			       : "Transparent huge pages are used where a program asks for them, "
				 "or not at all.");
	nm_findings_evidence(
		findings, "/sys/kernel/mm/transparent_hugepage: enabled is \"%s\", defrag \"%s\"",
		facts->thp, facts->thp_defrag);
	if (always)
		nm_findings_remedy(
			findings,
			"none in general; where numa-migrctl advise finds parts of them used by "
			"several nodes, let that program call madvise(MADV_NOHUGEPAGE)");
}

/* ---- cpusets ---- */

void nm_check_cpusets(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	char path[512];

	if (!facts->unified) {
		nm_findings_add(
			findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"The unified cgroup hierarchy (v2) is not at /sys/fs/cgroup: units, "
			"slices and cpusets are not seen.");
		nm_findings_remedy(findings, "boot with systemd.unified_cgroup_hierarchy=1");
		return;
	}
	const char *cut = facts->cgroups_cut ? " that were looked at" : "";
	if (facts->nr_cpusets == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"None of the %u cgroups%s has a cpuset of its own.",
				facts->nr_cgroups, cut);
		return;
	}
	(void)nm_escape(path, sizeof(path), facts->cpuset_path, strlen(facts->cpuset_path));
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Cpusets narrow %u of %u cgroups%s: their threads are moved within them, "
			"and not at all where they are of one node.",
			facts->nr_cpusets, facts->nr_cgroups, cut);
	nm_findings_evidence(findings, "the first is %s (cpuset.cpus)", path);
}
