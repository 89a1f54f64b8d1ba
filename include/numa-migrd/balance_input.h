/* SPDX-License-Identifier: MIT */
/* Derives the input of a balancing round (balance.h) from a snapshot: the threads whose schedstat
 * must be read and, with the results, loads, groups and unmanaged load. Pure. */
#ifndef NUMA_MIGRD_BALANCE_INPUT_H
#define NUMA_MIGRD_BALANCE_INPUT_H

#include "numa-migrd/balance.h"
#include "numa-migrd/snapshot.h"

/*
 * Selects the threads that may have waited in this interval: those whose main CPU was busy for all
 * but NM_WAIT_SHARE of it, beginning with those on the fullest CPUs, at most `most`. Selects none
 * if the gap between the nodes cannot exceed rules->end, however long threads waited; therefore
 * nothing is read on a machine that is not overloaded. Writes their indices to ret_threads (room
 * for `most`) and their number to *ret_count. Returns 0 or -ENOMEM. Called by the tick after the
 * snapshot.
 */
int nm_balance_suspects(const struct nm_snapshot *snapshot, const struct nm_balance_rules *rules,
			size_t most, uint32_t *ret_threads, size_t *ret_count);

/* Increase of the first two numbers of /proc/PID/task/TID/schedstat since an earlier reading. */
struct nm_balance_times {
	uint64_t run_ns, delay_ns;
	uint64_t length_ns; /* between the readings; 0: not known */
};

struct nm_balance_facts {
	const struct nm_snapshot *snapshot;
	const struct nm_balance_times *times; /* per thread of the snapshot; NULL: none known */
	/* Per process of the snapshot: its pages by node (residency.h), or NULL if not known. NULL:
	 * not known for all. */
	const double *const *resident;
	const enum nm_dtas_type *types;	    /* per thread; NULL: EITHER */
	const enum nm_dtas_type *cpu_types; /* nm_dtas_split(), or NULL; must live as long as
					     * `input` */
	double min_run; /* threads.min_run: a leader that ran or waited less counts as idle */
};

struct nm_balance_gathered {
	struct nm_balance_input input; /* threads and groups have the indices of the snapshot's
					* threads and processes */
	struct nm_balance_thread *threads;
	struct nm_selection_group *groups;
	double *resident, *other_load, *factors;
	uint32_t *members;
};

/*
 * Computes the input of a round. The demand of a thread without times is a whole CPU if its main
 * CPU was saturated, otherwise the time that it ran; it does not count as waiting. Pages of a
 * memory-only node count at the node that represents it. The snapshot must outlive *ret. Returns 0
 * or -ENOMEM; the caller clears *ret. Called by the policy stage of the tick.
 */
int nm_balance_gather(const struct nm_balance_facts *facts, struct nm_balance_gathered *ret);
void nm_balance_gathered_clear(struct nm_balance_gathered *gathered);

#endif
