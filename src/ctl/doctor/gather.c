/* SPDX-License-Identifier: MIT */
/* Reads files as facts, collects the nodes, and whether the machine is virtual. */
#include "gather.h"

#include <jansson.h>
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

static void put_reading(json_t *object, const char *name, const struct nm_reading *reading)
{
	if (!reading->error)
		nm_must_do(json_object_set_new(object, name, json_integer(reading->value)));
}

static json_t *facts_document(const struct nm_facts *facts)
{
	const struct nm_facts_tried *tried = &facts->tried;
	json_t *object = nm_must(json_pack(
		"{sb sb sb sb sb ss ss sb sb}", "virtual_machine", facts->virtual_machine,
		"container", facts->container != NULL, "bpf_scheduler", facts->bpf_scheduler,
		"cgroup_v2", facts->unified, "service_runs", facts->daemon_pid != 0, "sources",
		facts->sources, "event_table", facts->table, "counters", facts->has_counters,
		"valid_configuration", facts->config != NULL));
	put_reading(object, "perf_event_paranoid", &facts->paranoid);
	put_reading(object, "numa_balancing", &facts->balancing);
	if (facts->trial == NM_TRIAL_DONE)
		nm_must_do(json_object_set_new(
			object, "counted",
			nm_must(json_pack("{sb sb sb sb sb}", "cycles", tried->cycles, "accesses",
					  tried->accesses, "instructions", tried->instructions,
					  "flops", tried->flops, "dram", tried->dram))));
	return object;
}

int nm_doctor_run(const struct nm_doctor_options *options, struct nm_findings *ret,
		  struct json_t **ret_facts)
{
	nm_auto(nm_facts_clear) struct nm_facts facts = {0};
	int r = nm_facts_gather(options, &facts);
	if (r < 0)
		return r;
	nm_doctor_examine(&facts, ret);
	if (ret_facts)
		*ret_facts = facts_document(&facts);
	return 0;
}
