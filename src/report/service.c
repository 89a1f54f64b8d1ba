/* SPDX-License-Identifier: MIT */
/* Entries about the service itself. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/views.h"

void nm_entry_start(struct nm_entry *entry, const struct nm_view *view, uint64_t seed)
{
	const struct nm_config *config = view->config;
	const struct nm_topology *topology = view->topology;
	unsigned usable = (unsigned)hwloc_bitmap_weight(topology->usable);
	const char *source = view->source ? nm_source_status(view->source)->name : "none";

	nm_entry_begin(entry, NM_MESSAGE_START, LOG_NOTICE);
	nm_entry_text(entry, "Started: %u node%s, %u CPU%s, source %s, policy %s%s%s",
		      topology->nr_nodes, nm_plural(topology->nr_nodes, "", "s"), usable,
		      nm_plural(usable, "", "s"), source, nm_config_policy_name(config),
		      view->dry_run ? ", dry run: nothing is changed" : "",
		      topology->nr_nodes < 2		? ", one node: nothing to move"
		      : nm_topology_is_single(topology) ? ", one node has CPUs: nothing to move"
							: "");
	nm_entry_field(entry, "VERSION", "%s", view->version);
	nm_entry_field(entry, "SOURCE", "%s", source);
	nm_entry_field(entry, "NODES", "%u", topology->nr_nodes);
	nm_entry_field(entry, "CPUS", "%u", usable);
	nm_entry_field(entry, "POLICY", "%s", nm_config_policy_name(config));
	nm_entry_field(entry, "PERFORMANCE_OF", "%s",
		       nm_performance_name(config->threads.performance));
	nm_entry_field(entry, "INJECT", "%s", nm_inject_name(config->sampling.inject));
	nm_entry_field(entry, "INTERVAL_S", "%.9g", config->general.interval_s);
	nm_entry_field(entry, "SEED", "%" PRIu64, seed);
	nm_entry_field(entry, "DRY_RUN", "%d", view->dry_run);
}

/* For example "floating-point operations and memory traffic". */
static void list_missing(uint32_t missing, char *text, size_t size)
{
	static const struct {
		enum nm_event_kind kind;
		const char *name;
	} kinds[] = {
		{NM_EVENT_INSTRUCTIONS, "instructions"},
		{NM_EVENT_FLOPS, "floating-point operations"},
		{NM_EVENT_DRAM, "memory traffic"},
		{NM_EVENT_MEMORY, "latencies"},
	};
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		uint32_t bit = 1U << kinds[i].kind;
		if (!(missing & bit) || used >= size)
			continue;
		missing &= ~bit;
		const char *between = used == 0 ? "" : missing ? ", " : " and ";
		used += (size_t)snprintf(text + used, size - used, "%s%s", between, kinds[i].name);
	}
}

void nm_entry_performance(struct nm_entry *entry, enum nm_performance performance,
			  const struct nm_snapshot *snapshot)
{
	char missing[128];
	list_missing(snapshot->missing, missing, sizeof(missing));
	nm_entry_begin(entry, NM_MESSAGE_PROBLEM, snapshot->by_locality ? LOG_NOTICE : LOG_INFO);
	if (snapshot->by_locality)
		nm_entry_text(entry,
			      "threads.performance = \"%s\" replaced by locality (not sampled: %s)",
			      nm_performance_name(performance), missing);
	else
		nm_entry_text(entry, "threads.performance = \"%s\": all its events are sampled",
			      nm_performance_name(performance));
}

static const char *operation_of(enum nm_worker_act act)
{
	switch (act) {
	case NM_WORKER_WHERE:
		return "locate-pages";
	case NM_WORKER_UNITS:
	case NM_WORKER_RANGES:
		return "migrate-pages";
	default:
		return "read-mappings";
	}
}

void nm_entry_worker(struct nm_entry *entry, const struct nm_worker_news *news)
{
	nm_entry_begin(entry, NM_MESSAGE_PROBLEM, LOG_WARNING);
	if (news->pid == 0) {
		nm_entry_text(entry,
			      "No worker: %s; pages not located or migrated (check "
			      "numa-migrd-worker.socket)",
			      strerror(-news->error));
		return;
	}
	nm_entry_field(entry, "PID", "%u", news->pid);
	nm_entry_field(entry, "OWNER_UID", "%u", news->uid);
	nm_entry_field(entry, "OPERATION", "%s", operation_of(news->act));
	nm_entry_text(entry, "PID %u (uid %u): memory map locked; skipped for 10 min", news->pid,
		      news->uid);
}
