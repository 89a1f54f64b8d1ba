/* SPDX-License-Identifier: MIT */
/* The list of checks, and functions used by several of them. Pure. */
#include "checks.h"

#include <string.h>

#include "doctor.h"

static const struct nm_doctor_check checks[] = {
	{"outlook", "what numa-migrd would do here"},
	{"nodes", "NUMA nodes, their CPUs and memory"},
	{"cpusets", "cgroups and their cpusets"},
	{"virtual", "virtual machines and containers"},
	{"hardware", "hardware that samples memory accesses"},
	{"trial", "what can be sampled, by a trial"},
	{"privilege", "permission to sample"},
	{"balancing", "kernel.numa_balancing, and how repeated accesses are seen"},
	{"runtimes", "programs that read their CPU affinity again while they run"},
	{"unanswered", "processes that hold the lock of their memory map"},
	{"service", "the service, its unit and its helper"},
	{"configuration", "the configuration file"},
	{"capabilities", "capabilities of the service"},
	{"files", "the limit of open files"},
	{"locked-memory", "the limit of locked memory"},
};

static const nm_check_fn functions[] = {
	nm_check_outlook,      nm_check_nodes,	    nm_check_cpusets,	    nm_check_virtual,
	nm_check_hardware,     nm_check_trial,	    nm_check_privilege,	    nm_check_balancing,
	nm_check_runtimes,     nm_check_unanswered, nm_check_service,	    nm_check_configuration,
	nm_check_capabilities, nm_check_files,	    nm_check_locked_memory,
};

_Static_assert(NM_ARRAY_SIZE(functions) == NM_ARRAY_SIZE(checks), "one for each");

const struct nm_doctor_check *nm_doctor_checks(size_t *ret_count)
{
	*ret_count = NM_ARRAY_SIZE(checks);
	return checks;
}

int nm_doctor_examine(const struct nm_facts *facts, struct nm_findings *ret)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(checks); i++)
		functions[i](checks[i].name, facts, ret);
	return ret->error;
}

/* ---- shared functions ---- */

bool nm_facts_sees_accesses(const struct nm_facts *facts)
{
	if (facts->trial == NM_TRIAL_DONE)
		return facts->tried.memory != NM_MEMORY_NONE;
	for (int source = NM_MEMORY_NONE + 1; source < NM_MEMORY_SOURCE_MAX; source++)
		if (facts->offered[source])
			return true;
	return false;
}

void nm_facts_say_unseen(const struct nm_facts *facts, struct nm_findings *findings,
			 const char *path, int error)
{
	nm_findings_evidence(findings, "%s: %s", path, strerrordesc_np(-error));
	if (!facts->root && (error == -EACCES || error == -EPERM))
		nm_findings_remedy(findings, "ask again as root: sudo numa-migrctl doctor");
}
