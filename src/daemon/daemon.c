/* SPDX-License-Identifier: MIT */
/* State of the daemon that several stages use. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "pipeline.h"

bool nm_daemon_is_dry_run(const struct nm_daemon *daemon)
{
	if (daemon->options.dry_run || daemon->dry_run_request == NM_DRY_RUN_BEGIN)
		return true;
	return daemon->dry_run_request == NM_DRY_RUN_NOT_REQUESTED &&
	       daemon->config->general.dry_run;
}

double nm_interval_s(const struct nm_daemon *daemon)
{
	const struct nm_config *config = daemon->config;
	if (config->threads.policy == NM_POLICY_KMAF)
		return fmin(config->general.interval_s, config->rules.mapping_s);
	if (config->threads.policy != NM_POLICY_IMAR2 || !daemon->pipeline.feedback)
		return config->general.interval_s;
	return nm_feedback_interval_s(daemon->pipeline.feedback, config);
}

uint64_t nm_own_cpu_ns(void)
{
	struct timespec used;
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) < 0)
		return 0;
	return (uint64_t)used.tv_sec * NM_NSEC_PER_SEC + (uint64_t)used.tv_nsec;
}

uint64_t nm_own_loop_ns(const struct nm_daemon *daemon)
{
	return nm_own_cpu_ns() - daemon->costs.external_ns;
}

/* ---- what is sampled ---- */

/* Returns whether pages fault repeatedly, because of the kernel or of sampling.inject. */
static bool has_repeated_faults(const struct nm_daemon *daemon)
{
	return nm_balances_nodes(daemon->machine.balancing) ||
	       (daemon->config->sampling.inject != NM_INJECT_NONE &&
		!daemon->machine.balancing_unusable);
}

bool nm_samples_first_touches_only(const struct nm_daemon *daemon)
{
	struct nm_source *source = daemon->pipeline.source;
	if (!source || has_repeated_faults(daemon))
		return false;
	const struct nm_source_status *status = nm_source_status(source);
	return status->accesses && status->memory == NM_MEMORY_NONE;
}

bool nm_lacks_accesses(const struct nm_daemon *daemon)
{
	if (daemon->paused || nm_topology_is_single(daemon->pipeline.topology))
		return false;
	struct nm_source *source = daemon->pipeline.source;
	return !source || !nm_source_status(source)->accesses ||
	       nm_samples_first_touches_only(daemon);
}

/*
 * First touches show no repeated accesses, by which threads could be drawn. Automatic NUMA
 * balancing moves the same threads and pages, and gains more alone.
 */
bool nm_may_draw_threads(const struct nm_daemon *daemon)
{
	return daemon->config->threads.policy != NM_POLICY_AUTO ||
	       (!nm_balances_nodes(daemon->machine.balancing) && !nm_lacks_accesses(daemon));
}

/* ---- what stages share ---- */

int nm_machine_open_platform(const struct nm_options *asked,
			     const struct nm_platform_options *options, struct nm_platform **ret)
{
	if (asked->open_platform)
		return asked->open_platform(asked->platform_context, options, ret);
	return nm_platform_linux_new(options, ret);
}

void nm_machine_read_balancing(struct nm_daemon *daemon)
{
	char text[32];
	struct nm_platform *platform = daemon->pipeline.platform;
	if (platform->ops->read_file(platform, NM_ROOT, "proc/sys/kernel/numa_balancing", text,
				     sizeof(text)) > 0)
		(void)sscanf(text, "%d", &daemon->machine.balancing);
}
