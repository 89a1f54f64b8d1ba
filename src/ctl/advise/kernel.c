/* SPDX-License-Identifier: MIT */
/* Effects of the kernel's balancing on the program's pages. */
#include <inttypes.h>

#include "numa-migrd/proc.h"
#include "rules.h"

#define COMMON_LEAST 0.3 /* share of the accesses to ranges that several nodes use */
#define OWN_LEAST 0.8	 /* exclusivity from which pages belong to one node */
#define LOCAL_POOR 0.6	 /* share of local accesses */

static void say_in_the_way(const char *name, const struct nm_advise_input *input,
			   struct nm_findings *findings)
{
	double common = nm_common_share(input);

	nm_findings_add(findings, name, NM_SEVERITY_WARNING,
			"The kernel's balancing moves pages that several nodes use back and forth, "
			"and delays the program.");
	if (!isnan(common))
		nm_findings_evidence(findings,
				     "%.0f %% of the accesses are to ranges of several nodes",
				     100 * common);
	if (input->ping_pong)
		nm_findings_evidence(findings, "%" PRIu64 " pages moved back and forth",
				     input->ping_pong);
	if (!isnan(input->hint_faults_per_s))
		nm_findings_evidence(
			findings,
			"on the whole machine %.0f hinting faults and %.0f migrated pages per "
			"second (/proc/vmstat)",
			input->hint_faults_per_s, input->migrated_per_s);
	if (!isnan(input->hint_local_share))
		nm_findings_evidence(findings, "%.0f %% of these faults were local",
				     100 * input->hint_local_share);
	nm_findings_remedy(findings, "give these ranges a memory policy, so that the kernel does not "
				     "scan them: numactl --interleave=all, or mbind(2)");
	nm_findings_remedy(findings,
			   "or turn it off for a trial (sysctl kernel.numa_balancing=%d) and "
			   "compare the run times: stencils lost up to 27 %%",
			   nm_balancing_with(input->balancing, false));
}

static void say_missing(const char *name, const struct nm_advise_input *input,
			struct nm_findings *findings)
{
	nm_findings_add(findings, name, NM_SEVERITY_NOTE,
			"Threads of one node use memory of another; kernel.numa_balancing, which "
			"would migrate it, is off.");
	nm_findings_evidence(
		findings,
		"%.0f %% of the accesses are local; %.0f %% of a page's accesses come from one node",
		100 * input->local_share, 100 * input->exclusivity);
	nm_findings_remedy(findings,
			   "pages.policy = \"exclusivity\" in numa-migrd.conf, or sysctl "
			   "kernel.numa_balancing=%d",
			   nm_balancing_with(input->balancing, true));
}

void nm_rule_kernel_balancing(const char *name, const struct nm_advise_input *input,
			      struct nm_findings *findings)
{
	bool shared = nm_common_share(input) >= COMMON_LEAST || input->ping_pong > 0;
	bool moves = isnan(input->migrated_per_s) || input->migrated_per_s > 0;

	if (nm_balances_nodes(input->balancing) && shared && moves)
		say_in_the_way(name, input, findings);
	if (input->balancing >= 0 && !nm_balances_nodes(input->balancing) &&
	    input->exclusivity >= OWN_LEAST && input->local_share < LOCAL_POOR)
		say_missing(name, input, findings);
}
