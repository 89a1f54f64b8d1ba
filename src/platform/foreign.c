/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

#include <stdio.h>
#include <string.h>

static const struct nm_foreign_process known[] = {
	{"numad", false, "moves the same threads and their memory",
	 "run one of the two: systemctl disable --now numad"},
	{"memtierd", true, "moves memory between nodes",
	 "exclude its processes (targets.exclude), or stop it"},
	{"membalancer", true, "moves memory, and with -S threads, between nodes",
	 "stop it, or let it report only (without -b)"},
	{"thanos", true, "moves threads and memory of the programs that it started",
	 "exclude its programs (targets.exclude)"},
};

/* Any user may name a program "numad", which needs root to have an effect. */
static bool has_effect(struct nm_platform *platform, const struct nm_foreign_process *other,
		       uint32_t pid)
{
	uint32_t uid;
	return other->anyone || (nm_proc_owner_of(platform, pid, &uid) == 0 && uid == 0);
}

struct search {
	struct nm_platform *platform;
	unsigned found; /* bits 1 << index in known[] */
	nm_foreign_found *report;
	void *context;
};

static int check_process(void *context, const char *name)
{
	struct search *search = context;
	struct nm_platform *platform = search->platform;
	char path[64], comm[32], *end;
	unsigned long pid = strtoul(name, &end, 10);
	if (*end != '\0' || pid == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "proc/%lu/comm", pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, comm, sizeof(comm)) <= 0)
		return 0;
	comm[strcspn(comm, "\n")] = '\0';
	for (size_t i = 0; i < NM_ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].comm, comm) != 0 || search->found & 1U << i ||
		    !has_effect(platform, &known[i], (uint32_t)pid))
			continue;
		search->found |= 1U << i;
		search->report(search->context, &known[i], (uint32_t)pid);
	}
	return 0;
}

void nm_foreign_find(struct nm_platform *platform, nm_foreign_found *report, void *context)
{
	struct search search = {.platform = platform, .report = report, .context = context};
	(void)platform->ops->list_directory(platform, NM_ROOT, "proc", check_process, &search);
}
