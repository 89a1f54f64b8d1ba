/* SPDX-License-Identifier: MIT */
/* Counts samples in the table of threads, and computes the times of threads. */
#include <string.h>

#include "tasks/tasks.h"
#include "metrics_table.h"

#define CACHE_LINE 64U
#define LINE_PAIR 128U
#define CAPACITY_MIN 64U
#define NO_INDEX UINT32_MAX

/* Size of a head followed by two counts per node. */
static size_t stride_for(size_t head_bytes, unsigned nr_nodes)
{
	size_t bytes = head_bytes + 2 * (size_t)nr_nodes * sizeof(uint32_t);

	return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

void nm_metrics_new(const struct nm_topology *topology, bool has_nodes, struct nm_metrics **ret)
{
	nm_auto(nm_metrics_freep) struct nm_metrics *metrics = nm_must(calloc(1, sizeof(*metrics)));

	metrics->topology = topology;
	metrics->has_nodes = has_nodes;
	metrics->nr_nodes = topology->nr_nodes;
	metrics->stride = stride_for(sizeof(struct nm_entry), topology->nr_nodes);
	metrics->hardware_stride = stride_for(sizeof(struct nm_hardware), topology->nr_nodes);
	metrics->window_stride = sizeof(struct nm_window) + topology->nr_nodes * sizeof(double);
	metrics->first_free = NO_INDEX;
	metrics->index_of = nm_tidmap_new();
	*ret = NM_TAKE(metrics);
}

void nm_metrics_free(struct nm_metrics *metrics)
{
	if (!metrics)
		return;
	nm_tidmap_free(metrics->index_of);
	free(metrics->entries);
	free(metrics->hardware);
	free(metrics->windows);
	free(metrics->sampled);
	free(metrics->accesses);
	free(metrics->fresh);
	free(metrics);
}

void nm_metrics_retarget(struct nm_metrics *metrics, const struct nm_topology *topology,
			 bool has_nodes)
{
	nm_auto(nm_metrics_freep) struct nm_metrics *fresh = NULL;

	if (metrics->has_nodes == has_nodes &&
	    nm_topology_has_same_nodes(metrics->topology, topology)) {
		metrics->topology = topology;
		return;
	}
	nm_metrics_new(topology, has_nodes, &fresh);
	struct nm_metrics old = *metrics;
	*metrics = *fresh;
	*fresh = old;
}

/* ---- entries ---- */

static void grow(struct nm_metrics *metrics)
{
	uint32_t capacity = metrics->capacity ? metrics->capacity * 2 : CAPACITY_MIN;

	metrics->windows =
		nm_must(reallocarray(metrics->windows, capacity, metrics->window_stride));
	metrics->hardware =
		nm_must(reallocarray(metrics->hardware, capacity, metrics->hardware_stride));
	/* CAPACITY_MIN is even, so that the size is a multiple of the alignment. */
	uint8_t *entries = nm_must(aligned_alloc(LINE_PAIR, capacity * metrics->stride));
	if (metrics->used)
		memcpy(entries, metrics->entries, metrics->used * metrics->stride);
	free(metrics->entries);
	metrics->entries = entries;
	metrics->capacity = capacity;
}

static void clear_entry(struct nm_metrics *metrics, uint32_t index, uint32_t pid, uint32_t tid)
{
	struct nm_entry *entry = nm_entry_at(metrics, index);

	memset(entry, 0, metrics->stride);
	entry->pid = pid;
	entry->tid = tid;
	memset(nm_hardware_at(metrics, index), 0, metrics->hardware_stride);
	memset(nm_window_at(metrics, index), 0, metrics->window_stride);
}

static void give_back(struct nm_metrics *metrics, uint32_t index)
{
	struct nm_entry *entry = nm_entry_at(metrics, index);

	entry->tid = 0;
	entry->pid = metrics->first_free;
	metrics->first_free = index;
}

/* Returns the number of silent intervals from which threads are dropped, so that an eighth of the
 * room is free, or all silent threads are dropped. */
static uint32_t age_to_drop(const struct nm_metrics *metrics)
{
	uint32_t counts[NM_SILENT_INTERVALS_MAX + 1] = {0}, coldest = NM_SILENT_INTERVALS_MAX;
	uint32_t gone = 0;

	for (uint32_t i = 0; i < metrics->used; i++) {
		const struct nm_entry *entry = nm_entry_at(metrics, i);
		if (entry->tid && nm_entry_is_silent(metrics, i))
			counts[entry->silent < coldest ? entry->silent : coldest]++;
	}
	while (coldest > 0 && (gone += counts[coldest]) < NM_METRICS_THREADS_MOST / 8)
		coldest--;
	return coldest;
}

static void forget_silent(struct nm_metrics *metrics)
{
	uint32_t age = age_to_drop(metrics);

	for (uint32_t i = 0; i < metrics->used; i++) {
		const struct nm_entry *entry = nm_entry_at(metrics, i);
		if (entry->tid && entry->silent >= age && nm_entry_is_silent(metrics, i))
			nm_metrics_forget(metrics, entry->tid);
	}
	metrics->made_room = true;
}

static int take_free(struct nm_metrics *metrics, uint32_t *ret)
{
	bool full = metrics->first_free == NO_INDEX && metrics->used == NM_METRICS_THREADS_MOST;

	if (full && !metrics->made_room)
		forget_silent(metrics);
	if (full && metrics->first_free == NO_INDEX)
		return -ENOSPC;
	if (metrics->first_free != NO_INDEX) {
		*ret = metrics->first_free;
		metrics->first_free = nm_entry_at(metrics, *ret)->pid;
		return 0;
	}
	if (metrics->used == metrics->capacity)
		grow(metrics);
	*ret = metrics->used++;
	return 0;
}

static __attribute__((noinline)) struct nm_entry *add_entry(struct nm_metrics *metrics,
							    const struct nm_sample *sample)
{
	uint32_t index;

	if (take_free(metrics, &index) < 0)
		return NULL;
	clear_entry(metrics, index, sample->pid, sample->tid);
	if (nm_tidmap_set(metrics->index_of, sample->tid, index) < 0) {
		give_back(metrics, index);
		return NULL;
	}
	return nm_entry_at(metrics, index);
}

/* Returns the entry of the thread, reset if its number now belongs to another process; NULL: cannot
 * be counted. */
static inline struct nm_entry *entry_for(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	uint32_t index = nm_tidmap_get(metrics->index_of, sample->tid);

	if (index == NM_TIDMAP_NONE)
		return add_entry(metrics, sample);
	struct nm_entry *entry = nm_entry_at(metrics, index);
	if (entry->pid != sample->pid)
		clear_entry(metrics, index, sample->pid, sample->tid);
	return entry;
}

uint32_t nm_metrics_runs(const struct nm_metrics *metrics, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(metrics->index_of, tid);

	return index == NM_TIDMAP_NONE ? 0 : nm_entry_at(metrics, index)->run_samples;
}

uint64_t nm_metrics_dram_bytes(const struct nm_metrics *metrics, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(metrics->index_of, tid);

	return index == NM_TIDMAP_NONE ? 0 : nm_hardware_at(metrics, index)->dram_bytes;
}

void nm_metrics_forget(struct nm_metrics *metrics, uint32_t tid)
{
	uint32_t index = nm_tidmap_get(metrics->index_of, tid);

	if (index == NM_TIDMAP_NONE)
		return;
	nm_tidmap_remove(metrics->index_of, tid);
	give_back(metrics, index);
}

/* ---- samples ---- */

static bool on_busiest_node(const struct nm_metrics *metrics, const struct nm_entry *entry,
			    unsigned slot, uint32_t most)
{
	int node = nm_cpu_node(metrics, entry->run_cpu[slot]);

	return node >= 0 && entry->counts[node] == most;
}

/*
 * Selects the slot to reuse when a thread has run on more CPUs than there are slots: the rarest,
 * but never the last one on the node on which it ran most, which must have a CPU at the end of the
 * interval.
 */
static __attribute__((noinline)) unsigned overflow_slot(const struct nm_metrics *metrics,
							struct nm_entry *entry)
{
	uint32_t most = nm_most_runs(metrics, entry);
	unsigned busiest = 0, rarest = NM_RUN_SLOTS;

	for (unsigned i = 0; i < NM_RUN_SLOTS; i++)
		busiest += on_busiest_node(metrics, entry, i, most);
	for (unsigned i = 0; i < NM_RUN_SLOTS; i++) {
		if (busiest == 1 && on_busiest_node(metrics, entry, i, most))
			continue;
		if (rarest == NM_RUN_SLOTS || entry->run_count[i] < entry->run_count[rarest])
			rarest = i;
	}
	entry->overflowed = 1;
	return rarest;
}

/* Returns the slot of a CPU: its own, an empty one, or that of another CPU. */
static inline unsigned slot_for(const struct nm_metrics *metrics, struct nm_entry *entry,
				uint32_t cpu)
{
	unsigned slot = 0;

	while (slot < NM_RUN_SLOTS && entry->run_count[slot] && entry->run_cpu[slot] != cpu)
		slot++;
	if (slot == NM_RUN_SLOTS)
		slot = overflow_slot(metrics, entry);
	entry->run_cpu[slot] = (uint16_t)cpu;
	return slot;
}

/* Returns how often the sample counts. The fractional part of weights is carried over to the next
 * sample, of any thread. */
static inline uint32_t times(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	enum { ONE_SHIFT = 8, ONE = 1 << ONE_SHIFT };

	if (__builtin_expect(sample->weight <= ONE, true))
		return 1;
	metrics->carry += sample->weight;
	uint32_t whole = metrics->carry >> ONE_SHIFT;
	metrics->carry &= ONE - 1;
	return whole;
}

static inline void add_run(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	struct nm_entry *entry = entry_for(metrics, sample);

	if (!entry)
		return;
	unsigned slot = slot_for(metrics, entry, sample->cpu);
	uint32_t count = times(metrics, sample);
	entry->run_count[slot] += count;
	entry->run_samples += count;
	entry->run_last[slot] = entry->run_samples;
	int node = nm_cpu_node(metrics, sample->cpu);
	if (node >= 0)
		entry->counts[node] += count;
}

/* Number of 4 KiB pages that the fault represents; at most 1 GiB, the largest page size. */
static inline uint32_t fault_weight(uint64_t page_bytes)
{
	enum { BASE_SHIFT = 12, MOST = 1 << 18 };
	uint64_t pages = page_bytes >> BASE_SHIFT;

	if (pages == 0)
		return 1;
	return pages < MOST ? (uint32_t)pages : MOST;
}

static inline void add_access(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	int node = nm_sample_node(sample, metrics->nr_nodes);

	if (node < 0)
		return;
	struct nm_entry *entry = entry_for(metrics, sample);
	if (!entry)
		return;
	entry->access_new++;
	entry->counts[metrics->nr_nodes + (unsigned)node] += fault_weight(sample->page_bytes);
}

/* Returns the hardware metrics of the thread; NULL: cannot be counted. */
static inline struct nm_hardware *hardware_for(struct nm_metrics *metrics,
					       const struct nm_sample *sample)
{
	struct nm_entry *entry = entry_for(metrics, sample);

	if (!entry)
		return NULL;
	size_t offset = (size_t)((uint8_t *)entry - metrics->entries);
	struct nm_hardware *hardware =
		nm_hardware_at(metrics, (uint32_t)(offset / metrics->stride));
	hardware->samples++;
	return hardware;
}

/* Stores have separate periods, so that their latencies are not included in the mean of loads. */
static inline void add_memory(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	struct nm_hardware *hardware = hardware_for(metrics, sample);

	if (!hardware)
		return;
	if (sample->latency_cycles > 0 && sample->kind == NM_EVENT_MEMORY) {
		hardware->latency_sum += sample->latency_cycles;
		hardware->latency_samples++;
	}
	hardware->levels += sample->level != NM_LEVEL_UNKNOWN;
	int node = nm_sample_node(sample, metrics->nr_nodes);
	if (node < 0)
		return;
	uint32_t count = times(metrics, sample);
	bool dram = sample->level == NM_LEVEL_DRAM;
	hardware->accesses++;
	hardware->dram_accesses += dram;
	hardware->counts[node] += count;
	hardware->counts[metrics->nr_nodes + (unsigned)node] += dram ? count : 0;
}

static void add_amount(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	struct nm_hardware *hardware = hardware_for(metrics, sample);

	if (!hardware)
		return;
	if (sample->kind == NM_EVENT_INSTRUCTIONS) {
		hardware->instructions += sample->amount;
	} else if (sample->kind == NM_EVENT_FLOPS) {
		hardware->flops += sample->amount;
	} else {
		hardware->dram_bytes += sample->amount;
		if (!metrics->dram_sample_bytes || sample->amount < metrics->dram_sample_bytes)
			metrics->dram_sample_bytes = sample->amount;
	}
}

void nm_metrics_add(struct nm_metrics *metrics, const struct nm_sample *sample)
{
	if (sample->tid == 0)
		return; /* the idle task, or a thread of another PID namespace */
	switch (sample->kind) {
	case NM_EVENT_CLOCK:
	case NM_EVENT_CYCLES:
		add_run(metrics, sample);
		break;
	case NM_EVENT_FAULT_MIN:
	case NM_EVENT_FAULT_MAJ:
		add_access(metrics, sample);
		break;
	case NM_EVENT_MEMORY:
	case NM_EVENT_STORE:
		add_memory(metrics, sample);
		break;
	case NM_EVENT_INSTRUCTIONS:
	case NM_EVENT_FLOPS:
	case NM_EVENT_DRAM:
		add_amount(metrics, sample);
		break;
	case NM_EVENT_SIDEBAND:
	case NM_EVENT_KIND_MAX:
		break;
	}
}

/* ---- times of threads ---- */

struct nm_thread_times nm_times_since(const struct nm_proc_schedstat *before,
				      const struct nm_proc_schedstat *now, uint64_t age_ns)
{
	uint64_t length_ns = before->read_ns > 0 ? now->read_ns - before->read_ns : age_ns;
	if (now->read_ns < before->read_ns || now->run_ns < before->run_ns ||
	    now->delay_ns < before->delay_ns || now->runs < before->runs)
		length_ns = 0;
	if (length_ns == 0)
		return (struct nm_thread_times){0};
	return (struct nm_thread_times){.run_ns = now->run_ns - before->run_ns,
					.delay_ns = now->delay_ns - before->delay_ns,
					.runs = now->runs - before->runs,
					.length_ns = length_ns};
}
