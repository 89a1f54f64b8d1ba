/* SPDX-License-Identifier: MIT */
/* Makes memory accesses visible if no other source does (opt-in), and turns kernel.numa_balancing
 * off while the daemon moves pages (pages.numa_balancing). */
#include <string.h>

#include "daemon.h"

/* The remedy is NULL if it follows from the error. */
static void report_refusal(struct nm_daemon *daemon, const char *what, int error,
			   const char *remedy)
{
	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING, "%s refused: %s; %s%s", what,
		  strerror(-error), remedy ? remedy : nm_inject_remedy(error),
		  nm_injection_failure_effect(daemon));
}

/* A helper that is slow only because it is being started is tried again by nm_inject(). */
static void switch_balancing(struct nm_daemon *daemon, int value)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	int before = daemon->machine.balancing_error;
	int r = platform->ops->numa_balancing_set(platform, value);
	daemon->machine.balancing_error = r < 0 ? r : 0;
	if (value < 0 || r >= 0 || r == before)
		return;
	daemon->injection.unusable = r != -ETIMEDOUT;
	report_refusal(daemon, "kernel.numa_balancing = 1", r,
		       daemon->injection.unusable ? NULL : "helper too slow, retrying in a minute");
}

void nm_inject_configure(struct nm_daemon *daemon)
{
	enum nm_inject inject = daemon->config->sampling.inject;

	nm_injector_clear(&daemon->injection.injector, daemon->pipeline.platform);
	daemon->injection.unusable = false;
	daemon->machine.balancing_error = 0;
	if (inject == NM_INJECT_NUMA_BALANCING)
		switch_balancing(daemon, 1);
	else if (daemon->machine.balancing_switched)
		switch_balancing(daemon, -1);
	daemon->machine.balancing_switched = inject == NM_INJECT_NUMA_BALANCING;
	if (inject != NM_INJECT_SOFT_DIRTY)
		return;
	/* Tested once per configuration, on a page of this process. */
	int r = nm_inject_probe(daemon->pipeline.platform);
	daemon->injection.unusable = r < 0;
	if (r == -EOPNOTSUPP)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "sampling.inject = \"soft_dirty_unsafe\" has no effect: kernel without "
			  "CONFIG_MEM_SOFT_DIRTY%s",
			  nm_injection_failure_effect(daemon));
	else if (r < 0)
		report_refusal(daemon, "sampling.inject = \"soft_dirty_unsafe\"", r, NULL);
}

static void protect_targets(struct nm_daemon *daemon)
{
	struct nm_injector *injector = &daemon->injection.injector;
	const struct nm_inject_target *targets = NULL;
	size_t count = nm_roster_inject_targets(daemon->pipeline.roster, &targets);
	int last_error = injector->last_error;
	bool passed_over = injector->too_large > 0;
	(void)nm_inject_soft_dirty(injector, daemon->pipeline.platform, targets, count,
				   nm_inject_rate(daemon->config), daemon->last_tick_ns);
	if (!passed_over && injector->too_large > 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Target too large to write-protect in 100 ms: skipped, its accesses are "
			  "not sampled");
	if (injector->last_error != last_error)
		report_refusal(daemon, "Write-protecting pages", injector->last_error, NULL);
}

void nm_inject(struct nm_daemon *daemon)
{
	enum nm_inject inject = daemon->config->sampling.inject;
	if (!daemon->pipeline.source || daemon->injection.unusable)
		return;
	if (inject == NM_INJECT_SOFT_DIRTY)
		protect_targets(daemon);
	/* Requested again, so that a helper that was restarted meanwhile gets the request. */
	if (inject == NM_INJECT_NUMA_BALANCING)
		switch_balancing(daemon, 1);
}

/* ---- pages.numa_balancing ---- */

/* Returns whether accesses are sampled without the kernel's hinting faults. */
static bool samples_otherwise(const struct nm_daemon *daemon)
{
	if (daemon->config->sampling.inject == NM_INJECT_SOFT_DIRTY && !daemon->injection.unusable)
		return true;
	return daemon->pipeline.source &&
	       nm_source_status(daemon->pipeline.source)->memory != NM_MEMORY_NONE;
}

void nm_restore_balancing(struct nm_daemon *daemon)
{
	struct nm_platform *platform = daemon->pipeline.platform;
	if (daemon->machine.balancing_mode == NM_PAGES_MANAGED)
		(void)platform->ops->numa_balancing_set(platform, -1);
	daemon->machine.balancing_mode = NM_PAGES_ALONE;
}

bool nm_follow_balancing(struct nm_daemon *daemon)
{
	struct nm_machine_state *machine = &daemon->machine;
	struct nm_platform *platform = daemon->pipeline.platform;
	enum nm_balancing_mode before = machine->balancing_mode;
	int r = 0;
	if (daemon->config->pages.policy == NM_PAGES_AUTO && nm_balances_nodes(machine->balancing))
		return false;
	/* A dry run has not turned it off. */
	bool managing = before == NM_PAGES_MANAGED && !nm_daemon_is_dry_run(daemon);
	enum nm_balancing_mode mode = nm_balancing_mode_of(daemon->config, machine->balancing,
							   managing, samples_otherwise(daemon));
	if (mode == NM_PAGES_NEEDED)
		nm_restore_balancing(daemon);
	/* Requested in every interval, so that a helper that was restarted meanwhile gets the
	 * request. In a dry run the mode shows what would be done. */
	if (mode == NM_PAGES_MANAGED)
		r = platform->ops->numa_balancing_set(platform, 0);
	if (r < 0 && r != -EROFS)
		mode = NM_PAGES_REFUSED;
	const struct nm_balancing_text *text = nm_balancing_text_of(mode);
	/* Logged once, and when it changes. The first value is not logged if only the daemon moves
	 * pages. */
	if (mode != before)
		nm_report(daemon, NM_MESSAGE_COEXIST, text->priority, "%s", text->message);
	machine->balancing_mode = mode;
	return text->moves_pages;
}
