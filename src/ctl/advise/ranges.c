/* SPDX-License-Identifier: MIT */
/* Memory ranges that several nodes use. */
#include <inttypes.h>
#include <stdio.h>

#include "rules.h"

#define RANGES_NAMED 4U
#define DENSE 8.0 /* factor of the mean number of accesses per byte */
#define PING_PONG_LEAST 4U

static double share_of_region(const struct nm_advise_input *input,
			      const struct nm_advise_region *region)
{
	double all = nm_all_samples(input);

	return all > 0 ? region->samples / all : 0;
}

/* Accesses per byte, averaged over all ranges. */
static double density(const struct nm_advise_input *input)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < input->nr_regions; i++)
		bytes += input->regions[i].bytes;
	return bytes ? nm_all_samples(input) / (double)bytes : 0;
}

static bool is_common(const struct nm_advise_input *input, const struct nm_advise_region *region)
{
	return region->kind != NM_ADVISE_EXCLUSIVE && region->bytes > 0 &&
	       share_of_region(input, region) >= NM_REGION_SHARE_LEAST;
}

static bool is_dense(const struct nm_advise_input *input, const struct nm_advise_region *region)
{
	return region->samples / (double)region->bytes >= DENSE * density(input);
}

static void say_range(const struct nm_advise_input *input, const struct nm_advise_region *region,
		      struct nm_findings *findings)
{
	char place[64] = "";

	if (region->end)
		(void)snprintf(place, sizeof(place), " at %" PRIx64 "-%" PRIx64, region->start,
			       region->end);
	nm_findings_evidence(findings,
			     "%.1f MiB%s: %.0f %% of the accesses, %.0f %% of those from one node",
			     (double)region->bytes / (double)(1 << 20), place,
			     100 * share_of_region(input, region), 100 * region->exclusivity);
}

/* Lists the first few ranges; the others are similar. */
static size_t say_ranges(const struct nm_advise_input *input, bool dense, const char *name,
			 const char *what, struct nm_findings *findings)
{
	size_t count = 0;

	for (size_t i = 0; i < input->nr_regions; i++) {
		const struct nm_advise_region *region = &input->regions[i];
		if (!is_common(input, region) || is_dense(input, region) != dense)
			continue;
		if (count++ == 0)
			nm_findings_add(findings, name, NM_SEVERITY_NOTE, "%s", what);
		if (count <= RANGES_NAMED)
			say_range(input, region, findings);
	}
	if (count > RANGES_NAMED)
		nm_findings_evidence(findings, "and %zu more", count - RANGES_NAMED);
	return count;
}

void nm_rule_shared_ranges(const char *name, const struct nm_advise_input *input,
			   struct nm_findings *findings)
{
	if (say_ranges(input, false, name,
		       "Several nodes use the same ranges of memory, which are remote for some of "
		       "them on any node.",
		       findings) == 0)
		return;
	nm_findings_remedy(findings, "keep a copy of read-only data on each node (libnuma's "
				     "numa_alloc_onnode)");
	nm_findings_remedy(findings,
			   "spread written data over the nodes, so that all memory controllers "
			   "serve it (mbind with MPOL_INTERLEAVE)");
	nm_findings_remedy(findings,
			   "place threads that share most on one node (threads.policy = \"kmaf\" "
			   "in numa-migrd.conf)");
}

void nm_rule_false_sharing(const char *name, const struct nm_advise_input *input,
			   struct nm_findings *findings)
{
	size_t ranges =
		say_ranges(input, true, name,
			   "Several nodes use little memory much: counters, locks, or unrelated data "
			   "in one cache line (false sharing).",
			   findings);

	if (ranges == 0 && input->ping_pong >= PING_PONG_LEAST)
		nm_findings_add(findings, name, NM_SEVERITY_NOTE,
				"Pages move back and forth between nodes: they contain data of "
				"several nodes.");
	if (ranges == 0 && input->ping_pong < PING_PONG_LEAST)
		return;
	if (input->ping_pong)
		nm_findings_evidence(findings, "%" PRIu64 " pages moved back and forth",
				     input->ping_pong);
	nm_findings_remedy(findings,
			   "find the cache lines: perf c2c record -p %" PRIu32
			   " -- sleep 10; perf c2c report",
			   input->pid);
	nm_findings_remedy(findings, "put the data that each thread writes on cache lines of its own "
				     "(alignas(64)), and the data of each node on pages of its own");
}
