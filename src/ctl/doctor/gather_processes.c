/* SPDX-License-Identifier: MIT */
/* Collects the processes of the service, and cpusets. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gather.h"
#include "numa-migrd/proc.h"

#define CGROUPS_MOST 4096U /* shared: first */
#define CGROUP_DEPTH 8U

struct look {
	struct nm_platform *platform;
	struct nm_facts *facts;
	uid_t service; /* the user of the service; 0: none */
};

/* Any user may use this name for a program: only processes of the service's user, root and the
 * caller count. */
static bool is_ours(const struct look *look, unsigned long pid)
{
	uint32_t uid;

	return nm_proc_owner_of(look->platform, (uint32_t)pid, &uid) == 0 &&
	       (uid == 0 || uid == look->service || uid == geteuid());
}

/* The kernel keeps 15 bytes of a name. */
static int look_at_process(void *context, const char *name)
{
	struct look *look = context;
	char path[64], comm[32], *end;
	unsigned long pid = strtoul(name, &end, 10);

	if (*end != '\0' || pid == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "proc/%lu/comm", pid);
	nm_gather_line(look->platform, path, comm, sizeof(comm));
	if (strcmp(comm, "numa-migrd") == 0 && is_ours(look, pid))
		look->facts->daemon_pid = (uint32_t)pid;
	else if (strcmp(comm, "numa-migrd-help") == 0 && is_ours(look, pid))
		look->facts->helper_pid = (uint32_t)pid;
	else
		nm_gather_program(look->platform, pid, comm, look->facts);
	return 0;
}

int nm_gather_processes(struct nm_platform *platform, struct nm_facts *facts)
{
	const struct passwd *user = getpwnam(NM_FACTS_USER);
	struct look look = {platform, facts, user ? user->pw_uid : 0};
	char comm[32];
	nm_gather_line(platform, "proc/1/comm", comm, sizeof(comm));
	facts->hidden = !facts->root && !comm[0];
	return platform->ops->list_directory(platform, NM_ROOT, "proc", look_at_process, &look);
}

struct walk {
	struct nm_platform *platform;
	struct nm_facts *facts;
	const char *path; /* of the directory being listed, relative to the top of the hierarchy */
	unsigned depth;
};

/* Returns whether the name is that of a controller's file; others may be cgroups. */
static bool is_control_file(const char *name)
{
	static const char *const controllers[] = {"cgroup.", "cpu.",  "cpuset.",  "memory.",
						  "io.",     "pids.", "hugetlb.", "rdma.",
						  "misc.",   "irq.",  "dmem."};

	for (size_t i = 0; i < NM_ARRAY_SIZE(controllers); i++)
		if (strncmp(name, controllers[i], strlen(controllers[i])) == 0)
			return true;
	return false;
}

static void look_at_cpuset(struct nm_platform *platform, struct nm_facts *facts, const char *path)
{
	char file[600], cpus[256];

	facts->nr_cgroups++;
	(void)snprintf(file, sizeof(file), "sys/fs/cgroup%s/cpuset.cpus", path);
	nm_gather_line(platform, file, cpus, sizeof(cpus));
	if (!cpus[0])
		return;
	if (facts->nr_cpusets++ == 0)
		(void)snprintf(facts->cpuset_path, sizeof(facts->cpuset_path), "%.*s",
			       (int)sizeof(facts->cpuset_path) - 1, path);
}

static int look_at_cgroup(void *context, const char *name)
{
	const struct walk *outer = context;
	char path[512], directory[544];

	if (is_control_file(name) ||
	    snprintf(path, sizeof(path), "%s/%s", outer->path, name) >= (int)sizeof(path))
		return 0;
	if (outer->facts->nr_cgroups == CGROUPS_MOST || outer->depth == CGROUP_DEPTH) {
		outer->facts->cgroups_cut = true;
		return 0;
	}
	(void)snprintf(directory, sizeof(directory), "sys/fs/cgroup%s", path);
	int fd = outer->platform->ops->open_directory(outer->platform, NM_ROOT, directory);
	if (fd < 0)
		return 0;
	struct walk inner = {outer->platform, outer->facts, path, outer->depth + 1};
	look_at_cpuset(outer->platform, outer->facts, path);
	(void)outer->platform->ops->list_directory(outer->platform, fd, ".", look_at_cgroup,
						   &inner);
	outer->platform->ops->close(outer->platform, fd);
	return 0;
}

void nm_gather_cgroups(struct nm_platform *platform, struct nm_facts *facts)
{
	struct walk walk = {platform, facts, "", 0};

	facts->unified = nm_gather_name(platform, "sys/fs/cgroup", "cgroup.controllers").value == 1;
	if (facts->unified)
		(void)platform->ops->list_directory(platform, NM_ROOT, "sys/fs/cgroup",
						    look_at_cgroup, &walk);
}
