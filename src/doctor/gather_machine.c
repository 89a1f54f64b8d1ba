/* SPDX-License-Identifier: MIT */
/* The nodes, their memory, and what the kernel under them is like. */
#include <inttypes.h>
#include <string.h>

#include "gather.h"

#define CPUINFO_BYTES 8192

/* "Node 0 MemFree:  1048576 kB" */
static struct nm_reading read_free(struct nm_platform *platform, unsigned os_id)
{
	char path[64], text[8192];
	int64_t kib;

	(void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", os_id);
	ssize_t length = platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text));
	if (length < 0)
		return (struct nm_reading){.error = (int)length};
	const char *found = strstr(text, "MemFree:");
	if (!found || sscanf(found, "MemFree: %" SCNd64, &kib) != 1)
		return (struct nm_reading){.error = -ENODATA};
	return (struct nm_reading){.value = kib * 1024};
}

static int read_nodes(struct nm_platform *platform, struct nm_facts *facts)
{
	unsigned nodes = facts->topology->nr_nodes;

	facts->free_bytes = calloc(nodes, sizeof(*facts->free_bytes));
	if (!facts->free_bytes)
		return -ENOMEM;
	for (unsigned i = 0; i < nodes; i++)
		facts->free_bytes[i] = read_free(platform, facts->topology->nodes[i].os_id);
	return 0;
}

static int read_topology(struct nm_platform *platform, const char *root_path,
			 struct nm_facts *facts)
{
	nm_auto(nm_physmap_freep) struct nm_physmap *physmap = NULL;
	const struct nm_topology_source source = {.root_path = root_path};
	int r = nm_topology_load(&source, facts->topology_error, sizeof(facts->topology_error),
				 &facts->topology);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	facts->knows_homes = nm_physmap_load(facts->topology, root_path, &physmap) == 0;
	return read_nodes(platform, facts);
}

/* The first CPU's lines; the whole file is long where there are many. */
static bool under_hypervisor(struct nm_platform *platform)
{
	char text[CPUINFO_BYTES];
	int fd = platform->ops->open_file(platform, NM_ROOT, "proc/cpuinfo");

	if (fd < 0)
		return false;
	ssize_t length = platform->ops->read_some(platform, fd, text, sizeof(text) - 1);
	platform->ops->close(platform, fd);
	text[length > 0 ? length : 0] = '\0';
	return strstr(text, " hypervisor ") != NULL || strstr(text, " hypervisor\n") != NULL;
}

static const char *mark_of_container(struct nm_platform *platform)
{
	if (nm_gather_name(platform, "run/systemd", "container").value == 1)
		return "/run/systemd/container";
	if (nm_gather_name(platform, "run", ".containerenv").value == 1)
		return "/run/.containerenv";
	return nm_gather_name(platform, ".", ".dockerenv").value == 1 ? "/.dockerenv" : NULL;
}

int nm_gather_machine(struct nm_platform *platform, const char *root_path, struct nm_facts *facts)
{
	int r = read_topology(platform, root_path, facts);

	if (r < 0)
		return r;
	facts->virtual_machine = under_hypervisor(platform);
	facts->container = mark_of_container(platform);
	nm_gather_line(platform, "proc/sys/kernel/osrelease", facts->kernel, sizeof(facts->kernel));
	nm_gather_choice(platform, "sys/kernel/mm/transparent_hugepage/enabled", facts->thp,
			 sizeof(facts->thp));
	nm_gather_choice(platform, "sys/kernel/mm/transparent_hugepage/defrag", facts->thp_defrag,
			 sizeof(facts->thp_defrag));
	nm_gather_line(platform, "sys/devices/system/clocksource/clocksource0/current_clocksource",
		       facts->clocksource, sizeof(facts->clocksource));
	nm_gather_choice(platform, "sys/kernel/security/lockdown", facts->lockdown,
			 sizeof(facts->lockdown));
	facts->has_schedstat = nm_gather_name(platform, "proc/self", "schedstat").value == 1;
	facts->has_numa_maps = nm_gather_name(platform, "proc/self", "numa_maps").value == 1;
	facts->nr_open = nm_gather_number(platform, "proc/sys/fs/nr_open");
	return 0;
}
