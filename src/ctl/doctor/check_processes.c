/* SPDX-License-Identifier: MIT */
/* Processes that are treated specially. */
#include <inttypes.h>

#include "checks.h"

static void add_runtime(const struct nm_facts *facts, enum nm_runtime kind,
			struct nm_findings *findings)
{
	const struct nm_facts_runtime *runtime = &facts->runtimes[kind];

	if (runtime->count > 0)
		nm_findings_evidence(findings, "%s: %u program%s, among them %s (pid %" PRIu32 ")",
				     nm_runtime_name(kind), runtime->count,
				     nm_plural(runtime->count, "", "s"), runtime->comm, runtime->pid);
}

static void report_no_runtime(const char *name, const struct nm_facts *facts,
			      struct nm_findings *findings)
{
	bool unread = facts->unread_programs > 0;

	nm_findings_add(findings, name, unread ? NM_SEVERITY_UNSEEN : NM_SEVERITY_FINE,
			"No program is known to read its CPU affinity again while it runs (Go, "
			"Java).");
	if (unread)
		nm_findings_remedy(findings,
				   "run again with sudo: %u program%s of others could not be read",
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
