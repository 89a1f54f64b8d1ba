/* SPDX-License-Identifier: MIT */
/* Coexistence with kernel.numa_balancing, which moves the same pages (pages.numa_balancing). */

#include "daemon.h"
#include "numa-migrd/proc.h"

static int set_balancing(struct nm_daemon *daemon, int value)
{
	struct nm_platform *platform = daemon->pipeline.platform;

	return platform->ops->numa_balancing_set(platform, value);
}

/* Returns whether accesses are sampled without the kernel's hinting faults. */
static bool has_other_source(const struct nm_daemon *daemon)
{
	if (daemon->config->sampling.inject == NM_INJECT_SOFT_DIRTY && !daemon->injection.unusable)
		return true;
	return daemon->pipeline.source &&
	       nm_source_status(daemon->pipeline.source)->memory != NM_MEMORY_NONE;
}

/* Requested in every interval, so that a helper that was restarted meanwhile gets the request. In a
 * dry run (-EROFS) the mode shows what would be done. */
static enum nm_balancing_mode turn_off(struct nm_daemon *daemon)
{
	if (!has_other_source(daemon)) {
		nm_page_balancing_end(daemon);
		return NM_PAGES_NEEDED;
	}
	int r = set_balancing(daemon, 0);
	daemon->pipeline.pages->managing = r == 0;
	return r == 0 || r == -EROFS ? NM_PAGES_MANAGED : NM_PAGES_REFUSED;
}

static enum nm_balancing_mode update_mode(struct nm_daemon *daemon)
{
	enum nm_page_balancing wanted = daemon->config->pages.numa_balancing;
	bool managing = daemon->pipeline.pages->managing;

	daemon->machine.balancing = nm_machine_read_balancing(daemon);
	if (daemon->config->sampling.inject == NM_INJECT_NUMA_BALANCING)
		return NM_PAGES_INJECTED;
	if (managing && wanted != NM_BALANCING_MANAGE) {
		nm_page_balancing_end(daemon);
		daemon->machine.balancing = nm_machine_read_balancing(daemon);
	}
	if (wanted == NM_BALANCING_MANAGE &&
	    (managing || nm_balances_nodes(daemon->machine.balancing)))
		return turn_off(daemon);
	if (!nm_balances_nodes(daemon->machine.balancing))
		return NM_PAGES_ALONE;
	return wanted == NM_BALANCING_WARN ? NM_PAGES_WARNED : NM_PAGES_YIELDED;
}

static void report_mode(struct nm_daemon *daemon, enum nm_balancing_mode balancing_mode)
{
	static const struct {
		int priority;
		const char *text;
	} words[] = {
		[NM_PAGES_ALONE] = {LOG_INFO, "kernel.numa_balancing is off: numa-migrd migrates pages"},
		[NM_PAGES_YIELDED] = {LOG_NOTICE,
				      "kernel.numa_balancing is on: pages are left to the kernel "
				      "(pages.numa_balancing = \"yield\")"},
		[NM_PAGES_WARNED] = {LOG_WARNING,
				     "kernel.numa_balancing migrates the same pages; set "
				     "pages.numa_balancing to \"yield\" or \"manage\""},
		[NM_PAGES_MANAGED] = {LOG_NOTICE,
				      "kernel.numa_balancing is off until numa-migrd stops or pauses"},
		[NM_PAGES_REFUSED] = {LOG_WARNING,
				      "kernel.numa_balancing stays on, pages left to it: check "
				      "numa-migrd-helper.socket, /etc/numa-migrd.conf"},
		[NM_PAGES_NEEDED] = {LOG_NOTICE,
				     "kernel.numa_balancing stays on, the only sampling source; pages "
				     "are left to the kernel"},
		[NM_PAGES_INJECTED] = {LOG_NOTICE,
				       "sampling.inject = \"numa_balancing\": pages are left to the "
				       "kernel"},
	};

	nm_report(daemon, NM_MESSAGE_COEXIST, words[balancing_mode].priority, "%s",
		  words[balancing_mode].text);
}

bool nm_page_balancing(struct nm_daemon *daemon)
{
	struct nm_page_stage *stage = daemon->pipeline.pages;
	enum nm_balancing_mode balancing_mode = update_mode(daemon);

	/* Logged once, and when it changes. The first value is not logged if only the daemon moves
	 * pages. */
	if (balancing_mode != stage->balancing_mode)
		report_mode(daemon, balancing_mode);
	stage->balancing_mode = balancing_mode;
	return balancing_mode == NM_PAGES_ALONE || balancing_mode == NM_PAGES_WARNED ||
	       balancing_mode == NM_PAGES_MANAGED;
}

void nm_page_balancing_end(struct nm_daemon *daemon)
{
	if (daemon->pipeline.pages->managing)
		(void)set_balancing(daemon, -1);
	daemon->pipeline.pages->managing = false;
}

const char *nm_balancing_mode_name(enum nm_balancing_mode balancing_mode)
{
	static const char *const names[] = {
		[NM_PAGES_ALONE] = "moves",	 [NM_PAGES_YIELDED] = "yields",
		[NM_PAGES_WARNED] = "moves-too", [NM_PAGES_MANAGED] = "manages",
		[NM_PAGES_REFUSED] = "refused",	 [NM_PAGES_NEEDED] = "needs-faults",
		[NM_PAGES_INJECTED] = "injects",
	};

	return names[balancing_mode];
}
