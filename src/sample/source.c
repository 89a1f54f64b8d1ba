/* SPDX-License-Identifier: MIT */
/* The perf rings: opens, drains and closes one per CPU. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sample/sample.h"
#include "source.h"

static void grow_rings(struct nm_source *source, unsigned nr_cpus)
{
	if (nr_cpus <= source->nr_rings)
		return;
	source->rings = nm_must(reallocarray(source->rings, nr_cpus, sizeof(*source->rings)));
	source->taken_per_seen =
		nm_must(reallocarray(source->taken_per_seen, nr_cpus, sizeof(double)));
	for (unsigned cpu = source->nr_rings; cpu < nr_cpus; cpu++)
		source->rings[cpu] = (struct nm_ring){0};
	source->nr_rings = nr_cpus;
}

static struct nm_source *source_new(struct nm_platform *platform, const struct nm_config *config)
{
	struct nm_source *source = nm_must(calloc(1, sizeof(*source)));
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	source->platform = platform;
	source->choice = config->sampling.source;
	source->cap_share = nm_config_sampling_limit(config);
	source->run_kind = NM_EVENT_CLOCK;
	source->run_ns = source->run_ns_configured = NM_RUN_NS;
	source->faults = source->faults_configured = 1;
	source->ring_bytes = (size_t)config->rules.ring_kb * 1024;
	if (source->ring_bytes < page_bytes)
		source->ring_bytes = page_bytes;
	source->hardware_scale = source->hardware_least = 1;
	snprintf(source->pmu, sizeof(source->pmu), "%s", config->sampling.pmu);
	snprintf(source->event, sizeof(source->event), "%s", config->sampling.event);
	source->selection = nm_event_selection_of(config, NM_MEMORY_NONE);
	source->selection.pmu = source->pmu;
	source->selection.event = source->event;
	source->epoll = -1;
	return source;
}

static int init_source(struct nm_source *source, const struct nm_topology *topology)
{
	struct rlimit limit;

	source->topology = topology;
	source->page_nodes = nm_page_nodes_new(source->platform);
	source->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (source->epoll < 0)
		return -errno;
	/* A limit that is too low results in EMFILE, which is reported. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	source->aux_scratch = nm_must(malloc(2 * source->ring_bytes));
	grow_rings(source, topology->nr_cpus);
	return 0;
}

static void open_missing(struct nm_source *source, const struct nm_topology *topology)
{
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		if (hwloc_bitmap_isset(topology->usable, cpu) && !source->rings[cpu].map)
			nm_ring_open(source, cpu);
}

int nm_source_open(struct nm_platform *platform, const struct nm_topology *topology,
		   const struct nm_config *config, char *error, size_t error_size,
		   struct nm_source **ret)
{
	nm_auto(nm_source_freep) struct nm_source *source = source_new(platform, config);

	int r = init_source(source, topology);
	if (r < 0) {
		snprintf(error, error_size, "Sampling could not begin: %s.", strerrordesc_np(-r));
		return r;
	}
	bool open = source->choice == NM_SOURCE_NONE;
	if (!open) {
		nm_source_choose(source, topology);
		open_missing(source, topology);
		for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
			open |= source->rings[cpu].map != NULL;
	}
	const struct nm_source_problem *first = source->problems.items;
	if (!open && source->problems.count == 0) {
		snprintf(error, error_size, "No CPU may be sampled: all are isolated or offline.");
		return -ENODEV;
	}
	if (!open) {
		snprintf(error, error_size, "%s", first->text);
		return first->error;
	}
	*ret = NM_TAKE(source);
	return 0;
}

void nm_source_free(struct nm_source *source)
{
	if (!source)
		return;
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		nm_ring_close(source, &source->rings[cpu]);
	nm_page_nodes_free(source->page_nodes);
	free(source->rings);
	free(source->taken_per_seen);
	free(source->aux_scratch);
	if (source->epoll >= 0)
		close(source->epoll);
	free(source);
}

int nm_source_fd(const struct nm_source *source)
{
	return source->epoll;
}

void nm_source_flush(struct nm_source *source)
{
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		if (source->rings[cpu].spe)
			nm_spe_ring_flush(source->platform, source->rings[cpu].spe);
}

/* Counts the records that could also have been lost. */
static uint64_t records_of(const struct nm_ring_counts *counts)
{
	return counts->samples + counts->task_events + counts->no_access + counts->kernel;
}

/* The kernel publishes records by advancing data_head, and may reuse the space before data_tail. */
static void drain_ring(struct nm_source *source, struct nm_ring *ring,
		       const struct nm_sample_sink *sink)
{
	struct perf_event_mmap_page *control = ring->map;
	const uint8_t *data = (const uint8_t *)ring->map + control->data_offset;
	uint64_t tail = control->data_tail; /* only this process writes it */
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	const struct nm_ring_counts before = source->counts;

	if (ring->spe)
		nm_spe_ring_drain(source->platform, ring->spe, source->aux_scratch, sink,
				  &source->counts);
	tail = nm_ring_decode(&ring->layout, data, ring->data_bytes, tail, head, sink,
			      &source->counts);
	__atomic_store_n(&control->data_tail, tail, __ATOMIC_RELEASE);
	ring->seen += records_of(&source->counts) - records_of(&before);
	ring->lost += source->counts.lost - before.lost;
}

const double *nm_source_taken_per_seen(struct nm_source *source, unsigned *ret_nr_cpus)
{
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		struct nm_ring *ring = &source->rings[cpu];
		source->taken_per_seen[cpu] =
			ring->seen ? 1.0 + (double)ring->lost / (double)ring->seen : 1.0;
		ring->seen = ring->lost = 0;
	}
	*ret_nr_cpus = source->nr_rings;
	return source->taken_per_seen;
}

size_t nm_source_drain(struct nm_source *source, const struct nm_sample_sink *sink)
{
	if (source->feed.drain)
		return source->feed.drain(source->feed.context, sink);
	uint64_t before = source->counts.samples + source->counts.task_events;

	const struct nm_sample_sink outer =
		nm_page_nodes_sink(source->page_nodes, source->topology, sink);

	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++)
		if (source->rings[cpu].map)
			drain_ring(source, &source->rings[cpu], &outer);
	nm_page_nodes_flush(source->page_nodes);
	return (size_t)(source->counts.samples + source->counts.task_events - before);
}

void nm_source_retarget(struct nm_source *source, const struct nm_topology *topology)
{
	source->topology = topology;
	if (source->page_nodes)
		nm_page_nodes_clear(source->page_nodes);
	if (source->choice == NM_SOURCE_NONE || source->feed.drain)
		return;
	grow_rings(source, topology->nr_cpus);
	nm_problems_drop_rings(&source->problems); /* incomplete rings are tried again below */
	for (unsigned cpu = 0; cpu < source->nr_rings; cpu++) {
		struct nm_ring *ring = &source->rings[cpu];
		if (ring->map && (!ring->complete || !hwloc_bitmap_isset(topology->usable, cpu)))
			nm_ring_close(source, ring);
	}
	open_missing(source, topology);
}
