/* SPDX-License-Identifier: MIT */
/* numa-migrd --list-events --json: what can be sampled on this machine, for numa-migrctl doctor. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include "platform/event.h"
#include "numa-migrd/file.h"
#include "source.h"

#define VERSION 1
#define TRIAL_RING_KB 16

/* ---- events of the machine ---- */

/* A source that the configuration does not name is not available. */
static json_t *sources_of(struct nm_platform *platform, const struct nm_config *config)
{
	json_t *sources = json_array();

	for (int i = NM_MEMORY_NONE + 1; i < NM_MEMORY_SOURCE_MAX; i++) {
		const enum nm_memory_source source = (enum nm_memory_source)i;
		const struct nm_event_selection selection = nm_event_selection_of(config, source);
		struct nm_event_list list = {0};
		if ((source == NM_MEMORY_PMU && !config->sampling.pmu[0]) ||
		    (source == NM_MEMORY_EVENT && !config->sampling.event[0]) ||
		    platform->ops->hardware_list(platform, &selection, &list) < 0)
			continue;
		if (list.count > 0 && list.words[0].kind == NM_EVENT_MEMORY)
			(void)json_array_append_new(sources,
						    json_string(nm_memory_source_name(source)));
	}
	return sources;
}

/* ---- trial ---- */

static json_t *status_of(const struct nm_source_status *status)
{
	json_t *problems = json_array();

	for (size_t i = 0; i < status->problem_count; i++)
		(void)json_array_append_new(problems, json_string(status->problems[i].text));
	return json_pack("{s:s, s:s?, s:b, s:b, s:b, s:b, s:b, s:o}", "name", status->name,
			 "memory", status->memory ? nm_memory_source_name(status->memory) : NULL,
			 "cycles", status->has_cycles, "accesses", status->accesses, "instructions",
			 status->has_instructions, "flops", status->has_flops, "dram",
			 status->has_dram, "problems", problems);
}

/* Opens the source as the daemon does, but on one CPU and with a small ring. NULL: there is no CPU
 * to try. */
static json_t *try_source(struct nm_platform *platform, const struct nm_topology *topology,
			  const struct nm_config *config)
{
	nm_auto(nm_topology_freep) struct nm_topology *one_cpu = NULL;
	nm_auto(nm_source_freep) struct nm_source *source = NULL;
	struct nm_config small = *config;
	int cpu = hwloc_bitmap_first(topology->usable);
	char text[320] = "";

	if (cpu < 0)
		return NULL;
	nm_topology_copy(topology, &one_cpu);
	hwloc_bitmap_only(one_cpu->usable, (unsigned)cpu);
	small.rules.ring_kb = TRIAL_RING_KB;
	int r = nm_source_open(platform, one_cpu, &small, text, sizeof(text), &source);
	return r < 0 ? json_pack("{s:i, s:s}", "errno", -r, "text", text)
		     : status_of(nm_source_status(source));
}

/* ---- all ---- */

int nm_list_events_json(FILE *out, struct nm_platform *platform, const struct nm_topology *topology,
			const struct nm_config *config, bool may_try)
{
	const struct nm_event_selection none = {.source = NM_MEMORY_NONE};
	struct nm_event_list list = {0};

	(void)platform->ops->hardware_list(platform, &none, &list);
	json_t *trial = may_try ? try_source(platform, topology, config) : NULL;
	nm_auto(json_decrefp) json_t *all =
		json_pack("{s:i, s:s, s:o, s:b, s:o*}", "version", VERSION, "table",
			  list.table ? list.table : "generic", "sources",
			  sources_of(platform, config), "counters", list.count > 0, "trial", trial);

	return all && json_dumpf(all, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF ? 0
											   : -EIO;
}
