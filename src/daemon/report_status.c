/* SPDX-License-Identifier: MIT */
/* How it stands: a line for systemd, and a summary for the journal every five minutes. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon.h"
#include "numa-migrd/clock.h"

#define SUMMARY_NS (300 * NM_NSEC_PER_SEC)
#define STATUS_NS (10 * NM_NSEC_PER_SEC)

static void describe_share(char *text, size_t size, double share)
{
	if (isnan(share))
		(void)snprintf(text, size, "–");
	else
		(void)snprintf(text, size, "%.0f %%", share * 100);
}

static void summarise_pages(struct nm_daemon *daemon)
{
	const struct nm_page_tally *tally = &daemon->pipeline.pages->tally;

	nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
		  "so far %" PRIu64 " pages moved (%" PRIu64 " MiB) by %" PRIu64
		  " decisions (%" PRIu64 " improved, %" PRIu64 " neutral, %" PRIu64
		  " rolled back, %" PRIu64 " inconclusive); %" PRIu64 " were elsewhere, %" PRIu64
		  " left alone, %" PRIu64 " failed, %" PRIu64 " not tried",
		  tally->moved, tally->bytes >> 20, tally->decisions, tally->improved,
		  tally->neutral, tally->rolled_back, tally->inconclusive, tally->elsewhere,
		  tally->refused, tally->failed, tally->untried);
}

static void summarise_homes(struct nm_daemon *daemon)
{
	const struct nm_home_tally *homes = &daemon->tally.homes;

	nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
		  "%zu processes have a home; so far %" PRIu64 " homes granted, %" PRIu64
		  " expired, %" PRIu64 " yielded, %" PRIu64 " rolled back; %" PRIu64
		  " pages moved to them (%" PRIu64 " MiB)",
		  nm_placement_homes(daemon), homes->granted, homes->expired, homes->yielded,
		  homes->rolled_back, homes->pages, homes->bytes >> 20);
}

static void write_summary(struct nm_daemon *daemon)
{
	struct nm_roster_counts roster = nm_roster_counts(daemon->pipeline.roster);
	const struct nm_tally *tally = &daemon->tally;
	uint64_t suppressed = nm_journal_suppressed(daemon->journal);
	char local[32];

	daemon->tally.suppressed += suppressed;
	describe_share(local, sizeof(local), tally->local_share);
	nm_report(daemon, NM_MESSAGE_SUMMARY, LOG_INFO,
		  "%u threads of %u processes managed, %s of their sampled accesses local; so "
		  "far %" PRIu64 " moves (%" PRIu64 " improved, %" PRIu64 " neutral, %" PRIu64
		  " rolled back, %" PRIu64 " cancelled, %" PRIu64 " inconclusive), %" PRIu64
		  " refused, in %" PRIu64 " intervals; %" PRIu64 " samples lost, %" PRIu64
		  " journal entries suppressed; own cost %.2f %% of one CPU",
		  roster.threads_managed, roster.processes_managed, local, tally->applied,
		  tally->improved, tally->neutral, tally->rolled_back, tally->cancelled,
		  tally->inconclusive, tally->failed, tally->intervals, daemon->counts.lost,
		  suppressed, tally->cpu_share * 100);
	if (daemon->pipeline.placement)
		summarise_homes(daemon);
	if (daemon->pipeline.pages)
		summarise_pages(daemon);
}

void nm_report_summary(struct nm_daemon *daemon)
{
	uint64_t now_ns = nm_clock_ns();
	if (daemon->summary_ns == 0)
		daemon->summary_ns = now_ns;
	if (!daemon->pipeline.source || now_ns - daemon->summary_ns < SUMMARY_NS)
		return;
	daemon->summary_ns = now_ns;
	write_summary(daemon);
}

const char *nm_report_restoration(const struct nm_daemon *daemon)
{
	return daemon->unrestored ? "some CPU affinities could not be restored"
				  : "every CPU affinity is restored";
}

static const char *what_is_seen(const struct nm_daemon *daemon)
{
	if (!daemon->pipeline.source)
		return "nothing can be sampled";
	return nm_pipeline_sees_no_accesses(daemon) ? "no memory access is sampled"
						    : "only the first touch of each page is seen";
}

/* Policy "auto" goes on without accesses, while it knows who runs. */
static void describe_blindness(const struct nm_daemon *daemon, char *text, size_t size)
{
	if (daemon->config->threads.policy == NM_POLICY_AUTO && daemon->pipeline.source)
		(void)snprintf(
			text, size,
			"STATUS=Blind: %s, so homes are given by where threads run; %u threads "
			"managed, %" PRIu64 " moves, %zu leases.",
			what_is_seen(daemon),
			nm_roster_counts(daemon->pipeline.roster).threads_managed,
			daemon->tally.applied, nm_actuator_leases(daemon->pipeline.actuator));
	else
		(void)snprintf(text, size, "STATUS=Blind: %s; see the journal.",
			       what_is_seen(daemon));
}

static void describe_status(const struct nm_daemon *daemon, char *text, size_t size)
{
	char local[32];
	if (daemon->paused) {
		(void)snprintf(text, size, "STATUS=Paused: %s, nothing is sampled.",
			       nm_report_restoration(daemon));
		return;
	}
	if (daemon->pipeline.topology->nr_nodes < 2) {
		(void)snprintf(text, size, "STATUS=One NUMA node: there is nothing to move.");
		return;
	}
	if (nm_pipeline_is_blind(daemon)) {
		describe_blindness(daemon, text, size);
		return;
	}
	describe_share(local, sizeof(local), daemon->tally.local_share);
	(void)snprintf(text, size,
		       "STATUS=%u threads managed, %s of their accesses local; %" PRIu64
		       " moves, %zu leases.",
		       nm_roster_counts(daemon->pipeline.roster).threads_managed, local,
		       daemon->tally.applied, nm_actuator_leases(daemon->pipeline.actuator));
}

/* "STATUS=12 threads managed…" and the like: other words are another state. */
static bool are_numbers(const char *status)
{
	return isdigit((unsigned char)status[strcspn(status, "=") + 1]);
}

/* systemd is woken only when there is something new, and for numbers alone not often. */
void nm_report_status(struct nm_daemon *daemon)
{
	char text[sizeof(daemon->status)];
	uint64_t now_ns = nm_clock_ns();
	describe_status(daemon, text, sizeof(text));
	if (strcmp(text, daemon->status) == 0 ||
	    (are_numbers(text) && are_numbers(daemon->status) &&
	     now_ns - daemon->status_ns < STATUS_NS))
		return;
	daemon->status_ns = now_ns;
	memcpy(daemon->status, text, sizeof(text));
	(void)sd_notify(0, text);
}
