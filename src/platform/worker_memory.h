/* SPDX-License-Identifier: MIT */
/* Determines which processes may be queried, from those that did not answer; and the functions of
 * struct nm_unresponsive_list (worker.h) that a client calls. Times are CLOCK_MONOTONIC. */
#ifndef NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H
#define NUMA_MIGRD_PLATFORM_WORKER_MEMORY_H

#include "numa-migrd/proc.h"
#include "worker_link.h"

/* The process to which a memory map belongs, or its first living thread. */
struct nm_worker_subject {
	uint32_t pid;
	uint64_t start_ticks;
	uint32_t uid; /* effective uid, for the message about it */
	uint64_t domain;
};

/* Identifies the process by number. start_ticks: the required start time (-ESRCH if it differs); 0:
 * any process with this number. */
int nm_worker_subject_of(int proc_fd, uint32_t tid, uint64_t start_ticks,
			 struct nm_worker_subject *ret);
/* The same, in the client's /proc. */
int nm_worker_client_identify(struct nm_worker_client *client, uint32_t tid, uint64_t start_ticks,
			      struct nm_worker_subject *ret);

#define NM_WORKER_MISSED_MOST 1024U /* shared: newest */

struct nm_worker_bars {
	unsigned stuck_count;
	struct nm_worker_stuck {
		uint64_t domain;    /* of the process that was queried */
		struct nm_worker_link link; /* a worker of an earlier run: its fd is a pidfd */
		bool at_work; /* it has not missed its deadline, but needs more time */
	} stuck[NM_STUCK_WORKERS_MOST];
	size_t missed_count; /* total; the oldest entry is replaced */
	struct {
		uint32_t pid;
		uint64_t start_ticks, until_ns;
	} missed[NM_WORKER_MISSED_MOST];
};

/*
 * Returns 0 if the process may be queried; -EALREADY if it missed its deadline recently, or if its
 * domain has a stuck worker, or there are too many; in the latter case -EINPROGRESS if a worker is
 * still working for the domain. `others`: calls in progress that may get stuck, too.
 */
int nm_worker_may_ask(const struct nm_worker_bars *bars, const struct nm_worker_subject *subject,
		      unsigned others, uint64_t now_ns);
/* Records that a process missed its deadline, and is not queried before until_ns. */
void nm_worker_missed(struct nm_worker_bars *bars, uint32_t pid, uint64_t start_ticks,
		      uint64_t until_ns);
/* Adds a worker that does not answer a query about a process of this domain; *link becomes
 * NM_WORKER_LINK_NONE. Requires that nm_worker_may_ask() has returned 0. */
void nm_worker_stuck(struct nm_worker_bars *bars, uint64_t domain, bool at_work,
		     struct nm_worker_link *link);
/* Removes a stuck worker that has answered or ended; the last one takes its place. */
void nm_worker_released(struct nm_worker_bars *bars, unsigned index);

/*
 * Begins a call about this process. Returns 0, or -EALREADY or -EINPROGRESS as nm_worker_may_ask().
 */
int nm_unresponsive_list_begin(struct nm_unresponsive_list *memory,
			       const struct nm_worker_subject *subject);
/*
 * Ends the call with this result. -ETIMEDOUT: the process is not queried for a while, and the
 * worker is kept as stuck; -ECANCELED, -EINPROGRESS: the worker is kept until it answers; another
 * error: the connection is closed. In these cases, *link becomes NM_WORKER_LINK_NONE.
 */
void nm_unresponsive_list_end(struct nm_unresponsive_list *memory,
			      const struct nm_worker_subject *subject, struct nm_worker_link *link,
			      int result);
/* Closes the connection; a worker that is our child is reaped once it has ended. */
void nm_unresponsive_list_let_go(struct nm_unresponsive_list *memory, struct nm_worker_link *link);
/*
 * Returns the counts, after closing the connections to stuck workers that have answered or ended.
 */
struct nm_worker_counts nm_unresponsive_list_counts(struct nm_unresponsive_list *memory);

#endif
