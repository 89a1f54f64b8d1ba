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

/* Needs the threads. -ENOMEM. */
int nm_snapshot_fill_cpus(const struct nm_snapshot_input *input,
			  struct nm_snapshot_storage *storage);

#endif
