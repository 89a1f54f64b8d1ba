/* SPDX-License-Identifier: MIT */
/*
 * From a snapshot to what a round of balancing takes (balance.h): whose schedstat is worth reading,
 * and, with what it said, loads, groups and work that is not managed. Pure.
 */
#ifndef NUMA_MIGRD_BALANCE_INPUT_H
#define NUMA_MIGRD_BALANCE_INPUT_H

#include "numa-migrd/balance.h"
#include "numa-migrd/snapshot.h"

/*
 * The threads that may have waited in this interval: those at home on CPUs that were busy for all
 * but NM_WAIT_SHARE of it, those on the fullest CPUs first, at most `most`; none at all while the
 * nodes cannot be further apart than rules->end, however long anybody waited. So nothing is read
 * on a machine that is not overloaded. Indices into ret_threads (room for `most`), their number
 * into *ret_count. 0 or -ENOMEM. Tick, when the snapshot is there.
 */
int nm_balance_suspects(const struct nm_snapshot *snapshot, const struct nm_balance_rules *rules,
			size_t most, uint32_t *ret_threads, size_t *ret_count);

/* Rise of the first two numbers of /proc/PID/task/TID/schedstat since a reading earlier. */
struct nm_balance_times {
	uint64_t run_ns, delay_ns;
	uint64_t length_ns; /* between the readings; 0: not known */
};

struct nm_balance_facts {
	const struct nm_snapshot *snapshot;
	const struct nm_balance_times *times; /* per thread of the snapshot; NULL: none known */
	/* Per process of the snapshot: its pages by node (residency.h), NULL: not known. NULL: all
	 * are not known. */
	const double *const *resident;
	const enum nm_dtas_type *types;	    /* per thread; NULL: EITHER */
	const enum nm_dtas_type *cpu_types; /* nm_dtas_split(), for as long as `input`; NULL */
	double min_run; /* threads.min_run: a leader that ran or waited for less is quiet */
};

struct nm_balance_gathered {
	struct nm_balance_input input; /* threads and groups: those of the snapshot, by index */
	struct nm_balance_thread *threads;
	struct nm_selection_group *groups;
	double *resident, *other_load, *factors;
	uint32_t *members;
};

/*
 * The input of a round. A thread whose times are not known asks for a whole CPU where it was at
 * home on a saturated one, else for what it ran; it does not wait. Pages of a memory-only node
 * count at the node that stands for it. The snapshot must outlive *ret. 0 or -ENOMEM; the caller
 * clears. Tick, policy stage.
 */
int nm_balance_gather(const struct nm_balance_facts *facts, struct nm_balance_gathered *ret);
void nm_balance_gathered_clear(struct nm_balance_gathered *gathered);

#endif
