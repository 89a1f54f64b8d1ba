/* SPDX-License-Identifier: MIT */
/* The checks: each converts facts to one finding with its name. Pure. */
#ifndef NUMA_MIGRD_DOCTOR_CHECKS_H
#define NUMA_MIGRD_DOCTOR_CHECKS_H

#include <string.h>

#include "../findings.h"
#include "facts.h"
#include "numa-migrd/proc.h"

typedef void nm_check_fn(const char *name, const struct nm_facts *facts,
			 struct nm_findings *findings);

/* check_machine.c */
nm_check_fn nm_check_virtual, nm_check_cpusets, nm_check_scheduler;
/* check_sampling.c */
nm_check_fn nm_check_hardware, nm_check_privilege, nm_check_balancing;
/* check_service.c */
nm_check_fn nm_check_service, nm_check_configuration, nm_check_trial;
/* check_workload.c */
nm_check_fn nm_check_workload;
/* check_outlook.c */
nm_check_fn nm_check_outlook;

/* One check, which produces one finding. Findings are in the order of the table. */
struct nm_doctor_check {
	const char *name; /* the `check` of its findings */
	nm_check_fn *check;
};

/* Returns all checks. A test verifies that docs/troubleshooting.md has a row for each. */
const struct nm_doctor_check *nm_doctor_checks(size_t *ret_count);

/* Runs every check, in the order of nm_doctor_checks(). */
void nm_doctor_examine(const struct nm_facts *facts, struct nm_findings *ret);

/* ---- shared functions ---- */

/* Returns whether there is something to move; also true if the nodes are not known. */
static inline bool nm_facts_several_nodes(const struct nm_facts *facts)
{
	return !facts->topology || !nm_topology_is_single(facts->topology);
}

/* Limits the severity to a note on a machine on which numa-migrd has nothing to do. */
static inline enum nm_severity nm_facts_weigh(const struct nm_facts *facts,
					      enum nm_severity severity)
{
	bool worse = severity > NM_SEVERITY_NOTE;

	return worse && !nm_facts_several_nodes(facts) ? NM_SEVERITY_NOTE : severity;
}

static inline bool nm_facts_moves_pages(const struct nm_facts *facts)
{
	return facts->config && facts->config->pages.policy == NM_PAGES_EXCLUSIVITY;
}

static inline bool nm_facts_balances(const struct nm_facts *facts)
{
	return facts->balancing.error == 0 && nm_balances_nodes(facts->balancing.value);
}

static inline bool nm_facts_injects(const struct nm_facts *facts)
{
	return facts->config && facts->config->sampling.inject != NM_INJECT_NONE;
}

/* Just installed, or stopped: a start also starts the helper. */
static inline bool nm_facts_is_stopped(const struct nm_facts *facts)
{
	return strcmp(facts->unit.load, "loaded") == 0 &&
	       strcmp(facts->unit.active, "inactive") == 0;
}

/* Policy "auto" moves the memory of processes to their homes, unless the kernel does. */
static inline bool nm_facts_moves_memory(const struct nm_facts *facts)
{
	const struct nm_config *config = facts->config;
	bool homes = config && config->threads.policy == NM_POLICY_AUTO;
	return nm_facts_moves_pages(facts) ||
	       (homes &&
		(!nm_facts_balances(facts) || config->pages.numa_balancing == NM_BALANCING_WARN));
}

/* Returns whether hardware of this machine samples memory accesses, as far as known. */
bool nm_facts_sees_accesses(const struct nm_facts *facts);

/* For a finding with severity `unseen`: adds a remedy for the caller. */
void nm_facts_say_unseen(const struct nm_facts *facts, struct nm_findings *findings,
			 const char *path, int error);

#endif
