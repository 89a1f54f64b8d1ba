/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "numa-migrd/policy.h"
#include "numa-migrd/snapshot.h"

/* P of a thread on a node. */
struct cell {
	double performance;
	uint64_t interval;
	bool known; /* it ran there */
};

struct nm_record {
	struct nm_column threads; /* nr_nodes cells each */
	unsigned nr_nodes;
	enum nm_performance performance;
	bool by_locality;
};

void nm_record_new(struct nm_record **ret)
{
	struct nm_record *record = nm_must(calloc(1, sizeof(*record)));
	*ret = record;
}

void nm_record_free(struct nm_record *record)
{
	if (!record)
		return;
	nm_column_clear(&record->threads);
	free(record);
}

static struct cell *cells_of(const struct nm_record *record, uint32_t thread)
{
	return (struct cell *)record->threads.cells + thread * (size_t)record->nr_nodes;
}

/* An interval without measured threads does not determine what is sampled. */
static bool is_comparable(const struct nm_record *record, const struct nm_snapshot *snapshot,
			  const struct nm_config *config)
{
	if (record->nr_nodes != snapshot->topology->nr_nodes ||
	    record->performance != config->threads.performance)
		return false;
	return snapshot->measured == 0 || record->by_locality == snapshot->by_locality;
}

void nm_record_update(struct nm_record *record, const struct nm_snapshot *snapshot,
		      const struct nm_config *config)
{
	if (!is_comparable(record, snapshot, config)) {
		nm_column_clear(&record->threads);
		record->nr_nodes = snapshot->topology->nr_nodes;
		record->threads.cell_bytes = record->nr_nodes * sizeof(struct cell);
		record->performance = config->threads.performance;
		record->by_locality = snapshot->by_locality;
	}
	nm_column_follow_threads(&record->threads, snapshot);
	for (uint32_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->measured && thread->main_node >= 0)
			cells_of(record, i)[thread->main_node] =
				(struct cell){.performance = thread->performance,
					      .interval = snapshot->interval,
					      .known = true};
	}
}

double nm_record_get(const struct nm_record *record, const struct nm_snapshot *snapshot,
		     const struct nm_config *config, uint32_t thread, int node)
{
	const struct cell *cell = &cells_of(record, thread)[node];
	uint64_t age = config->rules.record_age;
	bool expired = age > 0 && snapshot->interval - cell->interval > age;
	return cell->known && !expired ? cell->performance : (double)NAN;
}

void nm_record_get_all(const struct nm_record *record, const struct nm_snapshot *snapshot,
		       const struct nm_config *config, uint32_t thread, double *ret)
{
	for (unsigned node = 0; node < snapshot->topology->nr_nodes; node++)
		ret[node] = nm_record_get(record, snapshot, config, thread, (int)node);
}

int nm_record_compare(double record, double now, double band)
{
	if (record > now * (1 + band))
		return 1;
	if (record < now * (1 - band))
		return -1;
	return 0;
}
