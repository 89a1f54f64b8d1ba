/* SPDX-License-Identifier: MIT */
/*
 * Queries about the memory of a process that take several system calls. Before each of them, the
 * worker looks at its connection and its time, and at the start time of a process that the call
 * names.
 */
#ifndef NM_PLATFORM_WORKER_QUERY_H
#define NM_PLATFORM_WORKER_QUERY_H

#include "platform/maps.h"
#include "platform/worker.h"

/* For each read, the kernel takes the lock and writes as many lines as fit. Of numa_maps these are
 * about three, because each may require a walk of gigabytes. */
#define NM_MAPS_PIECE 4096U
#define NM_NUMA_MAPS_PIECE 256U

/* The request that a worker performs. */
struct nm_job {
	int proc_fd, socket; /* socket -1: the client stays, for tests */
	const struct nm_worker_request *request;
	uint64_t until_ns;
};

/* Returns 0 if the process still has its number, -ESRCH, or another negative errno. */
int nm_job_require_process(const struct nm_job *job);
/* Returns 0, or -ECANCELED if the client no longer awaits the answer. */
int nm_job_require_client(const struct nm_job *job);
/* Both: for a call that names the process by its number. */
int nm_job_may_name(const struct nm_job *job);
/* Opens a file of the process. Returns the descriptor, which the caller closes, or a negative
 * errno. */
int nm_job_open(const struct nm_job *job, const char *name);

/* Return 0; -ETIMEDOUT: NM_WORKER_JOB_NS is over; -ECANCELED: the client has closed the connection;
 * -EFBIG: the text is longer than the limit; or another negative errno. */
int nm_query_count(const struct nm_job *job, struct nm_node_pages *ret);
int nm_query_sample(const struct nm_job *job, struct nm_node_pages *ret);
/* Returns the number of its program in nm_excluded_programs, or such an errno. */
int nm_query_program(const struct nm_job *job);

#endif
