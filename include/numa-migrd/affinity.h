/* SPDX-License-Identifier: MIT */
/*
 * The communication matrix: how much threads share memory (kMAF's affinity matrix, sections 3.2 and
 * 3.4.2). It is sparse and covers the threads of all processes, so that processes that share memory
 * are detected. Pure.
 */
#ifndef NUMA_MIGRD_AFFINITY_H
#define NUMA_MIGRD_AFFINITY_H

#include "numa-migrd/base.h"
#include "numa-migrd/config.h"

struct nm_affinity;

/* The threads that are placed together: a symmetric graph in compressed rows, without loops. */
struct nm_affinity_graph {
	size_t nr_threads;
	uint32_t *first; /* nr_threads + 1 entries: start of each thread's row in the next two
			  * arrays */
	uint32_t *partner, *weight;
};

/* Communication between the threads of a process (section 2.2.1). */
struct nm_sharing {
	double amount;	      /* equation 2: mean over all T² cells */
	double heterogeneity; /* equation 1, which includes the zero diagonal */
};

struct nm_affinity_counts {
	uint64_t threads, pairs;
	uint64_t bytes;
	uint64_t lost; /* communication of new pairs for which there was no room */
};

/* Amount by which one shared access raises the weight of a pair; above 1, so that aging by 25 %
 * loses little to rounding. */
#define NM_SHARING_STEP 16U

/* Creates a matrix; reads pages.sharing_window_s. Returns 0 or -ENOMEM. Called by the daemon at
 * start. */
int nm_affinity_new(const struct nm_config *config, struct nm_affinity **ret);
void nm_affinity_free(struct nm_affinity *affinity);
NM_DEFINE_CLEANUP(struct nm_affinity, nm_affinity_free);

/* Sets new settings. Called by the daemon on reload. */
void nm_affinity_configure(struct nm_affinity *affinity, const struct nm_config *config);

/*
 * Adds a thread and returns its id in the table of pages (from 1), or its existing id. An id is
 * reused only after every page has dropped it. Returns 0, -ENOSPC (65,535 threads), -ERANGE (tid
 * too large) or -ENOMEM.
 */
int nm_affinity_join(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s, uint16_t *ret);

/* Removes a thread that has exited, with its row and column. Unknown threads are ignored. */
void nm_affinity_leave(struct nm_affinity *affinity, uint32_t tid, uint32_t now_s);

/* Returns the id of a thread that was added, or 0. This is the hot path. */
uint16_t nm_affinity_id(const struct nm_affinity *affinity, uint32_t tid);

/* Adds communication between two threads (ids) that shared a sub-block, from a finding with a
 * partner. This is the hot path and never allocates. */
void nm_affinity_share(struct nm_affinity *affinity, uint16_t a, uint16_t b);

/*
 * Ages the matrix after each thread placement: M − (M >> 2), rounded as in section 3.4.2. Also
 * removes the remains of exited threads and makes room for more pairs. Returns 0, or -ENOMEM with
 * the matrix unchanged.
 */
int nm_affinity_age(struct nm_affinity *affinity);

/*
 * Returns the graph of these threads (tids, ascending; unknown ones have no edges). It contains the
 * `partners` strongest pairs of each thread, ties by tid; an edge exists if either end selects it.
 * Returns 0 or -ENOMEM. Called before a thread placement.
 */
int nm_affinity_graph(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
		      unsigned partners, struct nm_affinity_graph **ret);
void nm_affinity_graph_free(struct nm_affinity_graph *graph);
NM_DEFINE_CLEANUP(struct nm_affinity_graph, nm_affinity_graph_free);

/* Computes equations 1 and 2 over these threads. Returns 0 or -ENOMEM. */
int nm_affinity_sharing(const struct nm_affinity *affinity, const uint32_t *tids, size_t nr_threads,
			struct nm_sharing *ret);

/* Returns the current weight between two threads (tids). */
uint32_t nm_affinity_between(const struct nm_affinity *affinity, uint32_t tid_a, uint32_t tid_b);

/* Calls `each` once for each pair of living threads (tids) with communication, in no particular
 * order. Called by verify. */
typedef void (*nm_affinity_fn)(void *context, uint32_t tid_a, uint32_t tid_b, uint32_t weight);
void nm_affinity_each(const struct nm_affinity *affinity, nm_affinity_fn each, void *context);

struct nm_affinity_counts nm_affinity_counts(const struct nm_affinity *affinity);

#endif
