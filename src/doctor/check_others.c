/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "checks.h"
#include "others.h"

static const struct nm_other known[] = {
	{"numad", NM_SEVERITY_PROBLEM, "moves the same threads and their memory",
	 "run one of the two: systemctl disable --now numad"},
	{"memtierd", NM_SEVERITY_WARNING, "moves memory between nodes",
	 "keep it to other processes than numa-migrd (targets.exclude), or stop it"},
	{"membalancer", NM_SEVERITY_WARNING, "moves memory, and with -S threads, between nodes",
	 "stop it, or let it report only (without -b)"},
	{"thanos", NM_SEVERITY_WARNING, "moves the threads and the memory of what it has started",
	 "exclude its programs (targets.exclude)"},
	{"irqbalance", NM_SEVERITY_FINE, "moves interrupts only; both get along", NULL},
	{"tuned", NM_SEVERITY_FINE, "sets what its profile says; see \"tuned\"", NULL},
	{"kubelet", NM_SEVERITY_FINE, "gives containers cpusets; see \"kubelet\"", NULL},
	{"slurmd", NM_SEVERITY_FINE, "gives jobs cpusets; threads are moved within them", NULL},
};

const struct nm_other *nm_other_known(const char *comm)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(known); i++)
		if (strcmp(known[i].comm, comm) == 0)
			return &known[i];
	return NULL;
}

static enum nm_severity worst_of(const struct nm_facts *facts)
{
	enum nm_severity worst = NM_SEVERITY_FINE;

	for (size_t i = 0; i < facts->nr_others; i++) {
		const struct nm_other *other = nm_other_known(facts->others[i].comm);
		if (other && other->severity > worst)
			worst = other->severity;
	}
	return worst;
}

void nm_check_movers(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	enum nm_severity worst = worst_of(facts);

	nm_findings_add(
		findings, name, worst == NM_SEVERITY_FINE ? worst : nm_facts_weigh(facts, worst),
		"%s",
		worst == NM_SEVERITY_FINE
			? "No other program that moves threads or memory between nodes runs."
			: "Another program moves threads or memory between nodes.");
	for (size_t i = 0; i < facts->nr_others; i++) {
		const struct nm_other *other = nm_other_known(facts->others[i].comm);
		if (!other)
			continue;
		nm_findings_evidence(findings, "%s (pid %" PRIu32 ") %s", other->comm,
				     facts->others[i].pid, other->does);
		if (other->remedy)
			nm_findings_remedy(findings, "%s", other->remedy);
	}
}

void nm_check_tuned(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (!facts->tuned[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE, "No profile of tuned is active.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"tuned's profile is \"%s\": it may set kernel.numa_balancing and huge "
			"pages, or isolate CPUs, against what is set elsewhere.",
			facts->tuned);
	nm_findings_evidence(findings, "/etc/tuned/active_profile");
	nm_findings_remedy(findings, "if a setting here does not last, look into the profile: "
				     "tuned-adm profile_info");
}

void nm_check_scheduler(const char *name, const struct nm_facts *facts,
			struct nm_findings *findings)
{
	if (!facts->sched_ext[0]) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"The kernel's own scheduler is at work.");
		return;
	}
	nm_findings_add(findings, name, nm_facts_weigh(facts, NM_SEVERITY_WARNING),
			"A scheduler of sched_ext is at work: it places threads by its own rules, "
			"within the masks set here.");
	nm_findings_evidence(findings, "/sys/kernel/sched_ext/root/ops: %s", facts->sched_ext);
	nm_findings_remedy(findings, "watch the verdicts; if many are \"withdrawn\", it does not "
				     "send threads where their masks are, and one of the two "
				     "should go");
}

void nm_check_kubelet(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (!facts->kubelet_pins) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No kubelet gives containers CPUs of their own.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"The kubelet gives guaranteed containers CPUs of their own: their threads "
			"stay on these.");
	nm_findings_evidence(findings, "policy \"static\" in /var/lib/kubelet/cpu_manager_state");
	nm_findings_remedy(findings, "let its topology manager choose CPUs and memory of one node: "
				     "topologyManagerPolicy: single-numa-node");
}
