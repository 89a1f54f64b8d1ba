/* SPDX-License-Identifier: MIT */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "source.h"

#define DATA_PER_AUX 4 /* switches and pieces take less space than the records */
#define AUX_PAGES_MIN 2
#define CLOCK_TRIES 16

static size_t at_least(size_t bytes, size_t least)
{
	return bytes > least ? bytes : least;
}

/* Maps both areas, or none. */
static int map_both(struct nm_platform *platform, struct nm_spe_ring *ring, size_t aux_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t data_bytes = at_least(aux_bytes / DATA_PER_AUX, page);
	void *aux = NULL;
	int r = platform->ops->event_map(platform, ring->fds.event, data_bytes, &ring->map);

	if (r < 0) {
		ring->map = NULL;
		return r;
	}
	r = platform->ops->aux_map(platform, ring->fds.event, ring->map, data_bytes, aux_bytes,
				   &aux);
	if (r < 0) {
		platform->ops->event_unmap(platform, ring->map, data_bytes);
		ring->map = NULL;
		return r;
	}
	ring->aux = aux;
	ring->data_bytes = data_bytes;
	ring->aux_bytes = aux_bytes;
	return 0;
}

/* Returns the numbering of the data sources of this CPU. */
static enum nm_spe_sources read_sources(struct nm_platform *platform, int cpu)
{
	char path[96], text[64];

	(void)snprintf(path, sizeof(path),
		       "sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", cpu);
	if (platform->ops->read_file(platform, NM_ROOT, path, text, sizeof(text)) <= 0)
		return NM_SPE_SOURCES_UNKNOWN;
	return nm_spe_sources_of(strtoull(text, NULL, 16));
}

int nm_spe_ring_open(struct nm_platform *platform, const struct nm_event_request *request,
		     size_t aux_bytes, enum nm_problem_step *ret_step, struct nm_spe_ring **ret)
{
	struct nm_spe_ring *ring = nm_must(calloc(1, sizeof(*ring)));
	size_t least = AUX_PAGES_MIN * (size_t)sysconf(_SC_PAGESIZE);

	*ret_step = NM_STEP_OPEN;
	ring->fds = (struct nm_event_fds){-1, -1};
	ring->reader.cpu = (uint32_t)request->cpu;
	ring->reader.sources = read_sources(platform, request->cpu);
	int r = platform->ops->hardware_open(platform, request, &ring->fds);
	if (r == 0) {
		*ret_step = NM_STEP_MAP;
		aux_bytes = at_least(aux_bytes, least);
		do { /* halves the size until it fits */
			r = map_both(platform, ring, aux_bytes);
			aux_bytes /= 2;
		} while ((r == -EPERM || r == -ENOMEM) && aux_bytes >= least);
	}
	if (r < 0) {
		nm_spe_ring_close(platform, ring);
		return r;
	}
	*ret = ring;
	return 0;
}

void nm_spe_ring_close(struct nm_platform *platform, struct nm_spe_ring *ring)
{
	if (!ring)
		return;
	if (ring->aux)
		platform->ops->aux_unmap(platform, ring->aux, ring->aux_bytes);
	if (ring->map)
		platform->ops->event_unmap(platform, ring->map, ring->data_bytes);
	nm_event_close(platform, ring->fds);
	nm_spe_reader_clear(&ring->reader);
	free(ring);
}

void nm_spe_ring_flush(struct nm_platform *platform, const struct nm_spe_ring *ring)
{
	(void)platform->ops->event_ioctl(platform, ring->fds.event, PERF_EVENT_IOC_DISABLE, NULL);
	(void)platform->ops->event_ioctl(platform, ring->fds.event, PERF_EVENT_IOC_ENABLE, NULL);
}

/* The kernel makes `lock` odd while it writes. If it is never even, the clock is not known. */
static struct nm_spe_clock read_clock(const struct perf_event_mmap_page *page)
{
	for (unsigned i = 0; i < CLOCK_TRIES; i++) {
		uint32_t before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		struct nm_spe_clock clock = {.known = page->cap_user_time_zero,
					     .wraps = page->cap_user_time_short,
					     .shift = page->time_shift,
					     .mult = page->time_mult,
					     .zero_ns = page->time_zero,
					     .cycles = page->time_cycles,
					     .mask = page->time_mask};
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == __atomic_load_n(&page->lock, __ATOMIC_RELAXED))
			return clock;
	}
	return (struct nm_spe_clock){0};
}

/*
 * aux_head is read before data_head: the data that it covers has been announced in the ring by
 * then, or the announcement was lost. An event that ran out of space must be enabled again
 * explicitly.
 */
void nm_spe_ring_drain(struct nm_platform *platform, struct nm_spe_ring *ring, uint8_t *scratch,
		       const struct nm_sample_sink *sink, struct nm_ring_counts *counts)
{
	struct perf_event_mmap_page *page = ring->map;
	const struct nm_spe_areas areas = {.ring = (const uint8_t *)ring->map + page->data_offset,
					   .ring_bytes = ring->data_bytes,
					   .aux = ring->aux,
					   .aux_bytes = ring->aux_bytes,
					   .scratch = scratch};
	uint64_t aux_head = __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	ring->reader.clock = read_clock(page);
	uint64_t tail = nm_spe_read(&ring->reader, &areas, page->data_tail, head, sink, counts);
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&page->aux_tail, aux_head, __ATOMIC_RELEASE);
	if (ring->reader.stopped)
		(void)platform->ops->event_ioctl(platform, ring->fds.event, PERF_EVENT_IOC_ENABLE,
						 NULL);
	ring->reader.stopped = false;
}
