/* SPDX-License-Identifier: MIT */
/* Collects the nodes, and whether the machine is virtual. */
#include <string.h>

#include "gather.h"

#define CPUINFO_BYTES 8192

static int read_topology(const char *root_path, struct nm_facts *facts)
{
	nm_auto(nm_physmap_freep) struct nm_physmap *physmap = NULL;
	const struct nm_topology_source source = {.root_path = root_path};
	int r = nm_topology_load(&source, facts->topology_error, sizeof(facts->topology_error),
				 &facts->topology);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	facts->knows_homes = nm_physmap_load(facts->topology, root_path, &physmap) == 0;
	return 0;
}

/* Reads only the lines of the first CPU, because the file is long on large machines. */
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
	int r = read_topology(root_path, facts);

	if (r < 0)
		return r;
	facts->virtual_machine = under_hypervisor(platform);
	facts->container = mark_of_container(platform);
	nm_gather_choice(platform, "sys/kernel/security/lockdown", facts->lockdown,
			 sizeof(facts->lockdown));
	facts->nr_open = nm_gather_number(platform, "proc/sys/fs/nr_open");
	return 0;
}
