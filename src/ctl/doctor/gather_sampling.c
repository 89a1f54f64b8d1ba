/* SPDX-License-Identifier: MIT */
/* Collects what the kernel permits, what the machine offers, and what really counts. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "gather.h"
#include "numa-migrd/base.h"
#include "numa-migrd/file.h"

#define TRIAL_RING_KB 16

/* ---- events of the machine ---- */

static void look_at_source(struct nm_platform *platform, const struct nm_config *config,
			   enum nm_memory_source source, struct nm_facts *facts)
{
	const struct nm_event_selection selection = nm_event_selection_of(config, source);
	struct nm_event_list list = {0};

	if ((source == NM_MEMORY_PMU && !config->sampling.pmu[0]) ||
	    (source == NM_MEMORY_EVENT && !config->sampling.event[0]))
		return;
	if (platform->ops->hardware_list(platform, &selection, &list) < 0)
		return;
	(void)snprintf(facts->table, sizeof(facts->table), "%s", list.table ? list.table : "");
	if (source == NM_MEMORY_NONE)
		facts->has_counters = list.count > 0;
	else
		facts->offered[source] = list.count > 0 && list.words[0].kind == NM_EVENT_MEMORY;
}

/* ---- trial ---- */

static void keep_status(const struct nm_source_status *status, struct nm_facts *facts)
{
	facts->trial = NM_TRIAL_DONE;
	facts->tried = *status;
	facts->tried.problems = NULL;
	facts->tried.problem_count = 0;
	for (size_t i = 0; i < status->problem_count && i < NM_FACTS_PROBLEMS;
	     i++, facts->nr_problems++)
		(void)snprintf(facts->problems[i], sizeof(facts->problems[i]), "%s",
			       status->problems[i].text);
}

/* Opens the source as the daemon does, but on one CPU and with a small ring. */
static void try_source(struct nm_platform *platform, const struct nm_topology *topology,
		       const struct nm_config *config, struct nm_facts *facts)
{
	nm_auto(nm_source_freep) struct nm_source *source = NULL;
	struct nm_config small = *config;

	small.sampling.ring_kb = TRIAL_RING_KB;
	facts->trial_error = nm_source_open(platform, topology, &small, facts->trial_text,
					    sizeof(facts->trial_text), &source);
	if (facts->trial_error < 0)
		facts->trial = NM_TRIAL_REFUSED;
	else
		keep_status(nm_source_status(source), facts);
}

static void try_sampling(struct nm_platform *platform, const struct nm_doctor_options *options,
			 const struct nm_config *config, struct nm_facts *facts)
{
	const struct nm_topology_source here = {.root_path = options->root_path};
	nm_auto(nm_topology_freep) struct nm_topology *one_cpu = NULL;
	char error[256];

	if (facts->daemon_pid || facts->running_source[0]) {
		facts->trial = NM_TRIAL_DAEMON_RUNS;
		return;
	}
	if (nm_topology_load(&here, error, sizeof(error), &one_cpu) < 0)
		return;
	int cpu = hwloc_bitmap_first(one_cpu->usable);
	if (cpu < 0)
		return;
	hwloc_bitmap_only(one_cpu->usable, (unsigned)cpu);
	try_source(platform, one_cpu, config, facts);
}

/* ---- soft-dirty ---- */

/* Without the platform, which would use root's configuration as the daemon does. */
static int clear_own(void *unused)
{
	(void)unused;
	return nm_write_text(AT_FDCWD, "/proc/self/clear_refs", "4");
}

static struct nm_reading try_soft_dirty(void)
{
	int r = nm_inject_try(clear_own, NULL);
	if (r == -EOPNOTSUPP)
		return (struct nm_reading){.value = 0};
	return (struct nm_reading){.error = r, .value = r == 0};
}

void nm_gather_sampling(struct nm_platform *platform, const struct nm_doctor_options *options,
			struct nm_facts *facts)
{
	nm_auto(nm_config_freep) struct nm_config *shipped = NULL;
	const struct nm_config *config = facts->config;

	facts->paranoid = nm_gather_number(platform, "proc/sys/kernel/perf_event_paranoid");
	facts->balancing = nm_gather_number(platform, "proc/sys/kernel/numa_balancing");
	facts->soft_dirty =
		options->try_out ? try_soft_dirty() : (struct nm_reading){.error = -ENODATA};
	facts->threads_measured = options->threads_measured;
	facts->threads_undersampled = options->threads_undersampled;
	if (options->running_source)
		(void)nm_escape(facts->running_source, sizeof(facts->running_source),
				options->running_source, strlen(options->running_source));
	if (!config && nm_config_default(&shipped) == 0)
		config = shipped;
	if (!config)
		return;
	for (int source = 0; source < NM_MEMORY_SOURCE_MAX; source++)
		look_at_source(platform, config, (enum nm_memory_source)source, facts);
	if (options->try_out)
		try_sampling(platform, options, config, facts);
}
