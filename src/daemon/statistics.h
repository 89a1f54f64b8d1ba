/* SPDX-License-Identifier: MIT */
#ifndef NM_DAEMON_STATISTICS_H
#define NM_DAEMON_STATISTICS_H

#include "daemon.h"

struct nm_statistics {
	struct nm_statistic_now now[NM_STATISTIC_MAX];
	char compared_today[NM_TRIAL_TEXT_BYTES], compared_yesterday[NM_TRIAL_TEXT_BYTES];
};

/* Reads the counters and states of all stages. A value of a stage that does not run is unknown.
 * Called by the status, the metrics file and the summaries. */
void nm_statistics_gather(const struct nm_daemon *daemon, struct nm_statistics *ret);

#endif
