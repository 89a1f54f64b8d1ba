/* SPDX-License-Identifier: MIT */
/* Collects large programs for which numa-migrd can do little, by their names, memory and
 * affinities. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"

#define STATUS_BYTES 16384
#define LARGE_KIB (256LL << 10)

/* Returns the number behind the name at the start of a line, or 0. */
static long long value_of(const char *status, const char *name)
{
	const char *found = strstr(status, name);
	return found ? strtoll(found + strlen(name), NULL, 10) : 0;
}

/* Returns whether the CPUs that it may use are a part of those of one node, of several. */
static bool is_pinned(const struct nm_topology *topology, const char *status)
{
	static const char name[] = "\nCpus_allowed_list:";
	const char *list = strstr(status, name);
	nm_autobitmap cpus = nm_must(hwloc_bitmap_alloc());
	char text[1024];
	if (!topology || nm_topology_is_single(topology) || !list)
		return false;
	list += strlen(name) + strspn(list + strlen(name), " \t");
	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(list, "\n"), list);
	if (nm_list_parse(text, cpus) < 0)
		return false;
	for (unsigned i = 0; i < topology->nr_nodes; i++)
		if (hwloc_bitmap_isincluded(cpus, topology->nodes[i].cpus))
			return true;
	return false;
}

static void count(struct nm_facts_program *program, unsigned long pid)
{
	if (program->count++ == 0)
		program->pid = (uint32_t)pid;
}

void nm_gather_program(struct nm_platform *platform, unsigned long pid, const char *comm,
		       struct nm_facts *facts)
{
	char path[64], status[STATUS_BYTES];
	(void)snprintf(path, sizeof(path), "proc/%lu/status", pid);
	if (platform->ops->read_file(platform, NM_ROOT, path, status, sizeof(status)) <= 0)
		return;
	long long resident = value_of(status, "\nVmRSS:");
	bool shares = 2 * value_of(status, "\nRssShmem:") > resident;
	if (resident < LARGE_KIB)
		return;
	if (shares && (strncmp(comm, "qemu-", 5) == 0 || strcmp(comm, "kvm") == 0))
		count(&facts->shared_machines, pid);
	else if (shares && strncmp(comm, "postgres", 8) == 0)
		count(&facts->databases, pid);
	else if (is_pinned(facts->topology, status))
		count(&facts->pinned, pid);
}
