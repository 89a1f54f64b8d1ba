/* SPDX-License-Identifier: MIT */
/*
 * Computes metrics per thread and interval from samples (3DyRM; IMAR² paper, section 3): where a
 * thread ran, its CPU share, A(θ,k), its accesses to memory on node k, and, if the hardware samples
 * them, operations, DRAM traffic and latency. Pure.
 */
#ifndef NUMA_MIGRD_METRICS_H
#define NUMA_MIGRD_METRICS_H

#include "sample/sample.h"
#include "numa-migrd/topology.h"

/* The measured values of a thread in one interval. NaN: not available; displayed as "–". */
struct nm_thread_stats {
	uint32_t run_samples;
	double run_share; /* share of one CPU, 0–1; NaN: runs are not sampled */
	/* The CPU of most of its run samples (tie: the latest); -1: did not run. For a thread that
	 * ran on more than four CPUs, a frequent CPU on the node on which it ran most. */
	int main_cpu;
	int main_node;		/* node of main_cpu; -1: not known */
	double main_node_share; /* share of its run samples on main_node */
	double access_total;	/* Σ_k accesses, in the window (history half-life) */
	double access_samples;	/* number of samples in the window: a fault on a huge page is one */
	uint32_t fresh_samples; /* number of them in this interval, which count in `fresh` */
	/*
	 * nr_nodes values each: accesses in the window, and in this interval alone, which verdicts
	 * use. A page fault counts once for each 4 KiB of its page, as in the kernel's own NUMA
	 * statistics: one sample represents all of a huge page. If a thread has memory samples from
	 * the hardware in the interval, only these are counted and, if they include the level, only
	 * those that DRAM served.
	 */
	const double *accesses;
	const uint32_t *fresh;
	uint32_t latency_samples;
	double latency; /* L: mean in core cycles over the accesses with a measured latency */
	/* The same in the window, since the thread has run on main_node. */
	double recent_latency_samples, recent_latency;
	double instructions; /* O_R: instructions retired per second */
	double operations;   /* O_F: O_R and floating-point operations, per second */
	/*
	 * Bytes from DRAM per second, for I. At least the amount that min_samples samples per
	 * second represent, so that I of a thread without misses is large but finite. (If it were
	 * counted per interval, as in the paper, that I would double with T.)
	 */
	double traffic;
};

/* A thread that was sampled in the interval, or whose window contains accesses. */
struct nm_sampled_thread {
	uint32_t pid, tid;
	struct nm_thread_stats stats;
};

/* The properties of an interval, for nm_metrics_close(). */
struct nm_metrics_interval {
	uint64_t length_ns;
	double run_sample_ns; /* CPU time that one run sample represents; 0 or NaN: not sampled */
	double keep; /* 0–1: factor by which access counts decay; 0: the interval alone, as in the
		      * paper */
	uint64_t min_samples; /* min_samples, for the lower limit of `traffic` */
	/* Bit 1 << kind for each enum nm_event_kind that is sampled; the other metrics are NaN. */
	uint32_t kinds;
	/* nm_source_taken_per_seen(): the counts of a thread are multiplied by the value of the CPU
	 * on which it ran most. NULL: no samples were lost. */
	const double *taken_per_seen;
	unsigned nr_cpus;
};

struct nm_metrics;

/* Creates the object. The topology must outlive it. If samples never have nodes of memory
 * (has_nodes), access metrics stay NaN. */
void nm_metrics_new(const struct nm_topology *topology, bool has_nodes, struct nm_metrics **ret);
void nm_metrics_free(struct nm_metrics *metrics);
NM_DEFINE_CLEANUP(struct nm_metrics, nm_metrics_free);

/* Called for each sample. This is the hot path: one table lookup per sample. */
void nm_metrics_add(struct nm_metrics *metrics, const struct nm_sample *sample);

/* Returns the number of run samples of a thread in this interval. Called when it exits. */
uint32_t nm_metrics_runs(const struct nm_metrics *metrics, uint32_t tid);

/* Returns the bytes that a thread has read from and written to DRAM in this interval so far, as
 * sampled. */
uint64_t nm_metrics_dram_bytes(const struct nm_metrics *metrics, uint32_t tid);

/* Drops the counts of a thread that has exited, or whose number was reused. */
void nm_metrics_forget(struct nm_metrics *metrics, uint32_t tid);

/* Replaces the topology after a change of the machine, and resets the access counts. */
void nm_metrics_retarget(struct nm_metrics *metrics, const struct nm_topology *topology,
			 bool has_nodes);

/*
 * Ends the interval: computes the metrics of every thread that was sampled in it or still has
 * access history, in ascending tid order, then decays the access counts by `keep` and clears the
 * others. Threads without samples in 600 intervals are dropped. Returns the number of entries;
 * *ret is owned by the metrics and valid until the next nm_metrics_* call.
 */
int nm_metrics_close(struct nm_metrics *metrics, const struct nm_metrics_interval *interval,
		     const struct nm_sampled_thread **ret);

/*
 * Maximum number of threads, about 400 bytes each on four nodes. Beyond it, the threads without a
 * sample for the longest time are dropped once per interval; if all have had one, new threads wait
 * for the next interval.
 */
#define NM_METRICS_THREADS_MOST (1U << 17) /* shared: newest */

#endif
