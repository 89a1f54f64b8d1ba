/* SPDX-License-Identifier: MIT */
/* The table of threads behind metrics.h: filled by metrics.c, read by close.c. */
#ifndef NUMA_MIGRD_METRICS_TABLE_H
#define NUMA_MIGRD_METRICS_TABLE_H

#include "numa-migrd/base.h"
#include "tasks/metrics.h"

/*
 * CPUs recorded per thread and interval. Most threads run on one or two. For those that run on
 * more, the rarest is overwritten and its count inherited (the space-saving rule), so that a CPU
 * with more than 25 % of the samples is never missed. Nodes are counted exactly in addition.
 */
#define NM_RUN_SLOTS 4

/* A thread is dropped after this number of intervals without a sample. */
#define NM_SILENT_INTERVALS_MAX 600U

/*
 * One thread in one interval. The first 64 bytes are used for every run sample, the counts after
 * them (up to eight nodes in the next 64 bytes) for every sample; adjacent lines are fetched as a
 * pair.
 */
struct nm_entry {
	uint32_t pid, tid; /* tid 0: free, and pid is the next free index */
	uint32_t run_samples, access_new;
	uint32_t run_count[NM_RUN_SLOTS];
	uint32_t run_last[NM_RUN_SLOTS]; /* run_samples at the slot's last sample; greater is
					  * later */
	uint16_t run_cpu[NM_RUN_SLOTS];
	uint32_t overflowed; /* more CPUs than slots */
	uint32_t silent;     /* number of intervals without a sample */
	uint32_t counts[];   /* nr_nodes run counts, then nr_nodes access counts */
};

/* Hardware samples of one thread in one interval. They are separate, so that other samples cost no
 * more. */
struct nm_hardware {
	uint64_t instructions, flops, dram_bytes;
	uint64_t latency_sum;
	uint32_t latency_samples;
	uint32_t samples;		  /* of any kind */
	uint32_t levels;		  /* memory samples that contain their level */
	uint32_t accesses, dram_accesses; /* samples with a known node, and those of them served by
					   * DRAM */
	uint32_t counts[]; /* nr_nodes weighted memory samples of any level, then nr_nodes served by
			    * DRAM */
};

/* Data of a thread kept between intervals, decayed by struct nm_metrics_interval.keep. A latency
 * depends on the node of the thread: the window of latencies is reset when that changes. */
struct nm_window {
	double latency_sum, latency_samples;
	int latency_node; /* node on which the thread ran then */
	double access_samples;
	double accesses[]; /* nr_nodes values */
};

struct nm_metrics {
	const struct nm_topology *topology;
	bool has_nodes; /* samples may have the node of their memory */
	unsigned nr_nodes;
	struct nm_tidmap *index_of;
	uint8_t *entries; /* capacity × stride bytes */
	size_t stride;
	uint8_t *hardware; /* capacity × hardware_stride bytes */
	size_t hardware_stride;
	uint32_t used, capacity, first_free;
	uint8_t *windows; /* capacity × window_stride bytes */
	size_t window_stride;
	bool made_room; /* in this interval */
	struct nm_sampled_thread *sampled;
	double *accesses; /* referenced by the metrics */
	uint32_t *fresh;  /* nr_nodes values per thread */
	size_t result_capacity;
	uint64_t dram_sample_bytes; /* smallest amount that one sample of DRAM traffic has
				     * represented; 0: none seen */
	uint32_t carry;		    /* of weights, in 1/256 */
};

static inline struct nm_entry *nm_entry_at(const struct nm_metrics *metrics, uint32_t index)
{
	return (struct nm_entry *)(void *)(metrics->entries + (size_t)index * metrics->stride);
}

static inline struct nm_hardware *nm_hardware_at(const struct nm_metrics *metrics, uint32_t index)
{
	return (struct nm_hardware *)(void *)(metrics->hardware +
					      (size_t)index * metrics->hardware_stride);
}

static inline struct nm_window *nm_window_at(const struct nm_metrics *metrics, uint32_t index)
{
	return (struct nm_window *)(void *)(metrics->windows +
					    (size_t)index * metrics->window_stride);
}

static inline int nm_cpu_node(const struct nm_metrics *metrics, uint32_t cpu)
{
	return cpu < metrics->topology->nr_cpus ? metrics->topology->cpus[cpu].node : -1;
}

/* Returns whether the entry has no sample in this interval. */
static inline bool nm_entry_is_silent(const struct nm_metrics *metrics, uint32_t index)
{
	const struct nm_entry *entry = nm_entry_at(metrics, index);

	return !entry->run_samples && !entry->access_new &&
	       !nm_hardware_at(metrics, index)->samples;
}

/* Returns the run count of the node on which the thread ran most. */
static inline uint32_t nm_most_runs(const struct nm_metrics *metrics, const struct nm_entry *entry)
{
	uint32_t most = 0;

	for (unsigned k = 0; k < metrics->nr_nodes; k++)
		if (entry->counts[k] > most)
			most = entry->counts[k];
	return most;
}

#endif
