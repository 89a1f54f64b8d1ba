/* SPDX-License-Identifier: MIT */
/* The status line for systemd, and a summary in the journal every five minutes. */
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon.h"

#define SUMMARY_NS (300 * NM_NSEC_PER_SEC)
#define STATUS_NS (10 * NM_NSEC_PER_SEC)

static void write_summary(struct nm_daemon *daemon)
{
	uint64_t suppressed = nm_journal_suppressed(daemon->journal);
	struct nm_statistics statistics;
	struct nm_entry entry;

	daemon->tally.suppressed += suppressed;
	nm_statistics_gather(daemon, &statistics);
	for (enum nm_summary summary = NM_SUMMARY_THREADS; summary <= NM_SUMMARY_PAGES; summary++) {
		if ((summary == NM_SUMMARY_HOMES && !daemon->pipeline.placement) ||
		    (summary == NM_SUMMARY_PAGES && !daemon->pipeline.pages))
			continue;
		nm_entry_summary(&entry, &statistics, summary, suppressed);
		nm_report_entry(daemon, &entry);
	}
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
	struct nm_statistics statistics;
	uint64_t now_ns = nm_clock_ns();
	daemon->reported.composed_ns = now_ns;
	nm_statistics_gather(daemon, &statistics);
	nm_status_line(&statistics, text, sizeof(text));
	if (strcmp(text, daemon->reported.status) == 0 ||
	    (is_same_state(text, daemon->reported.status) &&
	     now_ns - daemon->reported.status_ns < STATUS_NS))
		return;
	daemon->reported.status_ns = now_ns;
	memcpy(daemon->reported.status, text, sizeof(text));
	(void)sd_notifyf(0, "STATUS=%s", text);
}
