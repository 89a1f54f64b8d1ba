// SPDX-License-Identifier: MIT
/* The rules for batches, copied from the topology and the configuration. */
#include "mover_internal.h"

/* Resident memory of a process whose mappings are read: those of a larger one take too long. */
#define MAPS_MAX_RSS_BYTES (UINT64_C(256) << 30)

static bool has_quiet_cpus(const struct nm_topology *topology)
{
	for (unsigned cpu = 0; cpu < topology->nr_cpus; cpu++)
		if (topology->cpus[cpu].isolated || topology->cpus[cpu].nohz_full)
			return true;
	return false;
}

/* The arrays have one element more than there are nodes, so that an empty set is valid. */
static void copy_nodes(struct nm_mover_rules *rules, const struct nm_topology *topology)
{
	rules->node_ids = nm_must(calloc(topology->nr_nodes + 1, sizeof(*rules->node_ids)));
	rules->rooms = nm_must(calloc(topology->nr_nodes + 1, sizeof(*rules->rooms)));
	rules->stand_ins = nm_must(calloc(topology->nr_nodes + 1, sizeof(*rules->stand_ins)));
	for (unsigned i = 0; i < topology->nr_nodes; i++) {
		rules->node_ids[i] = topology->nodes[i].os_id;
		rules->stand_ins[i] = (int16_t)topology->nodes[i].nearest_with_cpus;
	}
	rules->nr_nodes = topology->nr_nodes;
}

void nm_rules_init(struct nm_mover_rules *rules, const struct nm_topology *topology,
		   const struct nm_config *config)
{
	double budget_ns = config->rules.maps_budget_ms * (double)NM_NSEC_PER_MSEC;
	uint64_t most_bytes = config->pages.max_gb_of_process << 30;

	if (most_bytes == 0 || most_bytes > MAPS_MAX_RSS_BYTES)
		most_bytes = MAPS_MAX_RSS_BYTES;
	*rules = (struct nm_mover_rules){
		.barred = has_quiet_cpus(topology) && !(config->pages.also & NM_ALSO_ISOLATED),
		.keep_free = config->pages.keep_free_percent / 100,
		.maps = {.budget_ns = (uint64_t)budget_ns,
			 .rss_bytes = most_bytes,
			 .move_bound = config->pages.also & NM_ALSO_BOUND,
			 .move_shared = config->pages.also & NM_ALSO_SHARED},
	};
	copy_nodes(rules, topology);
}

void nm_rules_clear(struct nm_mover_rules *rules)
{
	free(rules->node_ids);
	free(rules->stand_ins);
	free(rules->rooms);
	*rules = (struct nm_mover_rules){0};
}

bool nm_rules_same_nodes(const struct nm_mover_rules *a, const struct nm_mover_rules *b)
{
	if (a->nr_nodes != b->nr_nodes)
		return false;
	for (unsigned i = 0; i < a->nr_nodes; i++)
		if (a->node_ids[i] != b->node_ids[i])
			return false;
	return true;
}
