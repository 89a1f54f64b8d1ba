/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"

static enum nm_severity severity_of(enum nm_rivalry rivalry)
{
	static const enum nm_severity severities[] = {
		[NM_RIVALRY_NONE] = NM_SEVERITY_FINE,
		[NM_RIVALRY_SOME] = NM_SEVERITY_WARNING,
		[NM_RIVALRY_FULL] = NM_SEVERITY_PROBLEM,
	};

	return severities[rivalry];
}

static enum nm_severity worst_of(const struct nm_facts *facts)
{
	enum nm_rivalry worst = NM_RIVALRY_NONE;

	for (size_t i = 0; i < facts->nr_others; i++)
		if (facts->others[i].other->rivalry > worst)
			worst = facts->others[i].other->rivalry;
	return severity_of(worst);
}

/* "irqbalance, tuned" */
static void list_names(const struct nm_facts *facts, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < facts->nr_others && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
					 facts->others[i].other->comm);
}

static void say_no_rival(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings)
{
	char names[128];

	list_names(facts, names, sizeof(names));
	nm_findings_add(findings, name, NM_SEVERITY_FINE,
			"No other program that moves threads or memory between nodes runs%s%s.",
			names[0] ? "; these run and get along with it: " : "", names);
}

static void say_hidden(const char *name, struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
			"Other users' processes are not shown to this user, so it is not known who "
			"else moves threads or memory.");
	nm_findings_evidence(findings, "/proc/1/comm cannot be read (hidepid of proc(5))");
	nm_findings_remedy(findings, "ask again as root: sudo numa-migrctl doctor");
}

void nm_check_movers(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	enum nm_severity worst = worst_of(facts);

	if (worst == NM_SEVERITY_FINE && facts->hidden)
		say_hidden(name, findings);
	else if (worst == NM_SEVERITY_FINE)
		say_no_rival(name, facts, findings);
	else
		nm_findings_add(findings, name, nm_facts_weigh(facts, worst),
				"Another program moves threads or memory between nodes.");
	for (size_t i = 0; i < facts->nr_others; i++) {
		const struct nm_other *other = facts->others[i].other;
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
	nm_findings_remedy(findings, "watch the verdicts; if many are \"cancelled\", it does not "
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

static void say_runtime(const struct nm_facts *facts, enum nm_runtime kind,
			struct nm_findings *findings)
{
	const struct nm_facts_runtime *runtime = &facts->runtimes[kind];
	if (runtime->count > 0)
		nm_findings_evidence(findings, "%s: %u program%s, among them %s (pid %" PRIu32 ")",
				     nm_runtime_name(kind), runtime->count,
				     runtime->count == 1 ? "" : "s", runtime->comm, runtime->pid);
}

void nm_check_runtimes(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	if (facts->runtimes[NM_RUNTIME_GO].count + facts->runtimes[NM_RUNTIME_JVM].count == 0) {
		nm_findings_add(findings, name,
				facts->unread_programs > 0 ? NM_SEVERITY_UNSEEN : NM_SEVERITY_FINE,
				"No program is known to ask for its CPU affinity again while it "
				"runs (Go, Java).");
		if (facts->unread_programs > 0)
			nm_findings_remedy(findings,
					   "ask again with sudo: %u programs of others "
					   "could not be looked at",
					   facts->unread_programs);
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Go and Java programs ask for their CPU affinity again while they run: their "
			"threads are nudged and not leased, unless threads.pin says otherwise. With "
			"a lease they may count the CPUs of one node and use no more.");
	say_runtime(facts, NM_RUNTIME_GO, findings);
	say_runtime(facts, NM_RUNTIME_JVM, findings);
	nm_findings_remedy(findings,
			   "leave threads.pin at \"auto\" (numa-migrd(8) says which are "
			   "recognised), leave them out by targets.exclude, or tell them their number of CPUs (GOMAXPROCS=, "
			   "-XX:ActiveProcessorCount=)");
}
