/* SPDX-License-Identifier: MIT */
/*
 * Queries the kernel for the location of a sample of pages, for processes that are too large for
 * reading numa_maps. The slot of a page depends on its address, so that no page is sampled twice;
 * of pages with the same slot the latest stays.
 */
#include "balance.h"

#define FEWEST 64U /* minimum number of pages for an estimate */

static uint64_t *slot_of(const struct nm_residence *residence, uint64_t page)
{
	uint64_t mixed = page * 0x9e3779b97f4a7c15ULL;
	return &residence->addresses[(mixed >> 32) % NM_BALANCE_SLOTS];
}

void nm_balance_add(struct nm_daemon *daemon, const struct nm_sample *sample)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	if (sample->address == 0)
		return;
	struct nm_residence *residence = nm_balance_residence(balancer, sample->pid);
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
static unsigned count_homes(const struct nm_topology *topology,
			    const struct nm_residence *residence, const uint64_t *addresses,
			    const int *homes, unsigned count, double *seen)
{
	unsigned found = 0;
	for (unsigned i = 0; i < count; i++) {
		int node = homes[i] < 0 ? -1 : nm_topology_node_index(topology, (unsigned)homes[i]);
		if (node < 0) {
			*slot_of(residence, addresses[i]) = 0;
			continue;
		}
		seen[node]++;
		found++;
	}
	return found;
}

int nm_balance_query(struct nm_daemon *daemon, struct nm_residence *residence)
{
	struct nm_balancer *balancer = daemon->pipeline.balancer;
	struct nm_counting *counting = &balancer->counting;
	if (!residence->addresses)
		residence->addresses = calloc(NM_BALANCE_SLOTS, sizeof(*residence->addresses));
	if (!residence->addresses)
		return -ENOMEM;
	counting->count = list_addresses(residence, counting->addresses);
	if (counting->count < FEWEST)
		return -EAGAIN;
	const struct nm_memory_query question = {
		.kind = NM_MEMORY_QUERY_WHERE,
		.pid = residence->pid,
		.start_ticks = residence->start_ticks,
		.count = counting->count,
		.addresses = counting->addresses,
	};
	return nm_balance_ask(daemon, &question);
}

void nm_balance_take_homes(struct nm_balancer *balancer, struct nm_residence *residence,
			   const int *homes, uint64_t now_ns)
{
	struct nm_counting *counting = &balancer->counting;
	nm_autofree double *seen = calloc(balancer->topology->nr_nodes, sizeof(*seen));
	if (!seen || !residence->addresses)
		return;
	const struct nm_residency_reading reading = {
		.source = NM_RESIDENCY_QUERY,
		.time_ns = now_ns,
		.seen = seen,
		.samples = count_homes(balancer->topology, residence, counting->addresses, homes,
				       counting->count, seen),
	};
	nm_balance_take_count(balancer, residence, &reading);
}
