/* SPDX-License-Identifier: MIT */
/* The attributes of control groups: who is told of their changes, and what the journal says of
 * them. */
#include <inttypes.h>
#include <string.h>

#include "daemon.h"
#include "numa-migrd/escape.h"

#define PATH_BYTES 256

static void on_changed(void *context, const char *directory, const struct nm_steering *said)
{
	struct nm_daemon *daemon = context;
	char path[PATH_BYTES];

	nm_roster_resteer(daemon->pipeline.roster, directory);
	if (!said)
		return;
	(void)nm_escape(path, sizeof(path), directory, strlen(directory));
	if (said->word == NM_STEER_NONE)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "control group %s no longer says anything by " NM_STEER_ATTRIBUTE, path);
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_INFO,
			  "control group %s: " NM_STEER_ATTRIBUTE " counts as \"%s\" from now on",
			  path, nm_steer_name(said));
}

static void tell_unwatched(struct nm_daemon *daemon, const struct nm_steer_news *news)
{
	const char *limit = news->error == -EMFILE ? "fs.inotify.max_user_instances"
						   : "fs.inotify.max_user_watches";
	bool full = news->error == -EMFILE || news->error == -ENOSPC;

	nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
		  "control group %s cannot be watched (%s): changes of its " NM_STEER_ATTRIBUTE
		  " and of others like it are seen after ten seconds at the latest, not at "
		  "once%s%s",
		  news->directory, strerrordesc_np(-news->error), full ? "; raise the sysctl " : "",
		  full ? limit : "");
}

static void tell(void *context, const struct nm_steer_news *news)
{
	struct nm_daemon *daemon = context;
	const char *policy = nm_policy_name(daemon->config->threads.policy);

	switch (news->trouble) {
	case NM_STEER_UNKNOWN:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "control group %s: " NM_STEER_ATTRIBUTE " is \"%s\", which is none of "
			  "off, observe, on and the thread policies: what is there is watched and "
			  "not moved",
			  news->directory, news->said);
		break;
	case NM_STEER_NOT_ROOTS:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "control group %s: " NM_STEER_ATTRIBUTE
			  " is \"%s\", but others than root "
			  "may write to that directory, and then it may only say off or observe: "
			  "it counts for nothing",
			  news->directory, news->said);
		break;
	case NM_STEER_NOT_FREE:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "control group %s: " NM_STEER_ATTRIBUTE " is \"%s\", a policy that looks "
			  "at all threads together and cannot be had for some while "
			  "threads.policy is \"%s\"; \"none\", \"lbma\" and \"%s\" can: what is "
			  "there is watched and not moved",
			  news->directory, news->said, policy, policy);
		break;
	case NM_STEER_UNDER_OFF:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "control group %s: " NM_STEER_ATTRIBUTE " is \"%s\", but a group above "
			  "it says off, which wins",
			  news->directory, news->said);
		break;
	case NM_STEER_EXCLUDED:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "control group %s: " NM_STEER_ATTRIBUTE " is \"%s\", but targets.exclude "
			  "matches a process there, and wins",
			  news->directory, news->said);
		break;
	case NM_STEER_UNWATCHED:
		tell_unwatched(daemon, news);
		break;
	case NM_STEER_OUTSIDE:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "control group %s is outside of this service's own cgroup namespace, so "
			  "its " NM_STEER_ATTRIBUTE " and those of others there are not seen: run "
			  "numa-migrd in the host's",
			  news->directory);
		break;
	case NM_STEER_TOO_DEEP:
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "control group %s has more than 32 others above it: what it and those "
			  "below say by " NM_STEER_ATTRIBUTE
			  " is not read, and what is there is watched and not moved",
			  news->directory);
		break;
	}
}

int nm_steering_open(struct nm_daemon *daemon)
{
	struct nm_pipeline *pipeline = &daemon->pipeline;
	const struct nm_steer_ops ops = {.context = daemon, .tell = tell, .changed = on_changed};
	int r = nm_steer_new(pipeline->platform, daemon->config, &ops, &pipeline->steer);

	if (r == 0)
		nm_roster_steer(pipeline->roster, pipeline->steer);
	return r;
}
