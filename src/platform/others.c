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

const struct nm_other *nm_other_of(struct nm_platform *platform, uint32_t pid, const char *comm)
{
	uint32_t uid;

	for (size_t i = 0; i < NM_ARRAY_SIZE(known); i++)
		if (strcmp(known[i].comm, comm) == 0)
			return known[i].anyone || (nm_proc_owner_of(platform, pid, &uid) == 0 &&
						   uid == 0)
				       ? &known[i]
				       : NULL;
	return NULL;
}
