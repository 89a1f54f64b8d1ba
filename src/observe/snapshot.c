/* SPDX-License-Identifier: MIT */
#include "build.h"
#include <math.h>

void nm_snapshot_free(struct nm_snapshot *snapshot)
{
	if (!snapshot)
		return;
	struct nm_snapshot_storage *storage =
		NM_CONTAINER_OF(snapshot, struct nm_snapshot_storage, view);
	free(storage->view.threads);
	free(storage->view.processes);
	free(storage->view.cpus);
	free(storage->view.main_threads);
	free(storage->view.traffic);
	free(storage->accesses);
	free(storage->fresh);
	free(storage->comms);
	free(storage);
}

/* Allocates at least one element, so that an empty snapshot needs no special cases. */
static void *array_of(size_t count, size_t element_size)
{
	return nm_must(calloc(count ? count : 1, element_size));
}

#define CONTENDED 0.7 /* share of all traffic: other nodes together serve less than half of that */

static void fill_traffic(struct nm_snapshot *view)
{
	unsigned nr_nodes = view->topology->nr_nodes;
	double sum = 0;
	view->traffic = array_of(nr_nodes, sizeof(*view->traffic));
	view->contended = -1;
	for (size_t i = 0; i < view->nr_threads; i++) {
		const struct nm_snap_thread *thread = &view->threads[i];
		int here = nm_topology_node_of_cpu(view->topology, thread->stats.main_cpu);
		if (!(thread->stats.traffic > 0) || here < 0)
			continue;
		sum += thread->stats.traffic;
		if (!(thread->stats.access_total > 0))
			view->traffic[here] += thread->stats.traffic;
		for (unsigned k = 0; thread->stats.access_total > 0 && k < nr_nodes; k++)
			view->traffic[k] += thread->stats.traffic * thread->stats.accesses[k] /
					    thread->stats.access_total;
	}
	for (unsigned k = 0; k < nr_nodes; k++)
		if (view->traffic[k] >= NM_CONTROLLER_MIN && view->traffic[k] >= CONTENDED * sum)
			view->contended = (int)k;
}

int nm_snapshot_build(const struct nm_snapshot_input *input, struct nm_snapshot **ret)
{
	struct nm_snapshot_storage *storage = nm_must(calloc(1, sizeof(*storage)));
	nm_auto(nm_snapshot_freep) struct nm_snapshot *view = &storage->view;
	view->interval = input->interval;
	view->time_ns = input->time_ns;
	view->topology = input->topology;
	view->kernel_balances = input->kernel_balances;
	size_t threads = input->nr_managed, nodes = input->topology->nr_nodes;
	view->threads = array_of(threads, sizeof(*view->threads));
	view->processes = array_of(threads, sizeof(*view->processes));
	view->cpus = array_of(input->topology->nr_cpus, sizeof(*view->cpus));
	view->main_threads = array_of(threads, sizeof(*view->main_threads));
	storage->accesses = array_of(threads * nodes, sizeof(*storage->accesses));
	storage->fresh = array_of(threads * nodes, sizeof(*storage->fresh));
	nm_snapshot_fill_threads(input, storage);
	int r = nm_snapshot_fill_processes(input, storage);
	if (r < 0)
		return r;
	nm_snapshot_fill_performance(input, storage);
	nm_snapshot_fill_cpus(input, storage);
	fill_traffic(view);
	*ret = NM_TAKE(view);
	return 0;
}

const struct nm_snap_thread *nm_snapshot_thread(const struct nm_snapshot *snapshot, uint32_t tid)
{
	_Static_assert(offsetof(struct nm_snap_thread, tid) == 0,
		       "bsearch compares the first field");
	return bsearch(&tid, snapshot->threads, snapshot->nr_threads, sizeof(*snapshot->threads),
		       nm_compare_u32);
}

double nm_snapshot_local_share(const struct nm_snapshot *snapshot)
{
	double local = 0, total = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (thread->stats.main_node < 0 || !(thread->stats.access_total > 0))
			continue;
		local += thread->stats.accesses[thread->stats.main_node];
		total += thread->stats.access_total;
	}
	return total > 0 ? local / total : (double)NAN;
}

double nm_snapshot_latency(const struct nm_snapshot *snapshot)
{
	double cycles = 0, samples = 0;
	for (size_t i = 0; i < snapshot->nr_threads; i++) {
		const struct nm_snap_thread *thread = &snapshot->threads[i];
		if (isnan(thread->stats.latency))
			continue;
		cycles += thread->stats.latency * thread->stats.latency_samples;
		samples += thread->stats.latency_samples;
	}
	return samples > 0 ? cycles / samples : (double)NAN;
}
