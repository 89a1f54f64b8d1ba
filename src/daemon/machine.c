/* SPDX-License-Identifier: MIT */
/* Follows changes of the machine: CPUs, nodes, memory and isolation. */
#include "daemon.h"

static void reload_after_change(struct nm_daemon *daemon, const char *what, const char *online)
{
	char error[256];
	if (nm_pipeline_reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "%s changed (online: %s); topology not read again: %s", what, online,
			  error);
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE, "%s changed; online: %s%s", what,
			  online,
			  nm_topology_is_single(daemon->pipeline.topology)
				  ? "; one node has CPUs: nothing to move"
				  : "");
}

/* The first time, what the kernel lists has been loaded, but not what the cgroups show. */
static void follow_isolation(struct nm_daemon *daemon, uint64_t now_ns)
{
	struct nm_isolation *isolation = &daemon->machine.isolation;
	char error[256];
	bool first = isolation->listed == 0;
	if (daemon->options.topology.load ||
	    nm_isolation_follow(isolation, daemon->pipeline.platform, now_ns) <= 0 ||
	    (first && !isolation->found[0]))
		return;
	if (nm_pipeline_reload_topology(daemon, error, sizeof(error)) < 0)
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_WARNING,
			  "Isolated CPUs changed; topology not read again: %s", error);
	else
		nm_report(daemon, NM_MESSAGE_PROBLEM, LOG_NOTICE,
			  "Isolated CPUs or partitions changed; isolated: %s",
			  isolation->isolated[0] ? isolation->isolated : "none");
}

void nm_machine_follow_topology(struct nm_daemon *daemon, uint64_t now_ns)
{
	char online[sizeof(daemon->machine.online.cpus)];
	const char *changed = nm_online_follow(&daemon->machine.online, daemon->pipeline.platform,
					       now_ns, online, sizeof(online));
	if (changed)
		reload_after_change(daemon, changed, online);
	follow_isolation(daemon, now_ns);
}
