/* SPDX-License-Identifier: MIT */
/* The parts of a snapshot under construction; each function fills its arrays of storage->view. */
#ifndef NM_SNAPSHOT_BUILD_H
#define NM_SNAPSHOT_BUILD_H

#include "numa-migrd/snapshot.h"

struct nm_snapshot_storage {
	struct nm_snapshot view; /* the public part */
	double *accesses;	 /* nr_threads × nr_nodes */
	uint32_t *fresh;
	char (*comms)[NM_COMM_BYTES]; /* per process */
};

/* Fills the threads, except for their `process`, which nm_snapshot_fill_processes() sets together
 * with the processes. */
void nm_snapshot_fill_threads(const struct nm_snapshot_input *input,
			      struct nm_snapshot_storage *storage);
int nm_snapshot_fill_processes(const struct nm_snapshot_input *input,
			       struct nm_snapshot_storage *storage);

/* Returns the O of P: O_R if the setting requires it or floating-point operations are not sampled,
 * otherwise O_F. */
double nm_snapshot_intensity(const struct nm_config *config, const struct nm_thread_stats *stats);

/* Computes P, its means and its sum from threads and processes. */
void nm_snapshot_fill_performance(const struct nm_snapshot_input *input,
				  struct nm_snapshot_storage *storage);

/* Fills the CPUs, and sets sibling_worth; needs the threads. */
void nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			   struct nm_snapshot_storage *storage);

#endif
