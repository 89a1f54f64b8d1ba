/* SPDX-License-Identifier: MIT */
/* Determines the number of pages of a process on each node: from its accesses and, from time to
 * time, by counting or by a query for a sample. */
#include <stdlib.h>
#include <string.h>

#include "numa-migrd/balance.h"

/* Share of the resident memory that is assumed to move per second. */
#define DRIFT 0.01

const struct nm_residency *nm_balancer_residency(const struct nm_balancer *balancer, uint32_t pid,
						 uint64_t now_ns)
{
	const struct nm_residence *residence = nm_column_find(&balancer->residences, pid);
	if (!residence)
		return NULL;
	const struct nm_residency *best =
		nm_residency_better(&residence->counted, &residence->sampled, now_ns, DRIFT)
			? &residence->counted
			: &residence->sampled;
	return best->source == NM_RESIDENCY_NONE ? NULL : best;
}

/* ---- the set of processes ---- */

static int init_residence(const struct nm_snapshot *snapshot, void *cell)
{
	struct nm_residence *residence = cell;
	residence->pages = calloc(3 * (size_t)snapshot->topology->nr_nodes, sizeof(double));
	return residence->pages ? 0 : -ENOMEM;
}

static void clear_residence(void *context, void *cell)
{
	struct nm_residence *residence = cell;
	(void)context;
	free(residence->pages);
	free(residence->addresses);
}

struct nm_column nm_residences(void)
{
	return (struct nm_column){.cell_bytes = sizeof(struct nm_residence),
				  .init = init_residence,
				  .clear = clear_residence};
}

static struct nm_residence *residence_at(const struct nm_balancer *balancer, size_t index)
{
	return (struct nm_residence *)balancer->residences.cells + index;
}

/* ---- estimates from accesses ---- */

static void add_accesses(struct nm_balancer *balancer, const struct nm_snap_thread *thread)
{
	struct nm_residence *residence = residence_at(balancer, thread->process);
	if (!(thread->access_total > 0))
		return;
	for (unsigned k = 0; k < balancer->topology->nr_nodes; k++)
		residence->seen[k] += thread->accesses[k];
	residence->samples += thread->access_samples;
}

static double resident_pages(const struct nm_balancer *balancer,
			     const struct nm_residence *residence)
{
	return (double)residence->rss_bytes / balancer->page_bytes;
}

static void estimate(struct nm_balancer *balancer, struct nm_residence *residence, uint64_t now_ns)
{
	unsigned nr_nodes = balancer->topology->nr_nodes;
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_ACCESSES,
		.time_ns = now_ns,
		.seen = residence->seen,
		.samples = residence->samples,
		.resident = resident_pages(balancer, residence),
	};
	residence->sampled = (struct nm_residency){0};
	(void)nm_residency_estimate(&reading, nr_nodes, residence->pages + nr_nodes,
				    &residence->sampled);
}

static void begin_interval(struct nm_residence *residence, const struct nm_snapshot *snapshot,
			   size_t process)
{
	unsigned nr_nodes = snapshot->topology->nr_nodes;
	residence->pid = snapshot->processes[process].pid;
	residence->start_ticks = snapshot->processes[process].start_ticks;
	residence->rss_bytes = snapshot->processes[process].rss_bytes;
	residence->seen = residence->pages + 2 * (size_t)nr_nodes;
	residence->samples = 0;
	memset(residence->seen, 0, nr_nodes * sizeof(*residence->seen));
}

int nm_balancer_follow_pages(struct nm_balancer *balancer, const struct nm_snapshot *snapshot)
{
	int r = nm_column_follow_processes(&balancer->residences, snapshot);
	if (r < 0)
		return r;
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		begin_interval(residence_at(balancer, i), snapshot, i);
	for (size_t i = 0; i < snapshot->nr_threads; i++)
		add_accesses(balancer, &snapshot->threads[i]);
	for (size_t i = 0; i < snapshot->nr_processes; i++)
		estimate(balancer, residence_at(balancer, i), snapshot->time_ns);
	return 0;
}

/* ---- a sample of pages ---- */

/*
 * The slot of a page depends on its address, so that no page is sampled twice; of pages with the
 * same slot the latest stays.
 */
static uint64_t *slot_of(const struct nm_residence *residence, uint64_t page)
{
	uint64_t mixed = page * 0x9e3779b97f4a7c15ULL;
	return &residence->addresses[(mixed >> 32) % NM_BALANCE_SLOTS];
}

void nm_balancer_add(struct nm_balancer *balancer, const struct nm_sample *sample)
{
	if (sample->address == 0)
		return;
	struct nm_residence *residence = nm_column_find(&balancer->residences, sample->pid);
	if (!residence || !residence->addresses)
		return;
	uint64_t page = sample->address - sample->address % (uint64_t)balancer->page_bytes;
	*slot_of(residence, page) = page;
}

static unsigned list_addresses(const struct nm_residence *residence, uint64_t *addresses)
{
	unsigned count = 0;
	for (unsigned i = 0; i < NM_BALANCE_SLOTS; i++)
		if (residence->addresses[i] != 0)
			addresses[count++] = residence->addresses[i];
	return count;
}

/* Returns the number of pages that are in memory and counts them per node in `seen`. Other pages
 * are removed from the sample. */
static unsigned count_nodes(const struct nm_topology *topology,
			    const struct nm_residence *residence,
			    const struct nm_balance_query *query, const int *nodes, double *seen)
{
	unsigned found = 0;
	for (unsigned i = 0; i < query->count; i++) {
		int node = nodes[i] < 0 ? -1 : nm_topology_node_index(topology, (unsigned)nodes[i]);
		if (node < 0) {
			*slot_of(residence, query->addresses[i]) = 0;
			continue;
		}
		seen[node]++;
		found++;
	}
	return found;
}

/* ---- answers ---- */

/* Returns NULL if the process of the query has ended. */
static struct nm_residence *asked_about(const struct nm_balancer *balancer,
					const struct nm_balance_query *query)
{
	struct nm_residence *residence = nm_column_find(&balancer->residences, query->pid);
	return residence && residence->start_ticks == query->start_ticks ? residence : NULL;
}

static void take_count(struct nm_balancer *balancer, struct nm_residence *residence,
		       const struct nm_residency_reading *reading)
{
	struct nm_residency_reading whole = *reading;
	whole.resident = resident_pages(balancer, residence);
	if (nm_residency_estimate(&whole, balancer->topology->nr_nodes, residence->pages,
				  &residence->counted) == 0)
		balancer->tally.pages_counted++;
}

void nm_balancer_take_counts(struct nm_balancer *balancer, const struct nm_balance_query *query,
			     const double *pages, uint64_t now_ns)
{
	struct nm_residence *residence = asked_about(balancer, query);
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_MAPS, .time_ns = now_ns, .seen = pages};
	if (residence)
		take_count(balancer, residence, &reading);
}

void nm_balancer_take_nodes(struct nm_balancer *balancer, const struct nm_balance_query *query,
			    const int *nodes, uint64_t now_ns)
{
	const struct nm_topology *topology = balancer->topology;
	struct nm_residence *residence = asked_about(balancer, query);
	nm_autofree double *seen = calloc(topology->nr_nodes, sizeof(*seen));
	if (!seen || !residence || !residence->addresses)
		return;
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_QUERY,
		.time_ns = now_ns,
		.seen = seen,
		.samples = count_nodes(topology, residence, query, nodes, seen),
	};
	take_count(balancer, residence, &reading);
}

/* ---- queries ---- */

/* Returns the process with the longest time since the last attempt, or without one. */
static struct nm_residence *next_due(const struct nm_balancer *balancer,
				     const struct nm_config *config, uint64_t now_ns)
{
	double period_ns = config->threads.residency_s * (double)NM_NSEC_PER_SEC;
	struct nm_residence *next = NULL;
	for (size_t i = 0; period_ns > 0 && i < balancer->residences.count; i++) {
		struct nm_residence *residence = residence_at(balancer, i);
		bool due = residence->tried_ns == 0 ||
			   (double)(now_ns - residence->tried_ns) >= period_ns;
		if (due && (!next || residence->tried_ns < next->tried_ns))
			next = residence;
	}
	return next;
}

static bool may_read_maps(const struct nm_config *config, const struct nm_residence *residence)
{
	uint64_t limit_mb = config->threads.residency_maps_mb;
	return limit_mb > 0 && residence->rss_bytes <= limit_mb << 20;
}

/* Returns a time of the last attempt that makes the process due in one second. */
static uint64_t try_again_ns(const struct nm_config *config, uint64_t now_ns)
{
	double period_s = config->threads.residency_s;
	uint64_t rest_ns = period_s > 1 ? (uint64_t)((period_s - 1) * (double)NM_NSEC_PER_SEC) : 0;
	return now_ns > rest_ns ? now_ns - rest_ns : 1;
}

void nm_balancer_retry(struct nm_balancer *balancer, const struct nm_config *config,
		       const struct nm_balance_query *query, uint64_t now_ns)
{
	struct nm_residence *residence = asked_about(balancer, query);
	if (residence)
		residence->tried_ns = try_again_ns(config, now_ns);
}

/* Fills in the pages that were sampled since the first call. Returns 0, -EAGAIN if there are too
 * few yet, or -ENOMEM. */
static int query_sample(struct nm_residence *residence, struct nm_balance_query *query)
{
	if (!residence->addresses)
		residence->addresses = calloc(NM_BALANCE_SLOTS, sizeof(*residence->addresses));
	if (!residence->addresses)
		return -ENOMEM;
	query->source = NM_RESIDENCY_QUERY;
	query->count = list_addresses(residence, query->addresses);
	return query->count < NM_RESIDENCY_FEWEST ? -EAGAIN : 0;
}

bool nm_balancer_next_query(struct nm_balancer *balancer, const struct nm_config *config,
			    uint64_t now_ns, struct nm_balance_query *ret)
{
	struct nm_residence *next = next_due(balancer, config, now_ns);
	if (!next)
		return false;
	struct nm_balance_query query = {
		.source = NM_RESIDENCY_MAPS, .pid = next->pid, .start_ticks = next->start_ticks};
	int r = may_read_maps(config, next) ? 0 : query_sample(next, &query);
	next->tried_ns = r == -EAGAIN ? try_again_ns(config, now_ns) : now_ns;
	if (r < 0)
		return false;
	*ret = query;
	return true;
}
