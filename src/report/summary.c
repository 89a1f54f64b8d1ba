/* SPDX-License-Identifier: MIT */
/* The status line for systemd, and the summaries in the journal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/statistics.h"

static void describe_share(char *text, size_t size, double share)
{
	if (isnan(share))
		(void)snprintf(text, size, "–");
	else
		(void)snprintf(text, size, "%.0f %%", share * 100);
}

static void summarise_threads(struct nm_entry *entry, const struct nm_statistics *statistics,
			      uint64_t suppressed)
{
	const struct nm_tally *tally = &statistics->tally;
	unsigned threads = statistics->tasks.threads_managed;
	char local[32];
	describe_share(local, sizeof(local), tally->local_share);
	nm_entry_field(entry, "COST_PERCENT", "%.2f", tally->cpu_share * 100);
	nm_entry_text(entry,
		      "%u thread%s managed, %s of accesses local; %" PRIu64 " move%s (%" PRIu64
		      " improved, %" PRIu64 " rolled back); cost %.2f %% of one CPU",
		      threads, nm_plural(threads, "", "s"), local, tally->applied,
		      nm_plural(tally->applied, "", "s"), tally->verdicts[NM_VERDICT_IMPROVED],
		      tally->verdicts[NM_VERDICT_ROLLED_BACK], tally->cpu_share * 100);
	nm_entry_field(entry, "SUPPRESSED", "%" PRIu64, suppressed);
}

void nm_entry_summary(struct nm_entry *entry, const struct nm_statistics *statistics,
		      enum nm_summary summary, uint64_t suppressed)
{
	const struct nm_page_tally *pages = &statistics->pages;
	const struct nm_home_tally *homes = &statistics->tally.homes;
	nm_entry_begin(entry, NM_MESSAGE_SUMMARY, LOG_INFO);
	if (summary == NM_SUMMARY_THREADS)
		summarise_threads(entry, statistics, suppressed);
	else if (summary == NM_SUMMARY_HOMES)
		nm_entry_text(entry,
			      "Homes: %" PRIu64 " now; %" PRIu64 " granted, %" PRIu64
			      " expired, %" PRIu64 " yielded; %" PRIu64 " MiB migrated",
			      statistics->homes_now, homes->granted, homes->expired, homes->yielded,
			      homes->bytes >> 20);
	else
		nm_entry_text(entry,
			      "Pages: %" PRIu64 " migrated (%" PRIu64 " MiB), %" PRIu64
			      " improved, %" PRIu64 " rolled back, %" PRIu64 " failed",
			      pages->moved, pages->bytes >> 20,
			      pages->verdicts[NM_VERDICT_IMPROVED],
			      pages->verdicts[NM_VERDICT_ROLLED_BACK], pages->failed);
	nm_statistics_fields(entry, statistics, summary);
}

const char *nm_restoration_text(bool unrestored)
{
	return unrestored ? "some affinities not restored" : "all affinities restored";
}

static void describe_managed(const struct nm_statistics *statistics, char *text, size_t size,
			     const char *sampled)
{
	unsigned threads = statistics->tasks.threads_managed;
	(void)snprintf(text, size, "%s%u thread%s managed, %" PRIu64 " assigned", sampled, threads,
		       nm_plural(threads, "", "s"), statistics->assigned);
}

/* Policy "auto" works without accesses, if it knows where threads run. */
static void describe_unsampled(const struct nm_statistics *statistics, char *text, size_t size)
{
	const char *what = statistics->source.accesses ? "Only first touches sampled: "
						       : "No memory sampling: ";
	if (statistics->service.homes && statistics->parts & 1U << NM_PART_SOURCE)
		describe_managed(statistics, text, size, what);
	else
		(void)snprintf(text, size, "%snothing is moved", what);
}

void nm_status_line(const struct nm_statistics *statistics, char *text, size_t size)
{
	uint64_t moves = statistics->tally.applied;
	char local[32];
	if (statistics->service.paused) {
		(void)snprintf(text, size, "Paused: %s, sampling stopped",
			       nm_restoration_text(statistics->service.unrestored));
	} else if (statistics->service.idle) {
		(void)snprintf(text, size, "One NUMA node%s: nothing to move",
			       statistics->nodes < 2 ? "" : " has CPUs");
	} else if (statistics->service.blind) {
		describe_unsampled(statistics, text, size);
	} else {
		describe_share(local, sizeof(local), statistics->tally.local_share);
		describe_managed(statistics, text, size, "");
		size_t used = strlen(text);
		(void)snprintf(text + used, size - used,
			       "; %s of accesses local, %" PRIu64 " move%s", local, moves,
			       nm_plural(moves, "", "s"));
	}
}
