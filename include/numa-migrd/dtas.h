/* SPDX-License-Identifier: MIT */
/*
 * Dynamic task-aware scheduling (kMLB, section 2.4): threads that wait for memory and threads that
 * compute run on CPUs of their own type, so that CPUs which share a cache or a core run both. The
 * paper gives the idea; metric, thresholds and split are ours (algorithms.md, section 5). Pure.
 */
#ifndef NUMA_MIGRD_DTAS_H
#define NUMA_MIGRD_DTAS_H

#include "numa-migrd/base.h"
#include "numa-migrd/topology.h"

/* Of a thread: what it is, EITHER until that is known. Of a CPU: what it runs. */
enum nm_dtas_type { NM_DTAS_EITHER, NM_DTAS_COMPUTE, NM_DTAS_MEMORY };

/* Misses of the last-level cache in 1000 instructions; first guesses in brackets. */
struct nm_dtas_rules {
	double memory_from;   /* [5] */
	double compute_below; /* [3] at most memory_from; in between a thread stays what it is */
	unsigned persist;     /* [2] running intervals in a row that it takes; at least 1 */
};

/* What is known of one thread; all zero at first. */
struct nm_dtas_behaviour {
	enum nm_dtas_type type;
	enum nm_dtas_type leaning; /* what the last running intervals spoke for, and how many */
	unsigned intervals;
};

/* From rates of one interval (struct nm_figures: traffic by line size, instructions); NaN where
 * either is unknown or nothing was retired. */
double nm_dtas_mpki(double misses_per_s, double instructions_per_s);

/*
 * Takes an interval into account: NaN is one in which the thread did not run, which says nothing.
 * Returns true where its type is another now. Tick, for each managed thread.
 */
bool nm_dtas_classify(struct nm_dtas_behaviour *behaviour, const struct nm_dtas_rules *rules,
		      double mpki);

/*
 * How many of the CPUs are for so many memory-bound threads beside so many compute-bound ones:
 * by their ratio, rounded, at least one for each type that there is.
 */
unsigned nm_dtas_memory_cpus(unsigned cpus, uint64_t memory, uint64_t compute);

/*
 * Gives each CPU a type into `ret` (topology->nr_cpus); unusable ones are EITHER, and all are where
 * no thread has a type or one CPU would have to serve both. Memory-bound CPUs are spread over
 * caches first, then over cores, every other one first, then over SMT siblings; a small change
 * of the ratio changes few CPUs. -ENOMEM. Every 10 s, with the counts of running threads.
 */
int nm_dtas_split(const struct nm_topology *topology, uint64_t memory, uint64_t compute,
		  enum nm_dtas_type *ret);

/* May a thread go to a CPU of this type? idle: nobody else wants it now (false: the paper's rule).
 */
bool nm_dtas_fits(enum nm_dtas_type cpu, enum nm_dtas_type thread, bool idle);

/*
 * The node's usable CPUs that a thread of this type may be leased, into `ret`: empty where the
 * split has none for it on that node. -ENOMEM. When a lease is made.
 */
int nm_dtas_cpus(const struct nm_topology *topology, const enum nm_dtas_type *types, int node,
		 enum nm_dtas_type thread, hwloc_bitmap_t ret);

#endif
