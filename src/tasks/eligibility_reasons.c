/* SPDX-License-Identifier: MIT */
/* Why a process is not managed: the table of reasons, and sentences about them. */
#include <math.h>
#include <stdio.h>

#include "numa-migrd/base.h"
#include "task_table.h"

static const struct nm_eligibility_reason reasons[NM_ELIGIBILITY_MAX] = {
	[NM_ELIGIBILITY_MANAGED] = {"managed", "it is managed", false},
	[NM_ELIGIBILITY_NOT_TARGET] = {"not-target", "no pattern of targets.include matches it",
				       false},
	[NM_ELIGIBILITY_EXCLUDED] = {"excluded", "a pattern of targets.exclude matches it", false},
	[NM_ELIGIBILITY_SMALL] = {"small", "its resident memory is less than targets.min_rss_mb",
				  false},
	[NM_ELIGIBILITY_YOUNG] = {"young", "its program is younger than targets.min_age_s", false},
	[NM_ELIGIBILITY_IDLE] = {"little-cpu", "it uses less CPU than targets.min_cpu_percent",
				 false},
	[NM_ELIGIBILITY_UNREADABLE] = {"unreadable", "its status in /proc is too long", false},
	[NM_ELIGIBILITY_KERNEL] = {"kernel-thread", "it is a kernel thread", false},
	[NM_ELIGIBILITY_REALTIME] = {"real-time", "its threads are real-time or deadline threads",
				     true},
	[NM_ELIGIBILITY_SELF] = {"numa-migrd", "it is a part of numa-migrd", false},
	[NM_ELIGIBILITY_DEFAULT] = {"excluded-by-default", "it is excluded by default", false},
	[NM_ELIGIBILITY_PINNED] =
		{"pinned", "the CPU affinity of its threads allows only one node, or cannot be set",
		 true},
	[NM_ELIGIBILITY_FOREIGN] = {"foreign-mask",
				    "another program changed the CPU affinity of its threads",
				    true},
	[NM_ELIGIBILITY_RELEASED] = {"released", "it was released by numa-migrctl release", true},
	[NM_ELIGIBILITY_ONE_NODE] = {"one-node", "one node has CPUs: nothing is moved", false},
	[NM_ELIGIBILITY_OFF] = {"off", "the attribute " NM_STEER_ATTRIBUTE " of its cgroups is off",
				true},
};

const struct nm_eligibility_reason *nm_eligibility_reason(enum nm_eligibility eligibility)
{
	return &reasons[eligibility];
}

static void print_size(const struct nm_task_table *tasks, const struct nm_process *process,
		       char ret[static NM_EXPLANATION_BYTES])
{
	double mib = 1 << 20;
	(void)snprintf(ret, NM_EXPLANATION_BYTES,
		       "its resident memory of %.1f MiB is less than targets.min_rss_mb (%s%.1f "
		       "MiB)",
		       (double)process->rss_bytes / mib,
		       tasks->config->targets.min_rss_mb ? "" : "0: by the size of the cache, ",
		       (double)nm_tasks_min_rss_bytes(tasks) / mib);
}

static void print_cpu(const struct nm_task_table *tasks, const struct nm_process *process,
		      char ret[static NM_EXPLANATION_BYTES])
{
	double percent = isfinite(process->cpu_share) ? 100 * process->cpu_share : 0;
	double least = tasks->config->targets.min_cpu_percent;
	(void)snprintf(ret, NM_EXPLANATION_BYTES,
		       percent < least
			       ? "it used %.1f %% of a CPU, less than "
				 "targets.min_cpu_percent (%g)"
			       : "it is about to be checked again: it used %.1f %% of a CPU, "
				 "after less than targets.min_cpu_percent (%g)",
		       percent, least);
}

void nm_tasks_explain(const struct nm_task_table *tasks, const struct nm_process *process,
		      enum nm_eligibility reason, char ret[static NM_EXPLANATION_BYTES])
{
	const struct nm_target *target = nm_tasks_excluded_by(tasks, process);
	char pattern[256];

	(void)snprintf(ret, NM_EXPLANATION_BYTES, "%s", reasons[reason].text);
	if (reason == NM_ELIGIBILITY_SMALL)
		print_size(tasks, process, ret);
	else if (reason == NM_ELIGIBILITY_YOUNG)
		(void)snprintf(ret, NM_EXPLANATION_BYTES,
			       "its program began %.1f s ago, less than targets.min_age_s (%g)",
			       (double)nm_tasks_age(tasks->updated_ns, process->started_ns) /
				       (double)NM_NSEC_PER_SEC,
			       tasks->config->targets.min_age_s);
	else if (reason == NM_ELIGIBILITY_IDLE)
		print_cpu(tasks, process, ret);
	else if (reason == NM_ELIGIBILITY_SELF || reason == NM_ELIGIBILITY_DEFAULT)
		(void)snprintf(ret, NM_EXPLANATION_BYTES, "excluded by default%s: %s",
			       process->program_awaited ? " until its program is known" : "",
			       nm_exclusion_row(process->exclusion)->text);
	else if (reason == NM_ELIGIBILITY_EXCLUDED && target)
		(void)snprintf(ret, NM_EXPLANATION_BYTES, "targets.exclude matches it: %s",
			       nm_config_print_target(target, pattern, sizeof(pattern)));
	else if (reason == NM_ELIGIBILITY_NOT_TARGET &&
		 tasks->config->targets.cgroup_attribute == NM_ATTRIBUTE_ONLY)
		(void)snprintf(ret, NM_EXPLANATION_BYTES,
			       "targets.cgroup_attribute is \"only\", and no attribute of its "
			       "cgroups selects it");
}
