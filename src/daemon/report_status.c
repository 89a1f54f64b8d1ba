/* SPDX-License-Identifier: MIT */
/* The status line for systemd, and a summary in the journal every five minutes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "numa-migrd/base.h"
#include "statistics.h"

#define SUMMARY_NS (300 * NM_NSEC_PER_SEC)
#define STATUS_NS (10 * NM_NSEC_PER_SEC)

static void describe_share(char *text, size_t size, double share)
{
	if (isnan(share))
		(void)snprintf(text, size, "–");
	else
		(void)snprintf(text, size, "%.0f %%", share * 100);
}

/* Adds the fields of the summary, and writes the entry. */
static void write_entry(struct nm_daemon *daemon, struct nm_entry *entry,
			const struct nm_statistics *statistics, enum nm_summary summary)
{
	for (unsigned i = 0; i < NM_STATISTIC_MAX; i++) {
		const struct nm_statistic_row *row = nm_statistic_row((enum nm_statistic)i);
		if (row->summary == summary && statistics->now[i].known)
			nm_entry_field(entry, row->field, "%.0f", statistics->now[i].number);
	}
	nm_report_entry(daemon, entry);
}

static void summarise_pages(struct nm_daemon *daemon, const struct nm_statistics *statistics)
{
	const struct nm_page_tally *tally = &daemon->pipeline.pages->tally;
	struct nm_entry entry;

	nm_entry_begin(&entry, NM_MESSAGE_SUMMARY, LOG_INFO);
	nm_entry_text(&entry,
		      "Pages: %" PRIu64 " migrated (%" PRIu64 " MiB), %" PRIu64
		      " improved, %" PRIu64 " rolled back, %" PRIu64 " failed",
		      tally->moved, tally->bytes >> 20, tally->verdicts[NM_VERDICT_IMPROVED],
		      tally->verdicts[NM_VERDICT_ROLLED_BACK], tally->failed);
	write_entry(daemon, &entry, statistics, NM_SUMMARY_PAGES);
}

static void summarise_homes(struct nm_daemon *daemon, const struct nm_statistics *statistics)
{
	const struct nm_home_tally *homes = &daemon->tally.homes;
	size_t placed = nm_placement_homes(daemon->pipeline.placement);
	struct nm_entry entry;

	nm_entry_begin(&entry, NM_MESSAGE_SUMMARY, LOG_INFO);
	nm_entry_text(&entry,
		      "Homes: %zu now; %" PRIu64 " granted, %" PRIu64 " expired, %" PRIu64
		      " yielded, %" PRIu64 " rolled back; %" PRIu64 " MiB migrated",
		      placed, homes->granted, homes->expired, homes->yielded, homes->rolled_back,
		      homes->bytes >> 20);
	write_entry(daemon, &entry, statistics, NM_SUMMARY_HOMES);
}

static void write_summary(struct nm_daemon *daemon)
{
	struct nm_roster_counts roster = nm_roster_counts(daemon->pipeline.roster);
	const struct nm_tally *tally = &daemon->tally;
	uint64_t suppressed = nm_journal_suppressed(daemon->journal);
	struct nm_statistics statistics;
	struct nm_entry entry;
	char local[32];

	daemon->tally.suppressed += suppressed;
	nm_statistics_gather(daemon, &statistics);
	describe_share(local, sizeof(local), tally->local_share);
	nm_entry_begin(&entry, NM_MESSAGE_SUMMARY, LOG_INFO);
	nm_entry_field(&entry, "COST_PERCENT", "%.2f", tally->cpu_share * 100);
	nm_entry_text(&entry,
		      "%u thread%s managed, %s of accesses local; %" PRIu64 " move%s (%" PRIu64
		      " improved, %" PRIu64 " rolled back); cost %.2f %% of one CPU",
		      roster.threads_managed, nm_plural(roster.threads_managed, "", "s"), local,
		      tally->applied, nm_plural(tally->applied, "", "s"),
		      tally->verdicts[NM_VERDICT_IMPROVED], tally->verdicts[NM_VERDICT_ROLLED_BACK],
		      tally->cpu_share * 100);
	nm_entry_field(&entry, "SUPPRESSED", "%" PRIu64, suppressed);
	write_entry(daemon, &entry, &statistics, NM_SUMMARY_THREADS);
	if (daemon->pipeline.placement)
		summarise_homes(daemon, &statistics);
	if (daemon->pipeline.pages)
		summarise_pages(daemon, &statistics);
}

void nm_report_summary(struct nm_daemon *daemon)
{
	uint64_t now_ns = nm_clock_ns();
	if (daemon->reported.summary_ns == 0)
		daemon->reported.summary_ns = now_ns;
	if (!daemon->pipeline.source || now_ns - daemon->reported.summary_ns < SUMMARY_NS)
		return;
	daemon->reported.summary_ns = now_ns;
	write_summary(daemon);
}

const char *nm_report_restoration(const struct nm_daemon *daemon)
{
	return daemon->runtime.unrestored ? "some affinities not restored"
					  : "all affinities restored";
}

static void describe_managed(const struct nm_daemon *daemon, char *text, size_t size,
			     const char *sampled)
{
	unsigned threads = nm_roster_counts(daemon->pipeline.roster).threads_managed;
	(void)snprintf(text, size, "STATUS=%s%u thread%s managed, %zu leased", sampled, threads,
		       nm_plural(threads, "", "s"), nm_actuator_leases(daemon->pipeline.actuator));
}

/* Policy "auto" works without accesses, if it knows where threads run. */
static void describe_unsampled(const struct nm_daemon *daemon, char *text, size_t size)
{
	bool runs = daemon->config->threads.policy == NM_POLICY_AUTO && daemon->pipeline.source;
	bool touches = daemon->pipeline.source && !nm_samples_no_accesses(daemon);
	const char *what = touches ? "Only first touches sampled: " : "No memory sampling: ";
	if (runs)
		describe_managed(daemon, text, size, what);
	else
		(void)snprintf(text, size, "STATUS=%snothing is moved", what);
}

static void describe_status(const struct nm_daemon *daemon, char *text, size_t size)
{
	char local[32];
	size_t used;
	if (daemon->paused) {
		(void)snprintf(text, size, "STATUS=Paused: %s, sampling stopped",
			       nm_report_restoration(daemon));
		return;
	}
	if (nm_topology_is_single(daemon->pipeline.topology)) {
		(void)snprintf(text, size, "STATUS=One NUMA node%s: nothing to move",
			       daemon->pipeline.topology->nr_nodes < 2 ? "" : " has CPUs");
		return;
	}
	if (nm_lacks_accesses(daemon)) {
		describe_unsampled(daemon, text, size);
		return;
	}
	describe_share(local, sizeof(local), daemon->tally.local_share);
	describe_managed(daemon, text, size, "");
	used = strlen(text);
	(void)snprintf(text + used, size - used, "; %s of accesses local, %" PRIu64 " move%s",
		       local, daemon->tally.applied, nm_plural(daemon->tally.applied, "", "s"));
}

/* Returns whether both lines report the same state: what precedes their first number is equal. */
static bool is_same_state(const char *one, const char *other)
{
	size_t length = strcspn(one, "0123456789");
	return length == strcspn(other, "0123456789") && strncmp(one, other, length) == 0;
}

/* Notifies systemd only of changes, and less often if only numbers have changed. */
void nm_report_status(struct nm_daemon *daemon)
{
	char text[sizeof(daemon->reported.status)];
	uint64_t now_ns = nm_clock_ns();
	daemon->reported.composed_ns = now_ns;
	describe_status(daemon, text, sizeof(text));
	if (strcmp(text, daemon->reported.status) == 0 ||
	    (is_same_state(text, daemon->reported.status) &&
	     now_ns - daemon->reported.status_ns < STATUS_NS))
		return;
	daemon->reported.status_ns = now_ns;
	memcpy(daemon->reported.status, text, sizeof(text));
	(void)sd_notify(0, text);
}
