/* SPDX-License-Identifier: MIT */
/* Logs attributes of cgroups that cannot be applied. */
#include "daemon.h"

static void log_value(struct nm_daemon *daemon, const struct nm_steer_report *report, int level,
		      const char *text)
{
	nm_report(daemon, NM_MESSAGE_PROBLEM, level,
		  "cgroup %s: " NM_STEER_ATTRIBUTE " is \"%s\", %s", report->cgroup, report->value,
		  text);
}

static void on_report(void *context, const struct nm_steer_report *report)
{
	struct nm_daemon *daemon = context;

	switch (report->conflict) {
	case NM_STEER_UNKNOWN:
		log_value(daemon, report, LOG_WARNING,
			  "not off, observe or on; treated as observe");
		break;
	case NM_STEER_NOT_ROOTS:
		log_value(daemon, report, LOG_WARNING,
			  "ignored: not writable by root alone, only off and observe allowed");
		break;
	case NM_STEER_UNDER_OFF:
		log_value(daemon, report, LOG_NOTICE, "ignored: a cgroup above it is off");
		break;
	case NM_STEER_EXCLUDED:
		log_value(daemon, report, LOG_NOTICE,
			  "ignored: targets.exclude matches a process there");
		break;
	case NM_STEER_OUTSIDE:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "cgroup %s: outside of this service's cgroup namespace; "
			  NM_STEER_ATTRIBUTE " not read", report->cgroup);
		break;
	case NM_STEER_TOO_DEEP:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "cgroup %s: more than 32 levels deep; treated as observe",
			  report->cgroup);
		break;
	}
}

int nm_steering_open(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	int r = nm_steer_new(pipeline->platform, daemon->config, on_report, daemon,
			     &pipeline->steer);

	if (r == 0)
		nm_roster_steer(pipeline->roster, pipeline->steer);
	return r;
}
