/* SPDX-License-Identifier: MIT */
/* The machine and its processes. */
#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "numa-migrd/base.h"

#define NODES_NAMED 8U /* more are only counted */

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

static void report_no_addresses(const char *name, struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
			"The node of a memory address is unknown: nothing is moved.");
	nm_findings_evidence(findings, "neither /sys/devices/system/node/node*/memory* nor "
				       "/proc/zoneinfo shows it");
	nm_findings_remedy(findings, "boot a kernel with CONFIG_MEMORY_HOTPLUG, such as a "
				     "distribution's");
}

void nm_check_nodes(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const struct nm_topology *topology = facts->topology;

	if (!topology) {
		char error[sizeof(facts->topology_error)];
		(void)nm_escape(error, sizeof(error), facts->topology_error,
				strlen(facts->topology_error));
		nm_findings_add(findings, name, NM_SEVERITY_PROBLEM,
				"The nodes and CPUs cannot be read.");
		nm_findings_evidence(findings, "%s", error);
		nm_findings_remedy(findings, "mount /sys and /proc where numa-migrd runs");
		return;
	}
	if (topology->nr_nodes < 2) {
		say_one_node(name, facts, findings);
		return;
	}
	if (!facts->knows_homes) {
		report_no_addresses(name, findings);
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

/* ---- virtual machines and containers ---- */

void nm_check_virtual(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->container) {
		nm_findings_add(findings, name, NM_SEVERITY_WARNING,
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

/* ---- cpusets ---- */

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
		return;
	}
	(void)nm_escape(path, sizeof(path), facts->cpuset_path, strlen(facts->cpuset_path));
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Cpusets restrict %u of %u cgroups%s; threads stay within their cpuset.",
			facts->nr_cpusets, facts->nr_cgroups, cut);
	nm_findings_evidence(findings, "the first is %s (cpuset.cpus)", path);
}

/* ---- processes that are treated specially ---- */

static void add_runtime(const struct nm_facts *facts, enum nm_runtime kind,
			struct nm_findings *findings)
{
	const struct nm_facts_runtime *runtime = &facts->runtimes[kind];

	if (runtime->count > 0)
		nm_findings_evidence(findings, "%s: %u program%s, among them %s (pid %" PRIu32 ")",
				     nm_runtime_name(kind), runtime->count,
				     nm_plural(runtime->count, "", "s"), runtime->comm,
				     runtime->pid);
}

static void report_no_runtime(const char *name, const struct nm_facts *facts,
			      struct nm_findings *findings)
{
	bool unread = facts->unread_programs > 0;

	nm_findings_add(findings, name, unread ? NM_SEVERITY_UNSEEN : NM_SEVERITY_FINE,
			"No program is known to read its CPU affinity again while it runs (Go, "
			"Java).");
	if (unread)
		nm_findings_remedy(
			findings, "run it again as root: %u program%s of others could not be read",
			facts->unread_programs, nm_plural(facts->unread_programs, "", "s"));
}

void nm_check_runtimes(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->runtimes[NM_RUNTIME_GO].count + facts->runtimes[NM_RUNTIME_JVM].count == 0) {
		report_no_runtime(name, facts, findings);
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Go and Java programs read their CPU affinity again: their threads are "
			"not leased (threads.pin).");
	add_runtime(facts, NM_RUNTIME_GO, findings);
	add_runtime(facts, NM_RUNTIME_JVM, findings);
	nm_findings_remedy(findings, "leave threads.pin at \"auto\", exclude these programs "
				     "(targets.exclude), or set their number of CPUs (GOMAXPROCS=, "
				     "-XX:ActiveProcessorCount=)");
}

void nm_check_unanswered(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings)
{
	if (facts->workers_stuck == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No process holds the lock of its memory map.");
	} else {
		nm_findings_add(findings, name, NM_SEVERITY_WARNING,
				"The memory of some processes cannot be read: %" PRIu64
				" worker%s for the lock of a memory map.",
				facts->workers_stuck,
				facts->workers_stuck == 1 ? " waits" : "s wait");
		nm_findings_remedy(findings,
				   "end the processes that the journal names (journalctl -t "
				   "numa-migrd KIND=problem); their users' memory is not migrated "
				   "until then, and no memory once eight workers wait");
	}
	if (facts->workers_given_up > 0)
		nm_findings_evidence(findings, "%" PRIu64 " missed deadlines since the start",
				     facts->workers_given_up);
}
