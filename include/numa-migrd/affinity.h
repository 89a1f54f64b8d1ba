/* SPDX-License-Identifier: MIT */
/*
 * How much threads share memory: kMAF's affinity matrix (sections 3.2 and 3.4.2), sparse, over the
 * threads of all processes, so that processes that share memory are seen together. Pure.
 */
#ifndef NUMA_MIGRD_AFFINITY_H
#define NUMA_MIGRD_AFFINITY_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"

struct nm_affinity;

/* The threads that are placed together: a symmetric graph in compressed rows, without loops. */
struct nm_affinity_graph {
	size_t nr_threads;
	uint32_t *first; /* nr_threads + 1: where each thread's row begins in the two below */
	uint32_t *partner, *weight;
};

/* What the threads of a process share (section 2.2.1), in sharings. */
struct nm_sharing {
	double amount;	      /* equation 2: mean over all T² cells */
	double heterogeneity; /* equation 1, which counts the zero diagonal */
};

struct nm_affinity_counts {
	uint64_t threads, pairs;
	uint64_t bytes;
	uint64_t lost; /* sharings of new pairs for which there was no room */
};

/* What one sharing adds to the weight of a pair; above 1, so that ageing by a quarter loses little
 * to rounding. */
#define NM_SHARING_STEP 16U

/* Reads pages.sharing_window_s. -ENOMEM. Daemon, start. */
int nm_affinity_new(const struct nm_config *config, struct nm_affinity **ret);
void nm_affinity_free(struct nm_affinity *affinity);
NM_DEFINE_CLEANUP(struct nm_affinity, nm_affinity_free);

/* New settings. Daemon, reload. */
void nm_affinity_configure(struct nm_affinity *affinity, const struct nm_config *config);

/*
 * A thread begins to be looked at: its id, as the table of pages keeps it (from 1; the one it has
 * if it is known). An id is not given again before every page has forgotten it. -ENOSPC: 65,535
 * threads; -ERANGE: tid too large; -ENOMEM.
 */
int nm_affinity_join(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s, uint16_t *ret);

/* A thread has ended: its row and column are gone. Unknown ones are fine. */
void nm_affinity_leave(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s);

/* The id of a thread that has joined, or 0. The hot path. */
uint16_t nm_affinity_id(const struct nm_affinity *affinity, uint32_t tid);

/* Two threads (ids) shared a sub-block: a finding with a partner. The hot path: never allocates. */
void nm_affinity_share(struct nm_affinity *affinity, uint16_t a, uint16_t b);

/*
 * After each mapping: M − (M >> 2), rounded as in section 3.4.2. Also clears what ended threads
 * left and makes room for more pairs. -ENOMEM: nothing was done.
 */
int nm_affinity_age(struct nm_affinity *affinity);

/*
 * The graph of these threads (tids, ascending; unknown ones stand alone): of each thread its
 * `partners` strongest pairs, ties by tid, so that an edge is there when one of its ends has it.
 * -ENOMEM. Before a mapping.
 */
int nm_affinity_graph(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
		      unsigned partners, struct nm_affinity_graph **ret);
void nm_affinity_graph_free(struct nm_affinity_graph *graph);
NM_DEFINE_CLEANUP(struct nm_affinity_graph, nm_affinity_graph_free);

/* Equations 1 and 2 over these threads. -ENOMEM. */
int nm_affinity_sharing(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
			struct nm_sharing *ret);

/* What two threads (tids) share now, as the matrix has it. */
uint32_t nm_affinity_between(const struct nm_affinity *affinity, uint32_t tid_a, uint32_t tid_b);

/* Each pair of living threads (tids) that share something, once, in no particular order. Verify. */
typedef void (*nm_affinity_fn)(void *context, uint32_t tid_a, uint32_t tid_b, uint32_t weight);
void nm_affinity_each(const struct nm_affinity *affinity, nm_affinity_fn each, void *context);

struct nm_affinity_counts nm_affinity_counts(const struct nm_affinity *affinity);

#endif
