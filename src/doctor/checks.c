/* SPDX-License-Identifier: MIT */
/* The list of checks, and what several of them ask. Pure. */
#include "checks.h"

#include <string.h>

#include "numa-migrd/doctor.h"

/* Their names and what they are about, and beside each who judges. */
static const struct nm_doctor_check checks[] = {
	{"outlook", "what numa-migrd would do here"},
	{"nodes", "NUMA nodes, their CPUs and memory"},
	{"homes", "which node an address is on"},
	{"isolated", "isolated and nohz_full CPUs"},
	{"memory", "free memory of each node"},
	{"virtual", "virtual machines and containers"},
	{"kernel", "the kernel's version and what it offers"},
	{"thp", "transparent huge pages"},
	{"cpusets", "cgroups and their cpusets"},
	{"hardware", "hardware that samples memory accesses"},
	{"trial", "what really counts when it is tried"},
	{"privilege", "kernel.perf_event_paranoid and the helper"},
	{"lockdown", "the kernel's lockdown"},
	{"balancing", "kernel.numa_balancing, and how repeated accesses are seen"},
	{"soft-dirty", "soft-dirty tracking, by its effect"},
	{"clock", "the clock that samples are taken by"},
	{"rate", "the kernel's limit of samples"},
	{"watchdog", "the NMI watchdog, which takes a counter"},
	{"movers", "other programs that place threads or memory"},
	{"tuned", "the profile of tuned"},
	{"scheduler", "a scheduler of sched_ext"},
	{"kubelet", "containers with CPUs of their own"},
	{"runtimes", "programs that ask how many CPUs they have while they run"},
	{"service", "the service and its helper"},
	{"configuration", "the configuration file"},
	{"metrics", "the file of metrics, and whether the unit may write it"},
	{"ledger", "what an earlier run has left"},
	{"capabilities", "capabilities of the service"},
	{"hardening", "the unit with its drop-ins"},
	{"files", "the limit of open files"},
	{"locked-memory", "the limit of locked memory"},
};

static const nm_check_fn functions[] = {
	nm_check_outlook,	nm_check_nodes,	    nm_check_homes,	    nm_check_isolated,
	nm_check_memory,	nm_check_virtual,   nm_check_kernel,	    nm_check_thp,
	nm_check_cpusets,	nm_check_hardware,  nm_check_trial,	    nm_check_privilege,
	nm_check_lockdown,	nm_check_balancing, nm_check_soft_dirty,    nm_check_clock,
	nm_check_rate,		nm_check_watchdog,  nm_check_movers,	    nm_check_tuned,
	nm_check_scheduler,	nm_check_kubelet,   nm_check_runtimes,	    nm_check_service,
	nm_check_configuration, nm_check_metrics,   nm_check_ledger,	    nm_check_capabilities,
	nm_check_hardening,	nm_check_files,	    nm_check_locked_memory,
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

/* ---- what several ask ---- */

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
