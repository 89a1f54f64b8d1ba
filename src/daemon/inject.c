/* SPDX-License-Identifier: MIT */
/* Makes memory accesses visible if no other source does (opt-in), and turns kernel.numa_balancing
 * off while the daemon moves pages (pages.numa_balancing). */
#include <string.h>

#include "daemon.h"
#include "report.h"
#include "stages.h"

static const char *remedy_of(int error)
{
	switch (error) {
	case -EPERM:
		return "allow it in /etc/numa-migrd.conf, owned by root";
	case -ETIMEDOUT:
		return "helper too slow, retrying in a minute";
	case -ENOENT:
	case -ECONNREFUSED:
	case -EACCES:
		return "check numa-migrd-helper.socket";
	default:
		return "see systemctl status numa-migrd-helper";
	}
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
	daemon->machine.balancing_unusable = r != -ETIMEDOUT;
	nm_report(daemon->journal, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "kernel.numa_balancing = 1 refused: %s; %s%s", strerror(-r), remedy_of(r),
		  nm_injection_failure_effect(daemon));
}

void nm_inject_configure(struct nm_daemon *daemon)
{
	bool inject = daemon->config->sampling.inject == NM_INJECT_NUMA_BALANCING;

	daemon->machine.balancing_unusable = false;
	daemon->machine.balancing_error = 0;
	if (inject)
		switch_balancing(daemon, 1);
	else if (daemon->machine.balancing_switched)
		switch_balancing(daemon, -1);
	daemon->machine.balancing_switched = inject;
}

void nm_inject(struct nm_daemon *daemon)
{
	if (!daemon->pipeline.source || daemon->machine.balancing_unusable)
		return;
	/* Requested again, so that a helper that was restarted meanwhile gets the request. */
	if (daemon->config->sampling.inject == NM_INJECT_NUMA_BALANCING)
		switch_balancing(daemon, 1);
}

/* ---- pages.numa_balancing ---- */

/* Returns whether accesses are sampled without the kernel's hinting faults. */
static bool samples_otherwise(const struct nm_daemon *daemon)
{
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
		nm_report(daemon->journal, NM_MESSAGE_COEXIST, text->priority, "%s", text->message);
	machine->balancing_mode = mode;
	return text->moves_pages;
}
