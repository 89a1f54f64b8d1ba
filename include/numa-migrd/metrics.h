/* SPDX-License-Identifier: MIT */
/*
 * Samples → figures per thread and interval (3DyRM; lbma-imar2 section 3, algorithms.md section 1):
 * where it ran, its CPU share, A(θ,k), its accesses to memory that lives on node k, and, where the
 * hardware samples, operations, DRAM traffic and latency. Pure: values in, values out.
 */
#ifndef NUMA_MIGRD_METRICS_H
#define NUMA_MIGRD_METRICS_H

#include "numa-migrd/sample.h"
#include "numa-migrd/topology.h"

/* The figures of one thread over one interval. Unavailable = NaN; shown as "–". */
struct nm_figures {
	uint32_t pid, tid;
	uint32_t run_samples;
	double run_share; /* of one CPU, 0–1; NaN where runs are not sampled */
	/*
	 * Where most of its run samples fell (tie: the latest); -1: did not run. Of a thread that
	 * ran on more than four CPUs it is a frequent one on the node where it ran most.
	 */
	int main_cpu;
	int main_node;		/* node of main_cpu, -1 when unknown */
	double main_node_share; /* share of its run samples on main_node */
	double access_total;	/* Σ_k accesses, in the window (history half-life) */
	double access_samples;	/* samples behind them, in the window: a fault on a huge page is one
				 */
	uint32_t access_new;	/* access samples in this interval, those that count in `fresh` */
	double local_share;	/* accesses[main_node] / total; NaN without accesses or home node */
	/*
	 * nr_nodes values each, valid until the next nm_metrics_* call: accesses of the window, and
	 * of this interval alone, which a verdict rests on. A page fault counts once for each 4 KiB
	 * of its page, as in the kernel's own NUMA statistics: one sample stands for all of a huge
	 * page. A thread with memory samples of the hardware
	 * in the interval is counted by them alone, and where they tell the level, by those that
	 * DRAM served.
	 */
	const double *accesses;
	const uint32_t *fresh;
	const uint32_t *touched; /* memory samples of this interval by home node, of any level */
	uint32_t latency_samples;
	double latency; /* L: mean of the accesses whose latency was measured, core cycles */
	/* The same in the window, of the time since the thread has run on main_node. */
	double recent_latency_samples, recent_latency;
	double instructions; /* O_R: retired, per second */
	double operations;   /* O_F: O_R and floating-point operations, per second */
	/*
	 * Bytes from DRAM per second, for I; at least what min_samples samples per second stand
	 * for, so that I of a thread without misses is large but finite. (Counted per interval, as
	 * the paper has it, that I would double with T.)
	 */
	double traffic;
};

/* What an interval was, for nm_metrics_close(). */
struct nm_metrics_interval {
	uint64_t length_ns;
	double run_sample_ns; /* CPU time one run sample stands for; 0: not sampled, NaN */
	double keep; /* 0–1: what is left of the access counts; 0 = the interval alone, the paper */
	uint64_t min_samples; /* threads.min_samples, for the floor of `traffic` */
	/* Bit 1 << kind of each enum nm_event_kind that is sampled; figures of the others are NaN.
	 */
	uint32_t kinds;
	/*
	 * nm_source_taken_per_seen(): what a thread was seen to do is multiplied by the value of
	 * the CPU where it ran most. NULL: nothing was lost.
	 */
	const double *taken_per_seen;
	unsigned nr_cpus;
};

struct nm_metrics;

/* physmap may be NULL: no home nodes, access figures stay NaN. Both must outlive the metrics. */
int nm_metrics_new(const struct nm_topology *topology, const struct nm_physmap *physmap,
		   struct nm_metrics **ret);
void nm_metrics_free(struct nm_metrics *metrics);
NM_DEFINE_CLEANUP(struct nm_metrics, nm_metrics_free);

/* A sink's on_sample (context: struct nm_metrics *). The hot path: one table look-up per sample. */
void nm_metrics_add(void *metrics, const struct nm_sample *sample);

/* A thread ended, or a number was given to a new one: its counts go. */
void nm_metrics_forget(struct nm_metrics *metrics, uint32_t tid);

/* Replaces topology and physmap after a change of the machine; access counts start anew. */
int nm_metrics_retarget(struct nm_metrics *metrics, const struct nm_topology *topology,
			const struct nm_physmap *physmap);

/*
 * Ends the interval: computes the figures of every thread that was sampled in it or still has
 * access history, in ascending tid order, then decays the access counts by `keep` and clears the
 * rest. Threads silent for 600 intervals are dropped. Returns the number of figures; *ret is owned
 * by the metrics and valid until the next call. -ENOMEM.
 */
int nm_metrics_close(struct nm_metrics *metrics, const struct nm_metrics_interval *interval,
		     const struct nm_figures **ret);

/*
 * Threads that are counted at once, some 400 bytes each on four nodes. For more of them those go
 * that had no sample for the longest, once in an interval; where all have had one, new ones wait
 * for the next.
 */
#define NM_METRICS_THREADS_MOST (1U << 17)

/* Samples that could not be counted since the start: tid out of range, no memory, more threads than
 * that, address of no node. */
struct nm_metrics_losses {
	uint64_t bad_tid, no_memory, no_room, no_node;
};
struct nm_metrics_losses nm_metrics_losses(const struct nm_metrics *metrics);

#endif
