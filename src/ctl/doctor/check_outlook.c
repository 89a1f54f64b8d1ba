/* SPDX-License-Identifier: MIT */
/* The conclusion: what numa-migrd would do here, and what it cannot do. */
#include <string.h>

#include "checks.h"
#include "numa-migrd/base.h"

static bool may_sample(const struct nm_facts *facts)
{
	if (facts->trial == NM_TRIAL_REFUSED && facts->root)
		return false;
	if (strcmp(facts->lockdown, "confidentiality") == 0 || facts->paranoid.error == -ENOENT)
		return false;
	return facts->paranoid.error || facts->paranoid.value <= 2 ||
	       facts->helper_socket.value == 1 || nm_facts_is_stopped(facts);
}

static bool sees_repeated(const struct nm_facts *facts)
{
	return nm_facts_balances(facts) || nm_facts_injects(facts) || nm_facts_sees_accesses(facts);
}

/* Returns a phrase, or NULL if there is none. */
static const char *obstacle(const struct nm_facts *facts)
{
	if (!facts->topology)
		return "the nodes cannot be read";
	if (nm_topology_is_single(facts->topology))
		return facts->topology->nr_nodes < 2 ? "there is one NUMA node"
						     : "one NUMA node has CPUs";
	if (!facts->config)
		return "the configuration cannot be used";
	if (!may_sample(facts))
		return "nothing may be sampled";
	if (!facts->knows_homes)
		return "the node of an address is unknown";
	return NULL;
}

/* How to change what prevents it; other checks have their own remedies. */
static void say_remedy(const struct nm_facts *facts, struct nm_findings *findings)
{
	if (!facts->topology) {
		char error[sizeof(facts->topology_error)];

		(void)nm_escape(error, sizeof(error), facts->topology_error,
				strlen(facts->topology_error));
		nm_findings_evidence(findings, "%s", error);
		nm_findings_remedy(findings, "mount /sys and /proc where numa-migrd runs");
	} else if (facts->topology->nr_nodes < 2 && facts->virtual_machine) {
		nm_findings_remedy(findings, "if its host has several nodes, give the virtual "
					     "machine nodes that match them");
	} else if (facts->topology->nr_nodes < 2) {
		nm_findings_remedy(findings, "if it has several sockets, turn \"node "
					     "interleaving\" off in the firmware's settings");
	} else if (!nm_topology_is_single(facts->topology) && !facts->knows_homes) {
		nm_findings_evidence(findings, "neither /sys/devices/system/node/node*/memory* nor "
					       "/proc/zoneinfo shows the node of an address");
		nm_findings_remedy(findings, "boot a kernel with CONFIG_MEMORY_HOTPLUG, such as a "
					     "distribution's");
	}
}

static const char *what_for_threads(const struct nm_facts *facts)
{
	switch (facts->config->threads.policy) {
	case NM_POLICY_LBMA:
		return "move threads to the node of their memory";
	case NM_POLICY_IMAR2:
		return "move slow threads to faster nodes";
	case NM_POLICY_KMAF:
		return "place threads that share memory together";
	case NM_POLICY_BALANCE:
		return "move threads away from overloaded nodes";
	case NM_POLICY_AUTO:
		return nm_facts_moves_memory(facts)
			       ? "give each process a home node and move its memory there"
			       : "give each process a home node and move its memory there "
				 "once";
	case NM_POLICY_NONE:
	case NM_POLICY_MAX:
		break;
	}
	return "move no threads";
}

static const char *what_for_pages(const struct nm_facts *facts)
{
	const struct nm_config *config = facts->config;
	bool kernel_does =
		nm_facts_balances(facts) && config->pages.numa_balancing == NM_BALANCING_YIELD;

	if (nm_config_moves_pages(config))
		return kernel_does ? "leave pages to the kernel" : "move pages to their nodes";
	return config->pages.policy == NM_PAGES_WATCH ? "watch pages" : "move no pages";
}

/* Without repeated accesses, homes can be chosen by the CPUs on which threads run. */
static enum nm_severity severity_of(const struct nm_facts *facts)
{
	if (sees_repeated(facts))
		return NM_SEVERITY_FINE;
	return facts->config->threads.policy == NM_POLICY_AUTO ? NM_SEVERITY_NOTE
							       : NM_SEVERITY_PROBLEM;
}

static unsigned farthest(const struct nm_topology *topology)
{
	unsigned most = 0;

	for (unsigned i = 0; i < topology->nr_nodes * topology->nr_nodes; i++)
		if (topology->distance[i] > most)
			most = topology->distance[i];
	return most;
}

void nm_check_outlook(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	const char *why_not = obstacle(facts);

	if (why_not) {
		bool single = facts->topology && nm_topology_is_single(facts->topology);
		nm_findings_add(findings, name, single ? NM_SEVERITY_NOTE : NM_SEVERITY_PROBLEM,
				"numa-migrd would do nothing here: %s.", why_not);
		say_remedy(facts, findings);
		return;
	}
	bool dry = facts->config->general.dry_run;
	bool homes = facts->config->threads.policy == NM_POLICY_AUTO;
	bool pages = !homes || nm_config_follows_pages(facts->config);
	nm_findings_add(findings, name, severity_of(facts), "numa-migrd would %s%s%s%s%s.",
			what_for_threads(facts), pages ? ", and " : "",
			pages ? what_for_pages(facts) : "", dry ? "; dry run" : "",
			sees_repeated(facts) ? "" : "; few samples");
	nm_findings_evidence(findings, "%u nodes, the farthest at distance %u (10 is local)",
			     facts->topology->nr_nodes, farthest(facts->topology));
	enum nm_thread_policy policy = facts->config->threads.policy;
	bool hardware = nm_facts_sees_accesses(facts);

	if (!hardware)
		nm_findings_evidence(findings,
				     "latencies of accesses, and their frequency, are unknown");
	if (!hardware && policy == NM_POLICY_IMAR2)
		nm_findings_evidence(findings, "threads.policy \"imar2\" uses locality instead of "
					       "performance");
	if (!facts->has_counters && facts->config->threads.dtas)
		nm_findings_evidence(
			findings,
			"threads.selection = \"dtas\" needs cache misses, which are not sampled");
}
