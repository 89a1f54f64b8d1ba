/* SPDX-License-Identifier: MIT */
/* Identifies the process to which a memory map belongs, from /proc. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_SUBJECT_H
#define NUMA_MIGRD_PLATFORM_WORKER_SUBJECT_H

#include <stdint.h>

#include "numa-migrd/base.h"
#include "numa-migrd/proc.h"

struct nm_worker_subject {
	uint32_t tid, pid;
	uint64_t tid_ticks, start_ticks;
	struct nm_tenant tenant;
};

struct nm_worker_client;

/* Identifies the process by the directory of one of its threads, or its own, and the stat of that.
 * Returns 0, -ESRCH if it has exited, -EALREADY if its status is not read (struct nm_costly), or
 * another negative errno. */
int nm_worker_subject_at(int directory, const struct nm_proc_stat *stat, struct nm_costly *costly,
			 struct nm_worker_subject *ret);
/* Identifies the process by number. start_ticks: the required start time (-ESRCH if it differs); 0:
 * any process with this number. */
int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks, struct nm_costly *costly,
			 struct nm_worker_subject *ret);
/* The same, with the table of the client. */
int nm_worker_client_identify(struct nm_worker_client *client, uint32_t tid, uint64_t start_ticks,
			      struct nm_worker_subject *ret);

#endif
