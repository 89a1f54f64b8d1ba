/* SPDX-License-Identifier: MIT */
/*
 * Threads whose affinity was restored, by number and start time. Any affinity that such a
 * thread has later is its owner's choice. This table holds the threads that are not kept as leases:
 * 16 bytes per thread, at most NM_SETTLED_MOST threads.
 */
#ifndef NM_ACTUATE_SETTLED_H
#define NM_ACTUATE_SETTLED_H

#include "numa-migrd/base.h"
#include "numa-migrd/platform.h"

/* The number of units of some resource that each domain has. */
struct nm_shares {
	struct nm_share *shares;
	size_t count, capacity;
	uint32_t all; /* units in use */
};

/* Takes one of `most` units for the domain, if it has fewer than are left (nm_usage_has_room()).
 * Returns 0 or -ENOSPC. */
int nm_shares_take(struct nm_shares *shares, uint64_t domain, uint32_t most);
void nm_shares_release(struct nm_shares *shares, uint64_t domain);
void nm_shares_clear(struct nm_shares *shares);

#define NM_SETTLED_MOST 65536U

struct nm_settled_thread {
	uint32_t tid, owner; /* the low 32 bits of its domain's hash */
	uint64_t start_ticks : 48;
	uint64_t round : 16; /* the low 16 bits of the round in which it was added */
};

struct nm_settled {
	struct nm_settled_thread *threads;
	size_t count, capacity;
	struct nm_tidmap *by_tid;
	struct nm_shares shares;
	bool crowded; /* a thread could not be added since the last nm_settled_forget() */
};

struct nm_settled *nm_settled_new(void);
void nm_settled_free(struct nm_settled *settled);

/* Adds a thread in place of an earlier thread with the same number, which stays on failure. Returns
 * 0 or -ENOSPC. */
int nm_settled_add(struct nm_settled *settled, uint64_t domain, uint32_t tid, uint64_t start_ticks,
		   uint64_t round);
void nm_settled_remove(struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);
bool nm_settled_has(const struct nm_settled *settled, uint32_t tid, uint64_t start_ticks);

/* Drops the threads that were added before `round` and started before `since_ticks`. If the table
 * is crowded, it also drops the threads that have exited. */
void nm_settled_forget(struct nm_settled *settled, struct nm_platform *platform, uint64_t round,
		       uint64_t since_ticks);

#endif
