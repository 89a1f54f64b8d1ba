/* SPDX-License-Identifier: MIT */
/* The list of checks, and functions used by several of them. Pure. */
#include "checks.h"

#include <string.h>

static const struct nm_doctor_check checks[] = {
	{"outlook", nm_check_outlook},	   {"workload", nm_check_workload},
	{"cpusets", nm_check_cpusets},	   {"virtual", nm_check_virtual},
	{"scheduler", nm_check_scheduler}, {"hardware", nm_check_hardware},
	{"privilege", nm_check_privilege}, {"balancing", nm_check_balancing},
	{"service", nm_check_service},	   {"configuration", nm_check_configuration},
	{"trial", nm_check_trial},
};

const struct nm_doctor_check *nm_doctor_checks(size_t *ret_count)
{
	*ret_count = NM_ARRAY_SIZE(checks);
	return checks;
}

void nm_doctor_examine(const struct nm_facts *facts, struct nm_findings *ret)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(checks); i++)
		checks[i].check(checks[i].name, facts, ret);
}

bool nm_facts_sees_accesses(const struct nm_facts *facts)
{
	return facts->trial == NM_TRIAL_DONE ? facts->tried.memory[0] : facts->sources[0];
}

void nm_facts_say_unseen(const struct nm_facts *facts, struct nm_findings *findings,
			 const char *path, int error)
{
	nm_findings_evidence(findings, "%s: %s", path, strerrordesc_np(-error));
	if (!facts->root && (error == -EACCES || error == -EPERM))
		nm_findings_remedy(findings, "run numa-migrctl doctor as root");
}
