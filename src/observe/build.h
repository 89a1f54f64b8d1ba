/* SPDX-License-Identifier: MIT */
/* The parts of a snapshot under construction; each fills its arrays of storage->view. */
#ifndef NM_SNAPSHOT_BUILD_H
#define NM_SNAPSHOT_BUILD_H

#include "numa-migrd/snapshot.h"

struct nm_snapshot_storage {
	struct nm_snapshot view; /* what the world sees */
	double *accesses;	 /* nr_threads × nr_nodes */
	uint32_t *fresh;
	char (*comms)[NM_COMM_BYTES]; /* per process */
};

/* Fills threads; their `process` and the processes are nm_snapshot_fill_processes()'s. */
void nm_snapshot_fill_threads(const struct nm_snapshot_input *input,
			      struct nm_snapshot_storage *storage);
int nm_snapshot_fill_processes(const struct nm_snapshot_input *input,
			       struct nm_snapshot_storage *storage);

/* The O of P: O_R where the setting says so or floating-point operations are not sampled, else O_F.
 */
double nm_snapshot_operations(const struct nm_config *config, const struct nm_figures *figures);

/* P, its means and its sum (algorithms.md section 1); needs threads and processes. */
void nm_snapshot_fill_performance(const struct nm_snapshot_input *input,
				  struct nm_snapshot_storage *storage);

/* Marks as free what a node has of CPUs beside the idle ones; needs busy shares and homes. */
void nm_snapshot_fill_free(const struct nm_config *config, struct nm_snapshot *view);

/* Needs the threads. -ENOMEM. */
int nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			  struct nm_snapshot_storage *storage);

#endif
