/* SPDX-License-Identifier: MIT */
/* Programs for which numa-migrd can do little. */
#include <inttypes.h>

#include "checks.h"

static void show(struct nm_findings *findings, const struct nm_facts_program *program,
		 const char *what, const char *remedy)
{
	if (program->count == 0)
		return;
	nm_findings_evidence(findings, "%u %s, such as PID %" PRIu32, program->count, what,
			     program->pid);
	nm_findings_remedy(findings, "%s", remedy);
}

void nm_check_workload(const char *name, const struct nm_facts *facts, struct nm_findings *findings)
{
	bool moves_shared = facts->config && facts->config->pages.also & NM_ALSO_SHARED;
	unsigned shared = moves_shared ? 0 : facts->shared_machines.count + facts->databases.count;
	unsigned count = shared + facts->pinned.count;
	if (!nm_facts_several_nodes(facts)) {
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"Nothing to gain here: one node has CPUs.");
		return;
	}
	if (facts->hidden) {
		nm_findings_add(findings, name, NM_SEVERITY_UNSEEN,
				"This user cannot see the programs of others.");
		nm_findings_remedy(findings, "run numa-migrctl doctor as root");
		return;
	}
	if (count == 0) {
		nm_findings_add(findings, name, NM_SEVERITY_FINE,
				"No large program is known to gain nothing.");
		return;
	}
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Nothing to gain here for %u large program%s.", count,
			nm_plural(count, "", "s"));
	if (shared) {
		show(findings, &facts->shared_machines,
		     "virtual machines with shared memory, which stays where it is",
		     "give each virtual machine its nodes in libvirt (numatune), or memory that is "
		     "not shared");
		show(findings, &facts->databases,
		     "processes of PostgreSQL, whose buffers are shared and stay where they are",
		     "interleave its memory (numactl --interleave=all), or bind it to a node");
	}
	show(findings, &facts->pinned, "programs that are bound to the CPUs of one node",
	     "bind their memory to that node, too (numactl --membind)");
}
