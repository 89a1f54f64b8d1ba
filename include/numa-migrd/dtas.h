/* SPDX-License-Identifier: MIT */
/*
 * Dynamic task-aware scheduling (kMLB, section 2.4): threads that wait for memory and threads that
 * compute run on CPUs of their own type, so that CPUs that share a cache or a core run both. The
 * paper describes the idea; metric, thresholds and split were designed here (algorithms.md, section
 * 5). Pure.
 */
#ifndef NUMA_MIGRD_DTAS_H
#define NUMA_MIGRD_DTAS_H

#include "numa-migrd/base.h"
#include "numa-migrd/topology.h"

/*
 * The type of a thread, EITHER until it is known; or the type of threads for which a CPU is used.
 */
enum nm_dtas_type { NM_DTAS_EITHER, NM_DTAS_COMPUTE, NM_DTAS_MEMORY };

/* Misses of the last-level cache per 1000 instructions. Initial estimates are in brackets. */
struct nm_dtas_rules {
	double memory_from;   /* [5] */
	double compute_below; /* [3] at most memory_from; in between a thread keeps its type */
	unsigned persist;     /* [2] running intervals in a row that a change takes; at least 1 */
};

/* State of one thread; initially zero. */
struct nm_dtas_behaviour {
	enum nm_dtas_type type;
	enum nm_dtas_type leaning; /* type indicated by the last running intervals, and their
				    * number */
	unsigned intervals;
};

/* Computes misses per 1000 instructions from rates of one interval (struct nm_figures: traffic by
 * line size, instructions). NaN if either is not known or no instruction was retired. */
double nm_dtas_mpki(double misses_per_s, double instructions_per_s);

/* Updates the state with an interval. NaN means that the thread did not run, and changes nothing.
 * Returns true if the type has changed. Called by the tick for each managed thread. */
bool nm_dtas_classify(struct nm_dtas_behaviour *behaviour, const struct nm_dtas_rules *rules,
		      double mpki);

/*
 * Returns how many of the CPUs to use for memory-bound threads, given the numbers of memory-bound
 * and compute-bound threads: by their ratio, rounded, and at least one for each type that exists.
 */
unsigned nm_dtas_memory_cpus(unsigned cpus, uint64_t memory, uint64_t compute);

/*
 * Assigns each CPU a type in `ret` (topology->nr_cpus entries). Unusable CPUs are EITHER; all are
 * EITHER if no thread has a type or one CPU would have to serve both. Memory-bound CPUs are spread
 * first over caches, then over alternate cores, then over SMT siblings. A small change of the ratio
 * changes few CPUs. Returns 0 or -ENOMEM. Called every 10 s with the numbers of running threads.
 */
int nm_dtas_split(const struct nm_topology *topology, uint64_t memory, uint64_t compute,
		  enum nm_dtas_type *ret);

/* Returns whether a thread may run on a CPU of this type. `idle` is true if no other thread demands
 * the CPU now (false: the paper's rule). */
bool nm_dtas_fits(enum nm_dtas_type cpu, enum nm_dtas_type thread, bool idle);

/* Returns the usable CPUs of the node on which a thread of this type may get a lease; empty if the
 * split has none on that node. Returns 0 or -ENOMEM. Called when a lease is created. */
int nm_dtas_cpus(const struct nm_topology *topology, const enum nm_dtas_type *types, int node,
		 enum nm_dtas_type thread, hwloc_bitmap_t ret);

#endif
