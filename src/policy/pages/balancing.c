/* SPDX-License-Identifier: MIT */
/* Coexistence with kernel.numa_balancing, which moves the same pages (pages.numa_balancing). */
#include <syslog.h>

#include "policy/page_choice.h"
#include "numa-migrd/proc.h"

enum nm_balancing_mode nm_balancing_mode_of(const struct nm_config *config, int balancing,
					    bool managing, bool samples_otherwise)
{
	enum nm_page_balancing wanted = config->pages.numa_balancing;

	if (config->sampling.inject == NM_INJECT_NUMA_BALANCING)
		return NM_PAGES_INJECTED;
	if (wanted == NM_BALANCING_MANAGE && (managing || nm_balances_nodes(balancing)))
		return samples_otherwise ? NM_PAGES_MANAGED : NM_PAGES_NEEDED;
	if (!nm_balances_nodes(balancing))
		return NM_PAGES_ALONE;
	return wanted == NM_BALANCING_WARN ? NM_PAGES_WARNED : NM_PAGES_YIELDED;
}

const struct nm_balancing_text *nm_balancing_text_of(enum nm_balancing_mode mode)
{
	static const struct nm_balancing_text texts[] = {
		[NM_PAGES_ALONE] = {true, "moves", LOG_INFO,
				    "kernel.numa_balancing is off: numa-migrd migrates pages"},
		[NM_PAGES_YIELDED] = {false, "yields", LOG_NOTICE,
				      "kernel.numa_balancing is on: pages are left to the kernel "
				      "(pages.numa_balancing = \"yield\")"},
		[NM_PAGES_WARNED] = {true, "moves-too", LOG_WARNING,
				     "kernel.numa_balancing migrates the same pages; set "
				     "pages.numa_balancing to \"yield\" or \"manage\""},
		[NM_PAGES_MANAGED] =
			{true, "manages", LOG_NOTICE,
			 "kernel.numa_balancing is off until numa-migrd stops or pauses"},
		[NM_PAGES_REFUSED] = {false, "refused", LOG_WARNING,
				      "kernel.numa_balancing stays on, pages left to it: check "
				      "numa-migrd-helper.socket, /etc/numa-migrd.conf"},
		[NM_PAGES_NEEDED] =
			{false, "needs-faults", LOG_NOTICE,
			 "kernel.numa_balancing stays on, the only sampling source; pages "
			 "are left to the kernel"},
		[NM_PAGES_INJECTED] =
			{false, "injects", LOG_NOTICE,
			 "sampling.inject = \"numa_balancing\": pages are left to the "
			 "kernel"},
	};

	return &texts[mode];
}
