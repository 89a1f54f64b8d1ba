/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

#include <string.h>

static const struct nm_other known[] = {
	{"numad", false, "moves the same threads and their memory",
	 "run one of the two: systemctl disable --now numad"},
	{"memtierd", true, "moves memory between nodes",
	 "exclude its processes (targets.exclude), or stop it"},
	{"membalancer", true, "moves memory, and with -S threads, between nodes",
	 "stop it, or let it report only (without -b)"},
	{"thanos", true, "moves threads and memory of the programs that it started",
	 "exclude its programs (targets.exclude)"},
};

static bool is_roots(struct nm_platform *platform, uint32_t pid, struct nm_costly *costly)
{
	nm_autofree char *cgroup = NULL;
	struct nm_proc_status status;
	int directory = nm_proc_open_thread(platform, 0, pid);

	if (directory < 0)
		return false;
	(void)nm_proc_read_cgroup(platform, directory, &cgroup);
	int r = nm_proc_read_status_in(platform, directory, cgroup, costly, &status);
	platform->ops->close(platform, directory);
	return r == 0 && status.uid == 0;
}

const struct nm_other *nm_other_of(struct nm_platform *platform, uint32_t pid, const char *comm,
				   struct nm_costly *costly)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(known); i++)
		if (strcmp(known[i].comm, comm) == 0)
			return known[i].anyone || is_roots(platform, pid, costly) ? &known[i]
										  : NULL;
	return NULL;
}
