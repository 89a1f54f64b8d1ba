/* SPDX-License-Identifier: MIT */
/* Whose memory map it is, by /proc. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_SUBJECT_H
#define NUMA_MIGRD_PLATFORM_WORKER_SUBJECT_H

#include <stdint.h>

#include "numa-migrd/tenant.h"

struct nm_worker_subject {
	uint32_t tid, pid;
	uint64_t tid_ticks, start_ticks;
	struct nm_tenant tenant;
};

/* Below a directory of a thread or process. -ESRCH: it is gone; -errno. */
int nm_worker_subject_at(int directory, struct nm_worker_subject *ret);
/* By its number; start_ticks: that it must have (else -ESRCH), 0: any process with the number. */
int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks,
			 struct nm_worker_subject *ret);
/* The start, by a file stat; the number too, where that file's directory is of a descriptor. */
int nm_worker_read_start(int directory, const char *path, uint32_t *ret_tid, uint64_t *ret_ticks);

#endif
