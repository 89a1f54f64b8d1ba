/* SPDX-License-Identifier: MIT */
/* Reads files as facts, collects the nodes, and whether the machine is virtual. */
#include "gather.h"

#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "numa-migrd/base.h"

#define CPUINFO_BYTES 8192

/* Reads only the lines of the first CPU, because the file is long on large machines. */
static bool under_hypervisor(struct nm_platform *platform)
{
	char text[CPUINFO_BYTES];
	ssize_t length =
		platform->ops->read_file(platform, NM_ROOT, "proc/cpuinfo", text, sizeof(text));

	if (length < 0 && length != -EFBIG)
		return false;
	text[length < 0 ? CPUINFO_BYTES - 1 : length] = '\0';
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

static void gather_scheduler(struct nm_platform *platform, struct nm_facts *facts)
{
	char state[NM_WORD_SIZE];

	nm_gather_line(platform, "sys/kernel/sched_ext/state", state, sizeof(state));
	nm_gather_line(platform, "sys/kernel/sched_ext/root/ops", facts->scheduler,
		       sizeof(facts->scheduler));
	facts->bpf_scheduler = state[0] && strcmp(state, "disabled") != 0;
}

int nm_facts_gather(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_physmap_freep) struct nm_physmap *physmap = NULL;
	const struct nm_topology_source source = {.root_path = options->root_path};
	int r = nm_platform_files_new(options->root_path, &platform);
	if (r < 0)
		return r;
	facts->root = geteuid() == 0;
	if (nm_topology_load(&source, facts->topology_error, sizeof(facts->topology_error),
			     &facts->topology) == 0)
		facts->knows_homes =
			nm_physmap_load(facts->topology, options->root_path, &physmap) == 0;
	facts->virtual_machine = under_hypervisor(platform);
	facts->container = mark_of_container(platform);
	nm_gather_choice(platform, "sys/kernel/security/lockdown", facts->lockdown,
			 sizeof(facts->lockdown));
	gather_scheduler(platform, facts);
	r = nm_gather_processes(platform, facts);
	if (r < 0)
		return r;
	nm_gather_unit(options, facts);
	nm_gather_service(platform, options, facts);
	nm_gather_cgroups(platform, facts);
	nm_gather_sampling(platform, options, facts);
	return 0;
}

void nm_facts_clear(struct nm_facts *facts)
{
	nm_topology_free(facts->topology);
	nm_config_free(facts->config);
	nm_config_errors_clear(&facts->config_errors);
	*facts = (struct nm_facts){0};
}

int nm_doctor_run(const struct nm_doctor_options *options, struct nm_findings *ret)
{
	nm_auto(nm_facts_clear) struct nm_facts facts = {0};
	int r = nm_facts_gather(options, &facts);

	if (r == 0)
		nm_doctor_examine(&facts, ret);
	return r;
}
